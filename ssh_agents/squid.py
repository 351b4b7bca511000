"""Squid as a caching proxy of the lab: program, configuration, access log."""

import glob
import os
import re
from typing import Iterator, List, Optional

from ssh_agents import grounds, tool
from ssh_agents.access_log import Request
from ssh_agents.protocol import Refused
from ssh_agents.service_asked import LOG, PROBE_AGENT, Spec

LOG_FORMAT = "%ts%03tu %>a:%>p %rm %>Hs %<st %<sh %>st %tr %Ss %ru"
"""One request a line: ms, client, method, status, bytes sent, of them the head's, received, ms, outcome, URL."""
ERRORS = "cache.log"
READY = b"Completed Validation Procedure"
"""What Squid says once it knows all that lies in its cache."""
MOST_MB, LEAST_MB = 65_536, 100
_NAME = re.compile(r".*/squid-([0-9a-f]{16})\.conf")


def program(asked: Spec) -> str:
    """Squid's program on this host. Refuses with `missing`; with `bad-request` what its configuration cannot hold."""
    for path in (asked.folder, asked.data):
        if re.search(r"[\s#,|]", path):
            raise Refused("bad-request", "Squid's configuration cannot hold this path: %r" % path)
    found = tool.found("squid")
    if found is None:
        text = "Squid is not installed (package squid)%s" % tool.passed_over("squid")
        raise Refused("missing", text, "looked for squid")
    return found


def write(asked: Spec, config: str, user: Optional[grounds.User]) -> None:
    """Write the configuration, and the logs that Squid may write to. `user`: whom it becomes when root starts it."""
    for name in (LOG, ERRORS):
        path = os.path.join(asked.folder, name)
        grounds.write(path, "")
        if user is not None:
            os.chown(path, user.uid, user.gid, follow_symlinks=False)
    # Squid reads it as root, then gives up root's rights.
    grounds.write(config, text(asked, tool.found("squid") or "", user), 0o600)


def commands(program: str, config: str) -> List[List[str]]:
    """What to run, one after another: its folders are made, then the service."""
    # In one process (-N); its own name keeps its shared memory apart from that of the system's Squid.
    words = [program, "-N", "-n", _service(config), "-f", config]
    return [[*words, "-z"], words]


def probe(asked: Spec) -> str:
    """What the service is asked for to see whether it answers."""
    # A whole URL, since else it does not look at who asks; on a port that it refuses to go to.
    return "http://127.0.0.1:1/"


def ready(asked: Spec) -> bool:
    """True once it knows what is in its cache: until then it would neither serve nor purge that."""
    with open(os.path.join(asked.folder, ERRORS), "rb") as file:
        return READY in file.read()


def swept(config: str) -> None:
    """Remove the shared memory that a Squid with this configuration left when it was killed. Idempotent."""
    if _NAME.fullmatch(config):
        for path in glob.glob("/dev/shm/%s-*" % _service(config)):  # noqa: S108
            try:
                os.unlink(path)
            except OSError:
                continue


def text(asked: Spec, program: str, user: Optional[grounds.User]) -> str:
    """The whole configuration."""
    listen = [_endpoint(address, asked.port) for address in asked.listen] or [str(asked.port)]
    if asked.listen and "127.0.0.1" not in asked.listen:
        listen.append("127.0.0.1:%d" % asked.port)  # where its own host purges
    lines = [
        *["http_port " + place for place in listen],
        "visible_hostname branchlab",
        *(["cache_effective_user " + user.name, "cache_effective_group " + user.group] if user else []),
        "pid_filename none",
        "coredump_dir %s/run" % asked.folder,
        "cache_log %s/%s" % (asked.folder, ERRORS),
        *_beside(program),
        *_TUNING,
        # Before cache_dir, which else keeps the usual 4 MB.
        "maximum_object_size %d bytes" % asked.options["largest_file_bytes"],
        "cache_dir ufs %s %d 16 16" % (asked.data, _room_mb(asked.data)),
        "logformat lab " + LOG_FORMAT,
        "acl unlogged browser ^%s$" % PROBE_AGENT,
        "access_log stdio:%s/%s lab !unlogged" % (asked.folder, LOG),
        "acl PURGE method PURGE",
        "acl office src %s" % " ".join(asked.options["allow"]),
        "acl origin port %s" % " ".join(str(port) for port in asked.options["origin_ports"]),
        *_origins(asked.options["origins"]),
        "http_access allow PURGE localhost",
        "http_access deny PURGE",
        "http_access deny manager",
        "http_access deny !origin",
        "http_access deny !server",
        "http_access deny CONNECT",
        "http_access allow office",
        "http_access deny all",
    ]
    return "\n".join(lines) + "\n"


def _origins(origins: List[str]) -> Iterator[str]:
    """Whom it may go to: addresses as such, names as such. Nothing is resolved, since a name may lead anywhere."""
    numbers = [one for one in origins if ":" in one or not re.search("[a-z]", one)]
    names = [one for one in origins if one not in numbers]
    if numbers:
        yield "acl server_address dst -n " + " ".join(numbers)
    if names:
        yield "acl server_name dstdomain -n " + " ".join(names)
    yield "acl server any-of" + " server_address" * bool(numbers) + " server_name" * bool(names)


_TUNING = [
    "logfile_rotate 0",
    "buffered_logs off",
    "pinger_enable off",
    "netdb_filename none",
    "digest_generation off",
    # What is on the disk is what is cached.
    "cache_mem 0",
    "maximum_object_size_in_memory 0",
    "memory_pools off",
    "quick_abort_min -1 KB",
    "collapsed_forwarding off",
    "via off",
    "forwarded_for delete",
    "shutdown_lifetime 1 second",
    "read_timeout 5 minutes",
    "client_idle_pconn_timeout 15 seconds",
    # A connection to the server that outlives the operation would close in the next one.
    "server_idle_pconn_timeout 2 seconds",
    "refresh_pattern . 0 20% 10080",
]


def _beside(program: str) -> List[str]:
    """Where its data lie, for a Squid that was unpacked in another place than it was built for."""
    prefix = os.path.dirname(os.path.dirname(program))
    if prefix == "/usr" or not os.path.isdir(prefix + "/share/squid"):
        return []
    return [
        "mime_table %s/share/squid/mime.conf" % prefix,
        "icon_directory %s/share/squid/icons" % prefix,
        "error_directory %s/share/squid/errors/templates" % prefix,
        "unlinkd_program %s/lib/squid/unlinkd" % prefix,
    ]


def _room_mb(folder: str) -> int:
    """How much Squid may keep: nine tenths of what is free, so that it never runs full in a run."""
    found = os.statvfs(folder)
    return max(LEAST_MB, min(MOST_MB, found.f_bavail * found.f_frsize * 9 // 10 >> 20))


def _service(config: str) -> str:
    match = _NAME.fullmatch(config)
    if match is None:
        raise ValueError("no configuration of ours: %r" % config)
    return "branchlab" + match.group(1)


def _endpoint(address: str, port: int) -> str:
    return "[%s]:%d" % (address, port) if ":" in address else "%s:%d" % (address, port)


def requests(text: str) -> Iterator[Request]:
    """The requests of an access log. A line of another form (none is expected) is passed over."""
    for line in text.splitlines():
        parts = line.split(" ")
        numbers = [parts[place] for place in (0, 3, 4, 5, 6, 7)] if len(parts) == 10 else [""]
        if not all(value.isdigit() for value in numbers) or parts[2] == "-":
            continue  # a connection without a request has a line too
        at, status, sent, head, received, took = (int(value) for value in numbers)
        # TCP_HIT, TCP_MEM_HIT, TCP_INM_HIT, ...; or after asking whether it is still good.
        hit = "HIT" in parts[8] or "REFRESH_UNMODIFIED" in parts[8]
        yield Request(
            at * 1000, parts[1], parts[2], status, sent - head, received, sent, took * 1000, hit, parts[9]
        )
