"""One host of an embedded lab: its own namespaces, and an sshd behind a UNIX socket in the lab's folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
import subprocess
from pathlib import Path

from lab.embedded import kernel
from lab.embedded.needs import SEARCH, program
from lab.embedded.plan import IPV4_BITS, IPV6_BITS, HostPlan, LabPlan

SERVER_BRIDGE = "uplink"
"""The bridge inside the server into which its line is cut when delay is made in user space."""
SERVER_PORT = "up0"
"""That bridge's port towards the office."""


FOLDERS = {"home": 0o700, "tmp": 0o711, "services": 0o711, "cache": 0o711}
"""What a host has in its folder, and the modes."""
IN_MEMORY = ("tmp", "cache")
"""Those of them that are not on the disk."""


def live(plan: LabPlan, host: HostPlan, tell: int, hear: int) -> None:
    """Become the host and serve until killed.

    Writes `n` to `tell` once the namespaces are there, waits on `hear` until the other side has put a device
    in, writes `r` when connections can be made. Raises OSError or CalledProcessError if it cannot be made.
    """
    kernel.unshare(kernel.CLONE_NEWNET | kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS)
    os.write(tell, b"n")
    _make_files_private(plan, host)
    socket.sethostname(host.name)
    if os.read(hear, 1) != b"g":
        return
    os.close(hear)
    _join_network(host)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(host.ssh))
        host.ssh.chmod(0o600)
        listener.listen(64)
        os.write(tell, b"r")
        os.close(tell)
        _serve(listener, host)


def _make_files_private(plan: LabPlan, host: HostPlan) -> None:
    """Let the host see a /run, users and names of its own. Nothing of it is seen outside the namespace."""
    kernel.mount("tmpfs", Path("/run"), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    for name, mode in (("sshd", 0o755), ("lock", 0o1777)):
        Path("/run", name).mkdir()
        Path("/run", name).chmod(mode)
    own = {name: Path(plan.folder, name) for name in ("hosts", "group")}
    own["passwd"] = Path(host.folder, "passwd")
    if os.geteuid() == 0:
        own["shadow"] = Path(plan.folder, "shadow")
    _own_etc(own)
    if os.geteuid() == 0:
        for log in ("wtmp", "btmp", "lastlog"):  # logins to the lab are not logins to this machine
            if Path("/var/log", log).exists():
                kernel.bind(Path("/dev/null"), Path("/var/log", log))
    kernel.mount(
        "devpts", Path("/dev/pts"), "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, "newinstance,ptmxmode=0666"
    )
    # Thousands of small files are made and removed between trials; in memory that takes a fifth of the time, and
    # whatever happens to the lab, they are gone with it.
    for name in IN_MEMORY:
        place = Path(host.folder) / name
        kernel.mount("tmpfs", place, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"mode={FOLDERS[name]:o}")
    # /sys/class/net shows the namespace in which it was mounted. Some containers forbid it; then it is stale.
    with contextlib.suppress(OSError):
        kernel.mount("sysfs", Path("/sys"), "sysfs", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)


def _own_etc(own: dict[str, Path]) -> None:
    """An /etc of the host's own, read-only at its top: the machine's, but for these files.

    Files bound over the machine's own would be gone with the next user that somebody adds: useradd renames a new
    file over the old one, and the kernel then takes away whatever is mounted there, in every namespace.
    """
    made = Path("/run/etc")
    made.mkdir()
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("tmpfs", made, "tmpfs", flags, "mode=755")
    for name in {item.name for item in Path("/etc").iterdir()} | own.keys():
        item, place = own.get(name, Path("/etc", name)), made / name
        with contextlib.suppress(FileNotFoundError):  # what somebody just removed, such as useradd's locks
            if item.is_symlink():
                place.symlink_to(item.readlink())
                continue
            place.mkdir() if item.is_dir() else place.touch()
            kernel.bind(item, place)
    kernel.mount("tmpfs", made, "tmpfs", flags | kernel.MS_REMOUNT | kernel.MS_RDONLY)
    kernel.mount(str(made), Path("/etc"), "", kernel.MS_MOVE)
    made.rmdir()


def _join_network(host: HostPlan) -> None:
    """Give the host its addresses on eth0, one Ethernet segment with all other hosts."""
    # The device that the holder put in is eth0 itself or, in the server, up0.
    given = "eth0"
    devices: tuple[str, ...] = ("eth0",)
    if host.role == "server":
        given, devices = (SERVER_PORT, ("eth0", "eth0p", SERVER_PORT))
    six = settle(("all", "default", given))
    lines = ["link set lo up"]
    if host.role == "server":
        lines += [
            # The line's delay, where netem is lacking, is made by a program between two taps, in this bridge.
            # Otherwise the bridge only passes frames on.
            f"link add {SERVER_BRIDGE} type bridge mcast_snooping 0",
            "link add eth0 type veth peer name eth0p",
            *unaddressed(SERVER_BRIDGE),
            *unaddressed("eth0p", SERVER_BRIDGE),
            *unaddressed(SERVER_PORT, SERVER_BRIDGE),
        ]
    lines += [f"addr add {host.address}/{IPV4_BITS} dev eth0"]
    lines += [f"addr add {host.address6}/{IPV6_BITS} dev eth0 nodad"] if six else []
    # Else a sender's packet filter would count a bundle of packets with the headers of one.
    ip_batch([*lines, "link set eth0 gso_max_segs 1", "link set eth0 up"])
    for device in devices:
        kernel.offloads_off(device)


def settle(devices: tuple[str, ...]) -> bool:
    """Set what a measuring network needs; True if the kernel has IPv6.

    Bridged frames must not pass through the packet filter (Docker's hosts have that on): they would be
    counted twice. What TCP learned of a path in one trial must not help the next one. An IPv6 address must
    not wait a second to see whether someone else has it. And a host answers for an address only on the device
    that has it: else the server's inner bridge would answer for eth0, and nothing would pass the line.
    """
    for name in ("iptables", "ip6tables", "arptables"):
        kernel.sysctl(f"net/bridge/bridge-nf-call-{name}", "0")
    kernel.sysctl("net/ipv4/tcp_no_metrics_save", "1")
    kernel.sysctl("net/ipv4/conf/all/arp_ignore", "1")
    six = kernel.sysctl("net/ipv6/conf/all/disable_ipv6", "0")
    for name in devices:
        kernel.sysctl(f"net/ipv6/conf/{name}/disable_ipv6", "0")
        kernel.sysctl(f"net/ipv6/conf/{name}/accept_dad", "0")
    return six


def unaddressed(device: str, bridge: str | None = None) -> list[str]:
    """Lines of `ip` that bring up a device (into a bridge) that speaks for itself on no network."""
    joined = [f"link set {device} master {bridge}"] if bridge else []
    # Not in one line with `up`, which would be done first.
    return [*joined, f"link set {device} addrgenmode none", f"link set {device} up"]


def ip_batch(lines: list[str]) -> None:
    """Run lines of `ip`, all in one process. Raises CalledProcessError with what it said."""
    text = "".join(line + "\n" for line in lines)
    command = [program("ip") or "ip", "-batch", "-"]
    subprocess.run(
        command, input=text, text=True, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def _serve(listener: socket.socket, host: HostPlan) -> None:
    """For each connection, an sshd with the socket as its standard input and output."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended sshds leave no zombie
    sshd = program("sshd") or "/usr/sbin/sshd"
    # sshd executes itself again from the folder /, so every path is absolute.
    command = [sshd, "-i", "-f", f"{host.folder}/sshd_config", "-E", f"{host.folder}/sshd.log"]
    null = os.open(os.devnull, os.O_WRONLY)
    while True:
        connection, _address = listener.accept()
        with connection:
            number = connection.fileno()
            streams = [
                (os.POSIX_SPAWN_DUP2, number, 0),
                (os.POSIX_SPAWN_DUP2, number, 1),
                (os.POSIX_SPAWN_DUP2, null, 2),
            ]
            os.posix_spawn(
                sshd,
                command,
                {"PATH": SEARCH},
                file_actions=streams,
                setsid=True,
                setsigdef=[signal.SIGCHLD, signal.SIGPIPE],
            )


def write_files(plan: LabPlan, host: HostPlan, host_key: Path) -> None:
    """Write what the host's sshd reads, into the host's folder, which exists."""
    folder = Path(host.folder)
    # Root's Apache works as www-data and must get to what lies in these; an ordinary user's lab is closed to
    # everyone else by its own folder.
    for name, mode in FOLDERS.items():
        (folder / name).mkdir()
        (folder / name).chmod(mode)  # mkdir heeds the umask
    home = folder / "home"
    environment = {
        "HOME": home,
        "TMPDIR": folder / "tmp",
        "XDG_CACHE_HOME": home / ".cache",
        "XDG_CONFIG_HOME": home / ".config",
        "PATH": SEARCH,
    }
    words = " ".join(f"{name}={value}" for name, value in environment.items())
    lines = [
        f"HostKey {host_key}",
        f"AuthorizedKeysFile {plan.folder}/key.pub",
        "AuthenticationMethods publickey",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        "UsePAM no",
        # It would refuse the lab's folder because everyone may write to /tmp; the folder itself is private.
        "StrictModes no",
        "UseDNS no",
        "PermitUserRC no",
        "PrintMotd no",
        "PrintLastLog no",
        "MaxSessions 100",
        "PidFile none",
        "Subsystem sftp internal-sftp",
        # Nothing that the lab runs may leave traces in the user's own home.
        f"SetEnv {words}",
    ]
    (folder / "sshd_config").write_text("".join(line + "\n" for line in lines), "utf-8")
    (folder / "passwd").write_text(_passwd(home), "utf-8")


def _passwd(home: Path) -> str:
    """The machine's users, but this one lives in the lab and has a plain shell without start files."""
    me = pwd.getpwuid(os.geteuid())
    mine = f"{me.pw_name}:x:{me.pw_uid}:{me.pw_gid}::{home}:/bin/sh\n"
    others = Path("/etc/passwd").read_text("utf-8", "surrogateescape").splitlines(keepends=True)
    kept = [
        line
        for line in others
        if line.split(":")[0] != me.pw_name and line.split(":")[2:3] != [str(me.pw_uid)]
    ]
    return mine + "".join(kept).encode("utf-8", "replace").decode("utf-8")


def write_shared_files(plan: LabPlan) -> None:
    """Write what all hosts see under /etc: names, groups, and root's entry in the shadow file."""
    folder = Path(plan.folder)
    names = ["127.0.0.1 localhost", "::1 localhost"]
    for host in plan.hosts:
        names += [f"{host.address} {host.name}", f"{host.address6} {host.name}"]
    (folder / "hosts").write_text("".join(line + "\n" for line in names), "utf-8")
    # Without a group tty sshd leaves a terminal to the user's own group: in a user namespace, which has one
    # group only, it could not be given to another.
    groups = Path("/etc/group").read_text("utf-8", "replace").splitlines(keepends=True)
    (folder / "group").write_text("".join(line for line in groups if not line.startswith("tty:")), "utf-8")
    # sshd without PAM refuses a locked account, and on Ubuntu root's is locked.
    (folder / "shadow").touch(0o600)
    (folder / "shadow").write_text("root:*:19000:0:99999:7:::\n", "ascii")
