"""A check for those who work on the window: no thread but the application's own touches anything in it.

Qt bears no other, and mostly says nothing: the window freezes, or the process ends some other time. On in the tests,
and wherever `BRANCHLAB_DEBUG` is set. It costs the main thread nothing, and slows others, most where they call much.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

from PySide6.QtCore import QAbstractItemModel
from PySide6.QtWidgets import QGraphicsItem, QWidget

VARIABLE = "BRANCHLAB_DEBUG"
_KINDS = (QWidget, QGraphicsItem, QAbstractItemModel)
_HERE = str(Path(__file__).parent)


class Touched(AssertionError):
    """Something of the window was reached by a thread that is not the application's."""


def watch(told: Callable[[Touched], None] | None = None) -> None:
    """Hold every thread that begins from now on to it: where it touches the window, `Touched` is raised there, before.

    Touched is what is called of a widget, a picture's item or a table's model: a slot of ours as well as Qt's own
    methods. `told` hears of it too, in that thread, also where somebody catches the exception.
    """
    ours: dict[CodeType, bool] = {}

    def look(frame: FrameType, event: str, called: object) -> None:
        if event == "c_call":
            owner, name = getattr(called, "__self__", None), getattr(called, "__name__", "")
        elif event == "call":
            code, name = frame.f_code, frame.f_code.co_name
            if code not in ours:
                ours[code] = code.co_filename.startswith(_HERE) and code.co_varnames[:1] == ("self",)
            if not ours[code]:
                return
            owner = frame.f_locals.get("self")
        else:
            return
        if isinstance(owner, _KINDS):
            who = threading.current_thread().name
            way = "".join(traceback.format_stack(frame))
            error = Touched(
                f"the thread “{who}” calls {type(owner).__name__}.{name}; only the main thread may\n{way}"
            )
            if told is not None:
                told(error)
            raise error

    threading.setprofile(look)


def unwatch() -> None:
    """Threads that begin from now on are left alone."""
    threading.setprofile(None)
