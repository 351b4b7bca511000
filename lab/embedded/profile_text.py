"""The profile of an embedded lab, as text: its hosts as they are, and three experiments by name."""

from __future__ import annotations

import json
import os
from pathlib import Path

from lab.embedded.host import SERVER_BRIDGE, SERVER_PORT
from lab.embedded.plan import HostPlan, LabPlan
from lab.model import Cache, Host, Role

PROXY_PORT = 8081
NAME = "Embedded lab"

_EXPERIMENTS = """\

[[experiments]]
name = "Proxy efficiency (quick)"
vcs = "subversion"
repository = "http://{server}/svn/trunk"
data = "quick"
change = { files = 50, lines = "10 %" }
operations = ["get", "check-out", "undo", "check-in", "history", "diff"]
lines = ["512/1024 kbit/s", "2/4 Mbit/s"]
states = ["disabled", "0 %", "90 %", "100 %"]
attempts = 4
warm_up = 1
order = "blocks"
seed = 2008

[[experiments]]
name = "Proxy efficiency as published in 2008"
vcs = "subversion"
repository = "http://{server}/svn/trunk"
data = "2008"
change = { files = 0, lines = "10 %" } # 0: all that the data set marks, its 569 .cs files
operations = ["get", "check-out", "undo", "check-in", "history", "diff"]
lines = ["64/128 kbit/s", "128/256 kbit/s", "256/512 kbit/s", "512/1024 kbit/s", "1/2 Mbit/s", "2/4 Mbit/s"]
states = ["disabled", "0 %", "90 %", "100 %"]
disabled_only = ["check-out", "check-in", "history"]
launches = true
attempts = 4
warm_up = 1
order = "published"
seed = 2008

[[experiments]]
name = "Proxy efficiency (full)"
vcs = "subversion"
repository = "http://{server}/svn/trunk"
data = "2008"
change = { files = 0, lines = "10 %" }
operations = ["get", "check-out", "undo", "check-in", "history", "diff"]
lines = ["64/128 kbit/s", "128/256 kbit/s", "256/512 kbit/s", "512/1024 kbit/s", "1/2 Mbit/s", "2/4 Mbit/s"]
states = ["disabled", "0 %", "90 %", "100 %"]
attempts = 4
warm_up = 1
order = "blocks"
seed = 2008
"""


def host_of(lab: LabPlan, host: HostPlan, host_key: str) -> Host:
    """The host as the rest of the program knows it. `host_key` is its public key."""
    proxy, server = host.role == "proxy", host.role == "server"
    return Host(
        name=host.name,
        role=Role(host.role),
        ssh=f"unix:{host.ssh}",
        key=f"{lab.folder}/key",
        host_key=host_key,
        address=host.address,
        address6=host.address6,
        root="direct",
        cache=Cache(kind="apache-disk", folder=f"{host.folder}/cache/branchlab-cache") if proxy else None,
        url=f"http://{host.address}:{PROXY_PORT}" if proxy else None,
        services=f"{host.folder}/services" if proxy or server else None,
        delay=f"wirefilter:{SERVER_BRIDGE}:{SERVER_PORT}" if server else None,
    )


def text(hosts: tuple[Host, ...]) -> str:
    """The whole profile."""
    blocks = [f"schema = 1\nname = {_quoted(NAME)}\n"]
    for host in hosts:
        lines = [f"\n[hosts.{host.name}]", f"role = {_quoted(host.role.value)}"]
        for name in ("ssh", "key", "host_key", "address", "address6", "root"):
            value = getattr(host, name)
            lines += [f"{name} = {_quoted(value)}"] if value is not None else []
        if host.cache is not None:
            lines.append(
                f"cache = {{ kind = {_quoted(host.cache.kind)}, folder = {_quoted(host.cache.folder or '')} }}"
            )
        for name in ("url", "services", "delay"):
            value = getattr(host, name)
            lines += [f"{name} = {_quoted(value)}"] if value is not None else []
        blocks.append("\n".join(lines) + "\n")
    return "".join(blocks) + _EXPERIMENTS


def _quoted(value: str) -> str:
    """A TOML basic string; JSON's escapes are a part of TOML's."""
    return json.dumps(value, ensure_ascii=False)


def data_folder() -> Path:
    """Where this user's profiles and runs live: BRANCHLAB_DATA, else the platform's folder."""
    given = os.environ.get("BRANCHLAB_DATA")
    if given:
        return Path(given).expanduser().absolute()
    import platformdirs  # not in the keeper's Python, which has the standard library only

    return Path(platformdirs.user_data_dir("branchlab", appauthor=False))
