"""Puts all agents into one Python source text, and says how a host is told to run it."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from lab.errors import LabError

PACKAGE = "ssh_agents"

_HEAD = '''"""The agent of BranchLab: every module of ssh_agents in one text. Made by lab.agents.bundle()."""
import sys
from importlib.machinery import ModuleSpec


class _Bundled:
    """Finds and loads the package's modules from the sources below; nothing is read from disk."""

    def find_spec(self, name, path=None, target=None):
        if name in _SOURCES:
            return ModuleSpec(name, self, origin="branchlab:%s" % name, is_package=name == "ssh_agents")

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__spec__.name
        exec(compile(_SOURCES[name], "branchlab:%s" % name, "exec"), module.__dict__)

    def get_source(self, name):
        return _SOURCES[name]  # so that a traceback shows lines


_SOURCES = {
'''
_FOOT = r"""}


def _leave_the_terminal():
    '''A terminal that sudo or doas insisted on has no end of input, and mixes both outputs.

    So what comes in goes through a pipe, which ends at the sign for it (no message holds one), and only
    answers go out. When the terminal goes, its end is the end of input too, and no signal.
    '''
    import os, signal, termios, threading, tty

    tty.setraw(0, termios.TCSANOW)  # what has come in already stays
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    terminal, (reader, writer) = os.dup(0), os.pipe()
    os.dup2(reader, 0)
    os.close(reader)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)

    def pump():
        try:
            end = b""
            while not end:
                data, end, _ = os.read(terminal, 65536).partition(b"\4")
                if not data:
                    break
                while data:
                    data = data[os.write(writer, data) :]
        except OSError:
            pass
        os.close(writer)

    threading.Thread(target=pump, daemon=True).start()


def _begin():
    import os

    if os.isatty(0):
        _leave_the_terminal()
    if globals().get("__file__", "").startswith("/usr/local/lib/branchlab/"):  # ssh_agents.installed.FOLDER
        import hashlib

        # sudo may ask for a password or not: only now is it known who reads what comes next.
        os.write(1, b"branchlab %s\n" % hashlib.sha256(BUNDLE_TEXT.encode()).hexdigest().encode())


if "BUNDLE_TEXT" not in globals():  # a loader that read the text itself has set it
    with open(__file__, "rb") as _file:
        BUNDLE_TEXT = _file.read().decode("utf-8")
_begin()
sys.meta_path.insert(0, _Bundled())
from ssh_agents.__main__ import main

sys.exit(main())
"""

# What `python3 -c` is given. It takes: digest, length, mark, "cached" or "memory", then the agent's own
# words. "cached" keeps the text in the user's cache folder, and runs what it read and checked, not the file.
# "memory" is for root: nothing that the user can write is ever read. Both say when they read what comes next.
_LOADER = r"""
import hashlib, os, sys
digest, length, mark, way = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
del sys.argv[1:5]
if sys.version_info < (3, 8):
    sys.exit("branchlab: python3 is %s here, and the agent needs 3.8 or newer" % sys.version.split()[0])

try:
    import msvcrt
except ImportError:
    pass
else:
    for number in (0, 1):
        msvcrt.setmode(number, os.O_BINARY)

if os.isatty(0):
    import termios, tty
    tty.setraw(0, termios.TCSANOW)

def asked_for():
    os.write(1, ("%s need\n" % mark).encode())
    return taken()

def taken():
    text = bytearray()
    while len(text) < length:
        piece = os.read(0, length - len(text))
        if not piece:
            sys.exit("branchlab: the agent did not arrive whole: %d of %d bytes" % (len(text), length))
        text += piece
    if hashlib.sha256(text).hexdigest() != digest:
        sys.exit("branchlab: the agent arrived changed")
    return bytes(text)

def kept(text, folder, path):
    name = "%s.%d" % (path, os.getpid())
    try:
        above = os.path.isdir(os.path.dirname(folder))
        os.makedirs(folder, 0o700, exist_ok=True)
        if not above:
            open(os.path.join(folder, "made-cache"), "w").close()
        with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError as error:
        sys.stderr.write("branchlab: the agent runs, but was not kept: %s\n" % error)
        try:
            os.remove(name)
        except OSError:
            pass

def cached():
    folder = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(folder, "branchlab")
    path = os.path.join(folder, "agent-%s.py" % digest)
    try:
        with open(path, "rb") as file:
            text = file.read(length + 1)
    except OSError:
        text = b""
    right = hashlib.sha256(text).hexdigest() == digest
    os.write(1, ("%s %s\n" % (mark, "have" if right else "need")).encode())
    if not right:
        text = taken()
        kept(text, folder, path)
    return text

BUNDLE_TEXT = (cached() if way == "cached" else asked_for()).decode("utf-8")
exec(compile(BUNDLE_TEXT, "branchlab-agent", "exec"))
"""


# Base64 has no character that any login shell treats as its own, and a newline is an error to csh.
_CODE = f"import binascii;exec(binascii.a2b_base64('{base64.b64encode(_LOADER.encode()).decode()}'))"

PYTHONS = ("python3", "python", "py -3")
"""How Python 3 is called, in the order of trying: Windows has the others."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The agent as one Python source text, and its SHA-256 as hexadecimal digits."""

    source: bytes
    digest: str


def bundle(package: Traversable | None = None) -> Bundle:
    """The agent's one source text: the same bytes for the same sources, wherever and whenever it is made.

    Runs as `python3 -I -S FILE [privileged|watch FILE|undo]`, and as a text that a loader executes. Raises
    LabError where the sources are not at hand, as in a frozen application that was built without them.
    """
    folder = resources.files(PACKAGE) if package is None else package
    found = sorted(
        (item for item in folder.iterdir() if item.name.endswith(".py")), key=lambda item: item.name
    )
    texts = {item.name.removesuffix(".py"): item.read_text(encoding="utf-8") for item in found}
    if "__init__" not in texts or "__main__" not in texts:
        raise LabError(
            f"this build of BranchLab lacks the sources of its agents ({PACKAGE}/*.py)",
            tried=str(folder),
            advice="Build it again with these files as data, or run BranchLab from a checkout.",
        )
    parts = [_HEAD]
    for name, text in texts.items():
        full = PACKAGE if name == "__init__" else f"{PACKAGE}.{name}"
        parts.append(f"    {full!r}: {text!a},\n")
    source = "".join([*parts, _FOOT]).encode("ascii")
    return Bundle(source, hashlib.sha256(source).hexdigest())


def launcher(made: Bundle, mark: str, privileged: bool, *, kept: bool = True) -> list[str]:
    """The argument list that starts the bundle on a host, without sudo. `kept`: in the user's cache folder.

    It says `MARK need` when it reads the source, `MARK have` when it needs none.
    """
    way = ["memory", "privileged"] if privileged else ["cached" if kept else "memory"]
    return ["python3", "-I", "-S", "-c", _CODE, made.digest, str(len(made.source)), mark, *way]


def one_line(
    made: Bundle, mark: str, privileged: bool, *, kept: bool = True, python: str = PYTHONS[0]
) -> str:
    """The same as a line that every login shell reads alike: sh, csh, fish, cmd.exe, PowerShell.

    Only double quotes are quotes to all of them, and between these nothing stands that any of them expands.
    """
    _, *words = launcher(made, mark, privileged, kept=kept)
    return " ".join([python, *(f'"{word}"' if word == _CODE else word for word in words)])
