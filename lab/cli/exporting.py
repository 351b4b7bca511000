"""The command `export`: one run into any number of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from lab import export as exports
from lab import store
from lab.errors import BadInput
from lab.export import Wishes
from lab.export.contents import Contents
from lab.export.files import free
from lab.store import Record

_CONCERNS = {
    "figures": (".pptx", ".html", ".pdf", ".svg", ".png"),
    "template": (".pptx",),
    "size": (".pptx",),
    "decimal_comma": (".csv",),
    "dpi": (".png",),
}
"""Which kinds of file each wish is for."""


def export(
    run_name: str,
    files: Sequence[str],
    *,
    overwrite: bool,
    figures: str,
    template: str | None,
    size: str | None,
    decimal_comma: bool,
    dpi: int | None,
) -> None:
    """Write the run to each file, and say so. Endings and names are looked at before the first file is written."""
    paths = [Path(file) for file in files]
    for path in paths:
        if path.suffix.lower() not in exports.FORMS:
            raise BadInput(
                f"{path}: the ending says nothing of the form",
                advice=f"Write a name ending in {exports.ENDINGS}.",
            )
        if not overwrite and path.suffix.lower() not in exports.PICTURES:
            free(path)
    asked = {
        "figures": figures,
        "template": template,
        "size": size,
        "decimal_comma": decimal_comma,
        "dpi": dpi,
    }
    _refuse_idle(asked, {path.suffix.lower() for path in paths})
    wishes = Wishes(
        figures=figures,
        template=None if template is None else Path(template),
        size=size or exports.SIZE,
        decimal_comma=decimal_comma,
        dpi=dpi or exports.DPI,
    )
    with _source(run_name) as source:
        for path in paths:
            for written in exports.written(source, path, overwrite=overwrite, wishes=wishes):
                click.echo(f"written: {written}")


@contextmanager
def _source(run_name: str) -> Iterator[Record | Contents]:
    from lab.analysis import published
    from lab.export import contents

    if run_name in published.names():
        yield contents.published(run_name)
        return
    with store.opened(store.found(run_name)) as record:
        yield record


def update(run_name: str, files: Sequence[str]) -> None:
    """Update decks with the numbers of the run, and say what was done in each."""
    from lab.export import contents, deck_update

    wrong = [file for file in files if Path(file).suffix.lower() != ".pptx"]
    if wrong:
        raise BadInput(
            f"{wrong[0]}: only a .pptx can be updated", advice="Write other files anew, with --overwrite."
        )
    with _source(run_name) as source:
        found = contents.gathered(source) if isinstance(source, Record) else source
    for file in files:
        for line in deck_update.update(found, Path(file)):
            click.echo(f"{file}: {line}")


def _refuse_idle(asked: Mapping[str, object], endings: set[str]) -> None:
    """Raise BadInput for a wish that no file of this call could fulfil."""
    for name, value in asked.items():
        if value and not endings.intersection(_CONCERNS[name]):
            option = f"--{name.replace('_', '-')}"
            raise BadInput(
                f"{option} says nothing to these files",
                advice=f"It is for {' and '.join(_CONCERNS[name])}. Leave it out, or add such a file.",
            )
    if asked["template"] and asked["size"]:
        raise BadInput("a template has a size of its own", advice="Leave out --size or --template.")
