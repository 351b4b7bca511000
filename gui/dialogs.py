"""What all dialogs that ask have in common: head, body, buttons at the right; Esc is the harmless way."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QGuiApplication, QHideEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QWidget

from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Icon, IconButton, Label, Sign, column, row
from gui.widgets.frame import FocusRing

WIDTH, _MARGIN = 560, 24


class Dialog(QDialog):
    """`body` and `foot` are filled by the kinds of it; `answer` is what an accepted one gives.

    It is opened, never executed: the window behind it goes on drawing.
    """

    def __init__(
        self, look: Look, window: QWidget, title: str, under: str = "", *, icon: str = "", grade: str = ""
    ) -> None:
        super().__init__(window)
        self._look = look
        self.answer: object = None
        self.asked: object = None
        """the question that a thread waits for, where one does"""
        self.setObjectName("ask")
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setAccessibleDescription(under)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setFixedWidth(look.px(WIDTH))
        self.inside = self.width() - 2 * _MARGIN
        """the width of `body`"""
        self.body = column(None, spacing=12)
        self.foot = row(None, -1)
        layout = column(self, margins=(_MARGIN, 22, _MARGIN, _MARGIN), spacing=14)
        self.title = Label(look, title, 18, 600, wrap=True)
        layout.addLayout(_head(look, self.title, under, icon, grade))
        layout.addLayout(self.body)
        layout.addLayout(self.foot)
        self._ring = FocusRing(look, self)
        self._shade = Shade(window)

    def button(self, text: str, kind: str = "plain", icon: str = "") -> Button:
        """One more button at the right. Enter does the one that has the focus, else the default one."""
        made = Button(self._look, text, kind, icon)
        made.setAutoDefault(True)
        self.foot.addWidget(made)
        return made

    def showEvent(self, event: QShowEvent) -> None:
        # Texts that are wrapped make a layout guess too high before it knows its width.
        self.setFixedHeight(self.layout().totalHeightForWidth(self.width()))
        super().showEvent(event)
        self._shade.cover()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._shade.deleteLater()
        self._shade.hide()


class Shade(QWidget):
    """Dims the window behind a dialog."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        window.installEventFilter(self)
        self.hide()

    def cover(self) -> None:
        """Lie over the whole window."""
        self.setGeometry(self.parentWidget().rect())
        self.show()
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.parent() and event.type() == QEvent.Type.Resize and self.isVisible():
            self.setGeometry(self.parentWidget().rect())
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), QColor(0, 0, 0, 90))


class Code(QFrame):
    """A command to be run elsewhere, with a button that copies it."""

    def __init__(self, look: Look, text: str, name: str) -> None:
        super().__init__()
        self.setObjectName("facts")
        label = Label(look, text, 12, mono=True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.copy = IconButton(look, "copy", f"Copy {name}", 16)
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(text))
        layout = row(self, margins=(12, 3, 5, 3))
        layout.addWidget(label, 1)
        layout.addWidget(self.copy)


def _head(look: Look, title: Label, under: str, icon: str, grade: str) -> QHBoxLayout:
    head = row(None, spacing=12)
    if icon or grade:
        square = QFrame()
        square.setObjectName("softsquare")
        square.setProperty("grade", grade)
        square.setFixedSize(40, 40)
        inside = (
            Icon(look, icon, 20, "trouble" if grade == marks.TROUBLE else "accent")
            if icon
            else Sign(look, grade or marks.WARN, 18)
        )
        margin = (40 - inside.width()) // 2
        row(square, inside, margins=(margin, margin, margin, margin))
        head.addWidget(square, 0, Qt.AlignmentFlag.AlignTop)
    said = column(None, title, spacing=2)
    if under:
        said.addWidget(Label(look, under, 13, 400, "text2", wrap=True))
    head.addLayout(said, 1)
    head.setAlignment(said, Qt.AlignmentFlag.AlignVCenter)
    return head
