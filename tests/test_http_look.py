"""One look at an address over HTTP, at real servers of Python's own on loopback."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from ssh_agents import http_look, protocol

CALL = protocol.Call(
    say=lambda event, data: None,
    cancelled=lambda: False,
    wait_cancelled=lambda seconds: False,
    promise=lambda entry: "",
    keep=lambda name: None,
)


class Server(BaseHTTPRequestHandler):
    """Answers by the path; keeps what it was asked."""

    asked: ClassVar[list[tuple[str, dict[str, str]]]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, dict(self.headers)))
        status = 401 if "private" in self.path else 200
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="office"')
        self.send_header("Cache-Control", "no-store")
        self.send_header("Set-Cookie", "session=secret")
        self.end_headers()
        self.wfile.write(b"x" * (http_look.READ_BYTES * 2))

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    Server.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_who_asks_for_a_password_is_seen(port: int) -> None:
    word = http_look.look({"url": f"http://127.0.0.1:{port}/private/trunk"}, CALL)
    assert word["status"] == 401
    assert word["headers"]["www-authenticate"] == 'Basic realm="office"'


def test_what_says_whether_it_may_be_stored_is_kept_and_nothing_else(port: int) -> None:
    word = http_look.look({"url": f"http://127.0.0.1:{port}/svn?p=3"}, CALL)
    assert word["status"] == 200
    assert word["headers"]["cache-control"] == "no-store"
    assert "set-cookie" not in word["headers"]
    path, headers = Server.asked[0]
    assert path == "/svn?p=3"
    assert not {name.lower() for name in headers} & {"authorization", "cookie", "proxy-authorization"}


def test_through_a_proxy_the_whole_address_is_asked(port: int) -> None:
    url = "http://svn.example.com/svn/trunk"
    http_look.look({"url": url, "proxy": {"host": "127.0.0.1", "port": port}}, CALL)
    assert Server.asked[0][0] == url
    assert Server.asked[0][1]["Host"] == "svn.example.com"


def test_a_login_is_sent_to_a_proxy_only(port: int) -> None:
    login = {"user": "joe", "password": "pä:ss"}
    there = {"host": "127.0.0.1", "port": port}
    http_look.look({"url": "http://svn.example.com/svn", "proxy": there, "login": login}, CALL)
    sent = Server.asked[0][1]["Proxy-Authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")).decode() == "joe:pä:ss"
    http_look.look({"url": f"http://127.0.0.1:{port}/", "login": login}, CALL)
    assert "authorization" not in str(Server.asked[-1][1]).lower()
    with pytest.raises(protocol.Refused) as caught:
        http_look.look(
            {"url": "http://x/", "proxy": there, "login": {"user": 5, "password": "pässword"}}, CALL
        )
    assert "pässword" not in caught.value.text


def test_nothing_that_answers_is_a_refusal_and_no_hang(port: int) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as closed:
        free = closed.getsockname()[1]
    with pytest.raises(protocol.Refused) as caught:
        http_look.look({"url": f"http://127.0.0.1:{free}/"}, CALL)
    assert caught.value.kind == "missing"
    assert f"127.0.0.1:{free}" in caught.value.text


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "http://me:secret@127.0.0.1/",
        "http:///x",
        "file:///etc/passwd",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/\r\nX: y",
        "",
    ],
)
def test_only_plain_addresses_are_asked(url: str) -> None:
    with pytest.raises(protocol.Refused, match="plain http address"):
        http_look.look({"url": url}, CALL)


@pytest.mark.parametrize("proxy", [{"host": "a b", "port": 1}, {"host": "x", "port": 0}, {"host": "x"}])
def test_a_proxy_has_a_name_and_a_port(proxy: dict[str, object]) -> None:
    with pytest.raises(protocol.Refused):
        http_look.look({"url": "http://127.0.0.1/", "proxy": proxy}, CALL)
