"""Data sets made from a seed: a source tree with a history, as a Subversion dump stream. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lab import dumpfile, sourcetext
from lab.errors import BadInput
from lab.model import Experiment
from lab.sourcetext import NOUNS, VERBS, WORDS, Dice

FIRST_DAY = datetime(2007, 1, 8, 8, 0, tzinfo=UTC)
"""Revision 0 is of this moment; the last revision is of `LAST_DAY`."""
LAST_DAY = datetime(2008, 5, 30, 17, 0, tzinfo=UTC)
EDITABLE_BYTES = 60_000
"""Larger files are never edited, so that one window of a delta is always enough."""
SLOT_LINES = 2
"""An edit of the history replaces so many neighbouring lines."""


@dataclass(frozen=True, slots=True)
class Extension:
    """Files of one ending: how many, how many bytes in all, and whether they are bytes without structure."""

    ending: str
    files: int
    bytes: int
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A data set's own table. `extensions` maps an ending to its number of files and their bytes."""

    files: int
    folders: int
    bytes: int
    revision: int
    extensions: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a data set is made of. `folders` are those below trunk; `lock_files` 0 means all files."""

    name: str
    title: str
    seed: int
    folders: int
    extensions: tuple[Extension, ...]
    revision: int
    """The newest revision: what Get, History and Diff name."""
    imports: int
    """So many revisions add the files, spread over the first half of the history."""
    touched: float
    """Files edited by a revision, on average."""
    message_words: int
    """Words of a log message, on average."""
    branches: tuple[int, ...]
    """Revisions that branch trunk."""
    edit_pattern: str
    edit_files: int
    lock_files: int
    nouns: int
    """A file speaks of so many things: fewer make it compress better."""

    def table(self, seed: int | None = None) -> Table:
        """Files, folders and bytes of trunk at the recipe's revision, counted on the generated tree."""
        tree = _Tree(self, seed)
        extensions: dict[str, tuple[int, int]] = {}
        for name, text in tree.files.items():
            files, size = extensions.get(_ending(name), (0, 0))
            extensions[_ending(name)] = (files + 1, size + len(text))
        return Table(
            files=len(tree.files),
            folders=len(tree.folders),
            bytes=sum(len(text) for text in tree.files.values()),
            revision=self.revision,
            extensions=dict(sorted(extensions.items())),
        )

    def locks(self, seed: int | None = None) -> tuple[str, ...]:
        """What Check-Out locks, relative to trunk: all files, or the first that the change may touch."""
        names = sorted(_Tree(self, seed, texts=False).files)
        if not self.lock_files:
            return tuple(names)
        ending = self.edit_pattern.removeprefix("*")
        return tuple(name for name in names if name.endswith(ending))[: self.lock_files]

    def dump(self, seed: int | None = None) -> Iterator[bytes]:
        """The repository as a dump stream for `svnadmin load`, in pieces."""
        tree = _Tree(self, seed)
        yield dumpfile.begin(tree.uuid)
        yield dumpfile.revision(0, FIRST_DAY, {})
        for number, commit in enumerate(_history(self, tree), start=1):
            moment = FIRST_DAY + (LAST_DAY - FIRST_DAY) * number // self.revision
            whole_second = moment - timedelta(microseconds=moment.microsecond)
            yield dumpfile.revision(
                number, whole_second, {"svn:log": commit.message, "svn:author": commit.author}
            )
            yield from commit.nodes


QUICK = Recipe(
    name="quick",
    title="150 files, 600 kB, 100 revisions",
    seed=2008,
    folders=12,
    extensions=(
        Extension(".cs", 50, 170_000),
        Extension(".aspx", 26, 90_000),
        Extension(".resx", 16, 70_000),
        Extension(".js", 12, 40_000),
        Extension(".sql", 16, 36_000),
        Extension(".css", 8, 20_000),
        Extension(".config", 6, 14_000),
        Extension(".csproj", 4, 16_000),
        Extension(".gif", 12, 144_000, binary=True),
    ),
    revision=100,
    imports=13,
    touched=3.0,
    message_words=15,
    branches=(52, 84),
    edit_pattern="*.cs",
    edit_files=50,
    lock_files=50,
    nouns=60,
)

LIKE_2008 = Recipe(
    name="2008",
    title="1732 files in 145 folders, 10.2 MB, as in the test of 2008",
    seed=2008,
    folders=145,
    extensions=(
        Extension(".cs", 569, 1_470_000),
        Extension(".aspx", 248, 1_500_000),
        Extension(".ascx", 131, 700_000),
        Extension(".resx", 214, 2_250_000),
        Extension(".js", 92, 1_050_000),
        Extension(".sql", 124, 900_000),
        Extension(".xml", 84, 1_400_000),
        Extension(".css", 42, 280_000),
        Extension(".config", 31, 90_000),
        Extension(".csproj", 24, 210_000),
        Extension(".gif", 173, 350_000, binary=True),
    ),
    revision=2000,
    imports=120,
    touched=2.0,
    message_words=75,
    branches=(600, 1100, 1700),
    edit_pattern="*.cs",
    edit_files=569,
    lock_files=0,
    nouns=13,
)


def recipe(name: str) -> Recipe:
    """The recipe of this name. Raises BadInput for an unknown one."""
    for one in (QUICK, LIKE_2008):
        if one.name == name:
            return one
    raise BadInput(
        f"there is no data set named {name!r}",
        advice='Write data = "quick" or data = "2008".',
    )


def asked(experiment: Experiment) -> Recipe | None:
    """The recipe of an experiment; None for a repository as it is.

    Raises BadInput if there is none of this name, or it has not so many files to edit.
    """
    if experiment.data is None:
        return None
    found = recipe(experiment.data)
    there = sum(one.files for one in found.extensions if found.edit_pattern == f"*{one.ending}")
    if experiment.change.files > there:
        raise BadInput(
            f"{experiment.name}: {experiment.change.files} files are to be changed, and the data set "
            f"{found.name!r} has {there} files {found.edit_pattern}",
            advice=f"Write change = {{ files = {there} }} or less; 0 means {found.edit_files}.",
        )
    return found


class _Tree:
    """Trunk at the recipe's revision: folders, and files with their bytes (empty with `texts=False`)."""

    def __init__(self, recipe: Recipe, seed: int | None, texts: bool = True) -> None:
        self.key = (recipe.name, recipe.seed if seed is None else seed)
        digest = hashlib.sha256(repr(self.key).encode()).hexdigest()
        self.uuid = "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))
        dice = Dice(*self.key, "tree")
        self.folders = _folders(recipe.folders, dice)
        self.files: dict[str, bytes] = {}
        self.binary: set[str] = set()
        for extension in recipe.extensions:
            for size in _sizes(extension, dice):
                # The first round gives each folder a file, so that none is empty.
                turn = len(self.files)
                folder = self.folders[turn] if turn < len(self.folders) else dice.pick(self.folders)
                name = f"{folder}/{dice.pick(NOUNS)}{dice.pick(NOUNS)}{turn + 1}{extension.ending}"
                self.files[name] = self._content(recipe, extension, name, size) if texts else b""
                if extension.binary:
                    self.binary.add(name)

    def _content(self, recipe: Recipe, extension: Extension, name: str, size: int) -> bytes:
        dice = Dice(*self.key, name)
        if extension.binary:
            return sourcetext.noise(name, size, dice)
        return sourcetext.text(name, size, extension.ending, recipe.nouns, dice)


def _ending(name: str) -> str:
    return name[name.rindex(".") :]


def _folders(count: int, dice: Dice) -> list[str]:
    """So many folders, at most four deep, parents before children."""
    names = ["Web"]
    while len(names) < count:
        parent = dice.pick(names) if dice.random() < 0.7 else ""
        name = f"{parent}/{dice.pick(NOUNS)}s" if parent else f"{dice.pick(NOUNS)}Service"
        if name.count("/") < 4 and name not in names:
            names.append(name)
    return names


def _sizes(extension: Extension, dice: Dice) -> list[int]:
    """Sizes of the files of one ending: uneven, and exact in sum. No logarithm: libraries differ in it."""
    weights = [0.25 + 3 * (draw := dice.random()) * draw * draw for _ in range(extension.files)]
    whole = sum(weights)
    sizes = [int(extension.bytes * weight / whole) for weight in weights]
    sizes[0] += extension.bytes - sum(sizes)
    return sizes


@dataclass(slots=True)
class _Commit:
    message: str
    author: str
    nodes: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class _File:
    """A file on its way to its final text: the lines now, and the edits that are still to come."""

    lines: list[bytes]
    edits: list[tuple[int, list[bytes]]]

    def added(self, path: str, binary: bool) -> bytes:
        """Its node when it is added."""
        props = {"svn:mime-type": "image/gif"} if binary else {}
        return dumpfile.added(path, b"".join(self.lines), props)

    def edited(self, path: str) -> bytes:
        """Do the next edit; its node."""
        before = b"".join(self.lines)
        place, new = self.edits.pop()
        old = self.lines[place : place + len(new)]
        offset = sum(len(line) for line in self.lines[:place])
        self.lines[place : place + len(new)] = new
        return dumpfile.edited(path, before, offset, sum(len(line) for line in old), b"".join(new))


def _history(recipe: Recipe, tree: _Tree) -> Iterator[_Commit]:
    """Revision 1 to the last: the layout, the files as they were first, edits that lead to the final tree."""
    dice = Dice(*tree.key, "history")
    imports = _imports(recipe, tree)
    edits = _edits(recipe, tree, imports, dice)
    begun = _beginnings(tree, edits, dice)
    layout = _Commit("Layout of the repository.", "anna")
    layout.nodes = [dumpfile.folder(name) for name in ("trunk", "branches", "tags")]
    yield layout
    for number in range(2, recipe.revision + 1):
        commit = _Commit(
            _message(recipe.message_words, dice), dice.pick(("anna", "boris", "chris", "dana", "egor"))
        )
        if number in recipe.branches:
            commit.nodes = [dumpfile.copied(f"branches/{number / 100:.1f}", "trunk", number - 1)]
        elif number in imports:
            folders, names = imports[number]
            commit.nodes = [dumpfile.folder(f"trunk/{name}") for name in folders]
            commit.nodes += [begun[name].added(f"trunk/{name}", name in tree.binary) for name in names]
        else:
            commit.nodes = [begun[name].edited(f"trunk/{name}") for name in edits[number]]
        yield commit


def _imports(recipe: Recipe, tree: _Tree) -> dict[int, tuple[list[str], list[str]]]:
    """Revision -> folders and files that it adds. Folders come parents first, each with its own files."""
    inside: dict[str, list[str]] = {name: [] for name in tree.folders}
    for name in tree.files:
        inside[name.rpartition("/")[0]].append(name)
    out: dict[int, tuple[list[str], list[str]]] = {}
    free = [number for number in range(2, recipe.revision + 1) if number not in recipe.branches]
    count = min(recipe.imports, len(tree.folders))
    for turn in range(count):
        folders = tree.folders[turn * len(tree.folders) // count : (turn + 1) * len(tree.folders) // count]
        # The first third of the imports follow each other, as when a project is taken over.
        place = turn if turn < count // 3 else turn * (len(free) // 2) // count
        out[free[place]] = (list(folders), sorted(name for folder in folders for name in inside[folder]))
    return out


def _edits(
    recipe: Recipe, tree: _Tree, imports: dict[int, tuple[list[str], list[str]]], dice: Dice
) -> dict[int, list[str]]:
    """Revision -> files that it edits, sorted. No file is edited more often than it has slots of lines."""
    room = {
        name: (text.count(b"\n") - 2) // SLOT_LINES
        for name, text in tree.files.items()
        if len(text) <= EDITABLE_BYTES and name not in tree.binary
    }
    here: list[str] = []
    out: dict[int, list[str]] = {}
    for number in range(2, recipe.revision + 1):
        if number in imports:
            here += [name for name in imports[number][1] if room.get(name, 0) > 0]
            continue
        if number in recipe.branches:
            continue
        wanted = 1 + dice.below(round(2 * recipe.touched) - 1)
        chosen = sorted({dice.pick(here) for _ in range(min(wanted, len(here)))})
        out[number] = chosen
        for name in chosen:
            room[name] -= 1
            if not room[name]:
                here.remove(name)
    return out


def _beginnings(tree: _Tree, edits: dict[int, list[str]], dice: Dice) -> dict[str, _File]:
    """Every file as it is added: its final lines, but for the places that later revisions edit."""
    times: dict[str, int] = {}
    for names in edits.values():
        for name in names:
            times[name] = times.get(name, 0) + 1
    out: dict[str, _File] = {}
    for name, text in tree.files.items():
        if name not in times:
            out[name] = _File([text], [])
            continue
        lines = text.splitlines(keepends=True)
        slots = dice.shuffled(range((len(lines) - 2) // SLOT_LINES))[: times[name]]
        writer = sourcetext.Writer(_ending(name), 4, dice)
        file = _File(lines, [])
        for slot in slots:
            place = 1 + slot * SLOT_LINES
            file.edits.append((place, lines[place : place + SLOT_LINES]))
            lines[place : place + SLOT_LINES] = [
                writer.line().partition("\n")[0].encode() + b"\n" for _ in range(SLOT_LINES)
            ]
        out[name] = file
    return out


def _message(words: int, dice: Dice) -> str:
    """A log message of about so many words, in lines as people break them."""
    count = words // 2 + dice.below(words)
    chosen = [dice.pick(WORDS if dice.random() < 0.6 else NOUNS).lower() for _ in range(count)]
    lines = [" ".join(chosen[begin : begin + 11]) for begin in range(0, count, 11)]
    return f"{dice.pick(VERBS)} " + "\n".join(lines) + f" (#{1000 + dice.below(9000)})."
