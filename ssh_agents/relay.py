"""Passes a program's connections on to a proxy, and notes which URLs the program asked it for.

While a cache is filled, others may use it too. Whoever goes through this asks for nothing that others asked for.
"""

import contextlib
import re
import select
import socket
import threading
from typing import Any, Dict, List, Optional, Set

from ssh_agents import protocol

_STEP_S = 0.1
_CONNECT_S = 30.0
_MOST = 65536
_PORTION = 500
_PORTION_BYTES = 200_000
# Not only at the begin of a line: the body of the request before need not end with one.
_ASKED = re.compile(rb"GET ((?:https?:/)?/[^ \r\n]*) HTTP/1\.[01]\r?\n")


def serve(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `relay`: pass on what connects to a port of this host's loopback to `host` and `port`, until cancelled.

    Says "listening" with the `port`; once cancelled "urls", in portions: what was asked for with GET, each once.
    """
    host, port = protocol.need(args, "host", str), protocol.need(args, "port", int)
    if not host or not 0 < port < 65536:
        raise protocol.Refused("bad-request", "a relay leads to a host and a port, not %r, %r" % (host, port))
    asked: Set[str] = set()
    threads: List[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        call.say("listening", {"port": listener.getsockname()[1]})
        while not call.cancelled():
            if select.select([listener], [], [], _STEP_S)[0]:
                line, _ = listener.accept()
                threads = [thread for thread in threads if thread.is_alive()]
                threads.append(
                    threading.Thread(target=_passed, args=(line, (host, port), asked, call), daemon=True)
                )
                threads[-1].start()
    for thread in threads:
        thread.join(2 * _STEP_S)
    _tell(sorted(asked), call)
    return {}


def _tell(urls: List[str], call: protocol.Call) -> None:
    portion: List[str] = []
    for url in urls:
        portion.append(url)
        if len(portion) >= _PORTION or sum(map(len, portion)) > _PORTION_BYTES:
            call.say("urls", {"urls": portion})
            portion = []
    if portion:
        call.say("urls", {"urls": portion})


def _passed(line: socket.socket, to: Any, asked: Set[str], call: protocol.Call) -> None:
    """One connection, until both sides have ended, either broke off, or the request is cancelled."""
    try:
        with line, socket.create_connection(to, _CONNECT_S) as far:
            far.settimeout(None)
            for end in (line, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # One thread for each direction: a side that does not read must not keep the other from being heard.
            back = threading.Thread(target=_pumped, args=(far, line, None, call), daemon=True)
            back.start()
            _pumped(line, far, asked, call)
            back.join()
    except OSError:
        pass  # the program is told by its connection's end


def _pumped(end: socket.socket, to: socket.socket, asked: Optional[Set[str]], call: protocol.Call) -> None:
    rest = b""
    try:
        while not call.cancelled():
            if not select.select([end], [], [], _STEP_S)[0]:
                continue
            data = end.recv(_MOST)
            if not data:
                break
            if asked is not None:
                rest = _noted(rest + data, asked)
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)
    except (OSError, ValueError):  # closed meanwhile
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _noted(text: bytes, asked: Set[str]) -> bytes:
    """Note what is asked for in whole lines; what is left is the line that is not whole yet."""
    end = text.rfind(b"\n") + 1
    for match in _ASKED.finditer(text[:end]):
        asked.add(match.group(1).decode("utf-8", "backslashreplace"))
    return text[end:][-_MOST:]
