"""Makes `tests/data/schema-N.branchlab`: run once per schema, when it is new, and kept for ever.

.venv/bin/python tests/make_schema_file.py
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]


def main() -> None:
    """A small run of the stand-in, with a void and a failed trial, which are done again, written by this version."""
    from fake_testbed import FakeTestbed, small

    from lab import runner, store
    from lab.stop import Stop

    path = HERE / "data" / f"schema-{store.SCHEMA}{store.SUFFIX}"
    path.parent.mkdir(exist_ok=True)
    bed = FakeTestbed(void={6: "the line was touched"}, failing={9: "exit status 1"}, samples=5)
    events = runner.run(small(), bed, Stop(), lab_name="Fake lab", run_id="20240102-030405-abcd")
    for _ in store.recorded(events, path):
        pass
    with store.opened(path) as record:
        known = record.told()
    for _ in store.continued(runner.repeat(known, FakeTestbed(samples=5), Stop()), path):
        pass
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
