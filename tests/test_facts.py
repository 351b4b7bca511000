"""Host facts: parsers on recorded text, and the verb on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from ssh_agents import facts, iptables, protocol, tool

CALL = protocol.Call(
    lambda event, data: None, lambda: False, lambda seconds: False, lambda entry: "", lambda name: None
)

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\n'
MEMINFO = "MemTotal:       16330752 kB\nMemFree:         1201480 kB\nMemAvailable:   12004200 kB\n"
CPUINFO = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) N100\nflags\t\t: fpu\n"
CPUINFO_ARM = (
    "processor\t: 0\nBogoMIPS\t: 108.00\n\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n"
)
STATUS_ROOT = "Name:\tcat\nCapInh:\t0000000000000000\nCapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\n"
STATUS_USER = "Name:\tcat\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n"
MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /run rw,nosuid shared:5 - tmpfs tmpfs rw,size=1632892k
41 22 8:17 / /srv rw,relatime shared:20 - xfs /dev/sdb1 rw
42 41 0:55 / /srv/my\\040disk rw shared:21 master:1 - btrfs /dev/sdc rw
43 22 8:33 / /srv rw,relatime - zfs tank rw
"""
FIB_TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 127.0.0.0/8 2 0 2
        +-- 127.0.0.0/31 1 0 0
           |-- 127.0.0.0
              /8 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
     +-- 192.168.7.0/24 2 0 2
        +-- 192.168.7.0/28 2 0 2
           |-- 192.168.7.0
              /24 link UNICAST
           |-- 192.168.7.10
              /32 host LOCAL
        |-- 192.168.7.255
           /32 link BROADCAST
Local:
           |-- 192.168.7.10
              /32 host LOCAL
"""
IF_INET6 = """\
00000000000000000000000000000001 01 80 10 80       lo
fe80000000000000021b21fffe3a4c5d 02 40 20 80     eth0
20010db8000000000000000000000010 02 40 00 80     eth0
"""


def test_recordings() -> None:
    assert facts.system_name(DEBIAN) == "Debian GNU/Linux 12 (bookworm)"
    assert facts.memory(MEMINFO) == 16330752 * 1024
    assert facts.processor(CPUINFO) == "Intel(R) N100"
    assert facts.processor(CPUINFO_ARM) == "Raspberry Pi 4 Model B Rev 1.4"
    assert facts.net_admin(STATUS_ROOT)
    assert not facts.net_admin(STATUS_USER)
    assert facts.local_addresses(FIB_TRIE, IF_INET6) == ["192.168.7.10", "2001:db8::10"]
    assert facts.first_line("\n  svn, version 1.14.2 \nmore\n") == "svn, version 1.14.2"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/x", "ext4"),
        ("/srv/my disk/a", "btrfs"),
        ("/srv/a", "zfs"),
        ("/srvx", "ext4"),
        ("/run", "tmpfs"),
    ],
)
def test_the_file_system_of_a_path(path: str, kind: str) -> None:
    assert facts.file_system(MOUNTS, path) == kind


@pytest.mark.parametrize(
    "junk", ["", "\n\n", "junk", "a: b: c\n- - -\n1 2 3 4 5 6 - \n", "MemTotal:\nCapEff"]
)
def test_junk_is_unknown(junk: str) -> None:
    assert facts.system_name(junk) is None
    assert facts.memory(junk) is None
    assert facts.processor(junk) is None
    assert not facts.net_admin(junk)
    assert facts.file_system(junk, "/x") is None
    assert facts.local_addresses(junk, junk) == []
    assert facts.ssh_ends(junk) is None


def test_the_ends_of_the_ssh_connection() -> None:
    assert facts.ssh_ends("198.51.100.7 50212 10.0.0.2 22") == {
        "peer": {"address": "198.51.100.7", "port": 50212},
        "own": {"address": "10.0.0.2", "port": 22},
    }
    assert facts.ssh_ends("UNKNOWN 65535 UNKNOWN 65535") is None


def test_this_machine() -> None:
    told = facts.tell({"tools": ["python3", "nft"]}, CALL)
    assert told["hostname"] == socket.gethostname()
    assert told["kernel"] == os.uname().release
    assert told["uid"] == os.getuid()
    assert told["cpus"] == len(os.sched_getaffinity(0))
    assert told["disk"]["free_bytes"] > 0
    assert told["disk"]["fs"]
    assert told["memory_bytes"] == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert told["tools"]["python3"].startswith("Python 3.")
    assert set(told["tools"]) == {"python3", "nft"}
    assert not told["windows"]
    shown = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True)
    assert set(shown.stdout.split()) <= set(told["addresses"]) | {"127.0.0.1", "::1"}


def test_tools_are_those_of_the_table_alone() -> None:
    assert set(facts.tell({}, CALL)["tools"]) == set(facts.TOOLS)
    for wrong in (["rm"], ["../../tmp/evil"], "svn", [1]):
        with pytest.raises(protocol.Refused) as caught:
            facts.tell({"tools": wrong}, CALL)
        assert caught.value.kind == "bad-request"


def test_a_tool_that_is_absent_or_hangs_is_null(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tool, "_MORE_PATH", ())
    monkeypatch.setattr(facts, "TOOL_S", 0.3)
    (tmp_path / "git").write_text("#!/bin/sh\nexec /bin/sleep 600\n")
    (tmp_path / "svn").write_text("#!/bin/sh\necho '1.14' >&2\nexit 1\n")
    (tmp_path / "tc").write_text("#!/bin/sh\n")
    for path in tmp_path.iterdir():
        path.chmod(0o755)
    told = facts.tell({"tools": ["git", "svn", "nft", "tc"]}, CALL)
    assert told["tools"] == {"git": None, "svn": "1.14", "nft": None, "tc": "there, but silent"}


def test_the_disk_is_that_of_scratch_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert facts.tell({"tools": []}, CALL)["disk"]["path"] == str(tmp_path.resolve())
    assert facts.tell({"tools": [], "path": "/proc/self"}, CALL)["disk"]["fs"] == "proc"


def test_by_what_bytes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"nft", *iptables.PROGRAMS[4]}
    monkeypatch.setattr(tool, "found", lambda name: name if name in there else None)
    assert facts.tell({"tools": []}, CALL)["counter"] == "nftables"
    there.remove("nft")
    assert facts.tell({"tools": []}, CALL)["counter"] == "iptables"
    there.remove("iptables-save")
    assert facts.tell({"tools": []}, CALL)["counter"] is None


def test_to_ask_for_versions_changes_nothing_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    told = facts.tell({"tools": sorted(facts.TOOLS)}, CALL)["tools"]
    assert list(tmp_path.iterdir()) == []
    if told["svn"] is not None:
        assert told["svn"][0].isdigit(), told["svn"]
