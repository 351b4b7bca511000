"""The items of a check in the inspector: sign, text, cure, and the exact command to copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QMouseEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QVBoxLayout

from gui.lab.checked import Item
from gui.report import breakable
from gui.theme.look import Look
from gui.widgets.basic import Button, IconButton, Label, Sign, column, row, rule

_BREAK = 22
"""A word longer than this may be broken: an inspector is narrow."""
_NAMES = {"ok": "right", "warn": "warning", "trouble": "not right"}


class Command(QFrame):
    """A command to be run elsewhere: wrapped to be read, copied exactly, by its button or Ctrl C."""

    def __init__(self, look: Look, text: str, where: str, longest: int = _BREAK) -> None:
        super().__init__()
        self.text = text
        self.setObjectName("facts")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(f"Command for {where}: {text}" if where else f"Command: {text}")
        # Not to be selected: it holds places to break, which no shell should be given.
        label = Label(look, breakable(text, longest), 12, mono=True, wrap=True)
        label.setMinimumWidth(60)
        self.button = IconButton(look, "copy", "Copy the command (Ctrl C)", 16)
        self.button.clicked.connect(self.copy)
        layout = row(self, margins=(10, 6, 4, 6), spacing=4)
        layout.addWidget(label, 1)
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignTop)

    def copy(self) -> None:
        """Put the command into the clipboard, as it is."""
        QGuiApplication.clipboard().setText(self.text)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.setFocus(Qt.FocusReason.MouseFocusReason)

    def event(self, event: QEvent) -> bool:
        before = event.type() == QEvent.Type.ShortcutOverride
        if before and isinstance(event, QKeyEvent) and event.matches(QKeySequence.StandardKey.Copy):
            event.accept()  # ours, before any shortcut of the window
        return super().event(event)


def add(
    look: Look, layout: QVBoxLayout, items: Iterable[Item], go: Callable[[str], None] | None = None
) -> None:
    """Add items to a layout, each with what cures it; with `go`, each begins with its host, to be gone to.

    Where an item leads to its host, the cure is told there.
    """
    before = None
    for item in items:
        again = go is not None and item.host == before
        before = item.host
        if not again:
            layout.addWidget(rule())
        texts = column(None, spacing=3)
        if go is not None and item.host and not again:
            texts.addWidget(_host(look, item.host, go))
        for text in item.texts:
            label = _wrapped(look, text, "text")
            label.setAccessibleName(f"{_NAMES[item.sign]}: {text}")
            texts.addWidget(label)
        if item.advice and (go is None or not item.host):
            texts.addWidget(_wrapped(look, item.advice, "text2"))
            if item.command:
                texts.addWidget(Command(look, item.command, item.host))
        line = row(None, spacing=9, margins=(0, 0 if again else 6, 0, 7))
        line.addWidget(Sign(look, item.sign, 14), 0, Qt.AlignmentFlag.AlignTop)
        line.addLayout(texts, 1)
        layout.addLayout(line)


def text(items: Iterable[Item]) -> str:
    """Items as text, for a letter to whoever administers the host."""
    lines = []
    for item in items:
        lines += [f"{item.sign:<7}  {item.host}: {one}" for one in item.texts]
        lines += [f"         what to do: {item.advice}"] if item.advice else []
        lines += [f"         {item.command}"] if item.command else []
    return "\n".join(lines)


def _host(look: Look, name: str, go: Callable[[str], None]) -> Button:
    link = Button(look, "", "link", height=18)
    link.rename(link.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, 220))
    link.setToolTip(f"All that was found on {name}")
    link.setAccessibleName(f"All that was found on {name}")
    link.clicked.connect(lambda: go(name))
    return link


def _wrapped(look: Look, text: str, ink: str) -> Label:
    label = Label(look, breakable(text, _BREAK), 12, 400, ink, wrap=True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
    label.setMinimumWidth(60)
    return label
