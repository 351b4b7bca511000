"""Private scratch folders on a host: made and marked, copied into, edited by a seed, removed."""

import contextlib
import fnmatch
import hashlib
import json
import os
import re
import shutil
import stat
from typing import Any, Dict, Iterator, List, Tuple

from ssh_agents import lease, private, protocol, system

MARK = ".branchlab-scratch"
"""A folder with this file in it was made by `scratch`; only below such folders is anything changed."""
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
SKIPPED = frozenset((".svn", ".git", ".bzr", ".hg"))


def scratch(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `files.scratch`: the path of the private, marked folder `name`, made if it is not there.

    It is below `branchlab-UID` in $TMPDIR, or in /tmp, and goes with the lease under which it was made.
    Refuses where another user owns or may write there.
    """
    name = protocol.need(args, "name", str)
    if not _NAME.fullmatch(name):
        raise protocol.Refused("bad-request", "not a name for a scratch folder: %r" % name)
    base = place()
    path = os.path.join(base, name)
    call.promise({"kind": "scratch", "path": path})
    for folder in (base, path):
        _private(folder)
    with open(os.path.join(path, MARK), "w", encoding="utf-8") as file:
        json.dump(_here(), file)
    return {"path": path}


def copy(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `files.copy`: `source` to `target`, which must not be there; modes and times kept, links as links.

    Both inside marked scratch folders.
    """
    source, target = _inside(args, "source"), _inside(args, "target")
    if os.path.lexists(target):
        raise protocol.Refused("bad-request", "%s is there already" % target)
    if (target + os.sep).startswith(source + os.sep):
        raise protocol.Refused("bad-request", "%s would be copied into itself" % source)
    try:
        if os.path.isdir(source) and not os.path.islink(source):
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target, follow_symlinks=False)
    except (OSError, shutil.Error) as error:
        raise _refusal(error, "copy %s to %s" % (source, target)) from None
    return {}


def remove(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `files.remove`: a file or a folder with all that is in it; `removed` is false if it was gone.

    Inside a marked scratch folder, or that folder itself. Links are removed, never followed.
    """
    path = _inside(args, "path", itself=True)
    try:
        if not os.path.lexists(path):
            return {"removed": False}
        if os.path.isdir(path) and not os.path.islink(path):
            scratch = _marked(path)
            _tree_removed(path)
            if scratch and os.path.basename(os.path.dirname(path)) == "branchlab-%s" % me():
                _drop_if_empty(os.path.dirname(path))
        else:
            os.remove(path)
    except OSError as error:
        raise _refusal(error, "remove %s" % path) from None
    return {"removed": True}


def undo(entry: Dict[str, Any]) -> str:
    """Remove a scratch folder that was promised, with all that is in it. Idempotent.

    Refuses, `denied`, to touch what is no folder of this user in its own private place, whatever the entry
    says. The mark is not asked for: it may be gone already, or not yet be there, and a command that has
    outlived its lease may have made the folder anew.
    """
    path = str(entry.get("path", ""))
    base, name = os.path.split(path)
    ours = os.path.basename(base) == "branchlab-%s" % me() and os.path.realpath(base) == base
    if not (ours and _NAME.fullmatch(name)):
        raise protocol.Refused("denied", "%r is no scratch folder of this user" % path, "to remove it")
    if not os.path.lexists(path):
        _drop_if_empty(base)
        return ""
    for folder in (base, path):
        _check_private(folder)
    try:
        _tree_removed(path)
    except OSError as error:
        raise _refusal(error, "remove %s" % path) from None
    _drop_if_empty(base)
    return "scratch folder %s removed" % path


def edit(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `files.edit`: change `share` of the lines of `files` files (0: all) whose name matches `pattern`.

    Below `folder`, which is inside a marked scratch folder; folders of version control, links, and what is no
    text or read-only are passed over. Which files and lines, and what is added to them, follows from `seed`,
    the paths below `folder` and the lines' numbers alone, so that every host does the same. Returns the count
    of files and of lines, the bytes of the lines as changed, and the first ten names.
    """
    folder = _inside(args, "folder", itself=True)
    seed, count = protocol.need(args, "seed", int), protocol.need(args, "files", int)
    pattern = protocol.need(args, "pattern", str, "*")
    share = protocol.need(args, "share", float)
    if os.path.islink(folder):
        raise protocol.Refused("denied", "%s is a link, and no link is followed" % folder, "to edit there")
    if not (0 < share <= 1 and count >= 0):
        raise protocol.Refused("bad-request", "share must be above 0 and at most 1, files 0 or more")
    names = _chosen(folder, seed, count, pattern)
    lines = size = 0
    for name in names:
        if call.cancelled():
            raise protocol.Refused("cancelled", "the edit was cancelled; %s is edited in part" % folder)
        try:
            edited, written = _edited(os.path.join(folder, name), name, seed, share)
        except OSError as error:
            raise _refusal(error, "edit %s" % os.path.join(folder, name)) from None
        lines += edited
        size += written
    return {"files": len(names), "lines": lines, "bytes": size, "names": names[:10]}


def look(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `files.look`: what a working copy below a marked scratch folder holds.

    Events `names` {names}: regular files, as paths from `folder` (but those that no line of UTF-8 can name).
    Returns `files`, `folders`, `bytes`, and `texts`: how many of the files `edit` would choose from.
    """
    folder = _inside(args, "folder", itself=True)
    files = size = texts = 0
    folders = set()
    names: List[str] = []
    for name in _names(folder):
        path = os.path.join(folder, name)
        files += 1
        size += os.lstat(path).st_size
        texts += _text(path)
        folders.add(os.path.dirname(name))
        if _plain(name):
            names.append(name)
        if len(names) == 1000:
            call.say("names", {"names": names})
            names = []
    call.say("names", {"names": names})
    return {"files": files, "folders": len(folders - {""}), "bytes": size, "texts": texts}


def _plain(name: str) -> bool:
    try:
        return name.isprintable() and name == name.strip() and bool(name.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def _text(path: str) -> bool:
    """True for what can be edited as lines: not empty, no zero byte near its begin, and not read-only.

    Version control makes files read-only that are to be reserved before they are edited.
    """
    if not os.lstat(path).st_mode & stat.S_IWUSR:
        return False
    with open(path, "rb") as file:
        begin = file.read(8192)
    return bool(begin) and b"\0" not in begin


def changed(text: bytes, name: str, seed: int, share: float) -> Tuple[bytes, int, int]:
    """A file's bytes with `share` of its lines (at least one) changed; how many lines, and their bytes."""
    lines = text.splitlines(keepends=True)
    order = sorted(range(len(lines)), key=lambda number: _draw(seed, name, str(number)))
    picked = order[: max(1, round(len(lines) * share))] if lines else []
    size = 0
    for number in picked:
        body = lines[number].rstrip(b"\r\n")
        end = lines[number][len(body) :]
        lines[number] = body + b" " + _draw(seed, name, str(number), "text")[:12].encode() + end
        size += len(lines[number])
    return b"".join(lines), len(picked), size


def _draw(seed: int, *words: str) -> str:
    # Not the random module: its methods may differ between versions of Python, and hosts must agree.
    return hashlib.sha256("\0".join((str(seed), *words)).encode("utf-8", "surrogateescape")).hexdigest()


def _chosen(folder: str, seed: int, count: int, pattern: str) -> List[str]:
    found = sorted(name for name in _names(folder) if fnmatch.fnmatchcase(name.rpartition("/")[2], pattern))
    try:
        found = [name for name in found if _text(os.path.join(folder, name))]
    except OSError as error:
        raise _refusal(error, "read the files in %s" % folder) from None
    if len(found) < max(count, 1):
        raise protocol.Refused(
            "bad-request",
            "%s has %d files of text named %s, and %d are to be edited"
            % (folder, len(found), pattern, max(count, 1)),
        )
    if count:
        found = sorted(sorted(found, key=lambda name: _draw(seed, name))[:count])
    return found


def _names(folder: str) -> Iterator[str]:
    """Regular files below `folder`, as paths from there with slashes."""
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in files:
            path = os.path.join(here, name)
            if name != MARK and stat.S_ISREG(os.lstat(path).st_mode):
                yield os.path.relpath(path, folder).replace(os.sep, "/")


def _edited(path: str, name: str, seed: int, share: float) -> Tuple[int, int]:
    # In place, so that the mode stays and no half-written second file is ever seen by a VCS.
    with open(path, "r+b") as file:
        text, lines, size = changed(file.read(), name, seed, share)
        file.seek(0)
        file.write(text)
        file.truncate()
    return lines, size


def me() -> str:
    """This user, as a word in the names of folders."""
    return (
        str(os.getuid()) if hasattr(os, "getuid") else re.sub(r"\W", "_", os.environ.get("USERNAME", "user"))
    )


def _tree_removed(folder: str) -> None:
    """Also where what ran in it took the right to write from folders."""
    try:
        shutil.rmtree(folder)
    except PermissionError:
        os.chmod(folder, 0o700)
        for here, folders, _ in os.walk(folder):
            for name in folders:
                below = os.path.join(here, name)
                if not os.path.islink(below):
                    os.chmod(below, 0o700)
        shutil.rmtree(folder)


def _drop_if_empty(folder: str) -> None:
    with contextlib.suppress(OSError):  # others are still in it
        os.rmdir(folder)


def _private(folder: str) -> None:
    """Make `folder` for this user alone, or see that it is so already."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise _refusal(error, "make %s" % folder) from None
    _check_private(folder)


def _check_private(folder: str) -> None:
    seen = os.lstat(folder)
    ours = not hasattr(os, "getuid") or (seen.st_uid == os.getuid() and not seen.st_mode & 0o022)
    if not (stat.S_ISDIR(seen.st_mode) and ours):
        raise protocol.Refused(
            "denied", "%s is not a folder of this user alone; remove it or set TMPDIR" % folder, "to make it"
        )


def _inside(args: Dict[str, Any], name: str, itself: bool = False) -> str:
    """A path argument, real up to its last part, that lies inside a marked scratch folder of this user."""
    asked: str = protocol.need(args, name, str)
    if not os.path.isabs(asked) or "\0" in asked or os.path.normpath(asked) != asked.rstrip("/" + os.sep):
        raise protocol.Refused(
            "bad-request", "%s must be an absolute path without '.' or '..', not %r" % (name, asked)
        )
    folder, last = os.path.split(asked.rstrip("/" + os.sep))
    path = os.path.join(os.path.realpath(folder), last)
    above = path if itself and not os.path.islink(path) else os.path.dirname(path)
    while True:
        if _marked(above):
            return path
        above, below = os.path.dirname(above), above
        if above == below:
            raise protocol.Refused(
                "denied",
                "%s is not inside a scratch folder that BranchLab made (one with the file %s in it)"
                % (asked, MARK),
                "to change it",
            )


def place() -> str:
    """The folder of this user's scratch folders."""
    return os.path.join(os.path.realpath(system.temporary()), "branchlab-%s" % me())


def there() -> List[str]:
    """The marked scratch folders of this user."""
    base = place()
    try:
        _check_private(base)
        found = [os.path.join(base, name) for name in sorted(os.listdir(base))]
    except (OSError, protocol.Refused):
        return []
    return [path for path in found if _marked(path)]


def of_this_host(folder: str) -> bool:
    """True if a marked folder was made on this host, or before the machine's last start.

    Several hosts of one machine may see one file system, each with leases of its own.
    """
    try:
        with open(os.path.join(folder, MARK), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and (found == _here() or found.get("boot_id") != _here()["boot_id"])


def _here() -> Dict[str, Any]:
    """This boot and this network."""
    return {"boot_id": lease.boot_id(), "net": private.net_namespace()}


def _marked(folder: str) -> bool:
    try:
        mark, owner = os.lstat(os.path.join(folder, MARK)), os.lstat(folder)
    except OSError:
        return False
    mine = not hasattr(os, "getuid") or mark.st_uid == owner.st_uid == os.getuid()
    return stat.S_ISREG(mark.st_mode) and stat.S_ISDIR(owner.st_mode) and mine


def _refusal(error: Exception, tried: str) -> protocol.Refused:
    missing, denied = isinstance(error, FileNotFoundError), isinstance(error, PermissionError)
    kind = "missing" if missing else "denied" if denied else "failed"
    return protocol.Refused(kind, str(error)[:2000], tried)
