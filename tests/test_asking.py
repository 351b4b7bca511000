"""Questions: each is put once, a no stops what was asked for, and a wrong word is refused."""

from __future__ import annotations

import pytest

from lab.asking import KINDS, Asked, Declined, Question, agreed_to, always, kinds
from lab.errors import BadInput

PURGE = Question("purge", "proxy", "150 objects would go", "Delete 150 objects")


def test_a_question_is_put_once_per_kind_and_host() -> None:
    put: list[Question] = []

    def yes(question: Question) -> bool:
        put.append(question)
        return True

    asked = Asked(yes)
    for host in ("proxy", "proxy", "proxy-2"):
        asked.settle(Question("purge", host, "text", "deed"))
    assert [question.host for question in put] == ["proxy", "proxy-2"]


def test_a_no_is_raised_every_time_with_the_way_to_say_yes() -> None:
    asked = Asked(agreed_to({"connections"}))
    for _ in range(2):
        with pytest.raises(Declined, match="150 objects would go") as caught:
            asked.settle(PURGE)
        assert "--agree purge" in caught.value.advice


def test_what_was_agreed_beforehand_and_a_lab_of_our_own_are_not_asked() -> None:
    Asked(agreed_to({"purge"})).settle(PURGE)
    Asked(always).settle(PURGE)


def test_kinds_are_read_and_a_wrong_word_is_refused() -> None:
    assert kinds("connections, purge,qdisc") == frozenset(KINDS)
    assert kinds("") == frozenset()
    with pytest.raises(BadInput, match="`purges`"):
        kinds("connections,purges")
