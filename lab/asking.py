"""What a person must agree to before hosts that others use are changed."""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import BadInput, LabError

KINDS = {
    "connections": "limit the line although others have connections between these hosts",
    "purge": "take objects out of a cache that BranchLab did not put in",
    "qdisc": "replace another queue discipline while a line is applied, and put it back afterwards",
}
"""Everything that must be agreed to, and what agreeing to it allows."""


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
    """Nobody agreed to what the run would do to other people's work. Nothing was changed for it."""


def kinds(text: str) -> frozenset[str]:
    """The kinds in `connections,qdisc`. Raises BadInput on a word that is none."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in KINDS:
            raise BadInput(
                f"--agree {text}: `{word}` is nothing that can be agreed to",
                advice=f"Write one or more of {', '.join(KINDS)}, with commas between them.",
            )
    return frozenset(words)
