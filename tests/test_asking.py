"""What can be agreed to beforehand: words are read, a wrong one is refused, and what nobody agreed to is named."""

from __future__ import annotations

import pytest
from real_runs import EMPTY, QUICK_LINE, experiment

from lab.asking import KINDS, Declined, Question, flag, kinds, possible, refuse_unanswered
from lab.errors import BadInput
from lab.model import AS_IT_IS, DISABLED, Line


def test_kinds_are_read_and_a_wrong_word_is_refused() -> None:
    assert kinds("connections, qdisc") == {"connections", "qdisc"}
    assert kinds("connections,purge,qdisc") == frozenset(KINDS)
    assert kinds("") == kinds("nothing") == frozenset()
    for wrong, named in (("qdisc,connection", "`connection`"), ("qdisc,nothing", "`nothing`")):
        with pytest.raises(BadInput, match=named):
            kinds(wrong)


def test_what_an_experiment_can_need_follows_from_its_lines_and_states() -> None:
    assert possible(experiment()) == ()
    assert possible(experiment(lines=(AS_IT_IS, QUICK_LINE))) == ("connections", "qdisc")
    delayed = Line(upload_bps=None, download_bps=None, delay_s=0.1)
    assert possible(experiment(lines=(delayed,))) == ("connections", "qdisc")
    assert possible(experiment(states=(DISABLED, EMPTY))) == ("purge",)
    assert possible(experiment(lines=(QUICK_LINE,), states=(EMPTY,))) == tuple(KINDS)


def test_the_flag_names_kinds_in_one_order_and_is_read_again() -> None:
    assert flag(["qdisc", "connections"]) == "--agree connections,qdisc"
    assert flag([]) == "--agree nothing"
    assert kinds(flag(KINDS).partition(" ")[2]) == frozenset(KINDS)


def test_what_nobody_agreed_to_is_named_with_what_was_found_and_the_whole_flag() -> None:
    asked = [
        Question(
            "connections", "server", "3 connections of others.", ("3 between desk and server on port 445",)
        ),
        Question("purge", "proxy", "9 objects.", ("http://198.51.100.1:80/svn/a",)),
    ]
    refuse_unanswered(asked, frozenset({"connections", "purge"}))
    refuse_unanswered([], frozenset())
    with pytest.raises(Declined, match="9 objects") as caught:
        refuse_unanswered(asked, frozenset({"connections"}))
    assert "port 445" not in str(caught.value)
    assert "http://198.51.100.1:80/svn/a" in str(caught.value)
    # With what was agreed to already, so that it can be pasted.
    assert "--agree connections,purge PROFILE" in caught.value.advice
