"""Folders for services: made where nobody can exchange them, handed to the service's user, removed whole."""

import contextlib
import json
import os
import shutil
import stat
import time
from typing import Any, Dict, List, NamedTuple, Optional

from ssh_agents import cache_folder, files, made, system
from ssh_agents.protocol import Refused

MARK = ".branchlab-service"
"""Lies in every folder of a service; a folder without it is never removed."""
CACHE_MARK = ".branchlab-cache"
"""Lies in every cache that was made here; another folder's owner is never changed."""
USERS = ("www-data", "apache", "nobody")
"""Who a service started by root becomes, unless its data belong to somebody else."""


_LOOKED_INTO = ("/run/", "/var/", "/dev/shm/")  # noqa: S108 - nothing is made there by this


class User(NamedTuple):
    """Whom a service runs as."""

    name: str
    uid: int
    gid: int

    @property
    def group(self) -> str:
        """The group's name; its number where it has none."""
        import grp  # absent on Windows, where this module is loaded too

        try:
            return grp.getgrgid(self.gid).gr_name
        except KeyError:
            return str(self.gid)


def cleared(folder: str) -> None:
    """Remove what a service left in its folder, so that it can be made anew. Refuses any other folder that is there.

    Also an empty one: it is somebody's, and who removes it at the end, or changes its owner, takes it away.
    """
    if not os.path.lexists(folder):
        return
    if os.path.islink(folder) or not os.path.isdir(folder):
        raise Refused("bad-request", "%s is no folder" % folder)
    if known(folder) is None:
        raise Refused(
            "bad-request", "%s is there already and was not made for a service" % folder, _OTHER % folder
        )
    remove(folder)


def planned(folder: str, data: str, cache: bool) -> made.About:
    """What root or the user would make and change for a service in `folder` with its `data`, for the promise.

    {parents, opened, given, kept, cache}: see `made.About`; `kept` is the cache that stays when the service ends,
    empty; `cache` the same where it is made for this service.
    Refuses before anything is touched.
    """
    for path, what in (
        (folder, "a service's folder"),
        (data, "a cache" if cache else "a repository to serve"),
    ):
        # It may hold a service, and is no folder of the system; on Windows the way there was looked at already.
        if not path.startswith("/dev/shm/") and os.sep == "/":  # noqa: S108
            cache_folder.guard(path, what)
        if (path + "/").startswith(made.FOLDER + "/"):
            raise Refused("denied", "%s is where BranchLab writes down what it made" % path)
    if system.user() == 0:
        for path in [folder] + ([data] if cache else []):
            refuse_shared_way(path)
            refuse_unnamed(path)
    within = data.startswith(folder + "/")
    if cache and not within and os.path.lexists(data):
        _refuse_others_cache(data)
    new = cache and not within and not os.path.lexists(data)
    about: made.About = {"parents": _missing([folder] + ([data] if new else [])), "opened": [], "given": []}
    about["cache"] = data if new else ""
    about["kept"] = data if cache and not within else ""
    if system.user() == 0:
        user = _owner(data)
        about["opened"] = _barred([folder, data], user)
        if not cache and os.lstat(data).st_uid == 0:
            refuse_shared_way(data)
            seen = os.lstat(data)
            about["given"] = [data, seen.st_uid, seen.st_gid, user.uid]
    return about


def _refuse_others_cache(data: str) -> None:
    if os.path.islink(data) or not os.path.isdir(data):
        raise Refused("bad-request", "%s is a link or a file" % data)
    if not is_our_cache(data):
        text = "%s is there already, and is none of BranchLab's caches on this host"
        raise Refused("bad-request", text % data, _OTHER % data)


_OTHER = "name a folder that is not there yet, such as %s/branchlab"


def _missing(paths: List[str]) -> List[str]:
    """The folders above these that have to be made, from the top."""
    return sorted({place for path in paths for place in _above(path) if not os.path.lexists(place)})


def _barred(paths: List[str], user: "User") -> List[List[Any]]:
    """Which of our private folders have to be opened, or were opened for another service; as they were before."""
    before = {one[0]: one for other in made.every() for one in other.get("opened", [])}
    found: Dict[str, List[Any]] = {}
    for path in paths:
        for place in _above(path):
            if place in before:
                found[place] = before[place]
            elif os.path.lexists(place) and not _passes(os.stat(place), user):
                _refuse_bar(place, path, user)
                seen = os.lstat(place)
                found[place] = [place, seen.st_uid, seen.st_gid, stat.S_IMODE(seen.st_mode)]
    return list(found.values())


def make_folder(folder: str, about: Optional[made.About] = None) -> None:
    """Make a service's folder, empty; one that a service left is made anew. `about`: what was planned for it."""
    cleared(folder)
    about = {"parents": _missing([folder]), **(about or {}), "path": folder, "what": "service"}
    _made(folder, MARK, about, "the service's folder")


def make_cache(folder: str, about: Optional[made.About] = None) -> None:
    """Make the cache's folder, or take one that was made here; refuse any other."""
    if os.path.lexists(folder):
        if system.user() == 0:
            refuse_shared_way(folder)
        _refuse_others_cache(folder)
        about = made.record(folder) if system.user() == 0 else None
        if about is not None:
            made.noted({**about, **made.here()})
        return
    parents = _missing([folder]) if about is None else about["parents"]
    _made(folder, CACHE_MARK, {"path": folder, "what": "cache", "parents": parents}, "the cache's folder")


def _made(folder: str, mark: str, about: made.About, what: str) -> None:
    """A new folder with its mark; by root written down before."""
    root, about = system.user() == 0, {**about, **made.here()}
    try:
        if root:
            made.noted(about)
        made.make(folder, inner="run" if mark == MARK else "")
        made.write_at(folder, mark, json.dumps({"made by": "BranchLab", **about}) + "\n")
    except BaseException as error:
        if root and not os.path.lexists(folder):
            made.struck(folder)
        if isinstance(error, OSError):
            raise Refused("denied", "%s could not be made: %s" % (what, error), folder) from None
        raise


def known(folder: str) -> Optional[made.About]:
    """What was written down when a service's folder was made here; None for any folder that is not one."""
    return _known(folder, MARK)


def is_our_cache(folder: str) -> bool:
    """True for a cache that was made here."""
    return _known(folder, CACHE_MARK) is not None


def _known(folder: str, mark: str) -> Optional[made.About]:
    if not os.path.isabs(folder) or os.path.islink(folder):
        return None
    path = os.path.join(folder, mark)
    if not os.path.isfile(path) or os.path.islink(path):
        return None
    if system.user() == 0:
        about = made.record(folder)
        return (
            about if about and about.get("what") == ("cache" if mark == CACHE_MARK else "service") else None
        )
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        found = {}
    return found if isinstance(found, dict) else {}


def write(path: str, text: str, mode: int = 0o644) -> None:
    """Write a file under a new name, then rename it, so that nothing is ever written through a link."""
    made.write_at(os.path.dirname(path), os.path.basename(path), text, mode)


def remove(folder: str, promised: Optional[made.About] = None) -> None:
    """Remove a service's folder with all that is in it, and what was made and changed on the way there.

    `promised`: what a promise says of it, which only its writer could write. Anything else is left alone. Idempotent.
    """
    root = system.user() == 0
    about = promised or known(folder) or (made.record(folder) if root else None)
    if about is None or not os.path.isabs(folder):
        return
    marked = os.path.isfile(os.path.join(folder, MARK)) and not os.path.islink(folder)
    if marked:
        refuse_unless_ours(folder)
        _swept(folder)
    if root and not (marked and os.path.lexists(folder)):
        made.struck(folder)
    made.given_back({**about, "path": folder})


def _swept(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    tries = 0 if system.POSIX else 50
    while tries and os.path.lexists(folder):  # there, a process that has just ended may still hold its files
        time.sleep(0.1)
        shutil.rmtree(folder, ignore_errors=True)
        tries -= 1


def remove_cache(folder: str) -> bool:
    """Remove a cache that was made here, with all that is in it. False, and left alone, if it is none of ours."""
    about = _known(folder, CACHE_MARK)
    if about is None:
        return False
    if system.user() == 0:
        refuse_shared_way(folder)
    shutil.rmtree(folder)
    if system.user() == 0:
        made.struck(folder)
    made.given_back({**about, "path": folder})
    return True


def forgotten(folder: str) -> None:
    """Root: what was written down of a folder that somebody has removed by hand, and what was made for it, goes."""
    about = made.record(folder) if system.user() == 0 and not os.path.lexists(folder) else None
    if about is not None:
        made.struck(folder)
        made.given_back(about)


def full() -> List[str]:
    """Root: the caches of our own proxies on this host in which something is."""
    mine = [one["path"] for one in made.of_this_host() if one.get("what") == "cache"]
    return [path for path in mine if is_our_cache(path) and os.listdir(path) != [CACHE_MARK]]


def emptied(folder: str) -> int:
    """Take out of a cache that was made here all that is in it; how many files. Nothing of any other folder."""
    if not is_our_cache(folder):
        return 0
    if system.user() == 0:
        refuse_shared_way(folder)
    count = 0
    for entry in list(os.scandir(folder)):
        if entry.name == CACHE_MARK:
            continue
        if entry.is_dir(follow_symlinks=False):
            count += sum(len(files) for _, _, files in os.walk(entry.path))
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)
                count += 1
    return count


def refuse_unless_ours(folder: str) -> None:
    """As root, refuse a service's folder that is not root's own, or that somebody else could exchange."""
    if system.user() != 0 or not os.path.lexists(folder):
        return
    refuse_shared_way(folder)
    seen = os.lstat(folder)
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != 0 or seen.st_mode & 0o022:
        raise Refused("denied", "%s is no folder that root made for a service" % folder, "look into it")


def invoker() -> Optional[int]:
    """Whose rights were raised to root's, by sudo or doas; None where nobody's were."""
    import pwd  # absent on Windows, where this module is loaded too

    if system.user() != 0:
        return None
    number, name = os.environ.get("SUDO_UID", ""), os.environ.get("DOAS_USER", "")
    if number.isdigit():
        return int(number) or None
    try:
        return (pwd.getpwnam(name).pw_uid or None) if name else None
    except KeyError:
        return None


def refuse_others_data(data: str) -> None:
    """Refuse to serve what belongs to somebody else than the user whose rights were raised for it."""
    who = invoker()
    owner = os.lstat(data).st_uid
    if who is not None and owner != who:
        raise Refused(
            "denied",
            "%s belongs to user %d, and user %d asked to have it served without a password"
            % (data, owner, who),
        )


def refuse_shared_way(path: str) -> None:
    """Refuse, as root, a path that somebody else could exchange on the way."""
    for place in _above(path):
        try:
            seen = os.lstat(place)
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(seen.st_mode):
            raise Refused("bad-request", "%s on the way to %s is a link or a file" % (place, path))
        if seen.st_uid != 0 or (seen.st_mode & 0o022 and not seen.st_mode & stat.S_ISVTX):
            raise Refused(
                "denied",
                "%s can be changed by others than root, so root will not keep a service below it" % place,
                "a folder below /run or /var/lib serves",
            )


def refuse_unnamed(path: str) -> None:
    """Refuse, as root, a new folder where its mere being there may mean something, unless it bears our name."""
    top = next((place for place in [*_above(path), path] if not os.path.lexists(place)), "")
    if top.startswith(_LOOKED_INTO) and "branchlab" not in top:
        text = "%s would be made: below %s root makes only what has branchlab in its name, since systems look for"
        text += " files there by theirs, as for /run/nologin"
        above = next(one for one in _LOOKED_INTO if top.startswith(one))
        raise Refused("denied", text % (top, above[:-1]), "%s/branchlab-lab would do" % os.path.dirname(top))


def hand_over(folder: str, data: str) -> Optional[User]:
    """As root: find whom the service runs as and give it `data`, with a way there. None for anybody else."""
    if system.user() != 0:
        return None
    user = _owner(data)
    if os.lstat(data).st_uid == 0:
        refuse_shared_way(data)
        made.handed(data, (0,), user.uid, user.gid)
    for path in (folder, data):
        _let_pass(path, user)
    return user


def _above(path: str) -> List[str]:
    """The folders above `path`, from the top."""
    out = []
    while os.path.dirname(path) != path:  # a root, or on Windows a drive's
        path = os.path.dirname(path)
        out.append(path)
    return out[::-1]


def _owner(data: str) -> User:
    """The owner of the data, since then nothing need change hands; where that is root, the usual user."""
    import pwd  # absent on Windows, where this module is loaded too

    uid = os.lstat(data).st_uid if os.path.lexists(data) else 0
    try:
        found = pwd.getpwuid(uid) if uid else None
    except KeyError:
        raise Refused("denied", "%s belongs to user %d, whom this host does not know" % (data, uid)) from None
    for name in () if found else USERS:
        try:
            found = found or pwd.getpwnam(name)
        except KeyError:
            continue
    if found is None:
        raise Refused("missing", "no user to run the service as", "looked for %s" % ", ".join(USERS))
    return User(found.pw_name, found.pw_uid, found.pw_gid)


def _let_pass(path: str, user: User) -> None:
    """Let the service's user pass BranchLab's private folders; refuse where another one bars the way."""
    for place in [*_above(path), path]:
        if _passes(os.stat(place), user):
            continue
        if place != path:
            _refuse_bar(place, path, user)
        try:
            number = made.opened(place)
        except OSError as error:
            raise Refused(
                "denied", "%s: %s" % (place, error.strerror), "to let %s pass" % user.name
            ) from None
        try:
            mode = stat.S_IMODE(os.fstat(number).st_mode)
            os.fchown(number, -1, user.gid)
            os.fchmod(number, mode | 0o010)  # to pass, not to look
        finally:
            os.close(number)


def _passes(seen: os.stat_result, user: User) -> bool:
    return bool(
        seen.st_mode & 0o001 or seen.st_uid == user.uid or (seen.st_gid == user.gid and seen.st_mode & 0o010)
    )


def _refuse_bar(place: str, path: str, user: User) -> None:
    """Only a folder that is called after BranchLab is opened, or a scratch folder of it in one of its own: another
    one's mode is its owner's word."""
    above, name = os.path.split(place)
    scratch = os.path.basename(above) == "branchlab-%s" % files.me() and os.path.isfile(
        os.path.join(place, files.MARK)
    )
    if os.lstat(place).st_uid != 0 or not ("branchlab" in name or scratch):
        raise Refused(
            "denied",
            "%s bars %s, whom the service runs as, from %s" % (place, user.name, path),
            "chmod o+x %s, or another folder, helps" % place,
        )
