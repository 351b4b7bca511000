"""Question 2: which operations do not use the proxy at all, and what passing through it costs them."""

from __future__ import annotations

from collections.abc import Sequence

from lab.analysis import words
from lab.analysis.cells import Cell
from lab.analysis.gains import loss
from lab.analysis.sentences import TRAFFIC, Sentence, gain, named, said, unanswered, unclear
from lab.analysis.view import Use, View


def unused(view: View) -> tuple[Sequence[Sentence], str]:
    """The sentences, and how many operations do not use it."""
    uses = {name: view.use(name) for name in view.operations}
    known = [name for name, use in uses.items() if use not in (Use.UNKNOWN, Use.UNSEEN)]
    if not known:
        reason = "no trial with the proxy enabled has its traffic on record, or only with an empty cache"
        return [unanswered(view, reason)], words.NO_NUMBER
    idle = [name for name in known if uses[name] is not Use.SERVED]
    told = [_use(view, use, names) for use in Use if (names := [n for n in idle if uses[n] is use])]
    if not told:
        who = f"All {len(known)} were" if len(known) > 1 else f"{named(known)} was"
        seen = _seen(view, known)
        told = [said("use", f"{who} served by it ({basis(*seen)}).", seen, shown=TRAFFIC)]
    return [*told, *_costs(view, idle), *_open(view, uses)], f"{len(idle)} of {len(known)}"


def _seen(view: View, names: Sequence[str]) -> list[Cell]:
    seen = [cell for name in names for cell in view.enabled(name) if cell.traffic_trials]
    return seen or [cell for name in names for cell in view.of(name)]


def _use(view: View, use: Use, names: Sequence[str]) -> Sentence:
    many, seen = len(names) > 1, _seen(view, names)
    told = {
        Use.PASSES: f"pass{'' if many else 'es'} through the proxy without being served",
        Use.PAST: f"go{'' if many else 'es'} past it, straight to the server",
        Use.SILENT: f"send{'' if many else 's'} nothing at all",
    }
    if all(name in view.uses for name in names):
        text = f"{named(names)} do{'' if many else 'es'} not use the proxy ({view.why}; {len(seen)} cells)."
        return said("use", text, seen, shown=TRAFFIC)
    return said("use", f"{named(names)} {told[use]} ({basis(*seen)}).", seen, shown=TRAFFIC)


def _costs(view: View, names: Sequence[str]) -> list[Sentence]:
    """What the proxy costs the operations that it does not serve; the cells of each are one family."""
    held = view.corrected(lambda cell: cell.operation in names)
    found: list[Sentence] = []
    worst = [
        min(slower, key=lambda cell: gain(held, cell))
        for name in names
        if (slower := held.judged(name, "slower"))
    ]
    for cell in sorted(worst, key=lambda cell: gain(held, cell)):
        compared = held.judged(cell.operation, "faster", "slower", "no-difference")
        told = loss(held, cell, compared, whole=not found)
        text = f"With the proxy enabled {told.text}" if not found else told.text
        found.append(Sentence(rule="cost", text=text, cells=told.cells))
    alike = [
        name
        for name in names
        if held.judged(name, "no-difference") and not held.judged(name, "faster", "slower")
    ]
    if alike:
        cells = [cell for name in alike for cell in held.judged(name, "no-difference")]
        clear = " clear" if any(unclear(cell) for cell in cells) else ""
        rest = f"{words.medians(*cells)}, {len(cells)} cells"
        text = f"No{clear} difference was seen in the time of {named(alike)} ({rest})."
        found.append(said("no-cost", text, [*cells, *map(held.base, cells)]))
    return found


def _open(view: View, uses: dict[str, Use]) -> list[Sentence]:
    """Operations of which nothing can be said although the plan has them with the proxy."""
    found = []
    unseen = [name for name, use in uses.items() if use is Use.UNSEEN]
    if unseen:
        text = f"{named(unseen)} met an empty cache only, so nothing could be served ({basis(*_seen(view, unseen))})."
        found.append(said("unseen", text, _seen(view, unseen), shown=TRAFFIC))
    planned = [name for name, use in uses.items() if use is Use.UNKNOWN and view.enabled(name)]
    if planned:
        void = sum(cell.void for name in planned for cell in view.enabled(name))
        why = f" ({void} without proof)" if void else ""
        found.append(said("unknown", f"Of {named(planned)} no trial with the proxy was kept{why}."))
    return found


def basis(*seen: Cell) -> str:
    """What bytes rest on."""
    low, high = min(cell.traffic_trials for cell in seen), max(cell.traffic_trials for cell in seen)
    count = f"{low}" if low == high else f"{low} to {high}"
    each = f" per cell, {len(seen)} cells" if len(seen) > 1 else ""
    return f"median bytes of {count} trial{'' if high == 1 else 's'}{each}"
