"""How commands fail: a sentence for the person, an exit code for scripts, a report for a defect."""

from __future__ import annotations

import errno
import os
import platform
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from lab.asking import Declined
from lab.cli.plain import plain
from lab.errors import AgentRefused, BadInput, HostTrouble, LabError, Stopped

DONE = 0
INCOMPLETE = 1
"""Some trials failed, or a cell has no kept attempt."""
BAD_INPUT = 2
HOST_TROUBLE = 3
"""A host, or this machine, lacks something or is out of reach."""
DEFECT = 70
INTERRUPTED = 130


class Troubled(click.Group):
    """A group of commands that never shows a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and turn what goes wrong into a sentence and an exit code."""
        try:
            return super().invoke(ctx)
        except LabError as error:
            if not isinstance(error, Stopped):
                click.echo(f"branchlab: {plain(error.told())}", err=True)
            ctx.exit(code_of(error))
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:  # noqa: BLE001 - the last place where a defect can be told
            if isinstance(error, OSError) and error.errno in (errno.EPIPE, errno.EIO):
                _close_output()  # whoever read is gone, and so is everyone who could be told
                ctx.exit(INCOMPLETE)
            if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
                click.echo(f"branchlab: the output cannot be written: {error.strerror}", err=True)
                _close_output()
                ctx.exit(INCOMPLETE)
            click.echo(_defect(error), err=True)
            ctx.exit(DEFECT)


def code_of(error: LabError) -> int:
    """The exit code of an expected failure."""
    match error:
        case Stopped():
            return INTERRUPTED
        case BadInput() | Declined():
            return BAD_INPUT
        case HostTrouble() | AgentRefused():
            return HOST_TROUBLE
    return INCOMPLETE


def _defect(error: Exception) -> str:
    report = "".join(traceback.format_exception(error))
    head = f"{datetime.now(UTC).isoformat()}\nPython {platform.python_version()} on {platform.platform()}\n"
    written = _written(f"{head}{sys.argv!r}\n\n{report}")
    return (
        f"branchlab: this is a defect of BranchLab, not of your hosts: {type(error).__name__}: {error}\n"
        f"  a report for its makers is in {written}"
    )


def _written(report: str) -> str:
    """Where the report is: in the data folder, else where temporary files go."""
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"branchlab-{name}"
            with path.open("x", encoding="utf-8") as file:
                file.write(report)
        except OSError:
            continue
        return str(path)
    return f"no file, since none could be written; it reads:\n{report}"


def _folders() -> list[Path]:
    folders = [Path(tempfile.gettempdir())]
    try:
        from lab import store
    except ImportError:  # what is broken may be the installation
        return folders
    return [store.data_folder() / "reports", *folders]


def _close_output() -> None:
    """Let nothing more be written to an output that is gone: Python would say so again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
