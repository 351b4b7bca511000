"""What the window's frame says of a lab and a run: top bar, navigation, status bar."""

from __future__ import annotations

from collections.abc import Sequence

from gui import words
from gui.lab import facts
from gui.report import Trouble
from gui.theme import marks
from gui.widgets.frame import Navigation, Place, StatusBar, TopBar
from lab.analysis.findings import NO_NUMBER
from lab.analysis.summary import Summary
from lab.live import Live

START = "start"
LAB, EXPERIMENT, RUN, RESULTS = "lab", "experiment", "run", "results"
COMPARE = "compare"
HELP, SETTINGS = "help", "settings"
"""Keys of the pages; all but Start are in the navigation."""
PLACES = (
    Place(LAB, "Lab", "tree-structure"),
    Place(EXPERIMENT, "Experiment", "flask"),
    Place(RUN, "Run", "play-circle"),
    Place(RESULTS, "Results", "chart-line-up"),
    Place(COMPARE, "Compare", "arrows-left-right", group=1),
    Place(HELP, "Help", "question", group=2),
    Place(SETTINGS, "Settings", "gear-six", group=2),
)


def top_bar(bar: TopBar, live: Live, shown: facts.Shown, *, past: bool = False) -> None:
    """Each role with its sign once it is known, and the line as last verified; of a run from a file nothing."""
    bar.show_roles(facts.roles(shown) if _known(live, shown) and not past else ())
    line = shown.line.line
    if line is not None and (shown.line.by_hand or (line in live.proved and not past)):
        bar.show_line(shown.line.sign, words.line(line))
    else:
        bar.show_line("", "")


def navigation(
    pages: Navigation,
    live: Live,
    shown: facts.Shown,
    summary: Summary | None,
    *,
    past: bool = False,
    trials: int | None = None,
) -> None:
    """A word of state for each page; `trials` are those of the experiment that is shown."""
    pages.buttons[EXPERIMENT].tell(words.count(trials) if trials else "")
    signs = {sign for sign, _ in facts.roles(shown)} if _known(live, shown) and not past else set()
    worst = next((sign for sign in facts.WORST_FIRST if sign in signs), "")
    pages.buttons[LAB].tell("", worst)
    share = live.done / live.total if live.total else 0.0
    going = f"{share * 100:.0f}{words.NBSP}%" if live.running else ""
    pages.buttons[RUN].tell(going, marks.BUSY if live.running else "")
    answers = 0
    if summary is not None and summary.started.run == live.run:
        answers = sum(finding.headline != NO_NUMBER for finding in summary.findings)
    pages.buttons[RESULTS].tell(f"{answers} answer{'s' * (answers != 1)}" if answers else "")


def _known(live: Live, shown: facts.Shown) -> bool:
    return bool(live.run) or shown.checked is not None


def status_bar(bar: StatusBar, live: Live, published: str = "") -> None:
    """What is true now; while a run goes, how far it is; of `published` figures, where they are from."""
    if live.running and live.total:
        eta = live.eta()
        bar.progress(
            f"{words.count(live.done)} of {words.count(live.total)} trials",
            f"{words.long(live.gone_s)} gone",
            [(share, done) for _, share, done in live.parts()],
            "" if eta is None else f"{words.span(*eta)} to go",
        )
    elif published:
        bar.say(marks.UNKNOWN, f"Source: {published.partition(':')[0]}; nothing of it was measured here", "")
    elif live.done:
        bad = live.counts.get("failed", 0) + live.counts.get("void", 0)
        said = "line and cache were verified before every counted trial"
        said += f"; {bad} did not hold" if bad else ""
        right = "times: client’s own clock     traffic: counted on arrival"
        bar.say(marks.WARN if bad else marks.OK, said, right)
    else:
        bar.say(marks.OK, "Every change on a host is a lease: it is undone when BranchLab is gone", "")


def forgotten(names: Sequence[str] | None) -> Trouble:
    """What was taken out of the keyring, by name; None where no keyring answers."""
    if names is None:
        return Trouble(
            title="No system keyring answers on this machine, so nothing is remembered.", grade="info"
        )
    if not names:
        return Trouble(title="No passwords were remembered.", grade="info")
    what = "1 password" if len(names) == 1 else f"{len(names)} passwords"
    text = f"{', '.join(names)}. What was used since BranchLab began is in its memory until it ends."
    return Trouble(title=f"{what} taken out of the system keyring.", text=text, grade="info")
