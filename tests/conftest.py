"""Which tests of real hosts take minutes, and which run in one process, where several share the tests.

`make test` leaves those of minutes to `make test-slow`, and CI runs both.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# No test reads or writes the keyring of whoever runs it; those that want one bring their own.
os.environ.setdefault("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")

LONG = {
    "test_ipv6",
    "test_line_office",
    "test_proxy_engines",
    "test_rig_entry",
    "test_rig_scratch",
    "test_router",
}
"""Modules whose tests in a lab are whole runs, or probes of many lines; their other tests are quick."""
ALSO = {
    "test_after_a_lost_connection_the_run_goes_on",
    "test_kill_9_of_the_servers_agent_costs_one_trial_and_is_taken_back",
    "test_one_seed_gives_one_plan_and_one_purge_also_in_another_lab",
    "test_what_a_colleague_brings_in_while_a_run_fills_stays_and_is_on_no_list",
    "test_what_a_run_did_not_bring_into_a_cache_it_takes_out_only_if_that_was_agreed_to",
}
MACHINE = {
    "test_agents",
    "test_credentials",
    "test_gui_questions",
    "test_privileges",
    "test_requirements",
    "test_ssh_login",
}
"""Modules whose host is this machine itself: its users, what sudo lets them do, leases that `revert` takes back."""


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them `slow`; and modules with real hosts come first, so that at the end no process waits for a long one."""
    real = [item for item in items if item.get_closest_marker("lab")]
    for item in real:
        module, name = item.path.stem, item.name.partition("[")[0]
        if module in LONG or name in ALSO:
            item.add_marker(pytest.mark.slow)
    first = {item.path for item in real}
    items.sort(key=lambda item: (item.path.stem not in MACHINE, item.path not in first))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n`: a module's tests run in one process, which makes its fixtures once; those of `MACHINE` too."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "machine" if Path(file).stem in MACHINE else file

    return Scheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def _temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Labs of other processes are elsewhere: whoever makes a lab sweeps away what killed ones left beside it."""
    tmp_path_factory.getbasetemp()  # stays where it is kept for a while
    folder = Path(tempfile.mkdtemp(prefix="bl"))  # short, as the path of a lab's sockets must be
    folder.chmod(0o1777)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", None)
        yield
    with contextlib.suppress(OSError):
        folder.rmdir()  # what a test left stays to be seen


@pytest.fixture(autouse=True)
def _only_the_main_thread_touches_the_window() -> Iterator[None]:
    """In every test of a window, as `BRANCHLAB_DEBUG` has it elsewhere."""
    if "gui.app" not in sys.modules:
        yield
        return
    from gui import threads

    found: list[threads.Touched] = []
    threads.watch(found.append)
    yield
    threads.unwatch()
    assert not found, found[0]


@pytest.fixture(autouse=True)
def _search_for_rubbish() -> Iterator[None]:
    """Windows keep the search for rubbish to the main thread; tests without one do not wait for an event for it.

    What a window left is searched here: in the next test it could be found, and destroyed, by another thread.
    """
    yield
    if "PySide6.QtCore" in sys.modules:
        from PySide6.QtCore import QCoreApplication, QEvent

        if QCoreApplication.instance() is not None:
            # Without a loop that turns, closed windows would pile up, and each change of the look dress them all.
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    if not gc.isenabled():
        gc.collect()
        gc.enable()
