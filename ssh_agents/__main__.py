"""The agent: reads requests, runs each verb in a thread of its own, says one last word for each.

python3 -I -S agent.py            the ordinary agent
python3 -I -S agent.py privileged the one that changes the host; it runs no commands and no workloads
python3 -I -S agent.py watch FILE the watcher that undoes what a session left
python3 -I -S agent.py undo       takes back everything that any session left on this host
"""

import os
import sys
import threading
import traceback
from typing import Any, Callable, Dict, List, Optional

from ssh_agents import (
    cache,
    clock,
    command,
    facts,
    files,
    footprint,
    http_look,
    installed,
    line,
    netlink,
    others,
    packages,
    probe,
    protocol,
    quiet,
    relay,
    routes,
    service,
    session,
    strays,
    system,
    tool,
    traffic,
    watch,
)

ORDINARY: Dict[str, protocol.Verb] = {
    "facts": facts.tell,
    "clock": clock.tell,
    "command": command.run,
    "files.edit": files.edit,
    "files.copy": files.copy,
    "files.look": files.look,
    "files.remove": files.remove,
    "files.scratch": files.scratch,
    "footprint": footprint.users,
    "forget": footprint.forget_users,
    "installed": installed.look,
    "cache.list": cache.listed_by_user,
    "cache.purge": cache.purged_by_user,
    "probe.serve": probe.serve,
    "probe.fetch": probe.fetch,
    "probe.ping": probe.ping,
    "probe.resolve": probe.resolve,
    "probe.seen": probe.seen,
    "relay": relay.serve,
    "others": others.look,
    "quiet.wait": quiet.wait,
    "packages.look": packages.look,
    "http.look": http_look.look,
    "routes.look": routes.look,
    "service.port": service.port,
}
PRIVILEGED: Dict[str, protocol.Verb] = {
    "facts": facts.tell,
    "clock": clock.tell,
    "line.check": line.check,
    "line.apply": line.apply,
    "line.read": line.read,
    "line.lift": line.lift,
    "traffic.start": traffic.start,
    "traffic.read": traffic.read,
    "traffic.stream": traffic.stream,
    "quiet.wait": quiet.wait,
    "others": others.look,
    "cache.list": cache.listed,
    "cache.purge": cache.purged,
    "service.start": service.start,
    "service.stop": service.stop,
    "service.log": service.log,
    "packages.look": packages.look,
    "packages.install": packages.install,
    "packages.remove": packages.remove,
    "footprint": footprint.roots,
    "forget": footprint.forget_roots,
}
UNDO: Dict[str, Callable[[Dict[str, Any]], str]] = {
    "line": line.undo,
    "traffic": traffic.undo,
    "service": service.undo,
    "scratch": files.undo,
    "packages": packages.undo,
}


def _not_here(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """For what takes Linux's own queues and counters."""
    raise protocol.Refused(
        "unsupported",
        "lines and counters need Linux: not on this system. A router, a Linux host between office and server, "
        "limits and counts for it",
    )


class Agent:
    """One session: requests from file descriptor 0, answers to the descriptor given."""

    def __init__(self, out: int, privileged: bool) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._running: Dict[int, threading.Event] = {}
        self._threads: List[threading.Thread] = []
        self._verbs = dict(PRIVILEGED if privileged else ORDINARY)
        if not netlink.HERE:
            self._verbs.update(
                {verb: _not_here for verb in self._verbs if verb.startswith(("line.", "traffic."))}
            )
        self._privileged = privileged
        self._leases = session.Session(UNDO, self._stop_everything, lambda: strays.found(privileged))
        self._verbs.update(
            {
                "lease.open": self._leases.open,
                "lease.renew": self._leases.renew,
                "lease.close": self._leases.close,
                "leases": self._leases.listed,
                "revert": self._leases.revert,
            }
        )

    def serve(self) -> None:
        """Until the end of input, which means: stop everything and undo."""
        decoder = protocol.Decoder()
        while True:
            # Not sys.stdin: a thread blocked in it aborts the interpreter at exit.
            data = os.read(0, 65536)
            if not data:
                break
            try:
                for text in decoder.feed(data):
                    self._take(text)
            except protocol.BadLine as error:
                self._say({"id": 0, "failed": {"kind": "bad-request", "text": str(error), "tried": ""}})
        self._stop_everything()
        for thread in self._threads:
            thread.join(5)
        self._leases.end()

    def _stop_everything(self) -> None:
        """Ask every request under way to end: nobody is there any more, or the lease is over."""
        for cancelled in list(self._running.values()):
            cancelled.set()

    def _take(self, text: bytes) -> None:
        try:
            message = protocol.decode(text)
        except protocol.BadLine as error:
            self._fail(0, "bad-request", str(error))
            return
        number, verb, args = message["id"], message.get("verb"), message.get("args", {})
        if number in self._running:
            self._fail(0, "bad-request", "request %d is under way already: %r" % (number, text[:120]))
        elif not isinstance(args, dict):
            self._fail(number, "bad-request", "args must be an object: %r" % (text[:120],))
        elif verb == "hello":
            self._say({"id": number, "done": self._hello()})
        elif verb == "cancel":
            asked = args.get("target")
            target = self._running.get(asked) if isinstance(asked, int) else None
            if target is not None:
                target.set()
            self._say({"id": number, "done": {"found": target is not None}})
        elif not isinstance(verb, str) or verb not in self._verbs:
            self._fail(number, "bad-request", "unknown verb: %r" % (text[:120],))
        else:
            cancelled = self._running[number] = threading.Event()
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            thread = threading.Thread(
                target=self._run, args=(number, self._verbs[verb], args, cancelled), daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _hello(self) -> Dict[str, Any]:
        return {
            "version": protocol.VERSION,
            "privileged": self._privileged,
            "uid": os.getuid() if hasattr(os, "getuid") else None,
            "pid": os.getpid(),
            "python": sys.version.split()[0],
            "verbs": sorted(self._verbs),
        }

    def _run(
        self, number: int, verb: protocol.Verb, args: Dict[str, Any], cancelled: threading.Event
    ) -> None:
        promises = self._leases.promises()
        call = protocol.Call(
            say=lambda event, data: self._say({"id": number, "event": event, "data": data}),
            cancelled=cancelled.is_set,
            wait_cancelled=cancelled.wait,
            promise=promises.promise,
            keep=promises.keep,
            tell=self._leases.tell,
        )
        word: Dict[str, Any]
        try:
            try:
                word = {"id": number, "done": verb(args, call)}
            finally:
                promises.asked_again()
        except protocol.Refused as error:
            word = {"id": number, "failed": {"kind": error.kind, "text": error.text, "tried": error.tried}}
        except Exception as error:  # noqa: BLE001 - a verb may fail in any way; the agent may not
            traceback.print_exc()  # to stderr, which the other side logs
            word = {"id": number, "failed": {"kind": "defect", "text": repr(error), "tried": ""}}
        # Struck out before it is said: the other side may use the number again at once.
        self._running.pop(number, None)
        news = self._leases.news()
        self._say({**word, "changes": news} if news else word)

    def _fail(self, number: int, kind: str, text: str) -> None:
        self._say({"id": number, "failed": {"kind": kind, "text": text, "tried": ""}})

    def _say(self, message: Dict[str, Any]) -> None:
        try:
            data = protocol.encode(message)
        except ValueError as error:
            data = protocol.encode(
                {"id": message["id"], "failed": {"kind": "defect", "text": str(error), "tried": ""}}
            )
        with self._lock:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._out, view) :]
            except OSError:
                # The line was cut. The end of input follows, and with it the undo.
                self._stop_everything()


def main(argv: Optional[List[str]] = None) -> int:
    """Run as said at the head of this file."""
    words = sys.argv[1:] if argv is None else argv
    if words:  # each of these ways may have more rights than who started it
        tool.settle()
    if words[:1] == ["watch"] and len(words) == 2:
        return watch.main(words[1], UNDO)
    if words[:1] == ["undo"]:
        return session.undo_all(UNDO, lambda: strays.found(privileged=True))
    # Messages get a descriptor of their own, so that a stray print or a child cannot corrupt the stream.
    system.binary_streams()
    out = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    Agent(out, privileged=words[:1] == ["privileged"]).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
