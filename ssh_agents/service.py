"""Services of the lab: Subversion server and caching proxy, each an Apache of its own in a private folder.

The system's Apache is not touched: no file of /etc is read, and modules are the only thing shared with it.
What a service is told comes from a fixed table of kinds and checked options; nothing of it is free text.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ssh_agents import apache, grounds, protocol
from ssh_agents.protocol import Refused

START_S = 20.0
"""A service that does not answer on its port after this long has failed. Usually it takes 0.1 s."""
STOP_S = 1.5
"""After so long TERM is followed by KILL."""


def start(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Start {kind, folder, port, options}; the last word comes when it answers on its port.

    svn-server: repository (absolute, made before), path (of its URL, default /svn), listen (addresses; none
    means all), deflate_level (0 to 9, default 6), memory_cache_kb. caching-proxy: cache (folder, default
    FOLDER/cache), allow (addresses that may use it, at least one), listen, origin_ports (whose answers are
    stored, default [80]), largest_file_bytes. Returns {pid, port, path, log, user, data}.
    """
    asked = apache.spec(args)
    if not sys.platform.startswith("linux"):
        raise Refused("unsupported", "services can be started on Linux only", "this is %s" % sys.platform)
    program, modules = apache.program(), apache.modules(asked.kind)
    _refuse_taken(asked)
    config = os.path.join(asked.folder, "httpd-%s.conf" % secrets.token_hex(8))
    promise = call.promise(
        {"kind": "service", "service": asked.kind, "folder": asked.folder, "config": config}
    )
    try:
        user = _prepared(asked)
        _write_config(asked, config, modules, user)
        pid = _launched(program, config, asked)
        state = {"kind": asked.kind, "pid": pid, "begun": _begun(pid), "config": config, "promise": promise}
        grounds.write(os.path.join(asked.folder, "service.json"), json.dumps(state))
    except BaseException:
        _stop_all(asked.folder)
        grounds.remove(asked.folder)
        call.keep(promise)
        raise
    return {
        "pid": pid,
        "port": asked.port,
        "path": asked.options.get("path", ""),
        "log": os.path.join(asked.folder, apache.LOG),
        "user": user.name if user else None,
        "data": asked.data,
    }


def stop(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Stop {kind, folder} for sure and remove its folder. Succeeds where nothing runs. Returns {stopped}."""
    kind, folder = apache.kind(args), apache.absolute(args, "folder")
    grounds.refuse_unless_ours(folder)
    state = _state(folder)
    if state.get("kind", kind) != kind:
        raise Refused("bad-request", "in %s runs a %s, not a %s" % (folder, state["kind"], kind))
    stopped = _stop_all(folder)
    grounds.remove(folder)
    if isinstance(state.get("promise"), str):
        call.keep(state["promise"])
    return {"stopped": stopped}


def undo(entry: Dict[str, Any]) -> str:
    """Take back a start: every process of the service ended, its folder gone. Idempotent."""
    folder = str(entry.get("folder", ""))
    stopped = _stop_all(folder)
    grounds.remove(folder)
    return "stopped the %s in %s (%d processes)" % (entry.get("service"), folder, stopped)


def log(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """What the access log of {kind, folder} tells from byte `since` on.

    {offset (the next `since`), requests, hits, misses, hit_bytes, miss_bytes, other_bytes, failed,
    sent_bytes, by_method, connections, lines}. Bytes are content as sent (after compression, without headers): of GETs
    answered from the cache, of other GETs, of everything else; `sent_bytes` is everything with headers. On a
    svn-server every GET is a miss.
    """
    apache.kind(args)
    folder = apache.absolute(args, "folder")
    grounds.refuse_unless_ours(folder)
    path = os.path.join(folder, apache.LOG)
    since = protocol.need(args, "since", int, 0)
    try:
        # Its last lines go to whoever asks, so it must be the log, and nothing that a link of that name shows.
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not 0 <= since <= size:
                raise Refused("touched", "%s has %d bytes, so byte %d is not in it" % (path, size, since))
            file.seek(since)
            data = file.read()
    except OSError as error:
        raise Refused("missing", "no access log: %s" % error, path) from None
    whole = data[: data.rfind(b"\n") + 1]
    return {"offset": since + len(whole), **apache.summary(whole.decode("utf-8", "replace"))}


def _prepared(asked: apache.Spec) -> Optional[grounds.User]:
    grounds.make_folder(asked.folder)
    if asked.kind == "caching-proxy":
        grounds.make_cache(asked.data)
    elif not all(os.path.exists(os.path.join(asked.data, name)) for name in ("format", "db", "hooks")):
        raise Refused("missing", "%s is no Subversion repository" % asked.data, "svnadmin create makes one")
    else:
        grounds.refuse_others_data(asked.data)
    return grounds.hand_over(asked.folder, asked.data)


def _write_config(
    asked: apache.Spec, config: str, modules: Dict[str, str], user: Optional[grounds.User]
) -> None:
    files = apache.files(asked, modules, "%s:%d" % (user.name, user.gid) if user else None)
    # Readable for Apache's user; the folder is private, and the password was made for this start.
    grounds.write(os.path.join(asked.folder, "users"), files.users)
    grounds.write(config, files.config, 0o600)


def _refuse_taken(asked: apache.Spec) -> None:
    if next(_processes(asked.folder), None) is not None:
        text = "a service of another run works in %s already: let that run end, or take it back (branchlab revert)"
        raise Refused("busy", text % asked.folder)
    for address in asked.listen or ["0.0.0.0"]:  # noqa: S104 - only to see whether the port is free
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, asked.port))
            except OSError as error:
                raise Refused(
                    "busy", "port %d cannot be had: %s" % (asked.port, error.strerror), "bind to " + address
                ) from None


# Processes


def _launched(program: str, config: str, asked: apache.Spec) -> int:
    """Start Apache in a session of its own and wait until it answers. Its pid."""
    errors = os.path.join(asked.folder, "error.log")
    with open(errors, "ab") as out:
        process = subprocess.Popen(
            [program, "-f", config, "-DFOREGROUND"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
            start_new_session=True,
        )
    # Somebody must wait for it, else it stays a zombie when it ends.
    threading.Thread(target=process.wait, daemon=True).start()
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        status = _answer(asked)
        if process.returncode is not None:
            text = "the %s ended at once: %s" % (asked.kind, _tail(errors))
            raise Refused("failed", text, "exit %d" % process.returncode)
        if status and asked.kind == "svn-server" and status != 200:
            text = "the repository cannot be served: %s" % _tail(errors)
            raise Refused("failed", text, "OPTIONS %s: status %d" % (asked.options["path"], status))
        if status:
            return process.pid
        time.sleep(0.01)
    raise Refused(
        "time-out", "the %s does not answer on port %d: %s" % (asked.kind, asked.port, _tail(errors))
    )


def _answer(asked: apache.Spec) -> int:
    """The status of the service's answer to a harmless request; 0 while it does not answer."""
    address = asked.listen[0] if asked.listen else "127.0.0.1"
    request = "OPTIONS %s/ HTTP/1.0\r\nUser-Agent: %s\r\n\r\n"
    try:
        with socket.create_connection((address, asked.port), 5) as connection:
            connection.sendall((request % (asked.options.get("path", ""), apache.PROBE_AGENT)).encode())
            words = connection.makefile("rb").readline().split()
    except OSError:
        return 0
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def _tail(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 2000))
            return file.read().decode("utf-8", "replace").strip() or "it said nothing"
    except OSError as error:
        return str(error)


def _state(folder: str) -> Dict[str, Any]:
    """What `start` wrote about a service; empty if there is none."""
    try:
        with open(os.path.join(folder, "service.json"), encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _processes(folder: str) -> Iterator[Tuple[int, str]]:
    """Pid and begin of every living Apache whose configuration lies in `folder`.

    Known by its argument, which holds a random token, so a process that only inherited an old number is
    never taken for one; children carry their parent's arguments.
    """
    begin = os.path.join(folder, "httpd-").encode()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        try:
            with open("/proc/%d/cmdline" % int(name), "rb") as file:
                argv = file.read().split(b"\0")
        except (OSError, ValueError):
            continue
        ours = len(argv) > 2 and argv[1] == b"-f" and argv[2].startswith(begin)
        if ours and os.path.basename(os.fsdecode(argv[0])) in apache.PROGRAMS:
            begun = _begun(int(name))
            if begun:
                yield int(name), begun


def _begun(pid: int) -> str:
    """When a process began, in the kernel's ticks; empty for one that is gone or only waits to be reaped."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def _stop_all(folder: str) -> int:
    """End every process of the service: TERM, then KILL. How many there were."""
    if not os.path.isabs(folder) or folder == "/":
        return 0
    found = list(_processes(folder))
    # TERM to each, not to the first alone: its children might be orphans already.
    _signal(found, signal.SIGTERM)
    end = time.monotonic() + STOP_S
    while next(_processes(folder), None) is not None:
        if time.monotonic() > end:
            _signal(list(_processes(folder)), signal.SIGKILL)
            end += STOP_S
        time.sleep(0.01)
    return len(found)


def _signal(processes: List[Tuple[int, str]], number: int) -> None:
    for pid, begun in processes:
        if _begun(pid) == begun:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
