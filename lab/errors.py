"""What can go wrong and is no defect: one family, each member with advice for the person."""


class LabError(Exception):
    """An expected failure. `str()` says what went wrong and where; `advice` says what to do next.

    `command` is the advice's exact words for that host, where there are any.
    """

    advice = ""
    command = ""

    def __init__(self, text: str, *, advice: str = "", host: str = "", tried: str = "") -> None:
        super().__init__(text)
        self.host = host
        self.tried = tried
        if advice:
            self.advice = advice

    @property
    def cure(self) -> str:
        """Advice and command in one line, for where there is no place for both."""
        return f"{self.advice} {self.command}".strip()

    def told(self) -> str:
        """The whole story for a person, in one to five lines."""
        lines = [f"{self.host}: {self}" if self.host else str(self)]
        if self.tried:
            lines.append(f"  tried: {self.tried}")
        if self.advice:
            lines.append(f"  what to do: {self.advice}")
        if self.command:
            lines.append(f"    {self.command}")
        return "\n".join(lines)


class BadInput(LabError):
    """What the user wrote cannot be right; nothing has been touched. Exit code 2."""


class HostTrouble(LabError):
    """A host is out of reach or lacks something. Exit code 3."""


class HostUnreachable(HostTrouble):
    """No SSH connection could be made."""

    advice = "Check the address, the port and that sshd is running there."


class HostLacks(HostTrouble):
    """A host lacks a program, a kernel feature or a right that the experiment needs."""


class ConnectionLost(HostTrouble):
    """A conversation ended without its last word."""

    advice = (
        "Check that the host is up; what was changed there is taken back by its watcher when the lease ends."
    )


class AgentRefused(LabError):
    """The agent on a host answered `failed`. `kind` is its word from the protocol's table."""

    def __init__(self, text: str, *, kind: str, advice: str = "", host: str = "", tried: str = "") -> None:
        super().__init__(text, advice=advice, host=host, tried=tried)
        self.kind = kind


class TrialFailed(LabError):
    """One trial could not be done or prepared; the run goes on with the next."""


class Stopped(LabError):
    """The user asked the run to stop. Raised inside the run and shown as nothing."""
