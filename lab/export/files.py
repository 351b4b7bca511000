"""Files that leave BranchLab: text made clean, and the whole file or nothing."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from lab.errors import BadInput, LabError

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff\ud800-\udfff]")


def clean(text: str) -> str:
    """The text without control characters, which sheets, slides and XML refuse; tabs and line feeds stay."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def free(path: Path) -> None:
    """Raise BadInput if there is a file of this name."""
    if path.exists():
        raise BadInput(
            f"{path}: there is a file of this name already",
            advice="Write another name, or agree to lose it: export --overwrite.",
        )


def put(data: bytes, path: Path, *, overwrite: bool) -> None:
    """Write the whole file or nothing.

    Raises BadInput for a file that is there already, unless `overwrite`; LabError if it cannot be written.
    """
    try:
        if not overwrite:
            free(path)
        number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(number, "wb") as file:
                file.write(data)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise LabError(
            f"{path}: the file cannot be written: {error.strerror}",
            advice="Free some space there, or name another folder that you may write.",
        ) from error
