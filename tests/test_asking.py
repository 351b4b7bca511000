"""What can be agreed to beforehand: words are read, and a wrong one is refused."""

from __future__ import annotations

import pytest

from lab.asking import KINDS, kinds
from lab.errors import BadInput


def test_kinds_are_read_and_a_wrong_word_is_refused() -> None:
    assert kinds("connections, qdisc") == frozenset(KINDS)
    assert kinds("") == frozenset()
    with pytest.raises(BadInput, match="`connection`"):
        kinds("qdisc,connection")
