"""The installer on a machine that has nothing: dpkg, apt and sudo are working stand-ins on the PATH."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
SCRIPT = CHECKOUT / "installer" / "system_packages"

DPKG_QUERY = """#!/bin/sh
# As dpkg-query -W -f '${db:Status-Status} ${Package}\\n' answers.
while read -r name; do echo "installed $name"; done <"$STATE/installed"
echo "config-files removed-once"
"""
APT_GET = """#!/bin/sh
echo "apt-get $* DEBIAN_FRONTEND=$DEBIAN_FRONTEND" >>"$STATE/log"
ls "$BRANCHLAB_INSTALL_ROOT/usr/sbin" >"$STATE/policy-while-$1"
[ ! -e "$STATE/broken" ] || exit 100
if [ "$1" = install ]; then
    for word in "$@"; do case $word in install | -*) ;; *) echo "$word" >>"$STATE/installed" ;; esac done
fi
"""
APT_CACHE = """#!/bin/sh
# Debian 12's names, and what apt-cache says of a name that is only mentioned.
case $2 in
    libglib2.0-0t64) exit 100 ;;
    vde-wirefilter | vde-switch) echo "N: No packages found" >&2 ;;
    *) echo "Package: $2" ;;
esac
"""
LOGGED = """#!/bin/sh
echo "${0##*/} $*" >>"$STATE/log"
"""
SUDO = """#!/bin/sh
echo "sudo $1" >>"$STATE/log"
exec "$@"
"""


class Machine:
    """A pretended machine: what is installed, what was called, and the system paths that are written."""

    def __init__(self, folder: Path) -> None:
        self.state, self.bin, self.root = folder / "state", folder / "bin", folder / "root"
        for each in (self.state, self.bin, self.root / "usr/sbin"):
            each.mkdir(parents=True)
        self.installed("python3", "python3-venv", "bash")
        self.program("dpkg-query", DPKG_QUERY)
        self.program("apt-get", APT_GET)
        self.program("apt-cache", APT_CACHE)
        self.program("systemctl", LOGGED)
        self.program("update-rc.d", LOGGED)
        _python(self, "python3", "3.12", True)
        for name in ("sh", "cat", "chmod", "dirname", "env", "ls", "rm", "sort", "tr"):
            (self.bin / name).symlink_to(shutil.which(name) or f"/bin/{name}")
        self.user(0)

    def program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text, "utf-8")
        path.chmod(0o755)

    def installed(self, *names: str) -> None:
        (self.state / "installed").write_text("".join(name + "\n" for name in names), "utf-8")

    def user(self, number: int) -> None:
        self.program("id", f"#!/bin/sh\necho {number}\n")

    def log(self) -> list[str]:
        path = self.state / "log"
        return path.read_text("utf-8").splitlines() if path.exists() else []

    def asked(self) -> list[str]:
        """The packages of the one call of apt-get install."""
        (line,) = [line for line in self.log() if line.startswith("apt-get install")]
        return [word for word in line.split()[2:] if not word.startswith(("-", "DEBIAN_"))]

    def run(self, *words: str, display: str = ":0") -> subprocess.CompletedProcess[str]:
        environment = {
            "DISPLAY": display,
            "PATH": str(self.bin),
            "STATE": str(self.state),
            "BRANCHLAB_INSTALL_ROOT": str(self.root),
        }
        command = [str(SCRIPT), *words]
        return subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_window_is_left_out_of_a_demo_without_a_display_and_never_of_the_tests(machine: Machine) -> None:
    machine.run("demo", display="")
    assert not [name for name in machine.asked() if name.startswith("libxcb")]
    (machine.state / "log").unlink()
    machine.run("test", display="")
    assert [name for name in machine.asked() if name.startswith("libxcb")]


def test_on_an_empty_machine_everything_is_named_and_installed(machine: Machine) -> None:
    done = machine.run("test")
    assert done.returncode == 0, done.stderr
    asked = machine.asked()
    for package in ("apache2-bin", "apache2-utils", "libapache2-mod-svn", "subversion", "openssh-server"):
        assert package in asked
        assert package in done.stdout
    for package in ("nftables", "iproute2", "util-linux", "libxcb-cursor0", "libegl1", "xvfb"):
        assert package in asked
    assert machine.log()[0].startswith("apt-get update")
    assert "DEBIAN_FRONTEND=noninteractive" in machine.log()[-1] or "update-rc.d" in machine.log()[-1]


def test_no_package_is_asked_for_that_starts_a_web_server(machine: Machine) -> None:
    machine.run("test")
    assert "apache2" not in machine.asked()
    assert any("--no-install-recommends" in line for line in machine.log())


def test_names_of_this_release_are_chosen_and_none_twice(machine: Machine) -> None:
    machine.run("demo")
    asked = machine.asked()
    assert asked.count("vde2") == 1
    assert "libglib2.0-0" in asked
    assert not {"vde-switch", "vde-wirefilter", "libglib2.0-0t64"} & set(asked)


def test_the_second_time_nothing_is_done(machine: Machine) -> None:
    machine.run("test")
    before = machine.log()
    done = machine.run("test")
    assert done.returncode == 0
    assert "nothing is missing" in done.stdout
    assert machine.log() == before


def test_demo_does_not_ask_for_what_only_tests_need(machine: Machine) -> None:
    machine.run("demo")
    assert "xvfb" not in machine.asked()


def test_only_what_is_missing_is_asked_for(machine: Machine) -> None:
    machine.run("test")
    everything = (machine.state / "installed").read_text("utf-8").split()
    machine.installed(*(name for name in everything if name != "nftables"))
    (machine.state / "log").unlink()
    machine.run("test")
    assert machine.asked() == ["nftables"]


def test_a_dry_run_says_everything_and_changes_nothing(machine: Machine) -> None:
    done = machine.run("--dry-run", "test")
    assert done.returncode == 0, done.stderr
    assert "+ env" in done.stdout
    assert "openssh-server" in done.stdout
    assert machine.log() == []
    assert list((machine.root / "usr/sbin").iterdir()) == []


# ---- the SSH server


def test_with_systemd_a_new_sshd_is_masked_before_it_is_installed(machine: Machine) -> None:
    (machine.root / "run/systemd/system").mkdir(parents=True)
    done = machine.run("demo")
    log = machine.log()
    masked = log.index("systemctl mask ssh.service ssh.socket")
    assert masked < next(i for i, line in enumerate(log) if line.startswith("apt-get install"))
    assert "systemctl unmask" in done.stdout
    assert not any("update-rc.d" in line for line in log)
    assert (machine.state / "policy-while-install").read_text("utf-8") == ""


def test_without_systemd_a_policy_keeps_it_off_and_is_taken_away_again(machine: Machine) -> None:
    assert machine.run("demo").returncode == 0
    assert (machine.state / "policy-while-update").read_text("utf-8") == ""
    assert (machine.state / "policy-while-install").read_text("utf-8") == "policy-rc.d\n"
    assert list((machine.root / "usr/sbin").iterdir()) == []
    assert machine.log()[-1] == "update-rc.d ssh disable"


def test_the_policy_says_no_in_the_way_debian_asks(machine: Machine) -> None:
    machine.program(
        "apt-get",
        APT_GET + '\n[ "$1" = update ] || "$BRANCHLAB_INSTALL_ROOT/usr/sbin/policy-rc.d" ssh start; '
        'echo "policy $?" >>"$STATE/log"\n',
    )
    machine.run("demo")
    assert "policy 101" in machine.log()


def test_the_policy_is_taken_away_when_the_installation_fails(machine: Machine) -> None:
    (machine.state / "broken").touch()
    done = machine.run("demo")
    assert done.returncode == 1
    assert "could not install everything" in done.stderr
    assert list((machine.root / "usr/sbin").iterdir()) == []


def test_a_policy_of_the_machine_itself_is_left_alone(machine: Machine) -> None:
    policy = machine.root / "usr/sbin/policy-rc.d"
    policy.write_text("mine", "utf-8")
    assert machine.run("demo").returncode == 0
    assert policy.read_text("utf-8") == "mine"


@pytest.mark.parametrize("systemd", [True, False])
def test_an_sshd_that_is_here_already_is_not_touched(machine: Machine, systemd: bool) -> None:
    if systemd:
        (machine.root / "run/systemd/system").mkdir(parents=True)
    machine.installed("python3", "python3-venv", "openssh-server")
    done = machine.run("demo")
    assert done.returncode == 0
    assert [line for line in machine.log() if not line.startswith("apt-get ")] == []
    assert (machine.state / "policy-while-install").read_text("utf-8") == ""
    assert "openssh-server" not in machine.asked()


# ---- who installs


def test_an_ordinary_user_installs_through_sudo_and_is_told(machine: Machine) -> None:
    machine.user(1000)
    machine.program("sudo", SUDO)
    done = machine.run("demo")
    assert done.returncode == 0, done.stderr
    assert "sudo" in done.stdout
    log = machine.log()
    assert all(log[i - 1].startswith("sudo ") for i, line in enumerate(log) if line.startswith("apt-get "))
    assert "DEBIAN_FRONTEND=noninteractive" in "".join(log)


def test_without_root_and_sudo_it_says_what_to_do(machine: Machine) -> None:
    machine.user(1000)
    done = machine.run("demo")
    assert done.returncode == 1
    assert "As root, run" in done.stderr


def test_root_needs_no_sudo(machine: Machine) -> None:
    machine.program("sudo", SUDO)
    machine.run("demo")
    assert not any(line.startswith("sudo") for line in machine.log())


@pytest.mark.parametrize("words", [(), ("all",), ("demo", "test"), ("--dry-run",)])
def test_other_words_are_refused(machine: Machine, words: tuple[str, ...]) -> None:
    done = machine.run(*words)
    assert done.returncode == 1
    assert "usage" in done.stderr
    assert machine.log() == []


# ---- Python


def _python(machine: Machine, name: str, version: str, venv: bool) -> None:
    """A stand-in that answers the three questions find_python has."""
    major, minor = version.split(".")
    machine.program(
        name,
        f"""#!/bin/sh
case $* in
    *version_info*) [ {major} -eq 3 ] && [ {minor} -ge 11 ] ;;
    *ensurepip*) {"true" if venv else "false"} ;;
    --version) echo "Python {version}.1" ;;
esac
""",
    )


def find_python(machine: Machine, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(CHECKOUT / "installer" / "find_python")]
    path = {"PATH": str(machine.bin), "BRANCHLAB_INSTALL_ROOT": str(machine.root)}
    return subprocess.run(command, env=path | environment, capture_output=True, text=True, timeout=60)


def test_the_first_python_that_will_do_is_found(machine: Machine) -> None:
    _python(machine, "python3", "3.9", True)
    _python(machine, "python3.13", "3.13", False)
    _python(machine, "python3.12", "3.12", True)
    assert find_python(machine).stdout.strip() == str(machine.bin / "python3.12")


def test_the_python_that_was_asked_for_comes_first(machine: Machine) -> None:
    _python(machine, "python3", "3.12", True)
    _python(machine, "mine", "3.13", True)
    assert find_python(machine, PYTHON="mine").stdout.strip() == str(machine.bin / "mine")


def test_each_python_that_will_not_do_is_named_with_the_reason(machine: Machine) -> None:
    _python(machine, "python3", "3.10", True)
    _python(machine, "python3.12", "3.12", False)
    done = find_python(machine)
    assert done.returncode == 1
    assert f"{machine.bin}/python3 is Python 3.10.1, too old" in done.stderr
    assert f"{machine.bin}/python3.12 cannot make virtual environments" in done.stderr
    assert "python3-venv" in done.stderr


def test_a_python_without_venv_gets_the_package(machine: Machine) -> None:
    _python(machine, "python3", "3.12", False)
    machine.installed("python3")
    machine.run("demo")
    assert "python3-venv" in machine.asked()


def test_a_machine_without_python_gets_one(machine: Machine) -> None:
    (machine.bin / "python3").unlink()
    machine.installed()
    machine.run("demo")
    assert {"python3", "python3-venv"} <= set(machine.asked())


def test_scripts_can_be_run() -> None:
    for name in (
        "installer/system_packages",
        "installer/find_python",
        "installer/python_environment",
        ".ci/run",
    ):
        mode = (CHECKOUT / name).stat().st_mode
        assert mode & stat.S_IXUSR, name


# ---- the tests' own Squid and nginx

APT_SIMULATED = """#!/bin/sh
echo "apt-get $*" >>"$STATE/log"
case "$*" in
*-s*install*) echo "Inst libecap3 (1.0 Debian)"; echo "Inst perl [5.36] (5.37 Debian)"
    echo "Inst libdbi-perl (1 Debian)"; echo "Inst squid (5.7 Debian)"; echo "Inst nginx (1.22 Debian)"
    echo "Conf squid (5.7 Debian)" ;;
*download*) [ ! -e "$STATE/broken" ] || exit 100
    shift 2; for name in "$@"; do echo "$name" >"$name.deb"; done ;;
esac
"""
DPKG_UNPACKS = """#!/bin/sh
echo "dpkg $1 ${2##*/}" >>"$STATE/log"
read -r name <"$2"
mkdir -p "$3/usr/sbin" "$3/usr/lib/any"
case $name in
libecap3) echo library >"$3/usr/lib/any/libecap.so.3" ;;
*) printf '#!/bin/sh\\necho "%s $LD_LIBRARY_PATH $*"\\n' "$name" >"$3/usr/sbin/$name"; chmod 755 "$3/usr/sbin/$name" ;;
esac
"""


def unpack(machine: Machine, folder: Path) -> subprocess.CompletedProcess[str]:
    machine.program("dpkg", DPKG_UNPACKS)
    for name in ("sed", "grep", "mkdir", "mv", "find"):
        (machine.bin / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    environment = {"PATH": str(machine.bin), "STATE": str(machine.state)}
    script = str(CHECKOUT / "installer" / "test_programs")
    # Without the system's own sbin, which may have them.
    text = Path(script).read_text("utf-8").replace("PATH=$PATH:/usr/sbin:/sbin\n", "")
    return subprocess.run(
        ["/bin/sh", "-c", text, script, str(folder)],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_the_tests_proxies_are_unpacked_and_never_installed(machine: Machine, tmp_path: Path) -> None:
    machine.program("apt-get", APT_SIMULATED)
    folder = tmp_path / "programs"
    done = unpack(machine, folder)
    assert done.returncode == 0, done.stderr
    assert [line for line in machine.log() if "install" in line and "-s" not in line.split()] == []
    assert [line for line in machine.log() if line.startswith("dpkg")] == [
        "dpkg -x libecap3.deb", "dpkg -x nginx.deb", "dpkg -x squid.deb",
    ]  # fmt: skip
    moved = tmp_path / "elsewhere"
    folder.rename(moved)
    said = subprocess.run([moved / "usr/sbin/squid", "-v", "a b"], capture_output=True, text=True, check=True)
    assert said.stdout == f"squid {moved}/usr/lib/any -v a b\n"


def test_where_they_cannot_be_had_that_is_said_and_is_no_error(machine: Machine, tmp_path: Path) -> None:
    machine.program("apt-get", APT_SIMULATED)
    (machine.state / "broken").touch()
    done = unpack(machine, tmp_path / "programs")
    assert (done.returncode, (tmp_path / "programs").exists()) == (0, False)
    assert "Not to be had for the tests, which skip what needs them: squid nginx" in done.stdout
    (machine.bin / "apt-get").unlink()
    assert "this system has no apt-get" in unpack_again(machine, tmp_path / "programs")


def unpack_again(machine: Machine, folder: Path) -> str:
    for name in ("sed", "grep", "mkdir", "mv", "find", "dpkg"):
        (machine.bin / name).unlink()
    return unpack(machine, folder).stdout


def test_what_the_system_has_is_not_unpacked(machine: Machine, tmp_path: Path) -> None:
    for name in ("squid", "nginx"):
        machine.program(name, LOGGED)
    assert unpack(machine, tmp_path / "programs").returncode == 0
    assert (machine.log(), (tmp_path / "programs").exists()) == ([], False)
