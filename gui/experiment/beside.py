"""The right column, always true: how many trials, how long, what one of them does, what is doubtful; and the deed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from PySide6.QtCore import QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from gui import words
from gui.experiment.doubts import Doubt
from gui.experiment.outlook import Brief, Outlook, brief
from gui.report import breakable
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Card, Elided, Icon, Label, Sign, column, emptied, row, rule
from gui.widgets.fields import Wrapped
from lab.design import Size
from lab.model import Role

WIDTH, NARROW = 320, 308
LOW = 640
ICONS = {
    Role.CLIENT: "desktop",
    Role.PROXY: "stack",
    Role.SERVER: "hard-drives",
    Role.ROUTER: "arrows-left-right",
}
_STEPS_S = (5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 2592000)
_MINUTE_MS = 15_000


class Beside(Card):
    """Signals: `run()` the filled button; `commands()` all commands are wanted."""

    run = Signal()
    commands = Signal()

    def __init__(self, look: Look) -> None:
        super().__init__(margins=(18, 16, 8, 14))
        self._look = look
        self._outlook: Outlook | None = None
        self._low = False
        self._steps: tuple[Brief, ...] = ()
        self._said: tuple[tuple[str, str, str], ...] = ()
        self._cures: list[Callable[[], object] | None] = []
        self.setFixedWidth(WIDTH)
        self.setAccessibleName("What this experiment takes")
        self.number = Label(look, "", 32, 600)
        self._trials = Label(look, "trials", 15, 400, "text2")
        self.cells = Wrapped(look, "", 12, "text2")
        self.duration = Label(look, "", 20, 600)
        self.clock = Wrapped(look, "", 12, "text2")
        self.span = _Span(look)
        self.basis = Wrapped(look, "", 11, "text3")
        self.all = Button(look, "All commands", "link", height=20)
        self.start = Button(look, "Run", "filled", "play", 40)
        self._why = Label(look, "Ctrl R", 12, 400, "text2")
        self._why.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._build(look)
        self.start.clicked.connect(self.run)
        self.all.clicked.connect(self.commands)
        self._timer = QTimer(self)
        self._timer.setInterval(_MINUTE_MS)
        self._timer.timeout.connect(self._tell_clock)

    def _build(self, look: Look) -> None:
        top = row(None, self.number, self._trials, -1, spacing=8)
        top.setAlignment(self._trials, Qt.AlignmentFlag.AlignBottom)
        self._trials.setContentsMargins(0, 0, 0, 5)
        body = QWidget()
        body.setObjectName("scrolled")
        self._body = column(body, margins=(0, 0, 10, 0), spacing=6)
        self._body.addLayout(top)
        self._body.addWidget(self.cells)
        self._time = QWidget()
        column(
            self._time,
            rule(),
            6,
            self.duration,
            self.clock,
            self.span,
            self.basis,
            margins=(0, 8, 0, 0),
            spacing=4,
        )
        self._body.addWidget(self._time)
        self._does = QWidget()
        head = row(None, Label(look, "What one trial does", 13, 600), -1, self.all)
        self._list = column(None, spacing=5)
        inside = column(self._does, rule(), 4, margins=(0, 8, 0, 0), spacing=4)
        inside.addLayout(head)
        inside.addLayout(self._list)
        self._body.addWidget(self._does)
        self._sayings = QWidget()
        self._sayings_column = column(self._sayings, margins=(0, 8, 0, 0), spacing=8)
        self._body.addWidget(self._sayings)
        self._body.addStretch(1)
        self._scroll = QScrollArea()
        self._scroll.setWidget(body)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.column.addWidget(self._scroll, 1)
        foot = column(None, self.start, self._why, margins=(0, 4, 10, 0), spacing=8)
        self.column.addLayout(foot)

    # what is shown

    def show_size(self, size: Size | None, wrong: int, busy: str = "", at_once: str = "") -> None:
        """How large the plan is; None while so many things are `wrong`. `busy`: why no run can be begun now;
        `at_once`: of several clients who does each of them."""
        if size is None:
            self.number.say(words.NONE)
            self._trials.say("trials")
            things = "one thing is" if wrong == 1 else f"{wrong} things are"
            self.cells.say(f"Once {things} put right." if wrong else "")
        else:
            self.number.say(words.count(size.trials))
            self._trials.say("trial" if size.trials == 1 else "trials")
            self.cells.say(f"{sentence(size)}{f' Each by {at_once}.' if at_once else ''}")
        can = size is not None
        self.start.setEnabled(can and not busy)
        upto = "up to " if size is not None and size.least < size.attempts else ""
        trials = f"Run {upto}{words.count(size.trials)} trial{'s' * (size.trials != 1)}" if size else "Run"
        self.start.rename(trials)
        self._why.say(busy or ("Ctrl R" if can else "It waits until nothing is wrong."))
        self._time.setVisible(can and self._outlook is not None and self._outlook.forecast is not None)
        self._does.setVisible(can and bool(self._steps))

    def show_outlook(self, outlook: Outlook | None) -> None:
        """How long it takes and what one trial does; None while that is not known."""
        self._outlook = outlook
        steps = brief(outlook.steps) if outlook is not None else ()
        if steps != self._steps:
            self._steps = steps
            self._show_steps(outlook)
        self._does.setVisible(bool(steps))
        expected = outlook.forecast if outlook is not None else None
        self._time.setVisible(expected is not None)
        if expected is not None:
            self.duration.say(words.span(expected.low_s, expected.high_s))
            self.basis.say(f"Times: {expected.basis}.")
            self.duration.setToolTip(self.basis.text())
            self.span.show_span(expected.low_s, expected.high_s)
            self._tell_clock()

    def show_said(self, problems: Sequence[str], doubts: Sequence[Doubt], trouble: str) -> None:
        """What is wrong, then what is doubtful, each with its cure."""
        told = [(marks.TROUBLE, text, "", None) for text in problems]
        told += [(marks.TROUBLE, trouble, "", None)] if trouble else []
        told += [(marks.WARN, doubt.text, doubt.cure, doubt.do) for doubt in doubts]
        same = tuple((sign, text, cure) for sign, text, cure, _ in told)
        self._cures = [do for _, _, _, do in told]
        if same == self._said:
            return
        self._said = same
        focused = self._sayings.isAncestorOf(self.focusWidget()) if self.focusWidget() else False
        emptied(self._sayings_column)
        if told:
            self._sayings_column.addWidget(rule())
        for number, (sign, text, cure) in enumerate(same[:6]):
            saying = _Saying(self._look, sign, text, cure)
            if saying.cure is not None:
                saying.cure.clicked.connect(partial(self._cure, number))
            self._sayings_column.addWidget(saying)
        if len(told) > 6:
            self._sayings_column.addWidget(Label(self._look, f"and {len(told) - 6} more", 12, 400, "text2"))
        self._sayings.setVisible(bool(told))
        if focused:
            self.start.setFocus(Qt.FocusReason.OtherFocusReason)

    def _cure(self, number: int) -> None:
        do = self._cures[number] if number < len(self._cures) else None
        if do is not None:
            do()

    def _show_steps(self, outlook: Outlook | None) -> None:
        emptied(self._list)
        for step in self._shown_steps():
            self._list.addWidget(_StepShown(self._look, step))
        if outlook is not None and outlook.example is not None:
            one = outlook.example
            self._does.setToolTip(f"{words.line(one.line)}, {words.cache(one.state)}")

    def _tell_clock(self) -> None:
        expected = self._outlook.forecast if self._outlook is not None else None
        if expected is None:
            return
        now = datetime.now().astimezone()
        first, last = now + timedelta(seconds=expected.low_s), now + timedelta(seconds=expected.high_s)
        self.clock.say(f"Started now, done between {_at(first, now)} and {_at(last, now)}.")

    def showEvent(self, event: object) -> None:
        self._timer.start()
        self._tell_clock()

    def hideEvent(self, event: object) -> None:
        self._timer.stop()

    def small(self, small: bool) -> None:
        """Lay out for a small window."""
        self.setFixedWidth(NARROW if small else WIDTH)

    def _shown_steps(self) -> tuple[Brief, ...]:
        """In a low window without what is prepared."""
        low = self.height() < LOW
        return tuple(step for step in self._steps if not (low and step.text.startswith("prepare")))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        low = self.height() < LOW
        if low == self._low:
            return
        self._low = low
        self._body.setSpacing(2 if low else 6)
        self._list.setSpacing(2 if low else 5)
        self.basis.setVisible(not low)
        self._show_steps(self._outlook)


def sentence(size: Size) -> str:
    """`90 cells × 4 attempts. The first of each is a warm-up: 270 are counted.`"""
    cells = f"{words.count(size.cells)} cell{'s' * (size.cells != 1)}"
    several = size.least < size.attempts
    often = f"{size.least} to {size.attempts}" if several else f"{size.attempts}"
    told = f"{cells} × {often} attempt{'s' * (size.attempts != 1)}"
    if size.launches:
        told += f", and {words.count(size.launches)} for their traffic only"
    if not size.warm_up:
        return f"{told}. All {words.count(size.counted)} are counted."
    first = (
        "The first of each is a warm-up"
        if size.warm_up == 1
        else f"The first {size.warm_up} of each are warm-up"
    )
    if several:
        return f"{told}, until they are stable. {first}."
    return f"{told}. {first}: {words.count(size.counted)} {'is' if size.counted == 1 else 'are'} counted."


def _at(moment: datetime, now: datetime) -> str:
    days = (moment.date() - now.date()).days
    if days == 0:
        return f"{moment:%H:%M}"
    if days == 1:
        return f"{moment:%H:%M} tomorrow"
    return f"{moment:%A, %H:%M}" if days < 7 else f"{moment.day} {moment:%B, %H:%M}"


class _StepShown(QWidget):
    def __init__(self, look: Look, step: Brief) -> None:
        super().__init__()
        self.setToolTip(step.whole)
        self.setAccessibleName(f"{step.host}: {step.whole}")
        text = _Command(look, step.text)
        inside = column(None, Elided(look, step.host, 12, 600), text, spacing=0)
        line = row(self, Icon(look, ICONS[step.role], 16), spacing=10)
        line.setAlignment(Qt.AlignmentFlag.AlignTop)
        line.addLayout(inside, 1)


class _Command(Elided):
    def __init__(self, look: Look, text: str) -> None:
        super().__init__(look, text, 11, 400, "text2")
        self.setFont(look.font(11, mono=True))


class _Saying(QWidget):
    """A sign, what is so, and the cure as a link."""

    def __init__(self, look: Look, sign: str, text: str, cure: str) -> None:
        super().__init__()
        self.cure: Button | None = None
        line = row(self, spacing=10)
        line.addWidget(Sign(look, sign, 15), 0, Qt.AlignmentFlag.AlignTop)
        said = Wrapped(look, breakable(text, 34), 13 if sign == marks.WARN else 12)
        inside = column(None, said, spacing=2)
        if cure:
            self.cure = Button(look, cure, "link", height=20)
            self.cure.setFont(look.font(13, 500))
            inside.addWidget(self.cure, 0, Qt.AlignmentFlag.AlignLeft)
        line.addLayout(inside, 1)


class _Span(QWidget):
    """A range of durations on an axis: from the least to the most, and the middle."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._low, self._high = 0.0, 1.0
        self.setFixedHeight(36)

    def show_span(self, low: float, high: float) -> None:
        """Seconds."""
        self._low, self._high = low, max(high, low + 1e-3)
        self.setAccessibleName(f"From {words.long(low)} to {words.long(high)}")
        self.update()

    def ticks(self) -> tuple[float, float, list[float]]:
        """The axis: its ends and its ticks, in seconds."""
        wide = self._high - self._low
        begin, end = max(0.0, self._low - 0.9 * wide), self._high + 0.9 * wide
        step = next((one for one in _STEPS_S if (end - begin) / one <= 4.5), _STEPS_S[-1])
        first = -int(-begin // step)
        return begin, end, [n * step for n in range(first, int(end // step) + 1)]

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, look = QPainter(self), self._look
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        begin, end, ticks = self.ticks()
        wide = float(self.width())

        def x(seconds: float) -> float:
            return wide * (seconds - begin) / (end - begin)

        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.colour("sunken"))
        painter.drawRoundedRect(QRectF(0, 7, wide, 6), 3, 3)
        painter.setBrush(look.mixed(look.token("accent"), 0.4))
        painter.drawRoundedRect(QRectF(x(self._low), 7, x(self._high) - x(self._low), 6), 2, 2)
        painter.setBrush(look.colour("accent"))
        painter.drawEllipse(QPointF(x((self._low + self._high) / 2), 10), 4.5, 4.5)
        painter.setFont(look.font(11, 400))
        for tick in ticks:
            painter.setPen(look.colour("axis"))
            painter.drawLine(QPointF(x(tick), 14), QPointF(x(tick), 18))
            painter.setPen(look.colour("text2"))
            text = _tick(tick)
            half = painter.fontMetrics().horizontalAdvance(text) / 2 + 2
            middle = min(max(x(tick), half), wide - half)
            painter.drawText(QRectF(middle - half, 19, 2 * half, 16), Qt.AlignmentFlag.AlignCenter, text)


def _tick(seconds: float) -> str:
    if not seconds:
        return "0"
    if seconds < 90 and seconds % 60:
        return f"{seconds:g}{words.NBSP}s"
    if seconds < 3600:
        return f"{seconds / 60:g}{words.NBSP}min"
    if seconds < 172_800:
        return f"{seconds / 3600:g}{words.NBSP}h"
    return f"{seconds / 86_400:g}{words.NBSP}d"
