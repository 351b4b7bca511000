"""What leaves BranchLab: files that other programs read."""

from __future__ import annotations

from pathlib import Path

from lab.errors import BadInput
from lab.export import trials
from lab.store import Record


def written(record: Record, path: Path, *, overwrite: bool = False) -> None:
    """Write a run's trials in the form that the file's ending names, `.csv` or `.jsonl`.

    Raises BadInput for another ending and, unless `overwrite`, for a file that is there already; LabError
    if it cannot be written.
    """
    forms = {".csv": trials.csv, ".jsonl": trials.jsonl}
    form = forms.get(path.suffix.lower())
    if form is None:
        raise BadInput(f"{path}: unknown kind of file `{path.suffix}`: write a name ending in .csv or .jsonl")
    form(record, path, overwrite=overwrite)
