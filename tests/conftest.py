"""Which tests of real hosts take minutes: `make test` leaves them to `make test-slow`, and CI runs both."""

from __future__ import annotations

import os

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


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them `slow`."""
    for item in items:
        module, name = item.path.stem, item.name.partition("[")[0]
        if item.get_closest_marker("lab") and (module in LONG or name in ALSO):
            item.add_marker(pytest.mark.slow)
