"""Squid and nginx for the tests: the system's, or those that installer/test_programs unpacked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ssh_agents import tool

FOLDER = Path(__file__).resolve().parent.parent / ".programs" / "usr" / "bin"
PATH = f"{FOLDER}:{os.environ['PATH']}:/usr/sbin:/sbin"


def needs(name: str) -> pytest.MarkDecorator:
    """A mark that skips, and names the program, where it could not be had."""
    path = shutil.which(name, path=PATH)
    if path is None:
        reason = (
            f"{name} is missing: installer/test_programs .programs unpacks it for the tests (make test does)"
        )
    else:
        # What more rights than its owner's are given to is never run from a place of his.
        reason = tool.open_to_others(str(Path(path).resolve().parent))
    return pytest.mark.skipif(bool(reason), reason=reason or "it is here")


needs_squid = needs("squid")
needs_nginx = needs("nginx")
