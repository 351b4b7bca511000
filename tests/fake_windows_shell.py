"""A FAKE of Windows' shells, for tests: takes one line apart as cmd.exe or PowerShell would, and runs Python.

python3 fake_windows_shell.py cmd|powershell NAME LINE, where NAME is how Python is called there: `python` or `py`.
No Windows was ever seen by these tests: the rules are those that Microsoft describes (cmd's metacharacters and
`%NAME%`, PowerShell's expandable strings, how a C program's arguments are parsed).
"""

from __future__ import annotations

import os
import re
import sys

SAID = {
    "cmd": 'Der Befehl "{0}" ist entweder falsch geschrieben oder\nkonnte nicht gefunden werden.\n',
    "powershell": '{0} : Die Benennung "{0}" wurde nicht als Name eines Cmdlet erkannt\n'
    "    + FullyQualifiedErrorId : CommandNotFoundException\n",
}
"""A German Windows: nothing may depend on the language."""


def cmd(line: str) -> list[str]:
    """The arguments that a program gets from cmd.exe /c LINE."""
    line = re.sub(r"%(\w+)%", lambda found: os.environ.get(found[1], found[0]), line)
    quoted = False
    for sign in line:
        if sign == '"':
            quoted = not quoted
        elif not quoted and sign in "&|<>()^":
            sys.exit(f"{sign} was unexpected at this time.")
    return arguments(line)


def powershell(line: str) -> list[str]:
    """The arguments that a native program gets from powershell -Command LINE."""
    words: list[str] = []
    for found in re.finditer(r"'((?:[^']|'')*)'|\"((?:[^\"`]|`.)*)\"|(\S+)", line):
        single, double, bare = found.groups()
        if single is not None:
            words.append(single.replace("''", "'"))
        elif double is not None:
            words.append(re.sub(r"\$\w+|\$\(.*?\)", "", double))  # variables that are not set
        elif set(bare) & set("&|<>(){};,@#$`'\""):
            sys.exit(f"ParserError: unexpected token in {bare!r}")
        else:
            words.append(bare)
    # A word is handed on as it is, within double quotes if it has spaces: one with a double quote would break.
    return arguments(" ".join(f'"{word}"' if " " in word else word for word in words))


def arguments(line: str) -> list[str]:
    """As a C program on Windows sees its command line; no line here has a backslash before a quote."""
    words, word, quoted, there = [], "", False, False
    for sign in line:
        if sign == '"':
            quoted, there = not quoted, True
        elif sign == " " and not quoted:
            if word or there:
                words.append(word)
            word, there = "", False
        else:
            word += sign
    return [*words, word] if word or there else words


def main() -> None:
    shell, known, line = sys.argv[1:]
    words = (cmd if shell == "cmd" else powershell)(line)
    if words[0] != known:
        sys.stderr.write(SAID[shell].format(words[0]))
        sys.exit(1)
    if words[1:2] == ["-3"]:
        del words[1]
    os.execv(sys.executable, [sys.executable, *words[1:]])  # noqa: S606


if __name__ == "__main__":
    main()
