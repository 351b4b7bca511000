"""Every dialog that asks, with made-up questions: for tests of the window, and for looking at them."""

from __future__ import annotations

from collections.abc import Callable

from checks_shown import INSTALL
from PySide6.QtWidgets import QWidget

from gui.agreement import AgreementDialog
from gui.dialogs import Dialog
from gui.found import Came, Lacking
from gui.host_key import HostKeyDialog
from gui.lab.removing import RemoveDialog
from gui.packages import PackagesDialog, ProgressDialog
from gui.password import NotRememberedDialog, PasswordDialog
from gui.purge import PurgeDialog
from gui.theme.look import Look
from lab.asking import Question
from lab.credentials import Offered
from lab.hands import Inventory, Kept

CONNECTIONS = Question(
    kind="connections",
    host="server",
    text="7 connections of others between server and proxy would feel the line.",
    details=("4 between server and proxy on port 80", "3 between server and desk-1 on port 3690"),
)
PURGE = Question(
    kind="purge",
    host="proxy",
    text="1,204 objects of others are in /var/cache/apache2; this run would take them out, and they are "
    "fetched again when somebody asks for them.",
    details=tuple(f"http://tfs.example.com/svn/trunk/src/d{n:02d}/file{n:03d}.cs" for n in range(12)),
)
QDISC = Question(
    kind="qdisc",
    host="server",
    text="eth0 has queues that somebody set up. They are replaced while a line is applied, and put back.",
    details=(
        "qdisc htb 1: root refcnt 2 r2q 10 default 0x30 direct_packets_stat 0 direct_qlen 1000",
        "class htb 1:1 root rate 100Mbit ceil 100Mbit burst 1600b cburst 1600b",
    ),
)
QUESTIONS = (CONNECTIONS, PURGE, QDISC)


def offered(kind: str = "ssh-ed25519", known: str = "") -> Offered:
    """A key that an unknown host showed."""
    print_ = "SHA256:7mQv0tXk3RzLb9YcWfJ2sHd8pN4uEoGa1VtKyM6xQiB"
    return Offered(host="desk-3", target="lab@198.51.100.23:22", kind=kind, fingerprint=print_, known=known)


def _agreement(look: Look, window: QWidget) -> Dialog:
    dialog = AgreementDialog(look, QUESTIONS, window)
    dialog.checks[0].setChecked(True)
    return dialog


def _one(look: Look, window: QWidget) -> Dialog:
    dialog = AgreementDialog(look, (CONNECTIONS,), window)
    dialog.checks[0].setChecked(True)
    return dialog


def _password(look: Look, window: QWidget) -> Dialog:
    dialog = PasswordDialog(
        look,
        "Password of lab@proxy.office.example.com:22 to become root on proxy: ",
        window,
        notice="sudo did not take the password. This is try 2 of 3.",
        keyring=True,
    )
    dialog.remember.setChecked(True)
    dialog.field.setText("not shown")
    return dialog


def _first_password(look: Look, window: QWidget) -> Dialog:
    return PasswordDialog(look, "Passphrase of the key /home/lab/.ssh/id_ed25519: ", window)


def _code(look: Look, window: QWidget) -> Dialog:
    return PasswordDialog(look, "proxy (lab@proxy.office.example.com:22) asks: Verification code: ", window)


def _not_remembered(look: Look, window: QWidget) -> Dialog:
    return NotRememberedDialog(look, "the password of lab@proxy.office.example.com:22 to become root", window)


def _pasted(text: str) -> Callable[[Look, QWidget], Dialog]:
    def made(look: Look, window: QWidget) -> Dialog:
        dialog = HostKeyDialog(look, offered(), window)
        dialog.field.setText(text)
        return dialog

    return made


LACKING = (
    Lacking(host="desk-3", needs=("Subversion's client",), command=INSTALL.replace("iproute2 nftables", "subversion"),
            by_hand=True),
    Lacking(host="proxy", needs=("Squid", "wirefilter (vde2)"), unknown=("wirefilter (vde2)",)),
    Lacking(host="server", needs=("tc (iproute2)", "nft (nftables)"), command=INSTALL),
    Lacking(host="desk-4", trouble="no answer on port 22 within 5 s; tried: ssh lab@desk-4"),
)  # fmt: skip


def _packages(look: Look, window: QWidget) -> Dialog:
    return PackagesDialog(look, LACKING[2:3], window, remove=False)


def _packages_not_all(look: Look, window: QWidget) -> Dialog:
    return PackagesDialog(look, LACKING, window, remove=False)


def _packages_away(look: Look, window: QWidget) -> Dialog:
    ours = tuple(Lacking(host=host, ours=("iproute2", "libbpf1", "nftables")) for host in ("proxy", "server"))
    return PackagesDialog(look, ours, window, remove=True)


def _installing(look: Look, window: QWidget) -> Dialog:
    dialog = ProgressDialog(look, ("proxy", "server"), window, remove=False)
    dialog.at("proxy")
    for text in (
        "Reading package lists...",
        "Building dependency tree...",
        "The following NEW packages will be installed:",
        "  iproute2 libbpf1 libnftables1 nftables",
        "Get:1 http://mirror.example.com/debian bookworm/main amd64 libbpf1 amd64 1:1.1.0-1 [145 kB]",
        "Setting up nftables (1.0.6-2+deb12u2) ...",
    ):
        dialog.line("proxy", text)
    return dialog


def _installed(look: Look, window: QWidget) -> Dialog:
    dialog = _installing(look, window)
    assert isinstance(dialog, ProgressDialog)
    dialog.came(Came(host="proxy", texts=("iproute2", "libbpf1", "libnftables1", "nftables")))
    trouble = (
        "apt-get ended with 100: Unable to locate package nftables; what to do: Look at the lines above."
    )
    dialog.came(Came(host="server", trouble=trouble))
    dialog.over("Not everything was done. The hosts are checked again.", "trouble")
    return dialog


IN_CACHE = Inventory(
    host="proxy",
    folder="/var/cache/branchlab",
    origin="http://tfs.example.com:80/svn/",
    objects=tuple(
        Kept(
            f"/svn/trunk/{n}",
            f"http://tfs.example.com:80/svn/trunk/src/d{n % 40:02d}/file{n:04d}.cs",
            2260,
            2,
        )
        for n in range(1732)
    ),
    others=12,
)


def _purge(percent: str) -> Callable[[Look, QWidget], Dialog]:
    def made(look: Look, window: QWidget) -> Dialog:
        dialog = PurgeDialog(look, IN_CACHE, IN_CACHE.ordered(2008), 2008, window)
        dialog.field.setText(percent)
        return dialog

    return made


def _fill(look: Look, window: QWidget) -> Dialog:
    return AgreementDialog(look, (PURGE,), window, deed="Fill the cache", icon="stack")


DIALOGS: dict[str, Callable[[Look, QWidget], Dialog]] = {
    "agreement": _agreement,
    "agreement-one": _one,
    "password": _first_password,
    "password-wrong": _password,
    "code": _code,
    "not-remembered": _not_remembered,
    "host-key": _pasted(""),
    "host-key-same": _pasted(f"256 {offered().fingerprint} root@desk-3 (ED25519)"),
    "packages": _packages,
    "packages-not-all": _packages_not_all,
    "packages-away": _packages_away,
    "installing": _installing,
    "installed": _installed,
    "purge": _purge("10"),
    "purge-all": _purge("100 %"),
    "purge-wrong": _purge("110"),
    "agreement-fill": _fill,
    "host-key-differs": _pasted("SHA256:" + "x" * 43),
    "remove-proxy": lambda look, window: RemoveDialog(
        look, window, "proxy", ("Do we need the proxy?", "Quick")
    ),
}
