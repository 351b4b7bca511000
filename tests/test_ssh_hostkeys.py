"""Host keys on real sshd servers: unknown ones asked about and kept, changed ones refused, authorities believed."""

from __future__ import annotations

import base64
import multiprocessing
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lab import ssh
from lab.credentials import Offered
from lab.errors import BadInput
from lab.ssh import hostkeys
from lab.ssh.hostkeys import HostKeyRefused
from lab.ssh.target import Target
from tests import sshd

lab_only = pytest.mark.lab
MONTH = "-1w:+4w"


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / "known_hosts"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[sshd.Sshd]:
    with sshd.listening(sshd.made(tmp_path / "sshd")) as running:
        yield running


def configured(folder: Path, server: sshd.Sshd, *lines: str) -> Path:
    """A configuration whose `bench` is this server, with a known_hosts of its own."""
    path = folder / "config"
    text = f"Host bench\n HostName 127.0.0.1\n Port {server.port}\n GlobalKnownHostsFile none\n"
    if not any("UserKnownHostsFile" in line for line in lines):
        text += f" UserKnownHostsFile {folder}/users\n"
    path.write_text(text + "".join(f" {line}\n" for line in lines))
    return path


def refuses(offered: Offered) -> bool:
    raise AssertionError(f"asked about {offered}")


@lab_only
def test_an_unknown_key_is_asked_about_once_and_kept_apart(
    server: sshd.Sshd, tmp_path: Path, own: Path
) -> None:
    config = configured(tmp_path, server)
    host = server.host(ssh="bench", host_key=None)
    asked: list[Offered] = []

    def accept(offered: Offered) -> bool:
        asked.append(offered)
        return len(asked) > 1

    with pytest.raises(HostKeyRefused, match="not known") as caught:
        ssh.connect(host, config=config, accept=accept)
    assert f"ssh-keyscan -p {server.port} 127.0.0.1" in caught.value.advice
    assert not own.exists()
    ssh.connect(host, config=config, accept=accept).close()
    ssh.connect(host, config=config, accept=refuses).close()
    with pytest.raises(HostKeyRefused):
        ssh.connect(
            replace(host, ssh=f"localhost:{server.port}"), config=config
        )  # another name is another host
    shown = subprocess.run(
        ["ssh-keygen", "-lf", server.folder / "host_ed25519.pub"], capture_output=True, text=True, check=True
    )
    user = asked[0].target.split("@")[0]
    print_ = shown.stdout.split()[1]
    assert asked == [Offered("bench", f"{user}@127.0.0.1:{server.port}", "ssh-ed25519", print_)] * 2
    assert own.read_text() == f"[127.0.0.1]:{server.port} {server.host_key()}\n"
    assert own.stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "users").exists(), "the user's own file is never written"
    found = subprocess.run(
        ["ssh-keygen", "-F", f"[127.0.0.1]:{server.port}", "-f", own], capture_output=True, check=False
    )
    assert found.returncode == 0, "OpenSSH reads it too"


def other_key(folder: Path, server: sshd.Sshd) -> tuple[str, str]:
    """A line of known_hosts with a key that the server does not have, and its fingerprint."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "other"], check=True)
    kind, key = (folder / "other.pub").read_text().split()[:2]
    return (
        f"[127.0.0.1]:{server.port} {kind} {key}\n",
        f"{kind} {hostkeys.fingerprint(base64.b64decode(key))}",
    )


@lab_only
def test_a_changed_key_is_refused_with_both_fingerprints(
    server: sshd.Sshd, tmp_path: Path, own: Path
) -> None:
    line, print_ = other_key(tmp_path, server)
    own.parent.mkdir()
    own.write_text(line)
    asked: list[Offered] = []
    for policy, accept in (
        ("ask", lambda offered: bool(asked.append(offered))),
        ("ask", None),
        ("accept-new", None),
        ("no", None),
        ("yes", refuses),
    ):
        config = configured(tmp_path, server, f"StrictHostKeyChecking {policy}")
        with pytest.raises(HostKeyRefused, match="another machine may be answering") as caught:
            ssh.connect(server.host(ssh="bench", host_key=None), config=config, accept=accept)
        assert str(caught.value).count("SHA256:") == 2
        assert f"ssh-keygen -f {own} -R '[127.0.0.1]:{server.port}'" in caught.value.advice
    with pytest.raises(HostKeyRefused):  # what the profile pins is changed there and nowhere else
        ssh.connect(server.host(host_key=" ".join(line.split()[1:])), accept=refuses)
    assert [one.known for one in asked] == [print_]
    assert own.read_text() == line


@lab_only
def test_a_changed_key_that_a_person_trusts_takes_the_place_of_the_old_one(
    server: sshd.Sshd, tmp_path: Path, own: Path
) -> None:
    line, print_ = other_key(tmp_path, server)
    own.parent.mkdir()
    own.write_text(f"# mine\nelsewhere {line.split(' ', 1)[1]}{line}")
    (tmp_path / "users").write_text(line)
    asked: list[Offered] = []
    host, config = server.host(ssh="bench", host_key=None), configured(tmp_path, server)
    ssh.connect(host, config=config, accept=lambda offered: asked.append(offered) is None).close()
    assert [(one.known, one.fingerprint != print_) for one in asked] == [(print_, True)]
    key = server.host_key()
    assert own.read_text() == (f"# mine\nelsewhere {line.split(' ', 1)[1]}[127.0.0.1]:{server.port} {key}\n")
    assert (tmp_path / "users").read_text() == line, "the user's own file is never written"
    ssh.connect(host, config=config, accept=refuses).close()


@lab_only
def test_the_users_own_word_on_unknown_keys(server: sshd.Sshd, tmp_path: Path, own: Path) -> None:
    host = server.host(ssh="bench", host_key=None)
    config = configured(tmp_path, server, "StrictHostKeyChecking yes")
    with pytest.raises(HostKeyRefused):
        ssh.connect(host, config=config, accept=refuses)
    for policy in ("no", "accept-new"):
        config = configured(
            tmp_path, server, f"StrictHostKeyChecking {policy}", "UserKnownHostsFile /dev/null"
        )
        ssh.connect(host, config=config, accept=refuses).close()
        assert not own.exists()
    config = configured(tmp_path, server, "StrictHostKeyChecking accept-new")
    ssh.connect(host, config=config, accept=refuses).close()
    assert own.exists()
    # What the profile pins is not a matter of anybody's taste.
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    pinned = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    with pytest.raises(HostKeyRefused):
        ssh.connect(server.host(ssh="bench", host_key=pinned), config=config, accept=refuses)


def kept(number: int) -> None:
    for turn in range(20):
        hostkeys.remember(Target(name=f"h{number}-{turn}", user="x"), "ssh-ed25519", b"k%d" % number)


def test_two_processes_keep_keys_at_once(own: Path) -> None:
    own.parent.mkdir()
    own.write_text("# a comment of the person's\njunk without an end")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=kept, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    lines = own.read_text().splitlines()
    assert lines[:2] == ["# a comment of the person's", "junk without an end"]
    assert len(set(lines)) == len(lines) == 62
    kept(1)
    assert len(own.read_text().splitlines()) == 62


# Authorities


def authority(folder: Path, name: str, kind: str = "ed25519") -> Path:
    path = folder / name
    if not path.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", path], check=True)
    return path


def certify(server: sshd.Sshd, ca: Path, *more: str, kind: str = "ed25519") -> None:
    argv = ["ssh-keygen", "-q", "-s", str(ca), "-I", "bench", "-V", MONTH, *more]
    subprocess.run([*argv, str(server.folder / f"host_{kind}.pub")], check=True)


def believed(ca: Path, server: sshd.Sshd, *more: str) -> str:
    key = " ".join(Path(f"{ca}.pub").read_text().split()[:2])
    return "\n".join([f"@cert-authority [127.0.0.*]:{server.port} {key}", *more]) + "\n"


@lab_only
@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_host_that_an_authority_certified_is_known(tmp_path: Path, kind: str) -> None:
    made = sshd.made(
        tmp_path / "sshd", f"HostCertificate {tmp_path}/sshd/host_{kind}-cert.pub", kinds=(kind,)
    )
    ca = authority(tmp_path, "ca", kind)
    certify(made, ca, "-h", "-n", "127.0.0.1", kind=kind)
    with sshd.listening(made) as server:
        config = configured(tmp_path, server)
        (tmp_path / "users").write_text(believed(ca, server))
        host = server.host(ssh="bench", host_key=None)
        ssh.connect(host, config=config, accept=refuses).close()


@lab_only
@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("-h", "-n", "127.0.0.2"), "it is for 127.0.0.2, and not for 127.0.0.1"),
        (("-h",), "it is for no name"),
        (("-h", "-n", "127.0.0.*"), "it is for 127.0.0.*, and not for 127.0.0.1"),
        (("-h", "-n", "127.0.0.1", "-V", "-2w:-1w"), "it is not valid now"),
        (("-h", "-n", "127.0.0.1", "-V", "+1w:+2w"), "it is not valid now"),
    ],
)
def test_a_certificate_that_does_not_count_is_refused(
    tmp_path: Path, more: tuple[str, ...], why: str
) -> None:
    made = sshd.made(tmp_path / "sshd", f"HostCertificate {tmp_path}/sshd/host_ed25519-cert.pub")
    ca = authority(tmp_path, "ca")
    certify(made, ca, *more)
    with sshd.listening(made) as server:
        config = configured(tmp_path, server)
        (tmp_path / "users").write_text(believed(ca, server))
        with pytest.raises(HostKeyRefused) as caught:
            ssh.connect(server.host(ssh="bench", host_key=None), config=config)
        assert why in str(caught.value)
        (tmp_path / "users").write_text(
            believed(ca, server, f"[127.0.0.1]:{server.port} {server.host_key()}")
        )
        ssh.connect(server.host(ssh="bench", host_key=None), config=config).close()


@lab_only
def test_a_revoked_key_is_no_question_of_the_address(tmp_path: Path, server: sshd.Sshd) -> None:
    config = configured(tmp_path, server)
    (tmp_path / "users").write_text(f"@revoked [127.0.0.1]:{server.port} {server.host_key()}\n")
    with pytest.raises(HostKeyRefused, match="marked as revoked") as caught:
        ssh.connect(server.host(ssh="bench", host_key=None), config=config)
    assert "@revoked" in caught.value.advice
    assert str(tmp_path / "users") in caught.value.tried


@lab_only
def test_only_an_authority_that_is_known_and_not_revoked_counts(tmp_path: Path) -> None:
    made = sshd.made(tmp_path / "sshd", f"HostCertificate {tmp_path}/sshd/host_ed25519-cert.pub")
    ca, other = authority(tmp_path, "ca"), authority(tmp_path, "other")
    certify(made, ca, "-h", "-n", "127.0.0.1")
    revoked = " ".join(Path(f"{ca}.pub").read_text().split()[:2])
    with sshd.listening(made) as server:
        config = configured(tmp_path, server)
        host = server.host(ssh="bench", host_key=None)
        for text, why in (
            (believed(other, server), "its authority is not known"),
            (believed(ca, server, f"@revoked * {revoked}"), "revoked"),
            (believed(ca, server, f"@revoked * {server.host_key()}"), "revoked"),
        ):
            (tmp_path / "users").write_text(text)
            with pytest.raises(HostKeyRefused, match=why):
                ssh.connect(host, config=config, accept=refuses)


@lab_only
def test_a_host_without_the_certificate_of_its_authority(tmp_path: Path, server: sshd.Sshd) -> None:
    config = configured(tmp_path, server)
    (tmp_path / "users").write_text(believed(authority(tmp_path, "ca"), server))
    with pytest.raises(HostKeyRefused, match="certified by none"):
        ssh.connect(server.host(ssh="bench", host_key=None), config=config)


def test_a_certificate_that_was_tampered_with_is_refused(tmp_path: Path) -> None:
    import base64

    from lab.ssh import certificates

    ca, key = authority(tmp_path, "ca"), authority(tmp_path, "key")
    subprocess.run(
        ["ssh-keygen", "-q", "-s", ca, "-I", "x", "-h", "-n", "good", "-V", MONTH, f"{key}.pub"], check=True
    )
    blob = base64.b64decode((tmp_path / "key-cert.pub").read_text().split()[1])
    authorities = frozenset([base64.b64decode(Path(f"{ca}.pub").read_text().split()[1])])
    assert certificates.certified(blob, "good", authorities, frozenset())[0] == "ssh-ed25519"
    evil = blob.replace(b"good", b"evil")
    with pytest.raises(certificates.NotCertified, match="signature is wrong"):
        certificates.certified(evil, "evil", authorities, frozenset())
    subprocess.run(
        ["ssh-keygen", "-q", "-s", ca, "-I", "x", "-n", "good", "-V", MONTH, f"{key}.pub"], check=True
    )
    users = base64.b64decode((tmp_path / "key-cert.pub").read_text().split()[1])
    with pytest.raises(certificates.NotCertified, match="not for a host"):
        certificates.certified(users, "good", authorities, frozenset())
    for cut in range(0, len(blob), 7):
        with pytest.raises((certificates.NotCertified, ValueError)):
            certificates.certified(blob[:cut], "good", authorities, frozenset())


def test_a_junk_line_is_passed_over_with_file_and_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "known").write_text("# fine\nhost ssh-ed25519 !!!\n@what x ssh-ed25519 AAAA\n")
    assert not hostkeys.known([tmp_path / "known"], "host").keys
    assert [record.getMessage().split(": ")[0] for record in caplog.records] == [
        f"{tmp_path}/known:2",
        f"{tmp_path}/known:3",
    ]


@lab_only
def test_a_line_that_is_no_ascii_is_junk_like_any_other(tmp_path: Path, server: sshd.Sshd) -> None:
    config = configured(tmp_path, server)
    line = f"[127.0.0.1]:{server.port} {server.host_key()}\n"
    for junk in ("Schlüssel für Büro\n".encode(), "Schlüssel für Büro\n".encode("latin-1")):
        (tmp_path / "users").write_bytes(junk + line.encode())
        ssh.connect(server.host(ssh="bench", host_key=None), config=config, accept=refuses).close()
    for text in (
        "ssh-ed25519 AAAAé",
        "ssh-ed25519 AAAA",
        "ssh-ed25519",
        server.host_key().replace("25519", "448", 1),
    ):
        with pytest.raises(BadInput, match="is no host key"):
            ssh.connect(server.host(host_key=text))


@lab_only
def test_a_key_of_another_port_may_match_and_never_says_that_it_changed(
    tmp_path: Path, server: sshd.Sshd
) -> None:
    config = configured(tmp_path, server)
    host = server.host(ssh="bench", host_key=None)
    other, own = " ".join(Path(f"{authority(tmp_path, 'o')}.pub").read_text().split()[:2]), server.host_key()
    asked: list[Offered] = []

    def no(offered: Offered) -> bool:
        asked.append(offered)
        return False

    (tmp_path / "users").write_text(f"127.0.0.1 {other}\n")
    with pytest.raises(HostKeyRefused, match="is not known"):
        ssh.connect(host, config=config, accept=no)
    assert len(asked) == 1, "another server on the same machine is a question"
    for before in ("", f"127.0.0.1 {other}\n", f"@cert-authority * {other}\n"):
        (tmp_path / "users").write_text(f"{before}127.0.0.1 {own}\n")
        ssh.connect(host, config=config, accept=refuses).close()
    (tmp_path / "users").write_text(f"127.0.0.1 {own}\n@revoked 127.0.0.1 {own}\n")
    with pytest.raises(HostKeyRefused, match="marked as revoked"):
        ssh.connect(host, config=config, accept=refuses)
    (tmp_path / "users").write_text(f"127.0.0.1 {own}\n[127.0.0.1]:{server.port} {other}\n")
    with pytest.raises(HostKeyRefused, match="another machine may be answering"):
        ssh.connect(host, config=config, accept=no)


@lab_only
def test_an_alias_is_nothing_that_can_be_scanned(tmp_path: Path, server: sshd.Sshd) -> None:
    config = configured(tmp_path, server, "HostKeyAlias webbox")
    with pytest.raises(HostKeyRefused) as caught:
        ssh.connect(server.host(ssh="bench", host_key=None), config=config)
    assert f"ssh-keyscan -p {server.port} 127.0.0.1 |" in caught.value.advice
