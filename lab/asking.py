"""What a person must agree to before hosts that others use are changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab.errors import BadInput, LabError
from lab.model import Experiment

KINDS = {
    "connections": "limit the line although others have connections between these hosts",
    "purge": "take objects out of a cache that BranchLab did not put in",
    "qdisc": "replace another queue discipline while a line is applied, and put it back afterwards",
}
"""Everything that must be agreed to, and what agreeing to it allows."""
NOTHING = "nothing"
"""Stands alone after `--agree`: run only if nothing has to be asked."""


@dataclass(frozen=True, slots=True)
class Question:
    """One thing that a run would do to other people's work. Nothing is changed before a person agreed to it."""

    kind: str
    """one of `KINDS`"""
    host: str
    text: str
    """what is there and what the run would do to it, in one or two sentences"""
    details: tuple[str, ...] = ()
    """what exactly: connections, objects, queues; a line each, for people"""

    @property
    def allows(self) -> str:
        """What agreeing to it allows, as the end of `Agree to …`."""
        return KINDS[self.kind]


class Declined(LabError):
    """Nobody agreed to what the run would do to other people's work. Nothing was changed for it. Exit code 2."""


def kinds(text: str) -> frozenset[str]:
    """The kinds in `connections,qdisc`; none in `nothing`. Raises BadInput on a word that is none."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words == [NOTHING]:
        return frozenset()
    for word in words:
        if word not in KINDS:
            raise BadInput(
                f"--agree {text}: `{word}` is nothing that can be agreed to"
                + (" together with anything else" if word == NOTHING else ""),
                advice=f"Write one or more of {', '.join(KINDS)}, with commas between them; or `{NOTHING}` alone.",
            )
    return frozenset(words)


def flag(wanted: Iterable[str]) -> str:
    """How these kinds are agreed to on the command line: `--agree connections,purge`."""
    known = set(wanted)
    return f"--agree {','.join(kind for kind in KINDS if kind in known) or NOTHING}"


def possible(experiment: Experiment) -> tuple[str, ...]:
    """The kinds that a run of this experiment may have to ask for, whatever is on the hosts."""
    shaped = any(line.limited or line.delayed for line in experiment.lines)
    cached = any(state.enabled for state in experiment.states)
    may = {"connections": shaped, "purge": cached, "qdisc": shaped}
    return tuple(kind for kind in KINDS if may[kind])


def refuse_unanswered(questions: Sequence[Question], agreed: frozenset[str], command: str = "run") -> None:
    """Raise Declined if one of these questions is of a kind that was not agreed to; `command` is what would ask."""
    open_ones = [one for one in questions if one.kind not in agreed]
    if open_ones:
        raise Declined(
            f"nobody agreed to what this {command} would do to others:\n"
            + "\n".join(_told(one) for one in open_ones),
            advice=f"Agree to it: branchlab {command} {flag([*agreed, *(one.kind for one in open_ones)])} PROFILE."
            f" Or {command} when it is no longer so.",
        )


def _told(question: Question) -> str:
    return "\n".join([f"  {question.host}: {question.text}", *(f"    {one}" for one in question.details)])
