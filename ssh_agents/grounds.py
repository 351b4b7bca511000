"""Folders for services: made where nobody can exchange them, handed to the service's user, removed whole."""

import os
import secrets
import shutil
import stat
from typing import List, NamedTuple, Optional

from ssh_agents.protocol import Refused

MARK = ".branchlab-service"
"""Lies in every folder of a service; a folder without it is never removed."""
CACHE_MARK = ".branchlab-cache"
"""Lies in every cache that was made here; another folder's owner is never changed."""
USERS = ("www-data", "apache", "nobody")
"""Who a service started by root becomes, unless its data belong to somebody else."""


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


def make_folder(folder: str) -> None:
    """Make a service's folder, empty; one that a service left is made anew."""
    if os.geteuid() == 0:
        refuse_shared_way(folder)
    if os.path.lexists(folder):
        if os.path.islink(folder) or not os.path.isdir(folder):
            raise Refused("bad-request", "%s is no folder" % folder)
        if os.listdir(folder) and not os.path.exists(os.path.join(folder, MARK)):
            raise Refused("bad-request", "%s is not empty and was not made for a service" % folder)
        remove(folder)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)
        if os.geteuid() == 0:
            # Again, and the folder itself too: it, or one on the way to it, may have come since the first look.
            refuse_shared_way(os.path.join(folder, MARK))
        write(os.path.join(folder, MARK), "made by BranchLab; goes when the service is stopped\n")
        os.mkdir(os.path.join(folder, "run"))
    except OSError as error:
        raise Refused("denied", "the service's folder could not be made: %s" % error, folder) from None


def make_cache(folder: str) -> None:
    """Make the cache's folder, or take one that was made here; refuse any other that is not empty."""
    if os.geteuid() == 0:
        refuse_shared_way(folder)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.listdir(folder) and not os.path.exists(os.path.join(folder, CACHE_MARK)):
            raise Refused("bad-request", "%s is not empty and none of BranchLab's caches" % folder)
        write(os.path.join(folder, CACHE_MARK), "a cache made by BranchLab\n")
    except OSError as error:
        raise Refused("denied", "the cache's folder could not be made: %s" % error, folder) from None


def write(path: str, text: str, mode: int = 0o644) -> None:
    """Write a file under a new name, then rename it, so that nothing is ever written through a link."""
    new = "%s.%s" % (path, secrets.token_hex(4))
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(new, path)


def remove(folder: str) -> None:
    """Remove a service's folder with all that is in it. Anything else is left alone. Idempotent."""
    if os.path.isabs(folder) and not os.path.islink(folder) and os.path.exists(os.path.join(folder, MARK)):
        refuse_unless_ours(folder)
        shutil.rmtree(folder, ignore_errors=True)


def remove_cache(folder: str) -> bool:
    """Remove a cache that was made here, with all that is in it. False, and left alone, if it is none of ours."""
    if os.path.islink(folder) or not os.path.isfile(os.path.join(folder, CACHE_MARK)):
        return False
    if os.geteuid() == 0:
        refuse_shared_way(folder)
    shutil.rmtree(folder)
    return True


def refuse_unless_ours(folder: str) -> None:
    """As root, refuse a service's folder that is not root's own, or that somebody else could exchange."""
    if os.geteuid() != 0 or not os.path.lexists(folder):
        return
    refuse_shared_way(folder)
    seen = os.lstat(folder)
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != 0 or seen.st_mode & 0o022:
        raise Refused("denied", "%s is no folder that root made for a service" % folder, "look into it")


def invoker() -> Optional[int]:
    """Whose rights were raised to root's, by sudo or doas; None where nobody's were."""
    import pwd  # absent on Windows, where this module is loaded too

    if os.geteuid() != 0:
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


def hand_over(folder: str, data: str) -> Optional[User]:
    """As root: find whom the service runs as and give it `data`, with a way there. None for anybody else."""
    if os.geteuid() != 0:
        return None
    user = _owner(data)
    if os.lstat(data).st_uid == 0:
        _give(data, user)
    for path in (folder, data):
        _let_pass(path, user)
    return user


def _above(path: str) -> List[str]:
    """The folders above `path`, from the top."""
    out = []
    while path != "/":
        path = os.path.dirname(path)
        out.append(path)
    return out[::-1]


def _owner(data: str) -> User:
    """The owner of the data, since then nothing need change hands; where that is root, the usual user."""
    import pwd  # absent on Windows, where this module is loaded too

    uid = os.lstat(data).st_uid
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


def _give(data: str, user: User) -> None:
    """Give a tree of root's to the service's user. Links are not followed."""
    refuse_shared_way(data)
    os.chown(data, user.uid, user.gid, follow_symlinks=False)
    for place, folders, files in os.walk(data):
        for name in folders + files:
            os.chown(os.path.join(place, name), user.uid, user.gid, follow_symlinks=False)


def _let_pass(path: str, user: User) -> None:
    """Let the service's user pass BranchLab's private folders; refuse where another one bars the way."""
    for place in [*_above(path), path]:
        seen = os.stat(place)
        if (
            seen.st_mode & 0o001
            or seen.st_uid == user.uid
            or (seen.st_gid == user.gid and seen.st_mode & 0o010)
        ):
            continue
        if seen.st_uid != 0 or not _ours(place):
            raise Refused(
                "denied",
                "%s bars %s, whom the service runs as, from %s" % (place, user.name, path),
                "chmod o+x %s, or another folder, helps" % place,
            )
        # Also not through a link, which would open what it points at.
        refuse_shared_way(place)
        if not stat.S_ISDIR(os.lstat(place).st_mode):
            raise Refused("denied", "%s on the way to %s is a link" % (place, path))
        os.chown(place, -1, user.gid)
        os.chmod(place, stat.S_IMODE(seen.st_mode) | 0o010)  # noqa: S103 - to pass, not to look


def _ours(folder: str) -> bool:
    return "branchlab" in os.path.basename(folder) or any(
        name.startswith(".branchlab") for name in os.listdir(folder)
    )
