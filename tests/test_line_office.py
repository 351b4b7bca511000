"""A line of its own for each office host: towards the server only, with real packets; the server is left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import real_runs
import routed
from netns import FailedError
from real_runs import EMPTY, Hosts, experiment
from routed import OFFICE, SERVER, SERVER6

from lab import embedded
from lab.events import HostChanged, Noted, Outcome, Standing
from lab.model import AS_IT_IS, DISABLED, Line, Role
from lab.rig.doubts import doubts
from lab.rig.hosts import connected, in_role
from lab.rig.line import HeldLine
from lab.rig.meter import Meter
from lab.stop import Stop
from tests.test_router import FAST_BPS, RATES, dumps, rate

LINE = Line(upload_bps=512_000, download_bps=1_024_000)


@pytest.mark.lab
@pytest.mark.parametrize("families", [(4,), (6,)])
def test_office_hosts_hold_the_line_where_the_server_cannot(
    tmp_path: Path, families: tuple[int, ...]
) -> None:
    with routed.office(tmp_path, families, powerless=False) as bed:
        before = dumps(bed, "c1", "proxy", "server")
        lab = bed.lab(line="office", c1="direct", proxy="direct")
        with connected(lab, Stop()) as hosts:
            line, meter = HeldLine(hosts, place=lab.place), Meter(hosts)
            line.refuse([LINE], Stop())
            meter.start(Stop())
            assert line.apply(LINE, Stop()).matches(LINE)
            start = meter.read(Stop())
            for role in (Role.CLIENT, Role.PROXY):
                proved = routed.proved(line, LINE, in_role(hosts, role)[0])
                assert doubts(proved).disproved == ()
                assert 0.90 <= (proved.achieved_upload_bps or 0) / 512_000 <= 0.98
                assert 0.90 <= (proved.achieved_download_bps or 0) / 1_024_000 <= 0.98
            moved = meter.read(Stop()).since(start)
            assert meter.uncounted == ("client>server", "proxy>server")
            assert moved.arrived["server>client"] >= 256_000
            assert moved.arrived["client>proxy"] == 0
            line.lift(Stop())
            assert line.read(Stop()).matches(AS_IT_IS)
        assert dumps(bed, "c1", "proxy", "server") == before


@pytest.mark.lab
def test_what_an_office_host_exchanges_with_others_is_not_limited(tmp_path: Path) -> None:
    with routed.office(tmp_path, powerless=False) as bed:
        net = bed.net
        root = net.agent("c1", privileged=True)
        client, proxy, server = net.agent("c1"), net.agent("proxy"), net.agent("server")
        root.ask("lease.open", lease_s=300)
        exempt = [{"address": address, "port": 2222} for address in (OFFICE[0], SERVER)]
        where = {"place": "office", "office": OFFICE[:1], "server": [SERVER, SERVER6], "exempt": exempt}
        word = root.ask("line.apply", **where, **RATES)
        assert (word["applied"], word["place"], word["device"]) == (True, "office", "eth0")
        assert (word["office"], word["server"], word["exempt"]) == ([], [SERVER, SERVER6], exempt)
        for direction, size, asked in (("up", 128_000, 512_000), ("down", 256_000, 1_024_000)):
            assert rate(proxy, client, OFFICE[1], direction, 10_000_000) > FAST_BPS
            for address in (SERVER, SERVER6):
                assert 0.8 <= rate(server, client, address, direction, size) / asked <= 0.98
            serving = server.start("probe.serve", address=SERVER, port=2222)
            serving.event()
            told = client.ask("probe.fetch", address=SERVER, port=2222, bytes=5_000_000, direction=direction)
            serving.cancel()
            serving.done()
            assert told["rate_bps"] > FAST_BPS
        # The same host as a server to somebody: what it was is taken off first.
        word = root.ask("line.apply", office=[OFFICE[1]], **RATES)
        assert (word["applied"], word["place"], word["office"]) == (True, "server", [OFFICE[1]])
        with pytest.raises(FailedError, match="not of the server"):
            root.ask("line.apply", place="office", office=OFFICE[:1], server=OFFICE[:1], **RATES)


@pytest.mark.lab
def test_a_whole_run_with_a_line_for_each_office_host(tmp_path: Path) -> None:
    """Through the proxy and past it, in the embedded lab; every office host's line is proved."""
    with embedded.up() as made:
        before = Hosts.of(made.folder)
        lab = replace(made.lab, line="office")
        wanted = experiment(lines=(LINE,), states=(DISABLED, EMPTY))
        run = real_runs.ran(lab, wanted, tmp_path / "run.branchlab")
        assert run.last_word.outcome is Outcome.DONE, run.last_word
        assert {one.standing for one in run.trials} == {Standing.KEPT}, [one.reason for one in run.trials]
        assert len(run.proved) == 2
        assert any(isinstance(event, Noted) and "not shared" in event.text for event in run.events)
        limited = {
            event.host for event in run.events if isinstance(event, HostChanged) and "line" in event.what
        }
        assert limited == {"client", "proxy"}
        real_runs.await_same(made.folder, before)


@pytest.mark.lab
@pytest.mark.parametrize("families", [(4,), (6,)])
def test_each_direction_limited_where_it_is_sent_needs_no_ifb_and_holds(
    tmp_path: Path, families: tuple[int, ...]
) -> None:
    with routed.office(tmp_path, families, powerless=False) as bed:
        before = dumps(bed, "c1", "proxy", "server")
        lab = bed.lab(line="senders", c1="direct", proxy="direct", server="direct")
        with connected(lab, Stop()) as hosts:
            line = HeldLine(hosts, place=lab.place)
            line.refuse([LINE], Stop())
            assert line.apply(LINE, Stop()).matches(LINE)
            for name in ("c1", "proxy", "server"):
                assert "bl-ifb" not in bed.net.run(name, "ip", "-br", "link")
                assert "ingress" not in bed.net.run(name, "tc", "qdisc", "show")
            for role in (Role.CLIENT, Role.PROXY):
                proved = routed.proved(line, LINE, in_role(hosts, role)[0])
                assert doubts(proved).disproved == ()
                assert 0.90 <= (proved.achieved_upload_bps or 0) / 512_000 <= 0.98
                assert 0.90 <= (proved.achieved_download_bps or 0) / 1_024_000 <= 0.98
            faster = replace(LINE, upload_bps=2_000_000, download_bps=4_000_000)
            assert line.apply(faster, Stop()).matches(faster)
            # A half that somebody takes away is no line, and neither is it none.
            bed.net.run("proxy", "tc", "qdisc", "del", "dev", "eth0", "root")
            assert not line.read(Stop()).matches(faster)
            assert not line.read(Stop()).matches(AS_IT_IS)
            line.lift(Stop())
            assert line.read(Stop()).matches(AS_IT_IS)
            assert line.apply(LINE, Stop()).matches(LINE)
        assert dumps(bed, "c1", "proxy", "server") == before
