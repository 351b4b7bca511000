"""The answers to the questions of a run: plain sentences from its numbers alone, with what they rest on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.analysis import settling, words
from lab.analysis.fullness import fullness
from lab.analysis.gains import gains
from lab.analysis.rates import rates
from lab.analysis.sentences import Sentence
from lab.analysis.traffic import traffic
from lab.analysis.uses import unused
from lab.analysis.view import View

NO_NUMBER = words.NO_NUMBER
"""The headline of an answer that the run does not give."""

_Answer = Callable[[View], tuple[Sequence[Sentence], str]]
_ANSWERS: dict[int, _Answer] = {1: gains, 2: unused, 3: traffic, 4: rates, 5: fullness}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One answer. `headline` is its number (`7.4×`, `3 of 6`, `97 %`) or `—` where the run gives none.

    `text` is made of the sentences that lead; `sentences` has them all, each with its rule and its cells.
    """

    question: int
    text: str
    headline: str = NO_NUMBER
    sentences: tuple[Sentence, ...] = ()

    @property
    def asked(self) -> str:
        """The question in words."""
        return words.QUESTIONS[self.question]

    @property
    def more(self) -> tuple[Sentence, ...]:
        """What there is to tell beside the answer itself."""
        return tuple(sentence for sentence in self.sentences if not sentence.lead)


def findings(view: View) -> tuple[Finding, ...]:
    """The five answers, in order. Each is there in every run; where nothing can be said, it says why."""
    return tuple(_finding(question, answer, view) for question, answer in _ANSWERS.items())


def _finding(question: int, answer: _Answer, view: View) -> Finding:
    sentences, headline = answer(view)
    if question == 1:  # the one that rests on how often it was repeated
        sentences = [*sentences, *settling.sentences(view.settled)]
    text = " ".join(sentence.text for sentence in sentences if sentence.lead)
    return Finding(question=question, text=text, headline=headline, sentences=tuple(sentences))
