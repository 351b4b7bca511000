"""The dialog with every command that a run would give, and where; to be read and copied."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from gui.dialogs import Dialog
from gui.experiment.outlook import Outlook, script
from gui.theme.look import Look

_UNDER = (
    "Words in capitals stand for what a run fills in, such as SCRATCH for its own folder. "
    "Steps that are not timed run with the limit lifted."
)


class CommandsDialog(Dialog):
    """Everything at once, by host."""

    def __init__(self, look: Look, window: QWidget, outlook: Outlook) -> None:
        super().__init__(look, window, f"What “{outlook.experiment.name}” runs, and where", _UNDER)
        self.setFixedWidth(min(look.px(860), max(look.px(560), window.width() - 160)))
        self.text = QPlainTextEdit(script(outlook))
        self.text.setReadOnly(True)
        self.text.setObjectName("facts")
        self.text.setFont(look.font(12, mono=True))
        self.text.setAccessibleName("Commands by host")
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.text.setTabChangesFocus(True)
        self.text.setFixedHeight(min(look.px(440), max(look.px(240), window.height() - 300)))
        self.body.addWidget(self.text)
        self.copy = self.button("Copy all", icon="copy")
        self.copy.clicked.connect(self._copy)
        close = self.button("Close", "filled")
        close.setDefault(True)
        close.clicked.connect(self.reject)
        close.setFocus()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())
        self.copy.rename("Copied", "copy")
