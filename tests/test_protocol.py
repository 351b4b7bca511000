"""The protocol alone: messages however the bytes are split, and each kind of junk."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssh_agents import protocol

MESSAGES: list[dict[str, Any]] = [
    {"id": 1, "verb": "hello", "args": {}},
    {"id": 2, "event": "output", "data": {"text": "é€😀\n\u2028\0", "stream": "stdout"}},
    {"id": 3, "failed": {"kind": "missing", "text": "x", "tried": ""}},
]
STREAM = b"".join(protocol.encode(message) for message in MESSAGES)


def read(pieces: list[bytes]) -> list[dict[str, Any]]:
    decoder = protocol.Decoder()
    return [protocol.decode(line) for piece in pieces for line in decoder.feed(piece)]


def test_one_message_is_one_line() -> None:
    assert STREAM.count(b"\n") == len(MESSAGES)


@pytest.mark.parametrize("at", range(len(STREAM) + 1))
def test_split_at_every_place(at: int) -> None:
    assert read([STREAM[:at], STREAM[at:]]) == MESSAGES


def test_byte_by_byte_and_with_empty_lines_between() -> None:
    assert read([bytes([byte]) for byte in STREAM]) == MESSAGES
    assert read([b"\n \r\n" + STREAM.replace(b"\n", b"\r\n\n")]) == MESSAGES


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_split_anyhow(places: list[int]) -> None:
    bounds = [0, *sorted(places), len(STREAM)]
    assert read([STREAM[low:high] for low, high in pairwise(bounds)]) == MESSAGES


@pytest.mark.parametrize(
    "junk",
    [
        *(b"junk", b"{", b"[]", b"1", b"null", b'"x"', b"{}", b'{"id":"1"}', b'{"id":1.5}', b'{"id":null}'),
        *(b"\xff\xfe", b'{"id":1}{"id":2}', b'{"id":1,"verb":"a"', b"[" * 100_000),
    ],
)
def test_each_kind_of_junk_is_refused_and_quoted(junk: bytes) -> None:
    with pytest.raises(protocol.BadLine) as caught:
        protocol.decode(junk)
    assert repr(junk[:20])[2:-1] in str(caught.value)


def test_what_came_before_a_line_that_is_too_long_is_not_lost() -> None:
    decoder, seen = protocol.Decoder(), []
    with pytest.raises(protocol.BadLine, match="above"):  # noqa: PT012
        for line in decoder.feed(STREAM + b"x" * (protocol.MAX_LINE + 1)):
            seen.append(protocol.decode(line))
    assert seen == MESSAGES


def test_a_line_that_is_too_long_is_refused_and_the_rest_goes_on() -> None:
    decoder = protocol.Decoder()
    with pytest.raises(protocol.BadLine, match="above"):
        list(decoder.feed(b"x" * (protocol.MAX_LINE + 1)))
    lines = list(decoder.feed(b"yyy\n" + STREAM))
    assert [protocol.decode(line) for line in lines[1:]] == MESSAGES
    with pytest.raises(ValueError, match="above"):
        protocol.encode({"id": 1, "text": "x" * protocol.MAX_LINE})


@given(
    st.dictionaries(st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
)
def test_what_is_encoded_is_decoded(args: dict[str, Any]) -> None:
    message = {"id": 7, "verb": "x", "args": args}
    try:
        line = protocol.encode(message)
    except UnicodeEncodeError:
        return
    assert line.endswith(b"\n")
    assert b"\n" not in line[:-1]
    expected = json.loads(json.dumps(message).encode("utf-8", "replace"))
    got = protocol.decode(line)
    assert got == expected or "?" in line.decode()  # a lone surrogate becomes a question mark


def test_checked_arguments() -> None:
    assert protocol.need({"a": 1}, "a", float) == 1.0
    assert protocol.need({}, "a", int, 5) == 5
    assert protocol.need_strings({"a": ["x"]}, "a") == ["x"]
    for value, kind in ((True, int), (1, bool), ("1", int), (None, str), (1.5, int), (True, float)):
        with pytest.raises(protocol.Refused):
            protocol.need({"a": value}, "a", kind)
    for wrong in (None, "x", [1], ["a\0b"], {"x": 1}):
        with pytest.raises(protocol.Refused):
            protocol.need_strings({"a": wrong}, "a")
    with pytest.raises(ValueError, match="unknown kind"):
        protocol.Refused("no-kind", "x")
