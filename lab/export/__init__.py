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
    source: Record | Contents, path: Path, *, overwrite: bool = False, wishes: Wishes | None = None
) -> tuple[Path, ...]:
    """Write a run in the form that the file's ending names; several figures as SVG or PNG become several files.

    Trials are written from a record only; everything else also from contents that were gathered before. Returns
    what was written. Raises BadInput for another ending, for a wish that the run or the form cannot fulfil and,
    unless `overwrite`, for a file that is there already; LabError if it cannot be written. Nothing is written
    unless all of it can be made.
    """
    made = _made(source, path, wishes or Wishes())
    if not overwrite:
        for name in made:
            files.free(name)
    for name, data in made.items():
        files.put(data, name, overwrite=overwrite)
    return tuple(made)


_Files = dict[Path, bytes]


def _made(source: Record | Contents, path: Path, wishes: Wishes) -> _Files:
    ending = path.suffix.lower()
    if ending in _TRIALS:
        if not isinstance(source, Record):
            raise BadInput(
                f"{path}: these figures have no trials", advice="Write .pptx, .xlsx, .html, .pdf or .md."
            )
        return {path: _TRIALS[ending](source, wishes)}
    if ending not in _CONTENTS:
        raise BadInput(
            f"{path}: unknown kind of file `{path.suffix}`", advice=f"Write a name ending in {ENDINGS}."
        )
    if isinstance(source, Record):
        from lab.export import contents

        source = contents.gathered(source)
    return _CONTENTS[ending](source, path, wishes)


def _pptx(contents: Contents, path: Path, wishes: Wishes) -> _Files:
    from lab.export import deck

    figures = _chosen(contents, wishes)
    return {path: deck.written(contents, figures, template=wishes.template, size=wishes.size)}


def _xlsx(contents: Contents, path: Path, wishes: Wishes) -> _Files:
    from lab.export import workbook

    return {path: workbook.written(contents)}


def _html(contents: Contents, path: Path, wishes: Wishes) -> _Files:
    from lab.export import report

    return {path: report.html(contents, _chosen(contents, wishes))}


def _pdf(contents: Contents, path: Path, wishes: Wishes) -> _Files:
    from lab.export import pdf

    return {path: pdf.written(contents, _chosen(contents, wishes))}


def _md(contents: Contents, path: Path, wishes: Wishes) -> _Files:
    from lab.export import report

    return {path: report.markdown(contents)}


def _svg(contents: Contents, path: Path, wishes: Wishes) -> _Files:
    from lab.export import drawing

    return {name: drawing.svg(figure).encode() for name, figure in _each(contents, path, wishes)}


def _png(contents: Contents, path: Path, wishes: Wishes) -> _Files:
    from lab.export import pictures

    return {name: pictures.png(figure, wishes.dpi) for name, figure in _each(contents, path, wishes)}


def _each(contents: Contents, path: Path, wishes: Wishes) -> list[tuple[Path, Figure]]:
    """Figures with the files they go into: the one that was named, or one each with the figure's key in its name."""
    figures = _chosen(contents, wishes)
    if not figures:
        raise BadInput(
            f"{path}: this run has nothing to draw: no attempt was kept",
            advice="Its tables can be written: .html or .md.",
        )
    if len(figures) == 1:
        return [(path, figures[0])]
    return [(path.with_name(f"{path.stem}-{figure.key}{path.suffix}"), figure) for figure in figures]


def _chosen(contents: Contents, wishes: Wishes) -> Sequence[Figure]:
    from lab.export import figures

    return figures.chosen(contents.figures, wishes.figures) if wishes.figures else contents.usual


_CONTENTS: dict[str, Callable[[Contents, Path, Wishes], _Files]] = {
    ".pptx": _pptx,
    ".xlsx": _xlsx,
    ".html": _html,
    ".pdf": _pdf,
    ".md": _md,
    ".svg": _svg,
    ".png": _png,
}
_TRIALS: dict[str, Callable[[Record, Wishes], bytes]] = {
    ".csv": lambda record, wishes: trials.csv(record, decimal_comma=wishes.decimal_comma),
    ".jsonl": lambda record, wishes: trials.jsonl(record),
    ".parquet": lambda record, wishes: trials.parquet(record),
}
FORMS = (*_CONTENTS, *_TRIALS)
"""The endings of files that a run can be written to."""
ENDINGS = f"{', '.join(FORMS[:-1])} or {FORMS[-1]}"
PICTURES = (".svg", ".png")
"""Endings of which a run may need several files, one for each figure."""
