"""Apache as the lab's services use it: program and modules of this host, configuration, access log."""

import base64
import hashlib
import os
import re
import secrets
import shutil
from typing import Dict, Iterator, List, Optional, Sequence

from ssh_agents import grounds, system, tool
from ssh_agents.access_log import Request
from ssh_agents.protocol import Refused
from ssh_agents.service_asked import LOG, PROBE_AGENT, Spec, authorities

PROGRAMS = ("apache2", "httpd")
PROGRAM_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/sbin")
MODULE_FOLDERS = ("/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules")
SERVER_NAME = "branchlab"

_COMMON = ("mpm_event", "unixd", "log_config", "logio", "env", "headers", "authz_core", "authz_host")
_SVN = ("authn_core", "authn_file", "authz_user", "auth_basic", "filter", "deflate", "dav", "dav_svn")
MODULES = {
    "svn-server": _COMMON + _SVN,
    "caching-proxy": (*_COMMON, "proxy", "proxy_http", "cache", "cache_disk"),
}
"""What each service loads, in this order."""
_BUILT_IN = ("unixd", "log_config", "logio", "env", "headers", "authz_core", "authz_host", "filter")
"""Modules that some distributions compile into the program; then there is no file of them."""
_WINDOWS_HAS = ("mpm_event", "unixd")
"""Of these Windows has its own instead (mpm_winnt), which is always compiled in."""
LOG_FORMAT = r"%{usec}t\t%{c}a:%{remote}p\t%m\t%>s\t%B\t%I\t%O\t%D\t%{cache-status}e\t%U%q"
"""One request a line, separated by tabs: Apache escapes tabs and line ends inside of fields."""


# What the host has


def program(asked: Spec) -> str:
    """Apache's program on this host. Refuses with `missing` where it, or a module of the service, is not there."""
    modules(asked.kind)
    return found()


def found() -> str:
    """Apache's program on this host."""
    if not system.POSIX:
        return _found_on_windows()
    for name in PROGRAMS:
        path = tool.found(name, PROGRAM_FOLDERS)
        if path is not None:
            return path
    raise Refused(
        "missing",
        "Apache is not installed (Debian and Ubuntu: apache2-bin)%s"
        % "".join(tool.passed_over(name, PROGRAM_FOLDERS) for name in PROGRAMS),
        "looked for %s in %s" % (" and ".join(PROGRAMS), ", ".join(PROGRAM_FOLDERS)),
    )


def _found_on_windows() -> str:
    places = [os.environ.get("PATH", ""), *system.program_folders()]
    path = shutil.which("httpd.exe", path=os.pathsep.join(places))
    if path is None:
        raise Refused(
            "missing",
            "Apache is not installed, or in no folder where BranchLab looks: put its bin folder, with httpd.exe, into "
            "the PATH of the user who logs in",
            "looked for httpd.exe in PATH and below the folder of programs",
        )
    return os.path.abspath(path)


def modules(what: str) -> Dict[str, str]:
    """Name -> file of the modules of a kind of service, in the order in which they must be loaded."""
    folders: Sequence[str] = MODULE_FOLDERS
    if not system.POSIX:
        folders = [os.path.join(os.path.dirname(os.path.dirname(found())), "modules").replace("\\", "/")]
    folder = next((path for path in folders if os.path.isdir(path)), None)
    if folder is None:
        raise Refused("missing", "Apache's modules were not found", "looked in %s" % ", ".join(folders))
    out: Dict[str, str] = {}
    for name in MODULES[what]:
        if not system.POSIX and name in _WINDOWS_HAS:
            continue
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


def write(asked: Spec, config: str, user: Optional[grounds.User]) -> None:
    """Write the configuration of a service. `user`: whom Apache becomes when root starts it."""
    password = secrets.token_hex(16)
    if asked.kind == "svn-server":
        digest = base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()  # noqa: S324 - Apache's {SHA}
        # Readable for Apache's user; the folder is private, and the password was made for this start.
        grounds.write(os.path.join(asked.folder, "users"), "%s:{SHA}%s\n" % (SERVER_NAME, digest))
    grounds.write(config, text(asked, modules(asked.kind), user, password), 0o600)


def commands(program: str, config: str) -> List[List[str]]:
    """What to run, one after another; the last one is the service."""
    return [[program, "-f", config, "-DFOREGROUND"]]


def text(asked: Spec, loaded: Dict[str, str], user: Optional[grounds.User], password: str) -> str:
    """The configuration of a service."""
    folder = asked.folder
    lines = [
        'ServerRoot "%s"' % folder,
        'DefaultRuntimeDir "%s/run"' % folder,
        'PidFile "%s/run/httpd.pid"' % folder,
        *(['Mutex "file:%s/run" default' % folder] if system.POSIX else []),
        'ErrorLog "%s/error.log"' % folder,
        "ServerName " + SERVER_NAME,
        "ServerTokens Prod",
    ]
    lines += ['LoadModule %s_module "%s"' % pair for pair in loaded.items()]
    if user is not None:
        lines += ["User %s" % user.name, "Group #%d" % user.gid]
    lines += ["Listen %s" % _endpoint(address, asked.port) for address in asked.listen or [""]]
    lines += _TUNING if system.POSIX else _TUNING_ON_WINDOWS
    lines += [
        'LogFormat "%s" lab' % LOG_FORMAT,
        'CustomLog "%s/%s" lab "expr=%%{HTTP_USER_AGENT} != \'%s\'"' % (folder, LOG, PROBE_AGENT),
    ]
    lines += _proxy(asked) if asked.kind == "caching-proxy" else _svn(asked, password)
    return "\n".join(lines) + "\n"


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


_TUNING_ON_WINDOWS = [
    # One process for all threads is all that mpm_winnt has. Its manual's remedy against other programs that get in
    # the way of AcceptEx is taken from the beginning.
    "AcceptFilter http none",
    *(line for line in _TUNING if not re.match("ServerLimit|StartServers|Max(Request|Spare)|MinSpare", line)),
]


def _endpoint(address: str, port: int) -> str:
    if not address:
        return str(port)
    return "[%s]:%d" % (address, port) if ":" in address else "%s:%d" % (address, port)


_OWN = ("127.0.0.1", "::1")
"""From where this host itself asks whether the service answers, unless it listens on some addresses only."""


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
        # Who is none of these is told 403; 401 would ask for a password that nobody has.
        "  AuthzSendForbiddenOnFailure On",
        "  <RequireAll>",
        "    Require valid-user",
        "    Require ip %s" % " ".join(dict.fromkeys([*asked.options["allow"], *_OWN, *asked.listen])),
        "  </RequireAll>",
        "  SetOutputFilter DEFLATE" if level else "  # content is sent as it is",
        "</Location>",
    ]


def _proxy(asked: Spec) -> List[str]:
    return [
        "ProxyRequests On",
        "ProxyVia Off",
        "ProxyTimeout 300",
        '<Proxy "*">',
        "  Require all denied",
        "</Proxy>",
        # Matched against the URL as it was sent: the slash ends the host, so nothing can be hidden behind it.
        '<ProxyMatch "^(?i:http://(?:%s))/">' % "|".join(map(re.escape, authorities(asked))),
        "  Require ip %s" % " ".join(asked.options["allow"]),
        "</ProxyMatch>",
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


def requests(text: str) -> Iterator[Request]:
    """The requests of an access log. A line of another form (none is expected) is passed over."""
    for line in text.splitlines():
        parts = line.split("\t")
        numbers = [parts[place] for place in (0, 3, 4, 5, 6, 7)] if len(parts) == 10 else [""]
        if not all(value.isdigit() for value in numbers):
            continue
        at, status, content, received, sent, took = (int(value) for value in numbers)
        # "cache hit"; or "conditional cache hit", after asking.
        hit = "cache hit" in parts[8]
        yield Request(at, parts[1], parts[2], status, content, received, sent, took, hit, parts[9])


def probe(asked: Spec) -> str:
    """What the service is asked for to see whether it answers."""
    return str(asked.options.get("path", "")) + "/"


def ready(asked: Spec) -> bool:
    """True once a service that answers can do its work."""
    return True
