"""What is known of the selected host or the line; with nothing selected, a list of them for keys."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QFontMetrics, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QScrollArea, QSizePolicy, QWidget

from gui.lab import checks
from gui.lab.checked import CheckedLab, Item
from gui.lab.edits import HostEdits
from gui.lab.facts import ROLE_ICONS, ROLE_NAMES, HostShown, Shown
from gui.lab.hand import ByHandKnown
from gui.lab.hand_boxes import CacheBox, LineBox
from gui.lab.host_box import HostBox
from gui.lab.items import THE_LINE
from gui.lab.place_box import PlaceBox
from gui.lab.written import HostWritten, LabWritten
from gui.report import breakable
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Elided, Icon, IconButton, Label, Said, column, emptied, row, rule
from gui.widgets.focus import first_in

WIDTH, _BRIEF, _NAME_WIDTH = 312, 16, 150


class Inspector(Card):
    """Shows what is selected, and edits it where the profile that is open has it.

    Signals: `chosen(object)` a name, `THE_LINE` or an empty text; `asked(object, object)` what can be done with one of
    these is wanted, and where on the screen.
    """

    chosen = Signal(object)
    asked = Signal(object, object)

    def __init__(self, look: Look, edits: HostEdits) -> None:
        super().__init__(margins=(16, 14, 6, 12))
        self._look = look
        self._shown, self._selected = Shown(), ""
        self._lab: LabWritten | None = None
        self._why_not = ""
        self.setFixedWidth(WIDTH)
        self.setAccessibleName("Inspector")
        self._entries: list[_Entry] = []
        self._found = ""
        self.host, self.place = HostBox(look, edits), PlaceBox(look, edits)
        self.cache, self.line = CacheBox(look), LineBox(look)
        # These are kept whatever is shown: what is typed in them stays, and so does the focus.
        inside = self._inside = QWidget()
        inside.setObjectName("scrolled")
        self._top, self._bottom = QWidget(), QWidget()
        self._above, self._below = column(self._top, spacing=0), column(self._bottom, spacing=0)
        self._body = self._above
        parts = column(inside, margins=(0, 0, 10, 0), spacing=0)
        for part in (self._top, self.host, self.cache, self.line, self.place, self._bottom):
            parts.addWidget(part)
        parts.addStretch(1)
        self._scroll = _Scroll(inside)
        self._scroll.setAccessibleName("Inspector, to scroll")
        self.column.addWidget(self._scroll)
        self._fill()

    def enter(self) -> None:
        """Give the focus to the first that takes it."""
        if (first := first_in(self._inside)) is not None:
            first.setFocus(Qt.FocusReason.TabFocusReason)

    def edit(self, key: str) -> None:
        """Give the focus to this field of the host that is shown, all of it selected."""
        entry = self.host.fields[key].entry
        if entry.isVisible():
            entry.setFocus(Qt.FocusReason.ShortcutFocusReason)
            entry.selectAll()

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

    def show_written(self, lab: LabWritten | None, why_not: str) -> None:
        """The lab as the profile's text has it, None where none is open; and why it cannot be edited now."""
        before, blocked = self._lab, self._why_not
        self._lab, self._why_not = lab, why_not
        if lab is None:
            self.host.forget()
        known, knew = (
            None if one is None else (one.wrong, *(h.name for h in one.hosts)) for one in (lab, before)
        )
        if known != knew or bool(why_not) is not bool(blocked):
            self._fill()
        else:
            self._show_boxes()

    def select(self, name: str) -> None:
        """Show one, or the list for an empty text."""
        if name != self._selected:
            self._selected = name
            self._fill()
            self._scroll.verticalScrollBar().setValue(0)

    @property
    def selected(self) -> str:
        """The name of what is shown, `THE_LINE`, or an empty text."""
        return self._selected

    def _chosen(self, shown: Shown) -> HostShown | None:
        return next((host for host in shown.hosts if host.name == self._selected), None)

    def _written(self) -> HostWritten | None:
        return self._lab.host(self._selected) if self._lab is not None else None

    def _fill(self) -> None:
        focus = QApplication.focusWidget()
        within = focus is not None and (self._top.isAncestorOf(focus) or self._bottom.isAncestorOf(focus))
        emptied(self._above)
        emptied(self._below)
        self._body = self._above
        self._entries.clear()
        self._found = ""
        host, written = self._chosen(self._shown), self._written()
        if host is None and written is not None:  # the profile is not right yet, and no lab has this host
            host = HostShown(name=written.name, role=written.role, sign=marks.UNKNOWN, word="not checked")
        self._show_boxes()
        if self._selected == THE_LINE:
            self._line()
        elif host is not None:
            self._host(host)
        else:
            self._list()
        self._order()
        self._scroll.fit()
        if within and (first := first_in(self._inside)) is not None:
            first.setFocus(Qt.FocusReason.TabFocusReason)

    def _show_boxes(self) -> None:
        host, written = self._chosen(self._shown), self._written()
        line = self._selected == THE_LINE
        if written is not None and self._lab is not None:
            self.host.show_host(written, self._lab, self._why_not)
        if line and self._lab is not None:
            self.place.show_lab(self._lab, self._why_not)
        self.host.setVisible(written is not None)
        self.cache.setVisible(host is not None and host.cached and self._shown.opened)
        self.line.setVisible(line and self._shown.opened)
        self.place.setVisible(line and self._lab is not None)

    def _order(self) -> None:
        """Tab goes from top to bottom, also through what was made last."""
        before: QWidget = self._scroll
        for part in (self._top, self.host, self.cache, self.line, self.place, self._bottom):
            for widget in part.findChildren(QWidget):
                takes = widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None
                if takes and widget.window() is self.window():
                    QWidget.setTabOrder(before, widget)
                    before = widget

    def _list(self) -> None:
        look = self._look
        self._body.addWidget(Label(look, "Hosts and line", 15, 600))
        self._body.addSpacing(8)
        if not self._shown.hosts:
            text = "No lab is open. Make hosts on this machine from the start page, or open a profile."
            self._body.addWidget(Label(look, text, 13, 400, "text2", wrap=True))
            return
        if self._lab is not None and self._lab.wrong:
            self._not_right(self._lab.wrong)
        if self._shown.checked is not None:
            self._summary(self._shown.checked)
        for host in self._shown.hosts:
            self._entries.append(_Entry(look, host.name, host.name, ROLE_ICONS[host.role]))
        self._entries.append(_Entry(look, THE_LINE, "The line", "arrows-left-right"))
        for entry in self._entries:
            entry.name.clicked.connect(self._pressed)
            self._body.addWidget(rule())
            self._body.addLayout(entry.row)
        if self._lab is not None and not self._why_not:
            self._body.addWidget(rule())
            self._body.addSpacing(10)
            add = Button(look, "Add a host", icon="plus", height=28)
            add.clicked.connect(lambda: self.asked.emit("", add.mapToGlobal(add.rect().bottomLeft())))
            self._body.addWidget(add, 0, Qt.AlignmentFlag.AlignLeft)
        self._refresh_list()

    def _not_right(self, wrong: Sequence[str]) -> None:
        """What keeps the profile from being right; the picture shows the lab as it was before."""
        text = (
            "The profile is not right yet, and no run can begin. The picture shows the lab as it was before."
        )
        self._body.addWidget(Label(self._look, text, 12, 400, "text2", wrap=True))
        for one in wrong[:4]:
            self._body.addSpacing(6)
            said = Said(self._look, marks.TROUBLE, breakable(one), 12, 400, "text")
            said.label.setWordWrap(True)
            self._body.addWidget(said)
        self._body.addSpacing(10)

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
        said = Said(self._look, host.sign, host.word, 13, 500, "text")
        said.label.setWordWrap(True)
        self._body.addWidget(said)
        self._body.addSpacing(10)
        edited = self._written() is not None
        if not edited:
            self._rows(host.rows)
        self._body = self._below
        if host.checks:
            self._checks(host.checks, host.checked)
        elif not any(name == "System" for name, _ in host.rows):
            text = "More is known once a check or a run has spoken to this host."
            self._body.addSpacing(8)
            self._body.addWidget(Label(self._look, text, 12, 400, "text3", wrap=True))
        if edited and host.found:
            self._body.addSpacing(14)
            self._body.addWidget(Label(self._look, "Found there", 13, 600))
            self._body.addSpacing(2)
            self._rows(host.found)

    def _line(self) -> None:
        line = self._shown.line
        self._head("arrows-left-right", "The line", "one for all office hosts, both ways")
        self._body.addWidget(Said(self._look, line.sign, line.word, 13, 500, "text"))
        self._body.addSpacing(10)
        self._rows(line.rows)
        self._body = self._below
        checked = self._shown.checked
        if checked is not None:
            items = checked.elsewhere([host.name for host in self._shown.hosts])
            if items:
                self._checks(items, checked.when)

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
        if self._lab is not None:
            more = IconButton(look, "dots-three", f"What can be done with {name[:1].lower()}{name[1:]}", 18)
            more.setToolTip("More (the menu key in the picture)")
            more.clicked.connect(
                lambda: self.asked.emit(self._selected, more.mapToGlobal(more.rect().bottomLeft()))
            )
            line.addWidget(more)
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

    def __init__(self, inside: QWidget) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(inside)
        inside.installEventFilter(self)
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._follow)

    def fit(self) -> None:
        """Give what is inside the room that it needs now."""
        self.widget().layout().invalidate()
        self._share_room()

    def _share_room(self) -> None:
        room, inside = self.viewport().size(), self.widget()
        inside.resize(room.width(), max(room.height(), inside.layout().totalHeightForWidth(room.width())))

    def _follow(self, _before: QWidget | None, now: QWidget | None) -> None:
        """Scroll to what the keyboard came to."""
        if now is not None and self.widget().isAncestorOf(now):
            self.ensureWidgetVisible(now, 0, 24)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.widget() and event.type() == QEvent.Type.LayoutRequest:
            self._share_room()  # as `fit` it would ask for the next one, for ever
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()


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
