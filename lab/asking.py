"""What a person must agree to before a host that others use is changed: the questions, and who answers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from lab.errors import BadInput, LabError

KINDS = {
    "connections": "limit the line although others have connections between these hosts",
    "purge": "delete objects from the proxy's cache",
    "qdisc": "replace another queue discipline while the line is limited, and put it back afterwards",
}
"""Every kind of question, and what agreeing to it allows."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a run. `deed` names what happens on yes, as a button does: `Delete 173 objects`."""

    kind: str
    host: str
    text: str
    deed: str


Answer = Callable[[Question], bool]
"""Answers a question; may wait for a person. Asked once per run and kind and host."""


class Declined(LabError):
    """Somebody said no, or nobody was there to say yes. Nothing was changed for it."""


def always(question: Question) -> bool:
    """For a lab that BranchLab made itself: nobody else is on it, so nothing is asked."""
    return True


def agreed_to(kinds: Collection[str]) -> Answer:
    """For unattended runs: yes to what was agreed to beforehand, no to anything else."""
    known = frozenset(kinds)
    return lambda question: question.kind in known


def kinds(text: str) -> frozenset[str]:
    """The kinds in `connections,purge`. Raises BadInput on a word that is none."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in KINDS:
            raise BadInput(
                f"--agree {text}: `{word}` is nothing that is asked",
                advice=f"Write one or more of {', '.join(KINDS)}, with commas between them.",
            )
    return frozenset(words)


class Asked:
    """The answers of one run: each question is put once."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._settled: set[tuple[str, str]] = set()

    def settle(self, question: Question) -> None:
        """Return once it is agreed. Raises Declined."""
        key = (question.kind, question.host)
        if key in self._settled:
            return
        if not self._answer(question):
            raise Declined(
                f"not agreed: {question.text}",
                host=question.host,
                advice=f"Answer yes when asked, or run with --agree {question.kind} where nobody is there to ask.",
            )
        self._settled.add(key)
