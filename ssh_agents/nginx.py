"""nginx as a caching forward proxy of the lab: program, configuration, access log."""

import ipaddress
import os
import re
import socket
import subprocess
from typing import Dict, Iterator, List, Optional

from ssh_agents import grounds, tool
from ssh_agents.access_log import Request
from ssh_agents.protocol import Refused
from ssh_agents.service_asked import LOG, PROBE_AGENT, Spec, authorities

LOG_FORMAT = (
    "$msec\\t$remote_addr:$remote_port\\t$request_method\\t$status\\t$body_bytes_sent\\t$request_length\\t$bytes_sent"
    "\\t$request_time\\t$upstream_cache_status\\t$scheme://$http_host$request_uri"
)
"""One request a line, separated by tabs: nginx escapes control characters inside of variables."""
HITS = ("HIT", "STALE", "UPDATING", "REVALIDATED")
INACTIVE = "7d"
"""What nobody asked for is forgotten after so long; longer than a run. nginx's own ten minutes are not."""


def program(asked: Spec) -> str:
    """nginx's program on this host. Refuses with `missing`, or what it cannot do with `bad-request`."""
    if "largest_file_bytes" in asked.given:
        raise Refused(
            "bad-request", "nginx has no limit for a file of its cache: leave largest_file_bytes out"
        )
    path = tool.found("nginx")
    if path is None:
        text = "nginx is not installed (package nginx)%s" % tool.passed_over("nginx")
        raise Refused("missing", text, "looked for nginx")
    return path


def write(asked: Spec, config: str, user: Optional[grounds.User]) -> None:
    """Write the configuration. `user`: whom nginx's workers become when root starts it."""
    grounds.write(config, text(asked, user), 0o600)


def commands(program: str, config: str) -> List[List[str]]:
    """What to run: one command, the service."""
    folder = os.path.dirname(config)
    # Else it begins by opening the log that it was compiled with, which is the system's.
    first = ["-e", os.path.join(folder, "error.log")] if _version(program) >= [1, 19, 5] else []
    return [[program, "-p", folder + "/", *first, "-c", config]]


def probe(asked: Spec) -> str:
    """What the service is asked for to see whether it answers."""
    return str(asked.options.get("path", "")) + "/"


def ready(asked: Spec) -> bool:
    """True once a service that answers can do its work."""
    return True


def text(asked: Spec, user: Optional[grounds.User]) -> str:
    """The whole configuration. Refuses with `missing` where an origin's name has no address on this host."""
    places = _places(asked)
    run = '"%s/run' % asked.folder
    return "\n".join(
        [
            "daemon off;",
            "worker_processes 1;",
            'pid %s/nginx.pid";' % run,
            'error_log "%s/error.log" warn;' % asked.folder,
            *(["user %s %s;" % (user.name, user.group)] if user else []),
            "events { worker_connections 1024; }",
            "http {",
            # A host's name may be long.
            "  map_hash_bucket_size 512;",
            # A kept cache needs 128 bytes of this memory for each object: about 500,000 of them.
            '  proxy_cache_path "%s" levels=1:2 keys_zone=lab:64m inactive=%s max_size=1000g use_temp_path=off;'
            % (asked.data, INACTIVE),
            *['  %s_temp_path %s/%s";' % (name, run, name) for name in _TEMPORARY],
            '  log_format lab "%s";' % LOG_FORMAT,
            "  map $http_user_agent $lab_logged { default 1; %s 0; }" % PROBE_AGENT,
            '  access_log "%s/%s" lab if=$lab_logged;' % (asked.folder, LOG),
            *["  upstream %s { %s }" % (place, _servers(name)) for name, place in places.items()],
            # Host as a whole: what follows a host in a URL (`?`, `@`, a second port) would lead elsewhere.
            '  map "http://$http_host/" $lab_origin { default 0; %s }'
            % " ".join('"http://%s/" %s;' % (one, places.get(one, one)) for one in authorities(asked)),
            "  server {",
            *["    listen %s;" % _endpoint(address, asked.port) for address in asked.listen or _everywhere()],
            *["    allow %s;" % address for address in asked.options["allow"]],
            "    deny all;",
            "    if ($lab_origin = 0) { return 403; }",
            '    if ($request_uri !~ "^/") { return 403; }',
            *["    " + line for line in _PROXY],
            "  }",
            "}",
            "",
        ]
    )


_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
_PROXY = [
    "keepalive_timeout 15s;",
    "keepalive_requests 1000000;",
    "server_tokens off;",
    "merge_slashes off;",
    "underscores_in_headers on;",
    "ignore_invalid_headers off;",
    "large_client_header_buffers 8 64k;",
    "client_max_body_size 0;",
    "client_body_timeout 300s;",
    "location / {",
    "  proxy_pass http://$lab_origin$request_uri;",
    "  proxy_http_version 1.1;",
    "  proxy_set_header Host $http_host;",
    '  proxy_set_header Connection "";',
    "  proxy_request_buffering off;",
    "  proxy_read_timeout 300s;",
    "  proxy_cache lab;",
    '  proxy_cache_key "$scheme$http_host$request_uri";',
    "  proxy_cache_methods GET;",
    "  proxy_ignore_headers X-Accel-Expires X-Accel-Redirect X-Accel-Limit-Rate X-Accel-Buffering"
    " X-Accel-Charset;",
    "}",
]


def _places(asked: Spec) -> Dict[str, str]:
    """For each authority that is a name, the upstream that stands for it.

    nginx itself would ask a DNS server only, which it has to be told of, and never the host's own table of hosts.
    """
    named = [one for one in authorities(asked) if not _is_address(one)]
    return {one: "lab_origin_%d" % number for number, one in enumerate(named)}


def _is_address(authority: str) -> bool:
    if authority.startswith("["):
        return True
    try:
        ipaddress.ip_address(authority.partition(":")[0])
    except ValueError:
        return False
    return True


def _servers(authority: str) -> str:
    """The addresses of a name as this host has them now, in its order: the others only if the first is silent."""
    name, _, port = authority.partition(":")
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        text = "%s has no address on this host: %s" % (name, error)
        raise Refused("missing", text, "looked it up as this host does (getaddrinfo)") from None
    # A scope may hold anything, and nobody's server is known by an address that only a neighbour can use.
    addresses = dict.fromkeys(str(one[4][0]) for one in found if "%" not in str(one[4][0]))
    if not addresses:
        raise Refused("missing", "%s has only link-local addresses on this host" % name, "getaddrinfo")
    first, *others = ["%s max_fails=0" % _endpoint(address, int(port or 80)) for address in addresses]
    return " ".join(["server %s;" % first, *("server %s backup;" % one for one in others)])


def _everywhere() -> List[str]:
    return ["", "::"] if os.path.exists("/proc/net/if_inet6") else [""]


def _endpoint(address: str, port: int) -> str:
    if not address:
        return str(port)
    return "[%s]:%d" % (address, port) if ":" in address else "%s:%d" % (address, port)


def _version(program: str) -> List[int]:
    try:
        done = subprocess.run(
            [program, "-v"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused("failed", "nginx does not tell its version: %s" % error, program + " -v") from None
    return version(done.stdout.decode("utf-8", "replace"))


def version(said: str) -> List[int]:
    """The numbers in what `nginx -v` says; none where it says none."""
    match = re.search(r"nginx/(\d+)\.(\d+)\.(\d+)", said)
    return [int(part) for part in match.groups()] if match else []


def requests(text: str) -> Iterator[Request]:
    """The requests of an access log. A line of another form (none is expected) is passed over."""
    for line in text.splitlines():
        parts = line.split("\t")
        numbers = [parts[place] for place in (3, 4, 5, 6)] if len(parts) == 10 else [""]
        if not all(value.isdigit() for value in numbers):
            continue
        try:
            at, took = (round(float(parts[place]) * 1e6) for place in (0, 7))
        except ValueError:
            continue
        status, content, received, sent = (int(value) for value in numbers)
        hit = parts[8] in HITS
        yield Request(at, parts[1], parts[2], status, content, received, sent, took, hit, parts[9])
