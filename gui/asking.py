"""The question when the window is closed while a run goes."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QWidget

from gui.theme.look import Look
from gui.widgets.basic import Button, Label, column, row


class CloseDialog(QDialog):
    """Signals: `stopped()` stop the run, then close; `hidden()` go on without a window. Esc does nothing."""

    stopped = Signal()
    hidden = Signal()

    def __init__(self, look: Look, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("A run is going")
        self.setModal(True)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setFixedWidth(560)
        text = (
            "Stopping keeps every finished trial and takes back what was changed on the hosts; the window "
            "closes when that is done. The run can also go on without a window; BranchLab ends with it."
        )
        self.cancel = Button(look, "Cancel", "flat")
        self.go_on = Button(look, "Go on without a window")
        self.end = Button(look, "Stop and close", "filled")
        self.cancel.clicked.connect(self.reject)
        self.go_on.clicked.connect(self._hide)
        self.end.clicked.connect(self._stop)
        layout = column(self, Label(look, "Stop the run?", 18, 600), margins=(24, 24, 24, 24), spacing=12)
        layout.addWidget(Label(look, text, 13, 400, "text2", wrap=True))
        layout.addSpacing(8)
        layout.addLayout(row(None, -1, self.cancel, self.go_on, self.end))
        self.cancel.setFocus()

    def _hide(self) -> None:
        self.accept()
        self.hidden.emit()

    def _stop(self) -> None:
        self.accept()
        self.stopped.emit()
