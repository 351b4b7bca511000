"""What pictures show of dialogs, the wizard, checks and work by hand: what is asked and found is made up."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import start_shown
from checks_shown import some, thirty, well
from dialogs_shown import DIALOGS
from fake_testbed import FakeTestbed, experiment, small
from PySide6.QtWidgets import QDialog
from screens import Camera, settle
from start_shown import AWAY, LOOKING, UNKNOWN, entered, stranger_profile

from gui.asking import CloseDialog, OverwriteDialog, SaveDialog
from gui.lab.checked import CheckedLab
from gui.lab.hand import ByHandKnown, CacheKnown, LineKnown
from gui.lab.items import THE_LINE
from gui.new_lab.wizard import CLIENTS, NAME, PROXY, SERVER
from gui.report import DefectDialog, Trouble
from gui.start.pairs import PairsDialog
from gui.stranger import StrangerDialog, told
from gui.telling import EXPERIMENT, LAB, RESULTS, RUN
from lab import recent, runner
from lab.analysis import before_after
from lab.draft import Recovered
from lab.events import HostChanged, Noted, Outcome, RunFinished, RunPaused
from lab.live import Live
from lab.model import Cache, Host, Lab, Line, Role
from lab.stop import Stop

HOSTS = Lab(
    name="Minsk office",
    hosts=(
        Host(name="desk-3", role=Role.CLIENT, ssh="lab@desk-3"),
        Host(
            name="proxy",
            role=Role.PROXY,
            ssh="lab@proxy.office.example.com",
            url="http://198.51.100.7:8081",
            cache=Cache(kind="apache-disk", folder="/var/cache/branchlab"),
        ),
        Host(name="server", role=Role.SERVER, ssh="lab@tfs.example.com"),
    ),
)


ACCOUNT = (
    (5, "server", "nftables table inet branchlab made", False),
    (7, "server", "line 64/128 kbit/s on eth0 for 198.51.100.7 and 198.51.100.23", False),
    (41, "server", "taken back: line 64/128 kbit/s on eth0", True),
    (42, "server", "taken back: nftables table inet branchlab", True),
)


LAST = (
    ("paused", RunPaused()),
    ("lost", Noted(text="no answer for 30 s; looked for again", grade="warn", lost="server")),
    (
        "failed",
        RunFinished(
            at="2026-06-03T09:12:00+00:00",
            outcome=Outcome.FAILED,
            reason="proxy: the disk is full: 0 bytes are left in /var/cache/branchlab",
            advice="Make room there, then repeat what is missing.",
        ),
    ),
)


FULL = CacheKnown(
    objects=1732,
    bytes=3_914_000,
    others=12,
    operation="Get",
    listed=1732,
    here=1732,
    here_bytes=3_914_000,
    listed_bytes=3_914_000,
)
READ = "64 kbit/s up, 128 kbit/s down; queues 64.0 kB up, 64.0 kB down (tc)"
BY_HAND = (
    ("hand-proxy", "proxy", ByHandKnown()),
    ("hand-filling", "proxy", ByHandKnown(deed="fill")),
    ("hand-full", "proxy", ByHandKnown(cache=FULL)),
    ("hand-purged", "proxy", ByHandKnown(cache=replace(FULL, objects=1559, here=1559, here_bytes=3_523_000))),
    ("hand-line", THE_LINE, ByHandKnown(cache=FULL)),
    (
        "hand-line-held",
        THE_LINE,
        ByHandKnown(
            deed="line",
            cache=FULL,
            line=LineKnown(
                line=Line(upload_bps=64_000, download_bps=128_000), said=READ, left_s=27.0, lease_s=30.0
            ),
        ),
    ),
)


def everything(camera: Camera) -> None:
    """All of it, in a window of its own."""
    window = camera.window
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _start(camera, folder)
        _wizard(camera, folder)
    _many(camera)
    window.show_lab(HOSTS, (small(),), {"Small": 12})
    window._top.show_open(HOSTS.name, "minsk-office.toml")
    window.show_page(LAB)
    _by_hand(camera)
    _checks(camera)
    _asked(camera)
    _run(camera)


def _start(camera: Camera, folder: Path) -> None:
    window = camera.window
    page = window.start_page
    camera.wait()  # for the list of profiles, which is read in a thread
    for many in (0, 1, 12):
        page.show_profiles(start_shown.profiles(folder, many))
        camera.shoot(f"start-{many}-profiles")
    page.show_profiles(start_shown.profiles(folder))
    page.offer_recovered((Recovered(folder / "minsk.toml", "x", folder / "none.json"),))
    page.show_runs(start_shown.heads())
    camera.shoot("start-recovered")
    page.offer_recovered(())
    for name in ("bazaar-2008", "sync-2013"):
        _shown(camera, name, PairsDialog(camera.look, before_after.pairs(name), window))
    text = next(told(stranger_profile(folder)))
    _shown(camera, "stranger", StrangerDialog(camera.look, "minsk.toml", text, window))


def _wizard(camera: Camera, folder: Path) -> None:
    steps = {"proxy.office.example.com": LOOKING, "desk-2": UNKNOWN, "desk-9": AWAY}
    dialog = start_shown.wizard(camera.look, camera.window, folder, steps)
    camera.shoot_over("new-lab-empty", dialog)
    entered(dialog.server, ssh="server.example.com")
    camera.shoot_over("new-lab-server", dialog)
    dialog.show_step(PROXY)
    entered(dialog.proxy, ssh="proxy.office.example.com")
    camera.shoot_over("new-lab", dialog)
    dialog.pages[PROXY].cache.kind.setCurrentIndex(2)
    camera.shoot_over("new-lab-squid", dialog)
    dialog.pages[PROXY].cache.kind.setCurrentIndex(0)
    dialog.show_step(CLIENTS)
    entered(dialog.clients[0], ssh="desk-1")
    for name in ("desk-2", "desk-9"):
        dialog.pages[CLIENTS].add.click()
        entered(dialog.clients[-1], ssh=name)
        camera.shoot_over(f"new-lab-{name}", dialog)
    inventory = folder / "hosts.ini"
    inventory.write_text("[office]\n" + "\n".join(f"pc-{n}.office.example.com" for n in range(12)) + "\n")
    dialog.read_inventory(inventory)
    camera.shoot_over("new-lab-inventory", dialog)
    dialog.name_page.name.line.setText("Minsk office")
    dialog.show_step(NAME)
    camera.shoot_over("new-lab-name", dialog)
    dialog.show_step(SERVER)
    dialog.leave()


def _many(camera: Camera) -> None:
    """Twelve lines, long names and names in other scripts, ten clients."""
    window = camera.window
    with tempfile.TemporaryDirectory() as name:
        profile = Path(name) / "a-profile-with-a-very-long-name-of-an-office-in-the-north-of-minsk.toml"
        profile.write_text(start_shown.MANY, "utf-8")
        window.open_profile(profile)
        camera.wait()
        window.show_page(EXPERIMENT)
        camera.wait()
        camera.shoot("experiment-many", 0.4)
        window.experiment_page._scroll.verticalScrollBar().setValue(10_000)
        camera.shoot("experiment-many-below", 0.3)
        window.show_page(LAB)
        camera.shoot("lab-many", 0.4)
        window.document.take(None)
        camera.wait()
        recent.forget(profile)


def _by_hand(camera: Camera) -> None:
    """What is done by hand: the proxy and the line selected, in each state."""
    page = camera.window.lab_page
    for name, selected, known in BY_HAND:
        page.picture.select(selected)
        page.say_by_hand(
            "Filling the cache: Get runs once through the proxy …" if known.deed == "fill" else ""
        )
        page.show_hand(known)
        camera.window.shown.tell_frame()
        camera.shoot(name)
    page.say_by_hand("")
    page.show_hand(ByHandKnown())
    page.picture.select("")


def _checks(camera: Camera) -> None:
    """The page while hosts are checked, and what checks of all kinds found."""
    window = camera.window
    page = window.lab_page
    window.deeds.checking.going.emit("Checking proxy (2 of 3) …")
    window.deeds.checking.looking.emit("proxy")
    camera.shoot("checking")
    window.deeds.checking.looking.emit("")
    window.deeds.checking.going.emit("")
    found = some("desk-3", HOSTS.name)
    long = tuple(replace(one, host="desk-3") for one in thirty())
    good = tuple(replace(one, host="desk-3" if one.host == "client" else one.host) for one in well())
    for name, items, selected in (
        ("check", found, ""),
        ("check-server", found, "server"),
        ("check-thirty", long, "desk-3"),
        ("check-well", good, ""),
    ):
        at = datetime.now().astimezone()
        page.show_check(CheckedLab(items=items, at=at, experiment="Small", own=False))
        page.picture.select(selected)
        window.shown.tell_frame()
        camera.shoot(name)
    page.picture.select("")


def _asked(camera: Camera) -> None:
    """Every dialog, over the lab."""
    look, window = camera.look, camera.window
    for name, make in DIALOGS.items():
        if camera.wants(name):
            _shown(camera, name, make(look, window))
    trace = "Traceback (most recent call last):\n  …\nRuntimeError: made up for this picture\n"
    for name, dialog in (
        ("close", CloseDialog(look, window)),
        ("save", SaveDialog(look, window, "Minsk office")),
        ("overwrite", OverwriteDialog(look, window, "minsk-office.toml")),
        ("defect", DefectDialog(look, trace, window)),
    ):
        _shown(camera, name, dialog)
    window._tell(
        Trouble(
            title="proxy: no answer on port 22 within 5 s",
            text="The others go on being watched. Is the host up, and does ssh lab@proxy work in a terminal?",
            tried="ssh lab@proxy.office.example.com, three times, 5 s each",
        )
    )
    camera.shoot("banner")
    window._tell(
        Trouble(
            title="desk-3: the key of lab@198.51.100.23:22 is SHA256:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, and "
            "known is ED25519 SHA256:7mQv0tXk3RzLb9YcWfJ2sHd8pN4uEoGa1VtKyM6xQiB: another machine may be answering",
            text="On the host itself, `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` shows which is right. If the "
            "host was set up anew, take the old line out (ssh-keygen -f /home/lab/.ssh/known_hosts -R "
            "'198.51.100.23') and store the new one.",
            tried="/home/lab/.ssh/known_hosts",
        )
    )
    camera.shoot("key-changed")
    window._banner.hide()


def _run(camera: Camera) -> None:
    """The page Run before its first trial, paused, with a host lost, failed; and the account of a made-up run."""
    window = camera.window
    window.show_page(RUN)
    camera.shoot("run-none")
    window.show_page(RESULTS)
    camera.shoot("results-none")
    window.show_page(RUN)
    window.show_page(RUN)
    window.run_page.look("Do we need the proxy?")
    camera.shoot("looking")
    window.run_page.looked()
    for name, last in LAST:
        live = Live()
        for event in runner.run(experiment(name="网络实验 مقارنة الخطوط"), FakeTestbed(samples=3), Stop()):
            live.apply(event)
            if live.done >= 100 and event.kind == "trial-finished":
                break
        live.apply(last)
        window.show_live(live)
        window.run_page._pausing = live.paused
        window.run_page.redraw()
        camera.shoot(f"run-{name}", 0.4)
    live = Live()
    for event in runner.run(small(), FakeTestbed(), Stop()):
        live.apply(event)
    for second, host, what, undone in ACCOUNT:
        at = f"2026-06-03T09:12:{second:02d}+00:00"
        live.apply(HostChanged(host=host, at=at, what=what, undone=undone))
    window.show_live(live)
    window.run_page.output._tabs.button(2).click()
    camera.shoot("account")


def _shown(camera: Camera, name: str, dialog: QDialog) -> None:
    dialog.open()
    camera.shoot_over(name, dialog)
    dialog.done(0)
    settle(0.05)
