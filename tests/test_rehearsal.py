"""A rehearsal in a real lab: every kind proves itself, everything is taken back, and what is left is found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import real_runs
from real_runs import FULL, QUICK_LINE, Hosts, on
from rich.console import Console

from lab import design, embedded, machines, store
from lab.cli import rehearsal
from lab.embedded import Embedded
from lab.machines import Machines
from lab.model import AS_IT_IS, DISABLED, Lab
from lab.rig.hosts import connected
from lab.stop import Stop

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def lab() -> Iterator[Embedded]:
    with embedded.up() as made:
        yield made


@pytest.mark.timeout(300)
def test_each_kind_is_tried_once_and_everything_is_taken_back(
    lab: Embedded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path))
    before = Hosts.of(lab.folder)
    wanted = real_runs.experiment(
        lines=(AS_IT_IS, QUICK_LINE),
        states=(DISABLED, FULL),
        operations=("get", "diff"),
        disabled_only=("diff",),
    )
    out = Console(record=True, width=400)
    shown = design.rehearsal(wanted)
    assert rehearsal.run(lab.lab, shown, Machines(lab.lab), lambda: machines.left(lab.lab), out) == 0
    told = out.export_text()
    assert "Rehearsed 3 of 3 kinds of trial, once each; 3 proved themselves." in told
    for host in ("server", "proxy", "client"):
        assert f"{host}: changed: " in told
        assert f"{host}: nothing is left there" in told
    assert "line on eth0 limited" in told.split("server: taken back: ")[1].splitlines()[0]
    (head,) = store.runs()
    assert head.experiment == "Acceptance (rehearsal)"
    assert Hosts.of(lab.folder) == before


def test_what_is_left_is_named_and_nothing_is_touched_to_find_it(lab: Embedded) -> None:
    assert all(one.ok for one in machines.left(lab.lab))
    with connected(lab.lab, Stop()) as hosts:
        hosts[0].agent.ask("files.scratch", {"name": "mine"})
        server, proxy, client = machines.left(lab.lab)
        assert "scratch folder" in server.text
        assert "branchlab revert PROFILE" in server.advice
        assert not any(one.ok for one in (server, proxy, client))  # its leases are on every host
    assert [(one.ok, one.text) for one in machines.left(lab.lab)] == [(True, "nothing is left there")] * 3
    assert on(lab.folder, "server", "tc qdisc show dev eth0 | grep htb") == ""


def test_a_host_that_cannot_be_looked_at_is_no_clean_host(lab: Embedded) -> None:
    first, *rest = lab.lab.hosts
    gone = Lab(name="x", hosts=(replace(first, ssh="unix:/nowhere/ssh"), *rest[:1]))
    one, other = machines.left(gone)
    assert not one.ok
    assert "could not be looked at again" in one.text
    assert other.ok
