"""A profile while it is edited: every change can be taken back, comments stay, and a crash loses nothing."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from lab import profile, profile_upgrade
from lab.errors import BadInput
from lab.profile import Place, Problem, Profile

Edit = Callable[[tomlkit.TOMLDocument], None]

NEW = """\
schema = 1
name = "New lab"
"""
"""What a profile begins with."""
MOST_STEPS = 500
"""So many changes can be taken back."""


@dataclass(frozen=True, slots=True)
class Step:
    """A text, and what made it of the one before, as `remove the line 64/128 kbit/s`."""

    text: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was kept of a draft whose program ended without saving it. `path` is None if it was never saved."""

    path: Path | None
    text: str
    kept: Path


class Draft:
    """The text of a profile, every earlier one, and what it says now.

    Attributes: `path`, None until it was saved; `profile`, the newest text that was right (None if none was);
    `problems` of the text as it is; `warnings`; `backup`, where the file of an older form was kept.
    """

    def __init__(self, text: str = NEW, path: Path | None = None, *, keep_in: Path | None = None) -> None:
        self.path = path
        self.profile: Profile | None = None
        self.problems: tuple[Problem, ...] = ()
        self.warnings: tuple[str, ...] = ()
        self._steps = [Step(text)]
        self._at = 0
        self._saved = text if path is not None else None
        self._keep_in = keep_in
        self._kept: Path | None = None
        self._older: int | None = None
        self.backup: Path | None = None
        self._look()

    @classmethod
    def opened(cls, path: Path, *, keep_in: Path | None = None) -> Draft:
        """A profile from its file, also one that is wrong. Raises BadInput where it is no readable text.

        One of an older form is brought to this one in a first change; the old file is kept beside it when it is saved.
        """
        draft = cls(_read(path), path, keep_in=keep_in)
        if draft.profile is not None:
            text, older = profile_upgrade.upgraded(draft.text)
            draft.replace(f"bring it from schema {older} to {profile.SCHEMA}", text)
            draft._older = older
        return draft

    @property
    def text(self) -> str:
        """The text as it is now."""
        return self._steps[self._at].text

    @property
    def changed(self) -> bool:
        """True if it differs from what was saved last."""
        return self.text != self._saved

    @property
    def undoes(self) -> str:
        """What `undo` would take back; empty if nothing can be."""
        return self._steps[self._at].what

    @property
    def redoes(self) -> str:
        """What `redo` would do again; empty if nothing can be."""
        return self._steps[self._at + 1].what if self._at + 1 < len(self._steps) else ""

    # Changing

    def change(self, what: str, edit: Edit) -> None:
        """Let `edit` change the document; one step that can be taken back. Raises BadInput where it is no TOML."""
        document = self._document()
        edit(document)
        self.replace(what, tomlkit.dumps(document))

    def put(self, what: str, place: Place, value: Any) -> None:
        """Give the key at `place` a value, made if it is not there; comments beside it stay."""
        self.change(what, lambda document: _put(document, place, value))

    def remove(self, what: str, place: Place) -> None:
        """Take out the key, table or member of a list at `place`. Raises LookupError if it is not there."""

        def edit(document: tomlkit.TOMLDocument) -> None:
            holder = _at(document, place[:-1])
            del holder[place[-1]]

        self.change(what, edit)

    def replace(self, what: str, text: str) -> None:
        """Take another text, as typed by hand. The same text is no step."""
        if text == self.text:
            return
        del self._steps[self._at + 1 :]
        self._steps.append(Step(text, what))
        del self._steps[: max(0, len(self._steps) - MOST_STEPS - 1)]
        self._at = len(self._steps) - 1
        self._look()

    def undo(self) -> str:
        """Take back the last change; what that was, or nothing if there is none."""
        what = self.undoes if self._at > 0 else ""
        if self._at > 0:
            self._at -= 1
            self._look()
        return what

    def redo(self) -> str:
        """Do again what was taken back last; what that was, or nothing if there is none."""
        what = self.redoes
        if what:
            self._at += 1
            self._look()
        return what

    # Saving

    def save(self, path: Path | None = None, *, overwrite: bool = False) -> Profile:
        """Write it where it was, or to `path`, which is its place from then on; the file is never half written.

        Raises BadInput where it is wrong, has no place, or where the file was changed by somebody else
        meanwhile, or is another one, unless `overwrite`.
        """
        target = path or self.path
        if target is None:
            raise BadInput("this profile has no file yet", advice="Choose one with Save as.")
        if not overwrite:
            self._refuse_other(target)
        self._back_up(target)
        written = profile.save(tomlkit.parse(self.text), target)
        self.path, self._saved = target, self.text
        self._drop_kept()
        self._look()
        return written

    def close(self) -> None:
        """Forget what was kept for a crash: the user saved it, or wants it no more."""
        self._drop_kept()

    def _back_up(self, target: Path) -> None:
        """Keep a file of an older form beside the one that is about to take its place. Raises BadInput."""
        if (
            self._older is None
            or target != self.path
            or profile_upgrade.older(tomlkit.parse(self.text)) is not None
        ):
            return
        number, stem = 1, f"{target.stem}.schema-{self._older}"
        beside = target.with_name(f"{stem}{target.suffix}")
        while beside.exists():
            number += 1
            beside = target.with_name(f"{stem}-{number}{target.suffix}")
        try:
            beside.write_bytes(target.read_bytes())
        except OSError as error:
            text = f"the old file could not be kept as {beside}: {error.strerror}"
            raise BadInput(text, advice="Make room there, or save under another name.") from error
        self._older, self.backup = None, beside

    def _refuse_other(self, target: Path) -> None:
        if not target.exists():
            return
        there = _read(target)
        if target == self.path and there == self._saved:
            return
        if there != self.text:
            text = "was changed by another program meanwhile" if target == self.path else "is there already"
            raise BadInput(f"{target} {text}", advice="Save under another name, or agree to replace it.")

    def _document(self) -> tomlkit.TOMLDocument:
        try:
            return tomlkit.parse(self.text)
        except TOMLKitError as error:
            raise BadInput(f"this is no TOML, and cannot be edited by clicking: {error}") from error

    def _look(self) -> None:
        found = profile.looked_at(self.text, self.path or Path("new profile"))
        self.problems = found.problems
        self.warnings = found.warnings
        if found.profile is not None:
            self.profile = found.profile
        self._keep()

    # For a crash

    def _keep(self) -> None:
        if self._keep_in is None:
            return
        if not self.changed:
            self._drop_kept()
            return
        if self._kept is None:
            name = hashlib.sha256(f"{self.path}{os.getpid()}{id(self)}".encode()).hexdigest()[:16]
            self._kept = self._keep_in / f"{name}.json"
        with suppress(OSError):  # a full disk is told when saving
            self._keep_in.mkdir(parents=True, exist_ok=True)
            partial = self._kept.with_suffix(".new")
            kept = {"path": str(self.path) if self.path else None, "text": self.text, "pid": os.getpid()}
            partial.write_text(json.dumps(kept), encoding="utf-8")
            partial.replace(self._kept)

    def _drop_kept(self) -> None:
        if self._kept is not None:
            self._kept.unlink(missing_ok=True)
            self._kept = None


def recovered(folder: Path) -> tuple[Recovered, ...]:
    """Drafts that were kept in `folder` by programs that are gone, newest first. Damaged files are passed over."""
    found: list[tuple[float, Recovered]] = []
    for file in sorted(folder.glob("*.json")):
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(file.read_text(encoding="utf-8"))
            if not _running(int(kept["pid"])):
                path = Path(kept["path"]) if kept["path"] else None
                found.append((file.stat().st_mtime, Recovered(path, str(kept["text"]), file)))
    return tuple(one for _, one in sorted(found, key=lambda pair: -pair[0]))


def restored(one: Recovered, *, keep_in: Path | None = None) -> Draft:
    """The draft as it was when its program ended; its file's text, where that is still there, is one step back.

    What was kept is forgotten, since the draft is kept anew. Raises BadInput where its file is no readable text.
    """
    there = one.path is not None and one.path.is_file()
    draft = Draft.opened(one.path, keep_in=keep_in) if there and one.path else Draft(keep_in=keep_in)
    draft.replace("changes that were not saved", one.text)
    forget(one)
    return draft


def forget(one: Recovered) -> None:
    """Throw away what was kept."""
    one.kept.unlink(missing_ok=True)


def _running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read()
    except OSError as error:
        raise BadInput(f"{path}: the profile cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: this is no UTF-8: save the file as UTF-8.") from error


def _at(document: Any, place: Place) -> Any:
    for part in place:
        document = document[part]
    return document


def _put(document: tomlkit.TOMLDocument, place: Place, value: Any) -> None:
    holder: Any = document
    for part in place[:-1]:
        if isinstance(part, str) and part not in holder:
            holder[part] = tomlkit.table()
        holder = holder[part]
    last = place[-1]
    if isinstance(last, int) and last == len(holder):
        holder.append(value)
    else:
        holder[last] = value
