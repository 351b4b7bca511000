"""What a check found, as the page shows it: the worst first, by host, in sentences. No widgets."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from gui.theme import marks

if TYPE_CHECKING:
    from lab.rig.host_checks import Checked

OWN = (
    "The hosts of this lab are on this machine, and use its own programs: installer/system_packages demo, "
    "from BranchLab's folder, installs them."
)
"""Why nothing is provisioned in a lab that BranchLab made."""
CURED = "Provision installs it, or somebody there runs as root:"
_RANK = {marks.TROUBLE: 0, marks.WARN: 1, marks.OK: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What was found, by one sign; several texts where one cure is for all of them."""

    sign: str
    texts: tuple[str, ...]
    advice: str = ""
    command: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLab:
    """One check: its items, when it ended, and for which experiment it was; `own`: BranchLab made the lab; `only`: the
    one host that was looked at, where it was not the whole lab."""

    items: tuple[Checked, ...]
    at: datetime
    experiment: str = ""
    own: bool = False
    only: str = ""

    @property
    def wrong(self) -> int:
        """How many items keep a run from being done."""
        return sum(not one.ok for one in self.items)

    @property
    def sign(self) -> str:
        """The worst of all."""
        return _worst(self.items)

    @property
    def lacks_packages(self) -> bool:
        """True where something is missing that packages cure."""
        return any(one.packages and not one.ok for one in self.items)

    @property
    def when(self) -> str:
        """The time of day, with its date where that was not today."""
        today = self.at.date() == datetime.now(self.at.tzinfo).date()
        return f"{self.at:%H:%M}" if today else f"{self.at.day} {self.at:%B}, {self.at:%H:%M}"

    def sentence(self) -> str:
        """As the terminal's last line says it."""
        if self.wrong:
            return f"{self.wrong} of {len(self.items)} are not as a run needs them"
        doubtful = sum(one.grade == marks.WARN for one in self.items)
        some = f", {doubtful} with a warning" if doubtful else ""
        if self.only:
            return f"On {self.only} everything is there{some}; the other hosts were not looked at"
        return f"Everything is there: {len(self.items)} looked at{some}"

    def with_host(self, name: str, later: CheckedLab) -> CheckedLab:
        """The same with what a later look at one host found."""
        kept = tuple(one for one in self.items if one.host != name)
        return replace(self, items=kept + later.items, at=later.at)

    def host(self, name: str) -> tuple[Item, ...]:
        """What was found on one host, the worst first."""
        return self._items(one for one in self.items if one.host == name)

    def elsewhere(self, hosts: Collection[str]) -> tuple[Item, ...]:
        """What was found of the lab as a whole, the worst first."""
        return self._items(one for one in self.items if one.host not in hosts)

    def worst(self) -> tuple[Item, ...]:
        """Everything that is not ok, the worst first."""
        return self._items(one for one in self.items if one.grade != marks.OK)

    def word(self, name: str) -> tuple[str, str]:
        """The worst sign of a host, and a word for it; empty for one that was not looked at."""
        found = [one for one in self.items if one.host == name]
        if not found:
            return "", ""
        wrong = [one for one in found if not one.ok]
        doubtful = sum(one.grade == marks.WARN for one in found)
        if wrong:
            return marks.TROUBLE, printable(wrong[0].text) if len(wrong) == 1 else f"{len(wrong)} not right"
        if doubtful:
            return marks.WARN, f"{doubtful} warning{'s' * (doubtful != 1)}"
        return marks.OK, "ready"

    def _items(self, found: Iterable[Checked]) -> tuple[Item, ...]:
        made: list[Item] = []
        for one in sorted(found, key=lambda one: _RANK[one.grade]):  # stable: else in the check's order
            advice, command = printable(one.advice), printable(one.command)
            if one.packages and self.own:
                advice, command = OWN, ""
            elif one.packages and command:
                advice = CURED
            last = made[-1] if made else None
            if last is not None and advice and (last.host, last.sign, last.advice, last.command) == (
                one.host, one.grade, advice, command,
            ):  # fmt: skip
                texts = (*last.texts, printable(one.text))
                made[-1] = Item(sign=last.sign, texts=texts, advice=advice, command=command, host=one.host)
            else:
                text = (printable(one.text),)
                made.append(Item(sign=one.grade, texts=text, advice=advice, command=command, host=one.host))
        return tuple(made)


def printable(text: str) -> str:
    """What hosts say, on one line and without signs that nobody sees."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _worst(items: Iterable[Checked]) -> str:
    return min((one.grade for one in items), key=lambda grade: _RANK[grade], default=marks.UNKNOWN)
