"""Python's search for rubbish, in the main thread only.

Objects that hold each other are found by a search that Python starts in whichever thread makes the next one. Where
that is a thread that sums up a run, widgets of a closed window would be destroyed there, which Qt does not bear: the
process ends without a word. So the search is taken from the threads, and made here between two events.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 1_000
_NAME = "rubbish"


def search_here(application: QObject) -> None:
    """From now on only the thread of this application searches, as often as Python would; once."""
    gc.disable()
    if application.findChild(QTimer, _NAME) is None:
        timer = QTimer(application)
        timer.setObjectName(_NAME)
        timer.setInterval(_EVERY_MS)
        timer.timeout.connect(_search)
        timer.start()


def _search() -> None:
    # The oldest generation whose turn it is, as Python's own rule: each counts the searches of the one before.
    for generation in (2, 1, 0):
        if gc.get_count()[generation] > gc.get_threshold()[generation] > 0:
            gc.collect(generation)
            return
