"""Apache as the lab's services use it: program and modules of this host, configuration, access log."""

import base64
import hashlib
import ipaddress
import os
import secrets
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set

from ssh_agents.protocol import Refused, need, need_strings

PROGRAMS = ("apache2", "httpd")
PROGRAM_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/sbin")
MODULE_FOLDERS = ("/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules")
LOG = "access.log"
TAIL_LINES = 8
SERVER_NAME = "branchlab"
PROBE_AGENT = "branchlab-probe"
"""The one who asks whether a service answers; its requests are not logged."""

_COMMON = ("mpm_event", "unixd", "log_config", "logio", "env", "headers", "authz_core", "authz_host")
_SVN = ("authn_core", "authn_file", "authz_user", "auth_basic", "filter", "deflate", "dav", "dav_svn")
MODULES = {
    "svn-server": _COMMON + _SVN,
    "caching-proxy": (*_COMMON, "proxy", "proxy_http", "cache", "cache_disk"),
}
"""The fixed table of services, and what each loads, in this order."""
SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr")
"""Nothing of a service lies below these (but in /dev/shm), whoever asks."""
OPTIONS = {
    "svn-server": ("repository", "path", "listen", "deflate_level", "memory_cache_kb"),
    "caching-proxy": ("cache", "allow", "listen", "origin_ports", "largest_file_bytes"),
}
_BUILT_IN = ("unixd", "log_config", "logio", "env", "headers", "authz_core", "authz_host", "filter")
"""Modules that some distributions compile into the program; then there is no file of them."""
LOG_FORMAT = r"%{usec}t\t%{c}a:%{remote}p\t%m\t%>s\t%B\t%I\t%O\t%D\t%{cache-status}e\t%U%q"
"""One request a line, separated by tabs: Apache escapes tabs and line ends inside of fields."""


# What was asked, checked


class Spec(NamedTuple):
    """A service as asked, checked. `data` is what it writes beside its folder: repository or cache."""

    kind: str
    folder: str
    port: int
    listen: List[str]
    data: str
    options: Dict[str, Any]


def kind(args: Dict[str, Any]) -> str:
    """The checked kind of service."""
    value = need(args, "kind", str)
    if value not in MODULES:
        raise Refused(
            "bad-request", "no such service: %r" % (value,), "known are %s" % ", ".join(sorted(MODULES))
        )
    return str(value)


def absolute(args: Dict[str, Any], name: str, default: Optional[str] = None) -> str:
    """A checked absolute path that a configuration can hold."""
    path = need(args, name, str, default)
    if not path.startswith("/") or path != os.path.normpath(path) or path.count("/") < 2:
        raise Refused("bad-request", "%s must be an absolute path below a folder, not %r" % (name, path))
    if not path.startswith("/dev/shm/") and any(path.startswith(above + "/") for above in SYSTEM):  # noqa: S108
        raise Refused("bad-request", "%s is below a folder of the system: %r" % (name, path))
    # With these, quoting or a line of the configuration could be broken.
    if any(ord(sign) < 32 or sign in "\"'\\$%{}" for sign in path):
        raise Refused(
            "bad-request", "%s has a sign that Apache's configuration cannot hold: %r" % (name, path)
        )
    return str(path)


def spec(args: Dict[str, Any]) -> Spec:
    """The service asked for. Refuses with `bad-request` what cannot be right."""
    what, folder = kind(args), absolute(args, "folder")
    port = _number(args, "port", None, 1, 65535)
    options = need(args, "options", dict, {})
    extra = sorted(set(options) - set(OPTIONS[what]))
    if extra:
        raise Refused(
            "bad-request",
            "a %s has no option %r" % (what, extra[0]),
            "known are %s" % ", ".join(OPTIONS[what]),
        )
    listen = _addresses(options, "listen")
    if what == "svn-server":
        return Spec(what, folder, port, listen, absolute(options, "repository"), _svn_options(options))
    cache = absolute(options, "cache", os.path.join(folder, "cache"))
    return Spec(what, folder, port, listen, cache, _proxy_options(options))


def _svn_options(options: Dict[str, Any]) -> Dict[str, Any]:
    path = need(options, "path", str, "/svn")
    if not path.startswith("/") or not path[1:].replace("-", "").replace("_", "").isalnum():
        raise Refused("bad-request", "path must be / and a plain word, not %r" % (path,))
    return {
        "path": path,
        "deflate_level": _number(options, "deflate_level", 6, 0, 9),
        "memory_cache_kb": _number(options, "memory_cache_kb", 65536, 0, 1 << 22),
    }


def _proxy_options(options: Dict[str, Any]) -> Dict[str, Any]:
    allow = _addresses(options, "allow")
    if not allow:
        raise Refused("bad-request", "a caching proxy needs option allow: the addresses that may use it")
    ports = options.get("origin_ports", [80])
    if (
        not isinstance(ports, list)
        or not all(type(port) is int and 0 < port < 65536 for port in ports)
        or not ports
    ):
        raise Refused("bad-request", "origin_ports must be a list of ports, not %r" % (ports,))
    return {
        "allow": allow,
        "origin_ports": ports,
        "largest_file_bytes": _number(options, "largest_file_bytes", 1 << 30, 1, 1 << 40),
    }


def _addresses(options: Dict[str, Any], name: str) -> List[str]:
    out = need_strings(options, name, [])
    for address in out:
        try:
            # No networks: nobody wants an open proxy by a slip. No scopes: those may hold line ends.
            ipaddress.ip_address("" if "%" in address else address)
        except ValueError:
            raise Refused("bad-request", "option %s: %r is no IP address" % (name, address)) from None
    return out


def _number(args: Dict[str, Any], name: str, default: Optional[int], least: int, most: int) -> int:
    value = need(args, name, int, default)
    if not least <= value <= most:
        raise Refused("bad-request", "%s must be %d to %d, not %r" % (name, least, most, value))
    return int(value)


# What the host has


def program() -> str:
    """Apache's program on this host."""
    for name in PROGRAMS:
        for folder in PROGRAM_FOLDERS:
            path = os.path.join(folder, name)
            if os.access(path, os.X_OK):
                return path
    raise Refused(
        "missing",
        "Apache is not installed (Debian and Ubuntu: apache2-bin)",
        "looked for %s in %s" % (" and ".join(PROGRAMS), ", ".join(PROGRAM_FOLDERS)),
    )


def modules(what: str) -> Dict[str, str]:
    """Name -> file of the modules of a kind of service, in the order in which they must be loaded."""
    folder = next((path for path in MODULE_FOLDERS if os.path.isdir(path)), None)
    if folder is None:
        raise Refused(
            "missing", "Apache's modules were not found", "looked in %s" % ", ".join(MODULE_FOLDERS)
        )
    out: Dict[str, str] = {}
    for name in MODULES[what]:
        path = os.path.join(folder, "mod_%s.so" % name)
        if os.path.exists(path):
            out[name] = path
        elif name not in _BUILT_IN:
            package = "libapache2-mod-svn" if name == "dav_svn" else "apache2-bin"
            raise Refused(
                "missing", "Apache lacks mod_%s (Debian and Ubuntu: %s)" % (name, package), "no " + path
            )
    return out


# The configuration


class Files(NamedTuple):
    """A configuration's text, and that of the file of users it names (empty where it needs none)."""

    config: str
    users: str


def files(asked: Spec, loaded: Dict[str, str], user: Optional[str]) -> Files:
    """The configuration of a service. `user`: whom Apache becomes when root starts it ("name:gid")."""
    folder = asked.folder
    lines = [
        'ServerRoot "%s"' % folder,
        'DefaultRuntimeDir "%s/run"' % folder,
        'PidFile "%s/run/httpd.pid"' % folder,
        'Mutex "file:%s/run" default' % folder,
        'ErrorLog "%s/error.log"' % folder,
        "ServerName " + SERVER_NAME,
        "ServerTokens Prod",
    ]
    lines += ['LoadModule %s_module "%s"' % pair for pair in loaded.items()]
    if user is not None:
        name, _, group = user.partition(":")
        lines += ["User %s" % name, "Group #%s" % group]
    lines += ["Listen %s" % _endpoint(address, asked.port) for address in asked.listen or [""]]
    lines += _TUNING
    lines += [
        'LogFormat "%s" lab' % LOG_FORMAT,
        'CustomLog "%s/%s" lab "expr=%%{HTTP_USER_AGENT} != \'%s\'"' % (folder, LOG, PROBE_AGENT),
    ]
    if asked.kind == "caching-proxy":
        return Files("\n".join(lines + _proxy(asked)) + "\n", "")
    password = secrets.token_hex(16)
    digest = base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()  # noqa: S324 - Apache's {SHA}
    users = "%s:{SHA}%s\n" % (SERVER_NAME, digest)
    return Files("\n".join(lines + _svn(asked, password)) + "\n", users)


_TUNING = [
    # One process: it starts at once, and all its threads share the repository's caches in memory.
    "ServerLimit 1",
    "StartServers 1",
    "ThreadLimit 128",
    "ThreadsPerChild 128",
    "MaxRequestWorkers 128",
    "MinSpareThreads 1",
    "MaxSpareThreads 128",
    "Timeout 300",
    "KeepAlive On",
    "MaxKeepAliveRequests 0",
    # Long enough for a client that is busy writing files; at its end it closes its connections itself.
    "KeepAliveTimeout 15",
    "TraceEnable off",
    "HostnameLookups Off",
    '<Directory "/">',
    "  AllowOverride None",
    "  Require all denied",
    "</Directory>",
]


def _endpoint(address: str, port: int) -> str:
    if not address:
        return str(port)
    return "[%s]:%d" % (address, port) if ":" in address else "%s:%d" % (address, port)


def _svn(asked: Spec, password: str) -> List[str]:
    credentials = base64.b64encode(("%s:%s" % (SERVER_NAME, password)).encode()).decode()
    level = asked.options["deflate_level"]
    return [
        # Everyone is one user without being asked: with a password on writes only, five locks at once
        # fail, and what was read with a password no cache may store. Early: in <Location> it is too late.
        'RequestHeader set Authorization "Basic %s" early' % credentials,
        "LimitXMLRequestBody 0",
        "LimitRequestBody 0",
        "SVNInMemoryCacheSize %d" % asked.options["memory_cache_kb"],
        "SVNCompressionLevel 5",
        "DeflateCompressionLevel %d" % (level or 1),
        "<Location %s>" % asked.options["path"],
        "  DAV svn",
        '  SVNPath "%s"' % asked.data,
        "  SVNCacheFullTexts on",
        "  SVNCacheTextDeltas on",
        "  AuthType Basic",
        '  AuthName "BranchLab"',
        "  AuthBasicProvider file",
        '  AuthUserFile "%s/users"' % asked.folder,
        "  Require valid-user",
        "  SetOutputFilter DEFLATE" if level else "  # content is sent as it is",
        "</Location>",
    ]


def _proxy(asked: Spec) -> List[str]:
    return [
        "ProxyRequests On",
        "ProxyVia Off",
        "ProxyTimeout 300",
        '<Proxy "*">',
        "  Require ip %s" % " ".join(asked.options["allow"]),
        "</Proxy>",
        # The quick way would answer from the cache before it asks who the client is.
        "CacheQuickHandler off",
        'CacheRoot "%s"' % asked.data,
        "CacheDirLevels 2",
        "CacheDirLength 1",
        "CacheMinFileSize 0",
        "CacheMaxFileSize %d" % asked.options["largest_file_bytes"],
        # A week, as mod_dav_svn says itself; longer than a run.
        "CacheMaxExpire 604800",
        "CacheHeader on",
        "CacheLock off",
        # "http://" alone would mean port 80 only, and say nothing.
        *['CacheEnable disk "http://*:%d/"' % port for port in asked.options["origin_ports"]],
    ]


# The access log


class Request(NamedTuple):
    """One line of the access log. Times in microseconds; `content_bytes` compressed, without headers."""

    at_us: int
    connection: str
    method: str
    status: int
    content_bytes: int
    received_bytes: int
    sent_bytes: int
    took_us: int
    cache: str
    url: str

    @property
    def hit(self) -> bool:
        """True if the content came out of the cache ("cache hit"; "conditional cache hit" after asking)."""
        return "cache hit" in self.cache


def requests(text: str) -> Iterator[Request]:
    """The requests of an access log. A line of another form (none is expected) is passed over."""
    for line in text.splitlines():
        parts = line.split("\t")
        numbers = [parts[place] for place in (0, 3, 4, 5, 6, 7)] if len(parts) == 10 else [""]
        if not all(value.isdigit() for value in numbers):
            continue
        at, status, content, received, sent, took = (int(value) for value in numbers)
        yield Request(at, parts[1], parts[2], status, content, received, sent, took, parts[8], parts[9])


def summary(text: str) -> Dict[str, Any]:
    """Requests, hits and content bytes of a piece of the access log, by what became of them."""
    out: Dict[str, Any] = dict.fromkeys(
        ("requests", "hits", "misses", "hit_bytes", "miss_bytes", "other_bytes", "failed", "sent_bytes"), 0
    )
    methods: Dict[str, int] = {}
    connections: Set[str] = set()
    for request in requests(text):
        out["requests"] += 1
        out["failed"] += request.status >= 400
        out["sent_bytes"] += request.sent_bytes
        methods[request.method] = methods.get(request.method, 0) + 1
        connections.add(request.connection)
        if request.method != "GET":
            out["other_bytes"] += request.content_bytes
        elif request.hit:
            out["hits"] += 1
            out["hit_bytes"] += request.content_bytes
        else:
            out["misses"] += 1
            out["miss_bytes"] += request.content_bytes
    out["by_method"] = methods
    out["connections"] = len(connections)
    out["lines"] = text.splitlines()[-TAIL_LINES:]
    return out
