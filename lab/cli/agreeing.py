"""Before a run in the terminal: what it would do to other people's work is shown, and a person says yes or no."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import click

from lab import asking
from lab.asking import Declined, Question
from lab.cli.plain import plain


def agreed(
    may: Sequence[str],
    look: Callable[[], Sequence[Question]],
    given: frozenset[str] | None,
    command: str = "run",
) -> frozenset[str]:
    """The kinds that were agreed to: `given` beforehand, else (None) what a person at the terminal says.

    `may` are the kinds that could be asked, `command` is what would do it.

    Raises Declined where nobody agreed; before any host is asked, if there is nobody who could. What `look`
    raises comes through.
    """
    if given is not None:
        asking.refuse_unanswered(look(), given, command)
        return given
    if may and not somebody_there():
        raise Declined(
            f"nobody is at the terminal to be asked whether this {command} may touch other people's work",
            advice=f"Say beforehand what it may: {asking.flag(may)}"
            f" (or fewer; {asking.flag([])}: run only if nothing has to be asked).",
        )
    return frozenset(question.kind for question in look() if _agreed(question))


def somebody_there() -> bool:
    """True if a person can read a question and answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _agreed(question: Question) -> bool:
    """True; raises Declined for any answer but yes."""
    click.echo(plain(f"{question.host}: {question.text}"), err=True)
    for detail in question.details:
        click.echo(plain(f"    {detail}"), err=True)
    try:
        yes = click.confirm(f"Agree to {question.allows}?", default=False, err=True)
    except click.Abort as abort:
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        yes = False  # the end of the input is no yes
    if not yes:
        raise Declined(
            f"not agreed to: {question.allows}. Nothing was changed",
            host=question.host,
            advice="Run when it is no longer so, or in another lab.",
        )
    return True
