"""What is seen of the window: nothing cut, aligned, reachable by keys, named; the list of actions."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
import start_shown
import walked
from fake_testbed import FakeTestbed, experiment, small
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton, QStyle, QStyleOptionComboBox, QWidget
from pytestqt.qtbot import QtBot
from test_gui_window import FOREVER_MS, made, ran, started

from gui.actions import Action, found
from gui.asking import CloseDialog
from gui.doable import doable
from gui.main_window import MainWindow
from gui.results import answers
from gui.results.table import HEADER, ROW
from gui.telling import EXPERIMENT, LAB, RESULTS, RUN, START
from gui.theme import icons, marks
from gui.widgets.basic import Choice, Label
from gui.widgets.frame import FocusRing
from lab import runner, store
from lab.live import Live
from lab.model import Host, Lab, Line, Role
from lab.stop import Stop

__all__ = ["made"]
Made = Callable[..., MainWindow]
LONG = Lab(
    name="Büro мінск " * 30,
    hosts=(
        Host(name="ein-sehr-langer-rechnername-" * 3, role=Role.CLIENT, ssh="me@" + "c" * 120),
        Host(name="прокси-мінск", role=Role.PROXY, ssh="me@" + "p" * 120 + ".example.com"),
        Host(name="東京サーバー", role=Role.SERVER, ssh="server", url="http://" + "x" * 90 + "/svn"),
    ),
)
DELAYED = tuple(
    Line(upload_bps=rate, download_bps=2 * rate, delay_s=0.04, jitter_s=0.01, loss=0.015)
    for rate in (64_000, 128_000, 256_000, 512_000, 1_000_000, 2_000_000)
)


def shown(window: MainWindow, page: str, size: tuple[int, int] | None = None) -> None:
    if size is not None:
        window.resize(*size)
    window.show_page(page)
    for _ in range(5):
        QApplication.processEvents()


def busy(until: int = 40) -> Live:
    """A run with the matrix of *quick*, in the middle of a command."""
    live = Live()
    for event in runner.run(experiment(), FakeTestbed(samples=3), Stop()):
        live.apply(event)
        if live.done >= until and event.kind == "command-started":
            break
    return live


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720)])
def test_answers_are_never_cut_and_all_of_one_is_unfolded_below(
    made: Made, qtbot: QtBot, size: tuple[int, int]
) -> None:
    window = made()
    ran(qtbot, window, experiment(lines=DELAYED, attempts=2))
    shown(window, RESULTS, size)
    page = window.results_page
    assert not cut_labels(page.answers)
    assert page.summary is not None
    for card, finding in zip(page.answers._cards, page.summary.findings, strict=True):
        if card.all.isVisible():
            card.all.click()
            shown(window, RESULTS)
            told = [label.text() for label in page.answers.whole.findChildren(Label)]
            assert {answers.whole(one.text) for one in finding.sentences} <= set(told)
            assert not cut_labels(page.answers)
    page.answers.whole.close.click()
    assert not page.answers.whole.isVisible()
    assert not any(card.all.isChecked() for card in page.answers._cards)


def cut_labels(root: QWidget) -> list[tuple[str, int, int]]:
    return [
        (label.text(), label.height(), label.heightForWidth(label.width()))
        for label in root.findChildren(Label)
        if label.isVisible() and label.wordWrap() and label.height() < label.heightForWidth(label.width())
    ]


def test_in_the_smallest_window_table_and_chart_are_seen_below_the_answers(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, experiment(lines=DELAYED, attempts=2))
    shown(window, RESULTS, (1280, 720))
    page = window.results_page
    below = page._table_card.mapTo(page, QPoint(0, 0)).y()
    assert page.height() - below >= 4 * ROW + HEADER + 40, "title, head and the first lines"


def test_the_sentence_of_the_whole_stands_over_the_answers(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, experiment(lines=DELAYED, attempts=4))
    shown(window, RESULTS, (1280, 720))
    page = window.results_page
    assert page.summary is not None
    assert page.summary.choice is not None
    assert page._money_question.isVisible()
    assert page._money_question.text().startswith("Proxy or wider line")
    assert page._money_question.toolTip() == answers.whole(page.summary.choice.text)
    assert not cut_labels(page)


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720)])
def test_twelve_lines_many_attempts_and_long_names_are_not_cut(
    made: Made, qtbot: QtBot, tmp_path: Path, size: tuple[int, int]
) -> None:
    window = made()
    profile = tmp_path / ("long-" * 20 + "name.toml")
    profile.write_text(start_shown.MANY, "utf-8")
    window.open_profile(profile)
    qtbot.waitUntil(lambda: window.document.profile is not None and not window._jobs, timeout=FOREVER_MS)
    shown(window, EXPERIMENT, size)
    area = window.experiment_page._scroll
    body = area.widget()
    assert body is not None
    assert body.width() <= area.viewport().width(), "what is right of that is cut"
    assert not walked.cut(window.experiment_page)
    shown(window, LAB)
    assert not walked.cut(window.lab_page)
    window.document.take(None)


def test_traffic_now_is_shown_while_there_is_a_now(made: Made, qtbot: QtBot) -> None:
    window = made()
    window.show_live(busy())
    shown(window, RUN, (1280, 720))
    assert window.run_page.traffic.isVisible()
    ran(qtbot, window, small())
    shown(window, RUN)
    assert not window.run_page.traffic.isVisible()
    assert window.run_page.strips.width() > 1000


def test_prices_and_people_change_what_a_month_means(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, experiment(lines=DELAYED[:2], attempts=4))
    shown(window, RESULTS, (1280, 720))
    money = window.results_page.money
    before = money.found
    assert before is not None
    type_into(qtbot, money.people.field, "20")
    assert money.found is not None
    assert money.found.options[0].time_s == pytest.approx(2 * (before.options[0].time_s or 0))
    window.results_page._tab(window.results_page._tab_names.index("check-out"))
    assert money.often.field.accessibleName() == "Check-Out, a day each"
    qtbot.mouseClick(money.prices_button, Qt.MouseButton.LeftButton)
    fields = {field.accessibleName(): field for field in money._prices.findChildren(QLineEdit)}
    assert set(fields) >= {"Hour of waiting", "Proxy, a month"}
    type_into(qtbot, fields["Hour of waiting"], "1,024")
    assert fields["Hour of waiting"].property("wrong") is True
    assert any("1,024 or 1.024? Write 1024." in label.text() for label in money.findChildren(Label))
    for name, text in zip(fields, ("40,5", "100", "30", "60"), strict=True):
        type_into(qtbot, fields[name], text)
    assert money.found.cheapest is not None
    assert "EUR" in money.copied()
    assert money._answer.text().startswith("Cheapest: ")
    shown(window, RESULTS)
    assert not walked.cut(money)


def type_into(qtbot: QtBot, field: QLineEdit, text: str) -> None:
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


def test_published_figures_say_that_they_are_and_what_each_line_means_in_a_month(
    made: Made, qtbot: QtBot
) -> None:
    window = made()
    window.starting.show_published("published-2008")
    page = window.results_page
    qtbot.waitUntil(lambda: page.summary is not None, timeout=60_000)
    for size in ((1280, 720), (1440, 900)):
        shown(window, RESULTS, size)
        assert not page._scroll.horizontalScrollBar().isVisible()
        assert not cut_labels(page)
    assert page._proven.label.text() == "published figures, not measured here"
    assert not page._lines.isVisible()
    assert not page._bars_card.isVisible()
    assert page.money.isVisible()
    heads, first, *rest = (row.split("\t") for row in page.money.copied().split("\n"))
    assert heads == ["upload/download", "no proxy", "full cache", "proxy saves", "saves from"]
    assert first[0].startswith("64/128")
    assert len(rest) == 5
    assert all(len(row) == 5 for row in rest)


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720)])
@pytest.mark.parametrize("lines", [DELAYED, DELAYED[:2]])
def test_results_are_as_wide_as_their_window_and_aligned(
    made: Made, qtbot: QtBot, size: tuple[int, int], lines: tuple[Line, ...]
) -> None:
    window = made()
    ran(qtbot, window, experiment(name="A very long name of an experiment " * 8, lines=lines, attempts=2))
    shown(window, RESULTS, size)
    page = window.results_page
    assert not page._scroll.horizontalScrollBar().isVisible()
    assert page._table_card.width() == page._bars_card.width()
    assert page._chart_card.x() == page.money.x()
    assert page._about.width() < page._about.fontMetrics().horizontalAdvance(page._about.text())


def test_what_all_lines_share_is_told_once(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small(lines=DELAYED[:2]))
    assert "delay" not in window.results_page.times.text(0, 0)
    assert "Every line has 40" in window.results_page._table_note.text()
    ran(qtbot, window, small(lines=(DELAYED[0], Line(upload_bps=64_000, download_bps=128_000))))
    assert "40\N{NO-BREAK SPACE}ms delay" in window.results_page.times.text(0, 0)


def test_nothing_proven_has_no_tick(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(failing=dict.fromkeys(range(1, 13), "no")))
    ran(qtbot, window, small())
    assert window.results_page._proven.sign.sign == marks.UNKNOWN


@pytest.mark.parametrize("ratio", [1.0, 1.5])
def test_list_boxes_have_room_for_their_texts(made: Made, qtbot: QtBot, ratio: float) -> None:
    window = made()
    window._look._ratio = ratio
    box = Choice(window._look, "Line", 26)
    qtbot.addWidget(box)
    box.offer(["512/1024\N{NO-BREAK SPACE}kbit/s", "2/4\N{NO-BREAK SPACE}Mbit/s"])
    box.show()
    box.resize(box.minimumSizeHint().expandedTo(box.minimumSize()))
    option = QStyleOptionComboBox()
    box.initStyleOption(option)
    field = box.style().subControlRect(
        QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, box
    )
    assert field.width() >= box.fontMetrics().horizontalAdvance(box.itemText(0))


def test_the_command_under_way_is_seen_beside_a_full_matrix(made: Made, qtbot: QtBot) -> None:
    window = made()
    window.show_live(busy())
    shown(window, RUN, (1440, 900))
    output = window.run_page.output
    assert len(window.run_page.matrix.rows) == 24
    assert window.run_page.view.verticalScrollBar().maximum() == 0
    window.run_page.redraw()
    assert output._command.isVisible() or output._text.isVisible()
    assert output._command.text().startswith("$ svn ")
    live = Live()  # one that went on while another page was shown, and ended
    window.show_live(live)
    for event in runner.run(small(), FakeTestbed(), Stop()):
        live.apply(event)
    window.run_page.redraw()
    assert output._command.text() == f"$ {live.command}"


def test_closed_output_opens_over_the_matrix_and_closes_again(made: Made, qtbot: QtBot) -> None:
    window = made()
    window.show_live(busy())
    shown(window, RUN, (1280, 720))
    output = window.run_page.output
    tabs = [output._tabs.button(number) for number in (0, 1)]
    assert not output._text.isVisible()
    for press, seen in ((0, True), (1, True), (1, False), (0, True), (0, False)):
        tabs[press].click()
        shown(window, RUN)
        assert output._text.isVisible() == seen
    assert window.run_page.height() == window.pages.whole.viewport().height()


def test_less_than_the_least_window_scrolls_as_a_whole(made: Made, qtbot: QtBot) -> None:
    window = made()
    window.show_live(busy())
    for page in (LAB, RUN, RESULTS):
        shown(window, page, (1024, 700))
        assert window.pages.whole.horizontalScrollBar().isVisible()
        assert window.pages.all[page].width() == 1196
        shown(window, page, (1280, 720))
        assert not window.pages.whole.horizontalScrollBar().isVisible()
        assert not window.pages.whole.verticalScrollBar().isVisible()


def test_long_and_foreign_names_are_elided_and_never_widen_anything(made: Made) -> None:
    window = made()
    window.show_lab(LONG, (small(name="Sehr lang " * 30), experiment()), {})
    window._top.show_open(LONG.name, "x" * 200 + ".toml")
    shown(window, LAB, (1280, 720))
    assert window._top.minimumSizeHint().width() < 960
    assert window.lab_page._choice.width() <= 320
    assert window.lab_page.head.title.width() > 300
    body = window.lab_page.inspector._body.parentWidget()
    for name in ["", *(host.name for host in LONG.hosts)]:
        window.lab_page.picture.select(name)
        shown(window, LAB)
        assert body.minimumSizeHint().width() <= 312 - 22
    assert (window.width(), window.height()) == (1280, 720)


def test_recent_runs_are_on_start(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    shown(window, START)
    qtbot.waitUntil(lambda: bool(window.start_page.heads()), timeout=FOREVER_MS)
    assert window.start_page._list_card.isVisible()
    window.start_page._heads[0][0].click()
    qtbot.waitUntil(lambda: window._page == RESULTS, timeout=FOREVER_MS)


# keys ---------------------------------------------------------------------------------------------------------


def stops(window: MainWindow) -> list[QWidget]:
    """Everything visible that Tab reaches."""
    return [
        widget
        for widget in window.findChildren(QWidget)
        if widget.isVisible() and widget.isEnabled() and widget.focusProxy() is None
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    ]


def test_whatever_takes_the_focus_has_a_name(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    nameless = []
    for page in (START, LAB, RUN, RESULTS):
        shown(window, page)
        for widget in stops(window):
            text = widget.text() if isinstance(widget, QPushButton) else ""
            if not (widget.accessibleName() or text) and not widget.parent().accessibleName():
                nameless.append((page, type(widget).__name__))
    assert not nameless


@pytest.mark.parametrize("page", [LAB, RUN, RESULTS])
def test_tab_reaches_everything_and_comes_back(made: Made, qtbot: QtBot, page: str) -> None:
    window = made()
    ran(qtbot, window, small())
    shown(window, page)
    with qtbot.waitActive(window):
        window.activateWindow()
    wanted, seen = set(stops(window)), []
    for _ in range(3 * len(wanted)):
        focus = QApplication.focusWidget()
        qtbot.keyClick(focus or window, Qt.Key.Key_Tab)
        seen.append(QApplication.focusWidget())
    lost = {widget for widget in wanted - set(seen) if not _another_of_its_group(widget, seen)}
    assert not [(type(widget).__name__, widget.accessibleName()) for widget in lost]


def _another_of_its_group(widget: QWidget, seen: list[QWidget]) -> bool:
    """Tab stops once in a group of which one is chosen; arrows go on inside."""
    group = getattr(widget, "group", lambda: None)()
    alike = [w for w in seen if w is not None and type(w) is type(widget) and w.parent() is widget.parent()]
    return bool(alike) and (group is not None or getattr(widget, "autoExclusive", lambda: False)())


def test_the_ring_is_drawn_round_tables_and_charts_and_follows_them(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, experiment(attempts=2))
    shown(window, RESULTS, (1280, 720))
    with qtbot.waitActive(window):
        window.activateWindow()
    page = window.results_page
    for widget in (page.table, page.chart, page.bars):
        page._scroll.ensureWidgetVisible(widget)
        widget.setFocus(Qt.FocusReason.TabFocusReason)
        QApplication.processEvents()
        assert window.pages.ring.isVisible()
        assert window.pages.ring.geometry().center() == widget.mapTo(window, widget.rect().center())
    page.table.setFocus(Qt.FocusReason.TabFocusReason)
    before = window.pages.ring.y()
    bar = page._scroll.verticalScrollBar()
    bar.setValue(bar.value() - 40 if bar.value() > 40 else bar.value() + 40)
    QApplication.processEvents()
    assert abs(window.pages.ring.y() - before) == 40
    window.show_page(RUN)
    assert not window.pages.ring.isVisible()


def test_a_dialog_shows_where_the_focus_is(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(pace=0.02))
    started(qtbot, window, experiment(), done=1)
    window.close()
    dialog = window.findChildren(CloseDialog)[0]
    with qtbot.waitActive(dialog):
        dialog.activateWindow()
    qtbot.keyClick(dialog.cancel, Qt.Key.Key_Tab)
    rings = dialog.findChildren(FocusRing)
    assert [ring.isVisible() for ring in rings] == [True]
    dialog.reject()


def test_ctrl_r_runs_from_every_page(made: Made, qtbot: QtBot) -> None:
    window = made()
    shown(window, RESULTS)
    with qtbot.waitSignal(window.finished, timeout=FOREVER_MS):
        window.keys.run()
    assert window.live.done == 12


# the list of actions --------------------------------------------------------------------------------------------


def test_actions_are_found_by_words_in_any_order() -> None:
    actions = [Action("Lab", "Open a lab …", "x", int), Action("Runs", "Open a run …", "x", int)]
    assert [a.name for a in found(actions, "RUN open")] == ["Open a run …"]
    assert found(actions, "") == actions
    assert found(actions, "nothing like it") == []


def test_ctrl_k_finds_and_does(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    shown(window, RUN)
    with qtbot.waitActive(window):
        window.activateWindow()
    qtbot.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    field = window.keys.actions.field
    assert window.keys.actions.isVisible()
    assert QApplication.focusWidget() is field
    qtbot.keyClicks(field, "diff")
    assert [window.keys.actions.list.item(n).text() for n in (0, 1)] == ["Results", "Figures of Diff"]
    card = window.keys.actions._card
    assert card.height() == card.layout().totalSizeHint().height(), "as high as what was found"
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert not window.keys.actions.isVisible()
    assert window._page == RESULTS
    assert window.results_page._operation == "diff"


def test_the_list_offers_only_what_can_be_done_and_esc_does_nothing(made: Made, qtbot: QtBot) -> None:
    window = made(FakeTestbed(pace=0.02))
    assert {action.group for action in doable(window)} == {"Pages", "Lab", "Runs", "Window"}
    started(qtbot, window, experiment(), done=1)
    names = [action.name for action in doable(window)]
    assert {"Pause", "Stop now"} < set(names)
    assert not [name for name in names if name.startswith(("Open", "Make", "Run "))]
    window.keys.offer_actions()
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_PageDown):
        qtbot.keyClick(window.keys.actions.field, key)
        assert isinstance(window.keys.actions.list.currentItem().data(Qt.ItemDataRole.UserRole), Action)
    qtbot.keyClicks(window.keys.actions.field, "zzz")
    qtbot.keyClick(window.keys.actions.field, Qt.Key.Key_Return)
    qtbot.keyClick(window.keys.actions.field, Qt.Key.Key_Escape)
    assert not window.keys.actions.isVisible()
    assert window.running
    assert window._page == RUN


def test_every_action_has_an_icon_that_exists(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    assert not [action.name for action in doable(window) if icons.path(action.icon).isEmpty()]


def test_a_missing_icon_font_leaves_the_words(
    made: Made, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "fonts").mkdir()
    (tmp_path / "fonts" / "phosphor-1.3.0.ttf").write_bytes(b"no font")
    from importlib.machinery import ModuleSpec

    spec = ModuleSpec("qtawesome", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(icons.importlib.util, "find_spec", lambda name: spec)
    icons._font.cache_clear()
    icons.path.cache_clear()
    try:
        assert icons.path("play").isEmpty()
        window = made()
        shown(window, LAB)
        window.grab()
    finally:
        icons._font.cache_clear()
        icons.path.cache_clear()


def test_a_run_file_that_is_open_is_found_among_the_actions(made: Made, qtbot: QtBot) -> None:
    window = made()
    ran(qtbot, window, small())
    window._list_runs()
    qtbot.waitUntil(lambda: not window._jobs, timeout=FOREVER_MS)
    assert any(action.name.startswith("Open Small, ") for action in doable(window))
    assert store.runs()
