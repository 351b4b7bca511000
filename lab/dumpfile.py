"""Subversion's dump stream, piece by piece: revisions, folders, files, deltas. Pure; knows no data set.

The format is Subversion's own, version 3 (`notes/dump-load-format.txt` and `notes/svndiff` in its sources).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime


def begin(uuid: str) -> bytes:
    """The head of a stream."""
    return b"SVN-fs-dump-format-version: 3\n\nUUID: %s\n\n" % uuid.encode()


def revision(number: int, moment: datetime, props: Mapping[str, str]) -> bytes:
    """A revision's head; its nodes follow. `moment` is UTC."""
    block = _props({**props, "svn:date": moment.strftime("%Y-%m-%dT%H:%M:%S.000000Z")})
    head = b"Revision-number: %d\nProp-content-length: %d\nContent-length: %d\n\n%s\n"
    return head % (number, len(block), len(block), block)


def folder(path: str) -> bytes:
    """A new, empty folder."""
    return (
        b"Node-path: %s\nNode-kind: dir\nNode-action: add\n"
        b"Prop-content-length: 10\nContent-length: 10\n\nPROPS-END\n\n\n" % path.encode()
    )


def copied(path: str, source: str, number: int) -> bytes:
    """A folder copied from `source` as it was at revision `number`: a branch."""
    return (
        b"Node-path: %s\nNode-kind: dir\nNode-action: add\n"
        b"Node-copyfrom-rev: %d\nNode-copyfrom-path: %s\n\n\n" % (path.encode(), number, source.encode())
    )


def added(path: str, text: bytes, props: Mapping[str, str]) -> bytes:
    """A new file with its whole text."""
    block = _props(props)
    lengths = (len(block), len(text), _md5(text), len(block) + len(text))
    return (
        b"Node-path: %s\nNode-kind: file\nNode-action: add\n"
        b"Prop-content-length: %d\nText-content-length: %d\nText-content-md5: %s\n"
        b"Content-length: %d\n\n%s%s\n\n"
    ) % (path.encode(), *lengths, block, text)


def edited(path: str, before: bytes, offset: int, removed: int, new: bytes) -> bytes:
    """A file changed in one place: `new` for `removed` bytes at `offset`. `before` is at most 100 kB."""
    after = before[:offset] + new + before[offset + removed :]
    delta = _svndiff(len(before), offset, removed, new)
    return (
        b"Node-path: %s\nNode-kind: file\nNode-action: change\nText-delta: true\nText-delta-base-md5: %s\n"
        b"Text-content-length: %d\nText-content-md5: %s\nContent-length: %d\n\n%s\n\n"
    ) % (path.encode(), _md5(before), len(delta), _md5(after), len(delta), delta)


def _props(values: Mapping[str, str]) -> bytes:
    out = b""
    for key, value in values.items():
        raw = value.encode()
        out += b"K %d\n%s\nV %d\n%s\n" % (len(key), key.encode(), len(raw), raw)
    return out + b"PROPS-END\n"


def _md5(text: bytes) -> bytes:
    return hashlib.md5(text, usedforsecurity=False).hexdigest().encode()


def _svndiff(size: int, offset: int, removed: int, new: bytes) -> bytes:
    """One window of svndiff0: what stands before `offset`, `new` in place of `removed` bytes, the rest."""
    rest = size - offset - removed
    steps = _step(0, offset) + b"\0" if offset else b""
    steps += _step(2, len(new))
    if rest:
        steps += _step(0, rest) + _number(offset + removed)
    head = b"".join(_number(value) for value in (0, size, offset + len(new) + rest, len(steps), len(new)))
    return b"SVN\0" + head + steps + new


def _step(code: int, length: int) -> bytes:
    """An instruction: two bits of code, the length in the other six or, when they are 0, behind them."""
    return bytes([code << 6 | length]) if 0 < length < 64 else bytes([code << 6]) + _number(length)


def _number(value: int) -> bytes:
    """Seven bits a byte, the most significant first; the high bit says that more follow."""
    out = [value & 127]
    while value := value >> 7:
        out.append(value & 127 | 128)
    return bytes(reversed(out))
