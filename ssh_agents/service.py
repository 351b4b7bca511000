"""Services of the lab: Subversion server and caching proxy, each a program of its own in a private folder.

The system's Apache, Squid or nginx is not touched: no file of /etc is read, and programs and modules are the only
thing shared with it.
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

from ssh_agents import (
    access_log,
    apache,
    given,
    grounds,
    made,
    nginx,
    protocol,
    quiet,
    service_asked,
    service_windows,
    squid,
    system,
)
from ssh_agents.protocol import Refused
from ssh_agents.service_asked import LOG, PROBE_AGENT, Spec

START_S = 20.0
"""A service that does not answer on its port after this long has failed. Usually it takes 0.1 s."""
STOP_S = 1.5
"""After so long TERM is followed by KILL."""
ENGINES = {"apache": apache, "nginx": nginx, "squid": squid}
"""The programs: each module has program, write, commands, requests; how it is known among processes is below."""
BY_FOLDER = ("nginx", "squid", "unlinkd")
"""Programs that write over their arguments, or have helpers; they are known by the folder in which they work."""


def start(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Start {kind, folder, port, options}; the last word comes when it answers on its port.

    Both: allow (addresses that may use it, at least one; svn-server: and this host itself), listen (addresses;
    none means all). svn-server: repository (absolute, made before), path (of its URL, default /svn), deflate_level
    (0 to 9, default 6), memory_cache_kb. caching-proxy: engine (apache, squid or nginx; default apache), cache
    (folder, default FOLDER/cache), origins (addresses and names, at least one) with origin_ports (default [80]):
    it goes nowhere else; largest_file_bytes (not nginx). Returns {pid, port, path, log, user, data}.
    """
    asked = service_asked.spec(args)
    if not system.POSIX:
        service_windows.refuse(asked)
    elif not sys.platform.startswith("linux"):
        text = "services can be started on Linux, and Apache as a proxy on Windows"
        raise Refused("unsupported", text, "this is %s" % sys.platform)
    engine = ENGINES[asked.engine]
    program = engine.program(asked)
    _refuse_taken(asked)
    config = os.path.join(asked.folder, "%s-%s.conf" % (asked.engine, secrets.token_hex(8)))
    grounds.cleared(asked.folder)
    about = _planned(asked)
    promise = call.promise(
        {"kind": "service", "service": asked.kind, "folder": asked.folder, "config": config, "about": about}
    )
    try:
        user = _prepared(asked, about)
        engine.write(asked, config, user)
        pid = _launched(engine.commands(program, config), asked)
        state = {
            "kind": asked.kind,
            "engine": asked.engine,
            "pid": pid,
            "begun": _begun(pid),
            "config": config,
        }
        grounds.write(os.path.join(asked.folder, "service.json"), json.dumps(dict(state, promise=promise)))
    except BaseException:
        _stop_all(asked.folder)
        squid.swept(config)
        if about["cache"]:
            grounds.remove_cache(about["cache"])
        grounds.remove(asked.folder, about)
        call.keep(promise)
        raise
    return {
        "pid": pid,
        "port": asked.port,
        "path": asked.options.get("path", ""),
        "log": os.path.join(asked.folder, LOG),
        "user": user.name if user else None,
        "data": asked.data,
    }


def stop(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Stop {kind, folder} for sure, remove its folder and empty the cache that it kept. Returns {stopped}.

    Succeeds where nothing runs. Root does so only for what it wrote down that it made.
    """
    kind, folder = service_asked.kind(args), service_asked.absolute(args, "folder")
    grounds.refuse_unless_ours(folder)
    if system.user() == 0 and made.record(folder) is None:
        return {"stopped": 0}
    state = _state(folder)
    if state.get("kind", kind) != kind:
        raise Refused("bad-request", "in %s runs a %s, not a %s" % (folder, state["kind"], kind))
    kept = str((grounds.known(folder) or {}).get("kept", ""))
    stopped = _stop_all(folder)
    squid.swept(str(state.get("config", "")))
    grounds.remove(folder)
    if kept:
        grounds.emptied(kept)
    if isinstance(state.get("promise"), str):
        call.keep(state["promise"])
    return {"stopped": stopped}


def undo(entry: Dict[str, Any]) -> str:
    """Take back a start: every process of the service ended, its folder gone, its cache empty. Idempotent."""
    folder, about = str(entry.get("folder", "")), entry.get("about") or {}
    was = os.path.lexists(folder)
    config = str(entry.get("config") or _state(folder).get("config", ""))
    stopped = _stop_all(folder)
    squid.swept(config)
    grounds.remove(folder, about)
    cache = str(about.get("kept", ""))
    files = grounds.emptied(cache) if cache else 0
    if not (was or stopped or files):
        return ""
    ended = "stopped the %s in %s (%d processes)" % (entry.get("service"), folder, stopped)
    return "%s%s" % (
        ended if stopped or files else "removed the folder of a service, %s" % folder,
        "; what it had brought into the cache %s is taken out (%d files)" % (cache, files) if files else "",
    )


def log(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """What the access log of {kind, folder} tells from byte `since` on.

    {offset (the next `since`), requests, hits, misses, hit_bytes, miss_bytes, other_bytes, failed,
    sent_bytes, by_method, connections, lines}. Bytes are content as sent (after compression, without headers): of GETs
    answered from the cache, of other GETs, of everything else; `sent_bytes` is everything with headers. On a
    svn-server every GET is a miss.
    """
    kind, folder = service_asked.kind(args), service_asked.absolute(args, "folder")
    grounds.refuse_unless_ours(folder)
    path, state = os.path.join(folder, LOG), _state(folder)
    if grounds.known(folder) is None or state.get("kind") != kind:
        raise Refused("missing", "no %s of BranchLab's works in %s" % (kind, folder), path)
    since = protocol.need(args, "since", int, 0)
    try:
        # Its last lines go to whoever asks, so it must be the log, and nothing that a link of that name shows.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not 0 <= since <= size:
                raise Refused("touched", "%s has %d bytes, so byte %d is not in it" % (path, size, since))
            file.seek(since)
            data = file.read()
    except OSError as error:
        raise Refused("missing", "no access log: %s" % error, path) from None
    whole = data[: data.rfind(b"\n") + 1]
    text = whole.decode("utf-8", "replace")
    engine = ENGINES.get(state.get("engine", ""), apache)
    return {"offset": since + len(whole), **access_log.summary(text, engine.requests(text))}


def _planned(asked: Spec) -> made.About:
    """What will be made and changed. Refuses before anything is."""
    cache = asked.kind == "caching-proxy"
    if not cache:
        if not all(os.path.exists(os.path.join(asked.data, name)) for name in ("format", "db", "hooks")):
            raise Refused(
                "missing", "%s is no Subversion repository" % asked.data, "svnadmin create makes one"
            )
        grounds.refuse_others_data(asked.data)
    about = grounds.planned(asked.folder, asked.data, cache)
    if asked.options.get("keep_cache"):
        about["kept"] = ""  # what a person fills by hand stays, until revert
    return about


def _prepared(asked: Spec, about: made.About) -> Optional[grounds.User]:
    grounds.make_folder(asked.folder, about)
    if asked.data.startswith(asked.folder + "/"):  # it goes with the folder
        os.makedirs(asked.data, 0o700)
    elif asked.kind == "caching-proxy":
        grounds.make_cache(asked.data, about)
    return grounds.hand_over(asked.folder, asked.data)


def _refuse_taken(asked: Spec) -> None:
    if next(_processes(asked.folder), None) is not None:
        text = "a service of another run works in %s already: let that run end, or take it back (branchlab revert)"
        raise Refused("busy", text % asked.folder)
    for address in asked.listen or _everywhere():
        if not system.POSIX:
            service_windows.refuse_taken(address, asked.port)
            continue
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if ":" in address:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                probe.bind((address, asked.port))
            except OSError as error:
                raise Refused(
                    "busy", "port %d cannot be had: %s" % (asked.port, error.strerror), "bind to " + address
                ) from None


def _everywhere() -> List[str]:
    ipv6 = os.path.exists("/proc/net/if_inet6")
    return ["0.0.0.0", "::"] if ipv6 else ["0.0.0.0"]  # noqa: S104 - only to see whether the port is free


def port(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Who keeps a service from having {port} on `listen` (addresses; none means all): {taken: addresses}.

    The addresses on which somebody listens there, as the kernel's tables have them now. Changes nothing.
    """
    number = given.port(args.get("port"))
    wanted = {given.address(text) for text in service_asked.addresses(args, "listen")}
    if not system.POSIX:
        return {"taken": service_windows.taken(sorted(wanted) or _everywhere(), number)}
    found = {one.here for one in quiet.open_now() if one.here_port == number and one.state == quiet.LISTEN}
    return {"taken": sorted(found & {*wanted, *_everywhere()} if wanted else found)}


# Processes


def _launched(commands: List[List[str]], asked: Spec) -> int:
    """Start the program in a session of its own and wait until it answers. Its pid."""
    errors = os.path.join(asked.folder, "error.log")
    with open(errors, "ab") as out:
        for command in commands:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=os.path.join(asked.folder, "run"),
                env=_environment(),
                **system.of_its_own(),
            )
            if not system.POSIX:
                service_windows.note(asked.folder, process.pid)
            if command is not commands[-1] and process.wait(START_S):
                raise Refused(
                    "failed", _tail(errors), "%s: exit %d" % (" ".join(command), process.returncode)
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
        if status and ENGINES[asked.engine].ready(asked):
            return process.pid
        time.sleep(0.01)
    raise Refused(
        "time-out", "the %s does not answer on port %d: %s" % (asked.kind, asked.port, _tail(errors))
    )


def _environment() -> Dict[str, str]:
    if system.POSIX:
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    return dict(os.environ)  # without SystemRoot no socket is to be had there


def _answer(asked: Spec) -> int:
    """The status of the service's answer to a harmless request; 0 while it does not answer."""
    address = asked.listen[0] if asked.listen else "127.0.0.1"
    request = "OPTIONS %s HTTP/1.0\r\nUser-Agent: %s\r\n\r\n"
    try:
        with socket.create_connection((address, asked.port), 5) as connection:
            connection.sendall((request % (ENGINES[asked.engine].probe(asked), PROBE_AGENT)).encode())
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
    """Pid and begin of every living process of the service in `folder`.

    Known by its argument, a configuration in the folder whose name has a random token, or, as the program and its
    helpers that write over theirs, by working in the folder. So a process that only inherited an old number is
    never taken for one; Apache's children carry their parent's arguments. On Windows it is the one that was noted when
    it was started: what that started ends with it.
    """
    if not system.POSIX:
        yield from service_windows.noted(folder)
        return
    begin = os.path.join(folder, "apache-").encode()
    try:
        run: Optional[os.stat_result] = os.stat(os.path.join(folder, "run"))
    except OSError:
        run = None
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        try:
            pid = int(name)
            with open("/proc/%d/cmdline" % pid, "rb") as file:
                argv = file.read().split(b"\0")
        except (OSError, ValueError):
            continue
        ours = len(argv) > 2 and argv[1] == b"-f" and argv[2].startswith(begin)
        ours = ours and os.path.basename(os.fsdecode(argv[0])) in apache.PROGRAMS
        if ours or (run is not None and _works_in(pid, run)):
            begun = _begun(pid)
            if begun:
                yield pid, begun


def _works_in(pid: int, folder: os.stat_result) -> bool:
    """True for a process of nginx or Squid whose working folder is this one."""
    try:
        with open("/proc/%d/comm" % pid, encoding="utf-8", errors="replace") as file:
            known = file.read().strip() in BY_FOLDER
        seen = os.stat("/proc/%d/cwd" % pid) if known else None
    except OSError:
        return False
    return seen is not None and (seen.st_dev, seen.st_ino) == (folder.st_dev, folder.st_ino)


def _begun(pid: int) -> str:
    """When a process began, in the kernel's ticks; empty for one that is gone or only waits to be reaped."""
    if not system.POSIX:
        return service_windows.begun(pid)
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def _stop_all(folder: str) -> int:
    """End every process of the service: TERM, then KILL. How many there were."""
    if not system.POSIX:
        return service_windows.stopped(folder)
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
