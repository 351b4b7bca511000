"""The wizard *New lab*: a dialog that keeps what was entered when it is left, and gives a profile at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QHideEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QDialog, QStackedWidget, QWidget

from gui.asking import ask_file, ask_target
from gui.checking import Checking
from gui.dialogs import Shade
from gui.document import Document
from gui.doors import Doors
from gui.new_lab.candidate import Candidate
from gui.new_lab.choices import CONFIG, Choices, Offer
from gui.new_lab.host_page import HostPage
from gui.new_lab.name_page import NamePage
from gui.new_lab.step_list import StepList
from gui.questions import Questions
from gui.theme import marks
from gui.theme.look import Look
from gui.widgets.basic import Button, Label, column, row, rule
from gui.widgets.frame import FocusRing
from lab import new_lab, profile
from lab.errors import BadInput
from lab.model import Role
from lab.new_lab import NewLab

SERVER, PROXY, ROUTER, CLIENTS, NAME = range(5)
_STEPS = ("Server", "Proxy", "Router", "Clients", "Name and check")
_NEXT = {PROXY: "proxy", ROUTER: "router", CLIENTS: "clients", NAME: "name and check"}
_ROLES = {SERVER: Role.SERVER, PROXY: Role.PROXY, ROUTER: Role.ROUTER, CLIENTS: Role.CLIENT}
_WIDE, _HIGH, _MARGIN = 980, 690, 26
_CHOICES, _LEFT = 236, 226


@dataclass(frozen=True, slots=True)
class Made:
    """A profile from the wizard. `path` is where it is to be saved; None: it is opened without a file."""

    text: str
    path: Path | None


class NewLabWizard(QObject):
    """Opens the dialog, and keeps it with all that was entered until a lab was made of it or the program ends.

    Signals: `made(object)` a `Made`.
    """

    made = Signal(object)

    def __init__(self, look: Look, doors: Doors, window: QWidget, *, config: Path | None = None) -> None:
        super().__init__(window)
        self._look, self._doors, self._window, self._config = look, doors, window, config
        self.dialog: NewLabDialog | None = None

    def open(self) -> None:
        """Show it, as it was left. To be opened while no run goes: it shares the window's passwords."""
        if self.dialog is None:
            self.dialog = NewLabDialog(self._look, self._doors, self._window, config=self._config)
            self.dialog.made.connect(self._made)
        self.dialog.open()

    def close(self) -> None:
        """The window is going: leave what is under way."""
        if self.dialog is not None:
            self.dialog.leave()

    def _made(self, made: Made) -> None:
        dialog, self.dialog = self.dialog, None
        if dialog is not None:
            dialog.leave()  # and not deleted: a test that was left may still come to its end in it
        self.made.emit(made)


def taken(document: Document, made: Made) -> bool:
    """Have the document open what the wizard made, saved where that was wanted; False if that was told as failed."""
    document.begin(made.text, "new lab")
    return made.path is None or document.save(made.path, overwrite=True)


class NewLabDialog(QDialog):
    """The wizard itself. Signal `made(object)`: a `Made`."""

    made = Signal(object)

    def __init__(self, look: Look, doors: Doors, window: QWidget, *, config: Path | None = None) -> None:
        super().__init__(window)
        self._look, self._doors, self._window, self._config = look, doors, window, config
        self._shade: Shade | None = None
        self.questions = Questions(self)
        self._checking = Checking(look, doors, self.questions, self)
        self.server = self._candidate(Role.SERVER)
        self.proxy = self._candidate(Role.PROXY)
        self.router = self._candidate(Role.ROUTER)
        self.clients = [self._candidate(Role.CLIENT)]
        self.without_proxy = False
        self._client, self._step = 0, SERVER
        self._inventory: list[Offer] = []
        self._checked_text = ""
        self.setObjectName("ask")
        self.setWindowTitle("New lab")
        self.setAccessibleName("New lab")
        self.setModal(True)
        self.setAcceptDrops(True)
        self._build()
        self._wire()
        self.show_step(SERVER)

    # what was entered

    @property
    def step(self) -> int:
        """The step that is shown: SERVER, PROXY, ROUTER, CLIENTS or NAME."""
        return self._step

    @property
    def hosts(self) -> list[Candidate]:
        """Those that were entered, in the profile's order."""
        proxy = [] if self.without_proxy else [self.proxy]
        router = [self.router] if self.with_router else []
        return [one for one in (self.server, *proxy, *router, *self.clients) if one.entered]

    @property
    def with_router(self) -> bool:
        """True if a router of ours is said to be between."""
        return self.pages[SERVER].router.isChecked()

    @property
    def _every(self) -> list[Candidate]:
        return [self.server, self.proxy, self.router, *self.clients]

    @property
    def lab(self) -> NewLab:
        """All that was entered."""
        return NewLab(
            name=self.name_page.name.line.text(),
            hosts=tuple(one.entry for one in self.hosts),
            caching=self.pages[PROXY].cache.caching(),
            repository=self.pages[SERVER].repository.line.text(),
        )

    def show_step(self, step: int) -> None:
        """Show a step."""
        self._step = step
        self._stack.setCurrentIndex(step)
        self.choices.setVisible(step != NAME)
        if step == NAME and not self.name_page.name.line.text():
            self.name_page.name.line.setFocus(Qt.FocusReason.OtherFocusReason)
        elif step != NAME:
            page = self.pages[step]
            page.form.show_candidate(self._shown())
            page.form.name.line.setFocus(Qt.FocusReason.OtherFocusReason)
        if step == PROXY:
            self.without_proxy = False
        self.refresh()

    def leave(self) -> None:
        """Leave every test and check that is under way, and hide; what was entered stays."""
        self._checking.cancel()
        for candidate in self._every:
            candidate.interrupted()
        self.hide()

    def refresh(self) -> None:
        """Show how every step stands."""
        self.steps.show_step(ROUTER, self.with_router)
        self._mark_steps()
        here = self._shown() if self._step != NAME else None
        following = self._after(self._step)
        self.next.rename(f"Next: {_NEXT[following]}" if following in _NEXT else "Save and open …")
        self.back.setVisible(self._step != SERVER)
        self.skip.setVisible(self._step == PROXY)
        self.unsaved.setVisible(self._step == NAME)
        if self._step == NAME:
            self._show_name()
        else:
            written = here is not None and here.entered and not here.entry.trouble
            self.next.setEnabled(
                written or (self._step == CLIENTS and any(one.entered for one in self.clients))
            )
            self._mark_choices()
        self.pages[CLIENTS].show_clients(self.clients, self._client)
        tools = tuple(self.proxy.met.tools) if self.proxy.met is not None else ()
        self.pages[PROXY].cache.propose(self.proxy.entry.address or self.proxy.entry.ssh, tools)

    # building

    def _build(self) -> None:
        look = self._look
        self.steps = StepList(look, _STEPS)
        self.pages = {step: HostPage(look, role) for step, role in _ROLES.items()}
        self.name_page = NamePage(look)
        self._stack = QStackedWidget()
        for page in (*self.pages.values(), self.name_page):
            self._stack.addWidget(page)
        self.choices = Choices(look)
        self.choices.setFixedWidth(look.px(_CHOICES))
        self.back = Button(look, "Back", "flat")
        self.skip = Button(look, "There is no proxy yet", "flat")
        self.unsaved = Button(look, "Open without saving", "flat")
        self.next = Button(look, "Next", "filled", height=34)
        self.next.setDefault(True)
        left = column(None, Label(look, "New lab", 18, 600), spacing=14)
        left.addWidget(self.steps)
        left.addStretch(1)
        left.addWidget(Label(look, "Esc closes; what you entered is kept.", 12, 400, "text2"))
        beside = QWidget()
        beside.setLayout(left)
        left.setContentsMargins(0, 0, 0, 4)
        beside.setFixedWidth(look.px(_LEFT))
        middle = row(None, spacing=16)
        middle.addWidget(self._stack, 1)
        middle.addWidget(self.choices)
        right = column(None, spacing=10)
        right.addLayout(middle, 1)
        right.addWidget(rule())
        right.addLayout(row(None, self.back, -1, self.unsaved, self.skip, self.next, spacing=8))
        whole = row(self, beside, rule(vertical=True), margins=(_MARGIN, _MARGIN, _MARGIN, 18), spacing=22)
        whole.addLayout(right, 1)
        self._ring = FocusRing(look, self)

    def _wire(self) -> None:
        self.steps.chosen.connect(self.show_step)
        self.back.clicked.connect(lambda: self.show_step(self._before(self._step)))
        self.skip.clicked.connect(self._no_proxy)
        self.next.clicked.connect(self._next)
        self.unsaved.clicked.connect(lambda: self._give(None))
        self.choices.chosen.connect(self._chosen)
        self.choices.wanted.connect(self._ask_inventory)
        for page in self.pages.values():
            page.typed.connect(self.refresh)
        clients = self.pages[CLIENTS]
        clients.picked.connect(self._pick)
        clients.added.connect(self._add)
        clients.removed.connect(self._remove)
        self.name_page.typed.connect(self.refresh)
        self.name_page.checked.connect(self._check)
        self.name_page.left.connect(self._checking.cancel)
        self._checking.going.connect(self.name_page.say)
        self._checking.done.connect(self._checked)
        self._checking.crashed.connect(self._check_failed)

    def _candidate(self, role: Role) -> Candidate:
        made = Candidate(self._look, self._doors, self.questions, role, self)
        made.changed.connect(self.refresh)
        return made

    # steps

    def _shown(self) -> Candidate:
        others = {SERVER: self.server, PROXY: self.proxy, ROUTER: self.router}
        return others.get(self._step, self.clients[self._client])

    def _after(self, step: int) -> int:
        """The next step; the one of a router is left out where there is none."""
        return step + 2 if step + 1 == ROUTER and not self.with_router else step + 1

    def _before(self, step: int) -> int:
        return step - 2 if step - 1 == ROUTER and not self.with_router else step - 1

    def _mark_steps(self) -> None:
        entered = [one for one in self.clients if one.entered]
        worst = next(
            (s for s in (marks.TROUBLE, marks.WARN, marks.BUSY) if s in [c.sign for c in entered]), ""
        )
        clients = worst or (marks.OK if entered and all(c.sign == marks.OK for c in entered) else "")
        told = entered[0].said if len(entered) == 1 else f"{len(entered)} clients" if entered else ""
        states = [
            (self.server.sign, self.server.said if self.server.entered else ""),
            (self.proxy.sign, self.proxy.said if self.proxy.entered else ""),
            (self.router.sign, self.router.said if self.router.entered else ""),
            (clients, told),
            ("", ""),
        ]
        if self.without_proxy:
            states[PROXY] = (marks.OK, "none yet")
        for number, (button, (sign, said)) in enumerate(zip(self.steps.buttons, states, strict=True)):
            here = number == self._step
            shown = sign if sign in (marks.OK, marks.WARN, marks.TROUBLE) else ""
            button.show_state(shown, "being entered" if here and number != NAME else said, here)

    def _next(self) -> None:
        if self._step == NAME:
            self._save()
        elif self.next.isEnabled():
            self.show_step(self._after(self._step))

    def _no_proxy(self) -> None:
        self.show_step(self._after(PROXY))
        self.without_proxy = True
        self.refresh()

    def _pick(self, number: int) -> None:
        self._client = number
        self.show_step(CLIENTS)

    def _add(self) -> None:
        empty = [number for number, one in enumerate(self.clients) if not one.entered]
        if not empty:
            self.clients.append(self._candidate(Role.CLIENT))
        self._pick(empty[0] if empty else len(self.clients) - 1)

    def _remove(self) -> None:
        gone = self.clients.pop(self._client)
        self._client = max(0, self._client - 1)  # before `gone` tells that it is no longer tested
        gone.interrupted()
        self._pick(self._client)

    # choosing

    def _mark_choices(self) -> None:
        others = (self.server, self.proxy, *([self.router] if self.with_router else []))
        used = {one.entry.ssh.strip(): f"is the {one.entry.role.value}" for one in others}
        used |= {one.entry.ssh.strip(): "is a client" for one in self.clients}
        self.choices.mark(self._shown().entry.ssh.strip(), {k: v for k, v in used.items() if k})

    def _chosen(self, offer: Offer) -> None:
        given = {"user": offer.user, "port": offer.port, "jump": offer.jump, "key": offer.key}
        self._shown().enter(ssh=offer.ssh, address="", **given)
        self.pages[self._step].form.name.line.setFocus(Qt.FocusReason.OtherFocusReason)

    def _offer(self) -> None:
        """The names in the user's own configuration, then those of inventories that were read."""
        from lab.ssh import config

        try:
            named = config.names(self._config)
        except BadInput as error:
            named = ()
            self.choices.say(f"{error}")
        own = [Offer(name=name, source=CONFIG, ssh=name) for name in named]
        self.choices.offer([*own, *(one for one in self._inventory if one.ssh not in named)])
        if self._step != NAME:
            self._mark_choices()

    def _ask_inventory(self) -> None:
        kinds = "Inventories (*.ini *.yml *.yaml *.json hosts inventory*);;All files (*)"
        ask_file(self, "An Ansible inventory", kinds, self.read_inventory)

    def read_any(self, path: Path) -> None:
        """Offer the hosts of a file: of an SSH configuration if it looks like one, else of an inventory."""
        from lab.ssh import config

        try:
            listed = config.listed(path)
        except BadInput as error:
            self.choices.say(f"{error} {error.advice}".strip())
            return
        if listed is None:
            self.read_inventory(path)
            return
        source = path.name
        self._inventory = [
            Offer(
                name=name,
                source=source,
                ssh=one.host,
                user=one.user,
                port=one.port,
                jump=one.jump,
                key=one.key,
            )
            for name, one in listed.items()
        ]
        self.choices.say(f"{len(listed)} hosts of {path.name}" if listed else f"{path.name} names no host.")
        self._offer()

    def read_inventory(self, path: Path) -> None:
        """Offer the hosts of an inventory too; what is wrong with it is said beside the list."""
        from lab import inventory

        try:
            found = inventory.read(path)
        except BadInput as error:
            self.choices.say(f"{error} {error.advice}".strip())
            return
        self._inventory = [
            Offer(
                name=one.name,
                source=", ".join(one.groups[:3]) or path.name,
                ssh=one.where,
                user=one.user,
                port=str(one.port) if one.port else "",
                jump=one.jump,
                key=one.key,
            )
            for one in found.hosts
        ]
        told = f"{len(found.hosts)} hosts of {path.name}"
        if found.notes:
            told += f"; {len(found.notes)} left out: {found.notes[0]}"
        self.choices.say(told)
        self._offer()

    # name and check

    def _show_name(self) -> None:
        lab = self.lab
        text = new_lab.text(lab)
        problems = new_lab.problems(lab)
        if text != self._checked_text:
            self.name_page.found(())
        names = new_lab.names(lab.hosts)
        self.name_page.show_lab(list(zip(names, self.hosts, strict=True)), problems, new_lab.doubts(lab))
        self.next.setEnabled(not problems)
        self.unsaved.setEnabled(bool(self.hosts))

    def _check(self) -> None:
        lab = self.lab
        self._checked_text = new_lab.text(lab)
        looked = profile.looked_at(self._checked_text, Path(lab.name or "new lab"))
        if looked.profile is not None:
            self.name_page.found(())
            self._checking.begin(looked.profile.lab, looked.profile.experiments[0])
            self.refresh()

    def _checked(self, found: Sequence[object]) -> None:
        if self._checked_text == new_lab.text(self.lab):
            self.name_page.found(found)  # type: ignore[arg-type]
            self.refresh()

    def _check_failed(self, error: BaseException) -> None:
        self.name_page.state.say(marks.TROUBLE, str(error))

    def _save(self) -> None:
        name = new_lab.file_name(self.lab.name)
        ask_target(self, "Save the lab", "Profiles (*.toml)", self._give, name=name)

    def _give(self, path: Path | None) -> None:
        self.made.emit(Made(new_lab.text(self.lab), path))

    # Qt

    def reject(self) -> None:
        """Esc: what was entered is kept."""
        self.leave()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        files = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        if files:
            event.acceptProposedAction()
            self.read_any(files[0])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            focus = self.focusWidget()
            if isinstance(focus, Button):
                focus.click()
            else:
                self._next()
            return
        super().keyPressEvent(event)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        room = self._window.size()
        self.setFixedSize(
            min(self._look.px(_WIDE), max(900, room.width() - 24)),
            min(self._look.px(_HIGH), max(560, room.height() - 24)),
        )
        if self._shade is None:  # one comes out of the task bar, too
            self._shade = Shade(self._window)
        self._shade.cover()
        self._offer()
        for candidate in self._every:
            if candidate.entered and candidate.met is None and not candidate.steps:
                candidate.test()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if self._shade is not None:
            self._shade.hide()
            self._shade.deleteLater()
            self._shade = None
