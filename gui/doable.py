"""What can be done in the window now, for its list of actions: each does what a press on its page would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from gui import words
from gui.actions import Action
from gui.telling import EXPERIMENT, LAB, PLACES, RESULTS
from lab.model import Role

if TYPE_CHECKING:
    from gui.main_window import MainWindow


def doable(window: MainWindow) -> list[Action]:
    """By group, the pages first."""
    made = [
        Action("Pages", place.name, place.icon, partial(window.show_page, place.key), f"Alt {number}")
        for number, place in enumerate(PLACES, 1)
    ]
    made.append(Action("Pages", "Start", "buildings", window.lab_page.wanted.emit))
    if window.looking:
        made.append(Action("Run", "Cancel", "x", window.run_page.cancelled.emit))
    elif window.running:
        pause, stop = window.run_page.pause, window.run_page.stop
        made.append(Action("Run", pause.word, "play" if pause.word == "Go on" else "pause", pause.click))
        made += [Action("Run", name, "stop", do) for name, _, do in stop.ways()]
    else:
        made += [*_with_the_lab(window), *_opening(window)]
    made += with_the_profile(window)
    made += [
        Action("Experiment", name, icon, _there(window, EXPERIMENT, do))
        for name, icon, do in window.experiment_page.doable()
    ]
    if window.summary is not None:
        made += _with_results(window)
    dark = window.dark
    name = "Light colours" if dark else "Dark colours"
    made.append(Action("Window", name, "sun" if dark else "moon", window.swap_theme))
    made.append(Action("Window", "Forget remembered passwords", "key", window.forget_passwords))
    return made


def _with_the_lab(window: MainWindow) -> Iterator[Action]:
    page = window.lab_page
    for name, experiment in page.offered():
        yield Action("Lab", f"Run {name}", "play", partial(window.start_run, experiment))
    if page.lab is not None:
        again = "Cancel the check" if page.checking else "Check the hosts"
        if not window.lab_is_own:
            yield Action("Lab", "Provision: install what is missing …", "stack", page.provided.emit)
            yield Action("Lab", "Take installed packages away …", "trash", page.unprovided.emit)
        yield Action("Lab", again, "x" if page.checking else "arrows-clockwise", page.check.click, "F5")
        yield from _by_hand(window)
        yield from _editing(window)
        yield Action("Lab", "Take everything back", "arrow-counter-clockwise", page.taken_back.emit)


def _editing(window: MainWindow) -> Iterator[Action]:
    """What can be added to the lab, and its picture."""
    editing, picture = window.lab_page.editing, window.lab_page.picture
    if editing.possible:
        for role in editing.addable():
            keys = "Ins" if role is Role.CLIENT else ""
            do = _there(window, LAB, partial(editing.add, role))
            yield Action("Lab", f"Add a {role.value}", "plus", do, keys)
    if picture.moved:
        yield Action("Lab", "Reset the placement of hosts", "arrows-clockwise", picture.put_back)


def _by_hand(window: MainWindow) -> Iterator[Action]:
    """What can be done to the lab without a run, or ended of it."""
    page = window.lab_page
    if page.hand.deed:
        name = "Take the line back" if page.hand.line is not None else "Cancel what is done by hand"
        yield Action("Lab", name, "x", page.hand_left.emit)
        return
    if page.experiment is not None and any(host.cached for host in page.know().hosts):
        yield Action("Lab", "Fill the cache", "stack", page.fill)
        yield Action("Lab", "Purge the cache …", "trash", page.purge)
    yield Action("Lab", "Apply a line …", "arrows-left-right", _there(window, LAB, page.show_line))


def with_the_profile(window: MainWindow) -> Iterator[Action]:
    """What can be done with the profile that is open."""
    document, opening = window.document, window.opening
    if document.profile is None:
        return
    if document.undoes:
        undo = f"Undo: {document.undoes}"
        yield Action("Profile", undo, "arrow-counter-clockwise", document.undo, "Ctrl Z")
    if document.redoes:
        yield Action("Profile", f"Redo: {document.redoes}", "arrow-clockwise", document.redo, "Ctrl Shift Z")
    yield Action("Profile", "Save the profile", "floppy-disk", opening.save, "Ctrl S")
    yield Action("Profile", "Save the profile as …", "floppy-disk", opening.save_as, "Ctrl Shift S")


def _opening(window: MainWindow) -> Iterator[Action]:
    page = window.start_page
    yield Action("Lab", "Make hosts on this machine", "tree-structure", page.made.emit)
    yield Action("Lab", "New lab …", "plus", page.new_lab.emit, "Ctrl N")
    yield Action("Lab", "Open a lab …", "folder-open", page.profile.emit)
    yield Action("Runs", "Open a run …", "folder-open", page.run.emit)
    for head in page.heads():
        name = f"Open {head.experiment}, {words.when(head.started)}"
        yield Action("Runs", name, "chart-line-up", partial(window.open_run, head.file))


def _with_results(window: MainWindow) -> Iterator[Action]:
    results = window.results_page
    for name, icon, do in results.doable():
        yield Action("Results", name, icon, _there(window, RESULTS, do))
    if results.export.isEnabled():
        yield Action("Results", "Export the run …", "export", results.exported.emit)


def _there(window: MainWindow, page: str, do: Callable[[], None]) -> Callable[[], None]:
    def shown() -> None:
        window.show_page(page)
        do()

    return shown
