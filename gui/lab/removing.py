"""Asks before a host that experiments name is taken out of the profile."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from gui.dialogs import Dialog
from gui.theme.look import Look

_MOST = 3


class RemoveDialog(Dialog):
    """Signal `agreed()`: take it out. Esc keeps it."""

    agreed = Signal()

    def __init__(self, look: Look, window: QWidget, name: str, experiments: Sequence[str]) -> None:
        named = ", ".join(f"“{one}”" for one in experiments[:_MOST])
        more = f" and {len(experiments) - _MOST} more" if len(experiments) > _MOST else ""
        many = len(experiments) > 1
        text = (
            f"{named}{more} {'have' if many else 'has'} states with this proxy. Without it only the state "
            f"“disabled” is left in {'them' if many else 'it'}. Ctrl Z brings all of it back."
        )
        super().__init__(look, window, f"Remove {name} and its states?", text, grade="warn")
        self.cancel = self.button("Keep it", "flat")
        self.remove = self.button("Remove it", "delete")
        self.remove.setAutoDefault(False)
        self.cancel.clicked.connect(self.reject)
        self.remove.clicked.connect(self._agree)
        self.cancel.setFocus(Qt.FocusReason.TabFocusReason)

    def _agree(self) -> None:
        self.accept()
        self.agreed.emit()
