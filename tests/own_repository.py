"""A repository that stands in for a user's own, on the embedded lab's server: no run started its Apache."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import real_runs
import two_apaches
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from lab.embedded import Embedded
from lab.model import Cache, Host, Lab, Role
from lab.recipes import QUICK
from ssh_agents import apache, grounds, service_asked

PORT = 8088


@dataclass(frozen=True)
class Repository:
    """Looked at past every server: what it holds is what is on its disk."""

    folder: Path

    def newest(self) -> int:
        return int(self._told("svnlook", "youngest", str(self.folder)))

    def changed(self, since: int) -> dict[int, list[str]]:
        """Revision -> the paths that it changed, of those after `since`."""
        log = ["svn", "log", "--xml", "-v", "-r", f"{since + 1}:HEAD", self.folder.as_uri()]
        if self.newest() == since:
            return {}
        entries = ElementTree.fromstring(self._told(*log)).iter("logentry")  # noqa: S314
        return {
            int(entry.get("revision", "0")): [str(path.text) for path in entry.iter("path")]
            for entry in entries
        }

    def locks(self) -> list[str]:
        return [
            line.partition(":")[2].strip()
            for line in self._told("svnadmin", "lslocks", str(self.folder)).splitlines()
            if line.startswith("Path:")
        ]

    def names(self, path: str = "") -> list[str]:
        return self._told("svn", "list", f"{self.folder.as_uri()}{path}").split()

    def svn(self, *words: str) -> str:
        """Somebody's own work on it; `/x` words become its URLs."""
        root = self.folder.as_uri()
        return self._told("svn", *(root + word if word.startswith("/") else word for word in words))

    def let_in(self, secret: str) -> None:
        """From now on anna, and nobody else, gets in with this password."""
        digest = base64.b64encode(hashlib.sha1(secret.encode()).digest()).decode()  # noqa: S324 - Apache's {SHA}
        (self.folder.parent / "apache" / "users").write_text(f"anna:{{SHA}}{digest}\n", "ascii")

    def _told(self, *argv: str) -> str:
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


class Authority:
    """The company's: vouches for servers by its certificate, which is in `file`."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Company {secrets.token_hex(4)}")])
        made = self._begun(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def issue(self, folder: Path, address: str) -> None:
        """Certificate and key for a server, in `tls.pem` below a folder."""
        key = ec.generate_private_key(ec.SECP256R1())
        # svn looks for names only, and takes an address for one.
        alternative = x509.SubjectAlternativeName([x509.DNSName(address)])
        made = self._begun(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")]), key)
        signed = made.add_extension(alternative, critical=False).sign(self._key, hashes.SHA256())
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (folder / "tls.pem").write_bytes(signed.public_bytes(Encoding.PEM) + private)

    def _begun(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self._name)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))


@contextmanager
def served(
    lab: Embedded, password: str = "", port: int = PORT, anna: str = "", tls: Authority | None = None
) -> Iterator[Repository]:
    """The quick data set's repository at http://SERVER:8088/svn/.

    `password`: "reads" or "writes" ask for one; "never": nobody has a name. `anna` is the password of a user of that
    name. `tls`: it speaks https, with a certificate of this authority's.
    """
    with two_apaches.place() as place:
        folder = two_apaches.repository(QUICK, place / "repository")
        home = place / "apache"
        grounds.make_folder(str(home))
        options = {"repository": str(folder), "allow": ["127.0.0.1"]}
        spec = service_asked.spec(
            {"kind": "svn-server", "folder": str(home), "port": port, "options": options}
        )
        user = grounds.hand_over(str(home), str(folder))
        apache.write(spec, str(home / "httpd.conf"), user)
        config = (home / "httpd.conf").read_text("utf-8").rstrip()
        # A user's own lets in more than a run's office.
        config = re.sub(r"<RequireAll>.*</RequireAll>", "Require valid-user", config, flags=re.DOTALL)
        if password:
            # Nobody is anybody by himself any more.
            config = "\n".join(line for line in config.splitlines() if "set Authorization" not in line)
            if password == "writes":
                config = config.replace(
                    "Require valid-user",
                    "<LimitExcept GET PROPFIND OPTIONS REPORT>\nRequire valid-user\n</LimitExcept>",
                )
            if password == "never":
                config = config.replace("Require valid-user", "Require all granted")
        if anna:
            Repository(folder).let_in(anna)
        if tls is not None:
            tls.issue(home, lab.lab.one(Role.SERVER).address or "")
            modules = Path(next(iter(apache.modules("svn-server").values()))).parent
            config += f'\nLoadModule ssl_module "{modules}/mod_ssl.so"\nSSLEngine on\nSSLSessionCache none'
            config += f'\nSSLCertificateFile "{home}/tls.pem"'
        (home / "httpd.conf").write_text(config + "\n", "utf-8")
        start = f"setsid {apache.found()} -f {home}/httpd.conf -DFOREGROUND >{home}/said 2>&1 </dev/null &"
        real_runs.on(lab.folder, "server", start)
        try:
            _await_answer(lab, home, port, "server")
            yield Repository(folder)
        finally:
            real_runs.kill(
                number for number, line in real_runs.inhabitants(lab.folder).items() if str(home) in line
            )


@contextmanager
def proxied(lab: Embedded, secret: str, origin: int, port: int) -> Iterator[Lab]:
    """The lab with a proxy of the user's own that lets joe in with this password; `origin` is the server's port."""
    with two_apaches.place() as place:
        home, cache = place / "apache", lab.folder / "proxy" / "joes-cache"
        cache.mkdir()
        grounds.make_folder(str(home))
        origins = [lab.lab.one(Role.SERVER).address]
        options = {"cache": str(cache), "allow": ["127.0.0.1"], "origins": origins, "origin_ports": [origin]}
        asked = {"kind": "caching-proxy", "folder": str(home), "port": port, "options": options}
        spec = service_asked.spec(asked)
        apache.write(spec, str(home / "httpd.conf"), grounds.hand_over(str(home), str(cache)))
        modules = Path(next(iter(apache.modules("svn-server").values()))).parent
        names = ("authn_core", "authn_file", "authz_user", "auth_basic")
        loaded = "\n".join(f'LoadModule {name}_module "{modules}/mod_{name}.so"' for name in names)
        asking = f'AuthType Basic\nAuthName "proxy"\nAuthUserFile "{home}/users"\nRequire user joe'
        config = (home / "httpd.conf").read_text("utf-8").replace("  Require ip 127.0.0.1", asking)
        (home / "httpd.conf").write_text(f"{loaded}\n{config}", "utf-8")
        digest = base64.b64encode(hashlib.sha1(secret.encode()).digest()).decode()  # noqa: S324 - Apache's {SHA}
        grounds.write(str(home / "users"), f"joe:{{SHA}}{digest}\n")
        start = f"setsid {apache.found()} -f {home}/httpd.conf -DFOREGROUND >{home}/said 2>&1 </dev/null &"
        real_runs.on(lab.folder, "proxy", start)
        try:
            _await_answer(lab, home, port, "proxy")
            hosts = tuple(_as_it_is(host, str(cache), port) for host in lab.lab.hosts)
            yield replace(lab.lab, hosts=hosts)
        finally:
            shutil.rmtree(cache)
            real_runs.kill(
                number for number, line in real_runs.inhabitants(lab.folder).items() if str(home) in line
            )


def _as_it_is(host: Host, cache: str, port: int) -> Host:
    if host.role is not Role.PROXY:
        return host
    kept = Cache(kind="apache-disk", folder=cache)
    return replace(host, services=None, cache=kept, url=f"http://{host.address}:{port}", user="joe")


def _await_answer(lab: Embedded, home: Path, port: int, host: str) -> None:
    end = time.monotonic() + real_runs.PATIENCE_S
    while time.monotonic() < end:
        asked = f"python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}))\" && echo yes"
        if "yes" in real_runs.on(lab.folder, host, asked):
            return
        time.sleep(0.1)
    said = [file.read_text("utf-8") for file in (home / "said", home / "error.log") if file.exists()]
    raise AssertionError(f"the Apache of the user's own did not start: {said}")
