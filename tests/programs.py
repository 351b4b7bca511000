"""Squid and nginx for the tests: the system's, or those that installer/test_programs unpacked."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

UNPACKED = Path(__file__).resolve().parent.parent / ".programs" / "usr"
PATH = f"{UNPACKED}/sbin:{os.environ['PATH']}:/usr/sbin:/sbin"


def needs(name: str) -> pytest.MarkDecorator:
    """A mark that skips, and names the program, where it could not be had."""
    reason = f"{name} is missing: installer/test_programs .programs unpacks it for the tests (make test does)"
    return pytest.mark.skipif(shutil.which(name, path=PATH) is None, reason=reason)


needs_squid = needs("squid")
needs_nginx = needs("nginx")


@contextmanager
def path() -> Iterator[str]:
    """A PATH with both; where they were unpacked they lie in a place that a service's own user can get to."""
    if not UNPACKED.is_dir():
        yield PATH
        return
    with tempfile.TemporaryDirectory(prefix="branchlab-programs-") as folder:
        Path(folder).chmod(0o755)
        shutil.copytree(UNPACKED, Path(folder, "usr"), symlinks=True)
        yield f"{folder}/usr/sbin:{PATH}"
