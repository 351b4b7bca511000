"""Under which addresses hosts see each other: sentences from what was seen, and a real NAT between."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import real_runs
import routed
from routed import OFFICE, Routed
from stand_in_hosts import connected as stand_in

from lab.errors import AgentRefused, HostLacks
from lab.events import Outcome, Standing
from lab.model import Line, Role
from lab.rig import checking, peers
from lab.rig.doubts import doubts
from lab.rig.hosts import Connected, connected, in_role
from lab.rig.line import HeldLine
from lab.rig.meter import Meter
from lab.stop import Stop

LINE = Line(upload_bps=512_000, download_bps=1_024_000)
NAT = "203.0.113.5"


def lab(
    seen: dict[str, str], own: dict[str, str] | None = None, gate: tuple[str, ...] = ()
) -> list[Connected]:
    """Hosts that are seen by the others as said."""

    def verbs(name: str) -> dict[str, Any]:
        said = {"seen": seen.get(name, ""), "own": (own or {}).get(name, seen.get(name, ""))}
        return {
            "probe.serve": lambda args: {"events": [("listening", {"port": 4711})]},
            "probe.seen": lambda args: said,
        }

    return [
        stand_in("server", Role.SERVER, verbs("server"), address="198.51.100.1"),
        stand_in("proxy", Role.PROXY, verbs("proxy"), address="192.0.2.2"),
        stand_in("desk", Role.CLIENT, verbs("desk"), address="192.0.2.11"),
        *[stand_in("gate", Role.ROUTER, facts={"addresses": list(gate)}) for _ in gate],
    ]


TRUE = {"desk": "192.0.2.11", "proxy": "192.0.2.2"}
BEHIND = {"desk": NAT, "proxy": NAT}


def found(hosts: list[Connected], place: str = "server") -> list[peers.Found]:
    return list(peers.told(peers.look(hosts, Stop()), hosts, place))


def test_where_all_is_as_the_profile_says_there_is_nothing_to_do() -> None:
    hosts = lab(TRUE)
    assert [(one.host, one.ok, one.advice) for one in found(hosts)] == [
        ("desk", True, ""),
        ("proxy", True, ""),
        ("desk", True, ""),
    ]
    peers.refuse(peers.look(hosts, Stop()), hosts, "server")


def test_a_wrong_address_in_the_profile_is_told_with_the_right_one() -> None:
    hosts = lab({**TRUE, "desk": "192.0.2.12"})
    wrong = [one for one in found(hosts) if not one.ok]
    assert 'address = "192.0.2.12" under [hosts.desk]' in wrong[0].advice
    with pytest.raises(HostLacks, match="the profile says 192"):
        peers.refuse(peers.look(hosts, Stop()), hosts, "server")


@pytest.mark.parametrize(
    ("place", "gate", "ok", "words"),
    [
        ("server", (), False, 'line = "office"'),
        ("office", (), True, ""),
        ("router", ("192.0.2.1",), True, ""),
        ("router", ("192.0.2.1", NAT), False, 'line = "office"'),
    ],
)
def test_behind_nat_the_cure_depends_on_where_the_line_is(
    place: str, gate: tuple[str, ...], ok: bool, words: str
) -> None:
    hosts = lab(BEHIND, {"desk": "192.0.2.11", "proxy": "192.0.2.2"}, gate)
    seen = [
        one for one in peers.look(hosts, Stop()) if one.by == "server"
    ]  # the proxy sees the client directly
    (one,) = (one for one in peers.told(seen, hosts, place) if "NAT" in one.text)
    assert f"server sees {NAT} for desk and proxy" in one.text
    assert (one.ok, words in one.advice) == (ok, True)
    assert peers.hidden(seen, hosts) == {"desk", "proxy"}
    if ok:
        peers.refuse(seen, hosts, place)
    else:
        with pytest.raises(HostLacks, match="behind NAT"):
            peers.refuse(seen, hosts, place)


def test_who_cannot_be_reached_is_told_and_no_run_is_refused_for_it() -> None:
    def broken(args: Any) -> Any:
        raise AgentRefused("nobody answers probes", kind="failed", host="desk")

    hosts = [
        stand_in("server", Role.SERVER, lab(TRUE)[0].agent.verbs, address="198.51.100.1"),  # type: ignore[attr-defined]
        stand_in("desk", Role.CLIENT, {"probe.seen": broken}, address="192.0.2.11"),
    ]
    (one,) = found(hosts)
    assert (one.ok, "firewalls" in one.advice) == (False, True)
    peers.refuse(peers.look(hosts, Stop()), hosts, "server")
    hosts[0] = stand_in("server", Role.SERVER, {}, address="198.51.100.1")
    assert not found(hosts)[0].ok


# ---- a real NAT


def masquerade(bed: Routed) -> None:
    """The router hides the office behind its own address."""
    bed.net.run(
        "router",
        "nft",
        "table ip nat { chain p { type nat hook postrouting priority 100; oifname eth1 masquerade\n}\n}",
    )


@pytest.mark.lab
def test_two_hosts_behind_one_address_are_found_and_the_cure_works(tmp_path: Path) -> None:
    with routed.office(tmp_path, (4,), powerless=False) as bed:
        masquerade(bed)
        rights = {"c1": "direct", "proxy": "direct", "server": "direct"}
        told = checking.check(bed.lab(**rights), None)
        (nat,) = (one for one in told if "NAT" in one.text and not one.ok)
        assert nat.text == "behind NAT: server sees 10.78.2.1 for c1 and proxy"
        assert 'Write line = "office"' in nat.advice
        assert any(
            one.ok and one.text == f"proxy sees this host as {OFFICE[0]}, as the profile says" for one in told
        )
        # On a router that translates, arriving packets have other addresses.
        (nat,) = (
            one for one in checking.check(bed.lab(router="direct", **rights), None) if "NAT" in one.text
        )
        assert "the router itself translates them" in nat.text
        told = checking.check(bed.lab(line="office", **rights), None)
        assert any(one.ok and "counted where it is sent" in one.text for one in told)
        with connected(bed.lab(line="office", **rights), Stop()) as hosts:
            seen = peers.look(hosts, Stop())
            with pytest.raises(HostLacks, match="behind NAT"):
                peers.refuse(seen, hosts, "server")
            peers.refuse(seen, hosts, "office")
            line, meter = HeldLine(hosts, place="office"), Meter(hosts, peers.hidden(seen, hosts))
            assert meter.as_sent == ("client>server", "proxy>server")
            meter.start(Stop())
            assert line.apply(LINE, Stop()).matches(LINE)
            start = meter.read(Stop())
            proved = line.prove(LINE, in_role(hosts, Role.CLIENT)[0], Stop())
            moved = meter.read(Stop()).since(start).arrived
            assert doubts(proved).disproved == ()
            assert 0.90 <= (proved.achieved_upload_bps or 0) / 512_000 <= 0.98
            assert 0.90 <= (proved.achieved_download_bps or 0) / 1_024_000 <= 0.98
            assert moved["client>server"] >= 128_000
            assert moved["server>client"] >= 256_000
            assert moved["proxy>server"] == 0


@pytest.mark.lab
def test_a_server_of_our_own_lets_in_whom_nat_hides(tmp_path: Path) -> None:
    # Where Apache's own user finds its way, unlike in the folders of pytest.
    with (
        tempfile.TemporaryDirectory(prefix="branchlab-test-", dir="/run") as services,
        routed.office(tmp_path, (4,), powerless=False) as bed,
    ):
        Path(services).chmod(0o755)
        masquerade(bed)
        rights = {"c1": "direct", "proxy": "direct", "server": "direct"}
        lab = bed.lab(line="office", services=f"{services}/lab", **rights)
        run = real_runs.ran(lab, real_runs.experiment(lines=(LINE,), attempts=1), tmp_path / "run.branchlab")
        assert run.last_word.outcome is Outcome.DONE, run.last_word
        assert [one.standing for one in run.trials] == [Standing.KEPT], [one.reason for one in run.trials]


@pytest.mark.lab
def test_hosts_of_both_families_are_seen_under_both(tmp_path: Path) -> None:
    with routed.office(tmp_path) as bed, connected(bed.lab(), Stop(), lease_s=None) as hosts:
        seen = peers.look(hosts, Stop())
        assert not any(one.hidden or one.trouble for one in seen)
        assert {(one.by, one.host, one.seen) for one in seen} == {
            ("proxy", "c1", "10.78.1.11"),
            ("proxy", "c1", "fd78:1::11"),
            ("server", "c1", "10.78.1.11"),
            ("server", "c1", "fd78:1::11"),
            ("server", "proxy", "10.78.1.12"),
            ("server", "proxy", "fd78:1::12"),
        }
