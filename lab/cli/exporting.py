"""The command `export`: one run into any number of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lab import export as exports
from lab import store
from lab.errors import BadInput
from lab.export import Wishes
from lab.export.files import free


def export(
    run_name: str,
    files: Sequence[str],
    *,
    overwrite: bool,
    figures: str,
    template: str | None,
    size: str,
    decimal_comma: bool,
    dpi: int,
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
    wishes = Wishes(
        figures=figures,
        template=None if template is None else Path(template),
        size=size,
        decimal_comma=decimal_comma,
        dpi=dpi,
    )
    with store.opened(store.found(run_name)) as record:
        for path in paths:
            for written in exports.written(record, path, overwrite=overwrite, wishes=wishes):
                click.echo(f"written: {written}")
