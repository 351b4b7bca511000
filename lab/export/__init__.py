"""What leaves BranchLab: files that other programs read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.errors import BadInput
from lab.export import files, trials
from lab.store import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.export.contents import Contents
    from lab.export.figures import Figure

SIZE, DPI = "16:9", 200
"""Of slides without a template, and of a PNG, where nothing else is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What somebody may ask of an export; each form takes what concerns it.

    `figures` are keys of figures with commas between them, or `all`; empty: the usual ones. `template` is a
    company's PowerPoint file, `size` that of slides without one. `dpi` is that of a PNG.
    """

    figures: str = ""
    template: Path | None = None
    size: str = SIZE
    decimal_comma: bool = False
    dpi: int = DPI


def written(
    record: Record, path: Path, *, overwrite: bool = False, wishes: Wishes | None = None
) -> tuple[Path, ...]:
    """Write a run in the form that the file's ending names; several figures as SVG or PNG become several files.

    Returns what was written. Raises BadInput for another ending, for a wish that the run or the form cannot
    fulfil and, unless `overwrite`, for a file that is there already; LabError if it cannot be written.
    Nothing is written unless all of it can be made.
    """
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise BadInput(
            f"{path}: unknown kind of file `{path.suffix}`", advice=f"Write a name ending in {ENDINGS}."
        )
    made = form(record, path, wishes or Wishes())
    if not overwrite:
        for name in made:
            files.free(name)
    for name, data in made.items():
        files.put(data, name, overwrite=overwrite)
    return tuple(made)


_Files = dict[Path, bytes]


def _csv(record: Record, path: Path, wishes: Wishes) -> _Files:
    return {path: trials.csv(record, decimal_comma=wishes.decimal_comma)}


def _jsonl(record: Record, path: Path, wishes: Wishes) -> _Files:
    return {path: trials.jsonl(record)}


def _parquet(record: Record, path: Path, wishes: Wishes) -> _Files:
    return {path: trials.parquet(record)}


def _pptx(record: Record, path: Path, wishes: Wishes) -> _Files:
    from lab.export import deck

    contents, figures = _gathered(record, wishes)
    return {path: deck.written(contents, figures, template=wishes.template, size=wishes.size)}


def _xlsx(record: Record, path: Path, wishes: Wishes) -> _Files:
    from lab.export import contents, workbook

    return {path: workbook.written(contents.gathered(record))}


def _html(record: Record, path: Path, wishes: Wishes) -> _Files:
    from lab.export import report

    return {path: report.html(*_gathered(record, wishes))}


def _md(record: Record, path: Path, wishes: Wishes) -> _Files:
    from lab.export import report

    return {path: report.markdown(_gathered(record, wishes)[0])}


def _svg(record: Record, path: Path, wishes: Wishes) -> _Files:
    from lab.export import drawing

    return {name: drawing.svg(figure).encode() for name, figure in _each(record, path, wishes)}


def _png(record: Record, path: Path, wishes: Wishes) -> _Files:
    from lab.export import pictures

    return {name: pictures.png(figure, wishes.dpi) for name, figure in _each(record, path, wishes)}


def _each(record: Record, path: Path, wishes: Wishes) -> list[tuple[Path, Figure]]:
    """Figures with the files they go into: the one that was named, or one each with the figure's key in its name."""
    _, figures = _gathered(record, wishes)
    if not figures:
        raise BadInput(
            f"{path}: this run has nothing to draw: no attempt was kept",
            advice="Its tables can be written: .html or .md.",
        )
    if len(figures) == 1:
        return [(path, figures[0])]
    return [(path.with_name(f"{path.stem}-{figure.key}{path.suffix}"), figure) for figure in figures]


def _gathered(record: Record, wishes: Wishes) -> tuple[Contents, Sequence[Figure]]:
    from lab.export import contents, figures

    found = contents.gathered(record)
    return found, figures.chosen(found.figures, wishes.figures) if wishes.figures else found.usual


FORMS: dict[str, Callable[[Record, Path, Wishes], _Files]] = {
    ".pptx": _pptx,
    ".xlsx": _xlsx,
    ".html": _html,
    ".md": _md,
    ".svg": _svg,
    ".png": _png,
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
}
"""How a run is written, by the file's ending."""
ENDINGS = f"{', '.join(list(FORMS)[:-1])} or {list(FORMS)[-1]}"
PICTURES = (".svg", ".png")
"""Endings of which a run may need several files, one for each figure."""
