"""The relay between a program and a proxy: everything passes, and what was asked for is told."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from netns import CODE, Agent, FailedError

from ssh_agents import relay


@pytest.fixture
def agent() -> Iterator[Agent]:
    made = Agent([sys.executable, "-I", "-S", "-c", CODE])
    yield made
    made.close()


class Answering(http.server.BaseHTTPRequestHandler):
    """A fake proxy: answers with what it was asked for, and with the body that came."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.path.encode() * 20_000 + self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_REPORT = do_GET  # noqa: N815 - http.server's own way

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture
def proxy() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_what_passes_is_whole_and_only_gets_are_told(agent: Agent, proxy: int) -> None:
    talk = agent.start("relay", host="127.0.0.1", port=proxy)
    name, data = talk.event()
    assert name == "listening"
    for _ in range(2):  # two connections
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", data["port"], timeout=30)) as link:
            for method, url in (
                ("GET", "http://a:80/x"),
                ("REPORT", "http://a:80/r"),
                ("GET", "http://a:80/y"),
            ):
                link.request(method, url, body=b"GET me not HTTP/1.1" * 100 if method == "REPORT" else None)
                answer = link.getresponse().read()
                assert answer.startswith(url.encode() * 20_000)
                assert len(answer) >= 20_000 * len(url)
    talk.cancel()
    assert talk.event() == ("urls", {"urls": ["http://a:80/x", "http://a:80/y"]})
    assert talk.done() == {}


def test_nobody_at_the_other_end_is_a_connection_that_ends(agent: Agent) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = free.getsockname()[1]
    talk = agent.start("relay", host="127.0.0.1", port=nobody)
    _, data = talk.event()
    with socket.create_connection(("127.0.0.1", data["port"]), 30) as line:
        assert line.recv(10) == b""
    talk.cancel()
    assert talk.done() == {}
    with pytest.raises(FailedError, match="a host and a port"):
        agent.ask("relay", host="", port=1)


def test_requests_are_found_however_they_are_split() -> None:
    text = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b?c HTTP/1.1\r\n\r\nPUT /d HTTP/1.1\r\n\r\nGET /e HTTP/1.0\r\n\r\n"
    for size in range(1, len(text)):
        asked: set[str] = set()
        rest = b""
        for begin in range(0, len(text), size):
            rest = relay._noted(rest + text[begin : begin + size], asked)
        assert asked == {"/a", "/b?c", "/e"}, size
