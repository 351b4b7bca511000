"""What is known of the selected host or the line; with nothing selected, a list of them for keys."""

from __future__ import annotations

import re

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QFontMetrics, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from gui.lab import checks
from gui.lab.checked import CheckedLab, Item
from gui.lab.facts import ROLE_ICONS, ROLE_NAMES, HostShown, Shown
from gui.lab.hand import ByHandKnown
from gui.lab.hand_boxes import CacheBox, LineBox
from gui.lab.items import THE_LINE
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Elided, Icon, IconButton, Label, Said, column, row, rule
from gui.widgets.focus import first_in

WIDTH, _BRIEF, _NAME_WIDTH = 312, 16, 150


class Inspector(Card):
    """Read-only for now. Signal `chosen(object)`: a name, `THE_LINE` or an empty text."""

    chosen = Signal(object)

    def __init__(self, look: Look) -> None:
        super().__init__(margins=(16, 14, 6, 12))
        self._look = look
        self._shown, self._selected = Shown(), ""
        self.setFixedWidth(WIDTH)
        self.setAccessibleName("Inspector")
        self._body = QVBoxLayout()
        self._scroll = _Scroll()
        self._scroll.setAccessibleName("Inspector, to scroll")
        self.column.addWidget(self._scroll)
        self._entries: list[_Entry] = []
        self._found = ""
        self.cache, self.line = CacheBox(look), LineBox(look)
        for box in self._boxes:
            box.setParent(self)
            box.hide()

    @property
    def _boxes(self) -> tuple[QWidget, ...]:
        """Kept whatever is shown: what is typed in them stays."""
        return (self.cache, self.line)

    def enter(self) -> None:
        """Give the focus to the first that takes it."""
        if (first := first_in(self._scroll.widget())) is not None:
            first.setFocus(Qt.FocusReason.TabFocusReason)

    def show_hand(self, known: ByHandKnown, full: float | None, why_not: str, why_no_cache: str) -> None:
        """What was done by hand, how full a run found the cache, and why nothing can be done now."""
        self.cache.show_known(known, full, why_no_cache)
        self.line.show_known(known, why_not)

    def show_lab(self, shown: Shown) -> None:
        """Hosts and line as known now. Widgets are made anew only where there are others to show."""
        before, self._shown = self._shown, shown
        host = self._chosen(shown)
        if self._selected == THE_LINE:
            same = shown.line == before.line and shown.checked == before.checked
            same = same and shown.opened == before.opened
        elif host is not None:
            same = host == self._chosen(before) and shown.opened == before.opened
        else:
            same = bool(self._entries) and [h.name for h in shown.hosts] == [h.name for h in before.hosts]
            same = same and shown.checked == before.checked
            if same:
                self._refresh_list()
        if not same:
            self._fill()

    def select(self, name: str) -> None:
        """Show one, or the list for an empty text."""
        if name != self._selected:
            self._selected = name
            self._fill()

    def _chosen(self, shown: Shown) -> HostShown | None:
        return next((host for host in shown.hosts if host.name == self._selected), None)

    def _fill(self) -> None:
        focus = QApplication.focusWidget()
        for box in self._boxes:
            box.hide()
            box.setParent(self)
        body = QWidget()
        body.setObjectName("scrolled")
        self._body = column(body, margins=(0, 0, 10, 0), spacing=0)
        self._entries.clear()
        self._found = ""
        host = self._chosen(self._shown)
        if self._selected == THE_LINE:
            self._line()
        elif host is not None:
            self._host(host)
        else:
            self._list()
        self._body.addStretch(1)
        self._scroll.put(body)
        if (
            focus is not None
            and any(box.isAncestorOf(focus) for box in self._boxes)
            and body.isAncestorOf(focus)
        ):
            focus.setFocus()

    def _list(self) -> None:
        look = self._look
        self._body.addWidget(Label(look, "Hosts and line", 15, 600))
        self._body.addSpacing(8)
        if not self._shown.hosts:
            text = "No lab is open. Make hosts on this machine from the start page, or open a profile."
            self._body.addWidget(Label(look, text, 13, 400, "text2", wrap=True))
            return
        if self._shown.checked is not None:
            self._summary(self._shown.checked)
        for host in self._shown.hosts:
            self._entries.append(_Entry(look, host.name, host.name, ROLE_ICONS[host.role]))
        self._entries.append(_Entry(look, THE_LINE, "The line", "arrows-left-right"))
        for entry in self._entries:
            entry.name.clicked.connect(self._pressed)
            self._body.addWidget(rule())
            self._body.addLayout(entry.row)
        self._refresh_list()

    def _summary(self, checked: CheckedLab) -> None:
        """What the check found, the worst first, before the list."""
        self._checks_head(checked.sentence(), "", checked.worst())
        about = (
            f"for “{checked.experiment}”, at {checked.when}" if checked.experiment else f"at {checked.when}"
        )
        self._body.addWidget(Label(self._look, about, 12, 400, "text2", wrap=True))
        self._body.addSpacing(6)
        checks.add(self._look, self._body, checked.worst(), self._known_host)
        self._body.addSpacing(8)
        self._body.addWidget(Label(self._look, "All hosts", 13, 600))
        self._body.addSpacing(6)

    def copied(self) -> str:
        """What the check found, as far as it is shown."""
        return self._found

    def _known_host(self, name: str) -> None:
        self.chosen.emit(name if name in [host.name for host in self._shown.hosts] else THE_LINE)

    def _checks(self, items: tuple[Item, ...], when: str) -> None:
        self._body.addSpacing(14)
        self._checks_head("Checks", when, items)
        self._body.addSpacing(4)
        checks.add(self._look, self._body, items)

    def _checks_head(self, title: str, when: str, items: tuple[Item, ...]) -> None:
        line = row(None, spacing=4)
        line.addWidget(Label(self._look, title, 13, 600, wrap=True), 1)
        if when:
            line.addWidget(Label(self._look, f"at {when}", 12, 400, "text2"))
        if items:
            self._found = checks.text(items)
            copy = IconButton(self._look, "copy", "Copy what the check found, as text", 16)
            copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(checks.text(items)))
            line.addWidget(copy)
        self._body.addLayout(line)

    def _refresh_list(self) -> None:
        for entry, host in zip(self._entries, self._shown.hosts, strict=False):
            entry.say(ROLE_NAMES[host.role], host.sign, host.word)
        line = self._shown.line
        self._entries[-1].say("one for all office hosts", line.sign, line.word)

    def _host(self, host: HostShown) -> None:
        remark = ROLE_NAMES[host.role]
        system = dict(host.rows).get("System")
        self._head(ROLE_ICONS[host.role], host.name, f"{remark}, {system}" if system else remark)
        self._body.addWidget(Said(self._look, host.sign, host.word, 13, 500, "text"))
        self._body.addSpacing(10)
        self._rows(host.rows)
        if host.cached and self._shown.opened:
            self._add(self.cache)
        if host.checks:
            self._checks(host.checks, host.checked)
        elif not any(name == "System" for name, _ in host.rows):
            text = "More is known once a check or a run has spoken to this host."
            self._body.addSpacing(8)
            self._body.addWidget(Label(self._look, text, 12, 400, "text3", wrap=True))

    def _line(self) -> None:
        line = self._shown.line
        self._head("arrows-left-right", "The line", "one for all office hosts, both ways")
        self._body.addWidget(Said(self._look, line.sign, line.word, 13, 500, "text"))
        self._body.addSpacing(10)
        self._rows(line.rows)
        if self._shown.opened:
            self._add(self.line)
        checked = self._shown.checked
        if checked is not None:
            items = checked.elsewhere([host.name for host in self._shown.hosts])
            if items:
                self._checks(items, checked.when)

    def _add(self, box: QWidget) -> None:
        self._body.addWidget(box)
        box.show()

    def _head(self, icon: str, name: str, about: str) -> None:
        look = self._look
        square = QFrame()
        square.setObjectName("sunken")
        square.setFixedSize(36, 36)
        row(square, Icon(look, icon, 18, "text"), margins=(9, 9, 9, 9))
        about_label = Label(look, about, 12, 400, "text2", wrap=True)
        line = row(None, square, spacing=12)
        title = Elided(look, name, 15, 600)
        title.setToolTip(name)
        line.addLayout(column(None, title, about_label, spacing=1), 1)
        back = Button(look, "All", "flat", height=28)
        back.setToolTip("Back to the list (Esc)")
        back.setAccessibleName("Back to the list of hosts and line")
        back.clicked.connect(self._back)
        line.addWidget(back)
        self._body.addLayout(line)
        self._body.addSpacing(12)
        self._body.addWidget(rule())
        self._body.addSpacing(10)

    def _rows(self, rows: tuple[tuple[str, str], ...]) -> None:
        for number, (name, value) in enumerate(rows):
            if number:
                self._body.addWidget(rule())
            label = Label(self._look, self._fitted(name, value), 12, 400, "text", wrap=True)
            label.setToolTip(value)
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
            line = row(None, Label(self._look, name, 12, 400, "text2"), spacing=10, margins=(0, 5, 0, 5))
            line.addWidget(label, 1)
            self._body.addLayout(line)

    def _fitted(self, name: str, value: str) -> str:
        """The value, with … in its middle where a word of it has no room beside the name."""
        used = QFontMetrics(self._look.font(12))
        room = WIDTH - 44 - used.horizontalAdvance(name)
        longest = max(map(used.horizontalAdvance, re.split(r"[\s/]", value)))
        return used.elidedText(value, Qt.TextElideMode.ElideMiddle, room) if longest > room else value

    def _pressed(self) -> None:
        for entry in self._entries:
            if entry.name is self.sender():
                self.chosen.emit(entry.key)
                return

    def _back(self) -> None:
        self.chosen.emit("")


class _Scroll(QScrollArea):
    """What is inside has the width of it, and all the height that its wrapped texts need.

    Not `setWidgetResizable`: it goes by what was visible when it last looked, and squeezes what came since.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def put(self, inside: QWidget) -> None:
        """Show this in place of what was there; the focus stays inside, if it was."""
        focus, before = QApplication.focusWidget(), self.takeWidget()
        within = before is not None and focus is not None and before.isAncestorOf(focus)
        if before is not None:
            before.hide()
            before.deleteLater()  # not at once: it may be what was pressed
        self.setWidget(inside)
        inside.installEventFilter(self)
        self._fit()
        if within and (first := first_in(inside)) is not None:
            first.setFocus(Qt.FocusReason.TabFocusReason)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.widget() and event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        room, inside = self.viewport().size(), self.widget()
        if inside is None:
            return
        inside.resize(room.width(), max(room.height(), inside.layout().totalHeightForWidth(room.width())))


class _Entry:
    """One row of the list."""

    def __init__(self, look: Look, key: str, name: str, icon: str) -> None:
        self.key = key
        self.name = Button(look, "", "link", height=20)
        self.name.setFont(look.font(13, 600))
        self._whole = name
        self.name.rename(self.name.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, _NAME_WIDTH))
        self.name.setToolTip(name)
        self._about = Label(look, "", 12, 400, "text2", wrap=True)
        self._said = Said(look, "", "", 12, 400, "text2")
        self.row = row(None, Icon(look, icon, 18), spacing=10, margins=(0, 7, 0, 7))
        self.row.addLayout(column(None, self.name, self._about, spacing=0), 1)
        self.row.addWidget(self._said)

    def say(self, about: str, sign: str, word: str) -> None:
        """What it is and how it is; a long word takes the place of what it is."""
        brief = len(word) <= _BRIEF
        self._about.say(about if brief else word)
        self._said.say(sign, word if brief else "")
        self.name.setAccessibleName(f"{self._whole}, {about}, {word}")
