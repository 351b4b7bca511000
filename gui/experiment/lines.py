"""The card *Over which lines*: the table, presets, and a field that says what it understood while one types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu

from gui.experiment import typed
from gui.experiment.asked import Asked, LineAsked
from gui.experiment.edits import Edits, spoken
from gui.experiment.table import HEADS, LINE, LinesView, changed
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Label, Said, row
from gui.widgets.fields import Entry
from lab import presets, units
from lab.errors import BadInput
from lab.model import AS_IT_IS, Line

_BUTTONS = ("published", "adsl", "vdsl", "lte")


class LinesCard(Card):
    """Edits the experiment's lines."""

    def __init__(self, look: Look, edits: Edits) -> None:
        super().__init__(margins=(14, 10, 14, 12))
        self._edits = edits
        self._asked: Asked | None = None
        self._presets = presets.presets()
        self.setProperty("help", "line")
        head = row(None, Label(look, "Over which lines", 13, 600), -1, spacing=6)
        head.addWidget(Label(look, "Presets", 12, 400, "text2"))
        self.preset_buttons: dict[str, Button] = {}
        for name in _BUTTONS:
            preset = next(one for one in self._presets if one.name == name)
            button = Button(look, preset.title, height=26)
            button.setToolTip(f"Add: {preset.text}")
            button.setAccessibleName(f"Add the lines of the preset {preset.title}")
            button.clicked.connect(partial(self._add_preset, preset))
            self.preset_buttons[name] = button
            head.addWidget(button)
        self.more = Button(look, "More…", "flat", height=26)
        self.more.setAccessibleName("More presets")
        self.more.clicked.connect(self._offer)
        self.menu = QMenu(self)
        head.addWidget(self.more)
        self.table = LinesView(look)
        self.table.written.connect(self._write)
        self.table.moved.connect(self._move)
        self.table.removed.connect(self._remove)
        self.table.understood.connect(self._say)
        self.entry = Entry(look, "Another line, as 2M/4M 40 ms")
        self.entry.setFixedWidth(192)
        self.entry.setPlaceholderText("2M/4M 40 ms")
        self.entry.textEdited.connect(self._typed)
        self.entry.left.connect(self._leave)
        self.verdict = Said(look, "", "", 12, 600, "text2")
        self.hint = Label(look, "", 12, 400, "text3")
        foot = row(None, self.entry, spacing=10)
        foot.addWidget(self.verdict, 0)
        foot.addWidget(self.hint, 0)
        foot.addStretch(1)
        self.column.setSpacing(4)
        self.column.addLayout(head)
        self.column.addWidget(self.table)
        self.column.addLayout(foot)
        self._say("", "")

    def show_asked(self, asked: Asked) -> None:
        """The experiment's lines."""
        self._asked = asked
        self.table.show_lines(asked.lines)
        if not self.entry.text():
            self._say("", "")

    def show_times(self, times: Mapping[Line, float]) -> None:
        """How long each takes in this run."""
        self.table.lines.show_times(times)

    # adding

    def _typed(self, text: str) -> None:
        self.entry.trouble(False)
        if not text.strip():
            self._say("", "")
            return
        try:
            parsed = typed.line(text)
        except BadInput as error:
            self._say("", str(error))
            return
        if parsed.warnings:
            first = parsed.warnings[0]
            self._say(marks.WARN, f"{typed.understood(parsed.line)}. {first[:1].upper()}{first[1:]}.")
        else:
            self._say("", typed.understood(parsed.line))
        self.hint.say("Enter adds it")

    def _leave(self) -> None:
        """Enter adds; on leaving, a wrong text says so and stays."""
        text = self.entry.text()
        if not text.strip():
            self.entry.trouble(False)
            return
        try:
            line = typed.line(text).line
        except BadInput as error:
            self.entry.trouble(True)
            self._say(marks.TROUBLE, str(error))
            return
        if self.entry.hasFocus():
            self._add_typed(line)

    def _add_typed(self, line: Line) -> None:
        name = units.line_text(line)
        if self._asked is not None and line in self._asked.known_lines:
            self.entry.trouble(True)
            self._say(marks.TROUBLE, f"{name} stands there already: write another one.")
            return
        self.entry.clear()
        self._say("", "")
        if self._edits.add_lines(f"add the line {name}", [line]):
            self._say("", "Added. Ctrl Z takes it back.")

    def _add_preset(self, preset: presets.Preset) -> None:
        self._add_all(f"add the lines of {preset.title}", preset.title, preset.lines)

    def _add_all(self, what: str, title: str, lines: Sequence[Line]) -> None:
        known = self._asked.known_lines if self._asked is not None else ()
        new = [line for line in lines if line not in known]
        if not new:
            self._say("", f"All lines of {title} stand there already.")
            return
        if self._edits.add_lines(what, new):
            self._say("", f"{len(new)} line{'s' * (len(new) != 1)} added. Ctrl Z takes it back.")

    def upload_matters(self) -> None:
        """Four uploads for one download: of the line where the keyboard is, else of the last one that has rates."""
        known = self._asked.lines if self._asked is not None else ()
        at = self.table.currentIndex().row()
        rated = [one.line for one in known if one.line is not None and one.line.limited]
        here = known[at].line if 0 <= at < len(known) else None
        base = here if here is not None and here.limited else rated[-1] if rated else None
        if base is None:
            self._say("", "Add a line with rates first, such as 512/1024 kbit/s.")
            return
        preset = presets.does_upload_matter(base)
        self._add_all(
            f"add four uploads for {units.rate_text(base.download_bps or 0)}", preset.title, preset.lines
        )

    def _offer(self) -> None:
        self.menu.clear()
        for preset in self._presets:
            if preset.name not in _BUTTONS:
                action = self.menu.addAction(f"{preset.title}   {preset.text}")
                action.triggered.connect(partial(self._add_preset, preset))
        self.menu.addSeparator()
        question = self.menu.addAction("Does upload matter?   One download, four uploads")
        question.triggered.connect(self.upload_matters)
        plain = self.menu.addAction("As it is   Nothing is applied; the line is measured before and after")
        plain.triggered.connect(partial(self._add_all, "add the line as it is", "that", [AS_IT_IS]))
        if self._asked is not None and self._asked.lines:
            self.menu.addSeparator()
            away = self.menu.addAction("Remove all lines")
            away.triggered.connect(self._remove_all)
        self.menu.popup(self.more.mapToGlobal(self.more.rect().bottomLeft()))

    # changing

    def _row(self, number: int) -> LineAsked | None:
        lines = self._asked.lines if self._asked is not None else ()
        return lines[number] if 0 <= number < len(lines) else None

    def _write(self, number: int, part: int, text: str) -> None:
        one = self._row(number)
        if one is None:
            return
        line, price, warnings = changed(one, part, text)
        others = [other.line for n, other in enumerate(self._asked.lines) if n != number]  # type: ignore[union-attr]
        if line in others:
            name = units.line_text(line)
            self._say(marks.TROUBLE, f"Not changed: {name} stands there already.")
            return
        if (line, price) == (one.line, one.price) and part != LINE:
            return
        if part == LINE:
            what = f"change the line {spoken(one)} to {units.line_text(line)}"
        else:
            what = f"change the {HEADS[part].partition(',')[0].lower()} of {spoken(one)}"
        self._edits.write_line(what, number, line, price)
        if warnings:
            self._say(marks.WARN, f"{warnings[0][:1].upper()}{warnings[0][1:]}.")

    def _move(self, number: int, to: int) -> None:
        one = self._row(number)
        if one is not None:
            self._edits.move_line(f"move the line {spoken(one)}", number, to)

    def _remove(self, number: int) -> None:
        one = self._row(number)
        if one is not None:
            self._edits.remove_lines(f"remove the line {spoken(one)}", [number])
            self._say("", f"{spoken(one)} was removed. Ctrl Z brings it back.")

    def _remove_all(self) -> None:
        count = len(self._asked.lines) if self._asked is not None else 0
        if self._edits.remove_lines("remove all lines", range(count)):
            self.entry.setFocus(Qt.FocusReason.OtherFocusReason)

    def _say(self, sign: str, text: str) -> None:
        long = len(text) > 60
        self.verdict.label.setWordWrap(long)
        self.verdict.setMinimumWidth(480 if long else 0)
        self.verdict.say(sign, text)
        self.verdict.label.ink({marks.TROUBLE: "trouble", marks.WARN: "warn"}.get(sign, "text2"))
        self.hint.say("")
        self.entry.setAccessibleDescription(text)
