"""Text that is like source code to a compressor: lines of a few languages about a few things. Pure, seeded.

Only `Random.random`, SHA-256 and SHAKE-128 are used for chance: Python promises the one, and a standard the
others, for all versions.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

_T = TypeVar("_T")

# ruff: noqa: SIM905 - words are easier to read and to add to as a text
NOUNS = """
Account Address Batch Branch Cache Catalog Channel Client Column Command Context Contract Country
Currency Customer Delivery Detail Discount Document Employee Export Factory Filter Handler Import Index
Invoice Item Journal Ledger List Manager Member Message Node Notice Offer Order Owner Page Partner
Payment Period Person Phone Plan Price Product Profile Project Query Queue Rate Receipt Record Region
Report Request Result Role Route Rule Salary Sample Schedule Schema Search Section Session Setting
Shipment Staff State Stock Store Summary Supplier Table Target Task Tax Template Ticket Token Total
Trade Unit User Value Vendor View Voucher Warehouse Week Window Worker Zone
""".split()
VERBS = """
Add Apply Bind Build Cancel Check Clear Close Collect Compare Copy Count Create Delete Export Fetch Find
Format Handle Import Insert Load Lock Make Merge Move Open Parse Post Print Read Remove Render Resolve
Save Select Send Set Show Sort Split Start Stop Store Test Update Validate Write
""".split()
WORDS = """
a after all and are as at be been before but by can empty error failed field for from has have if in
invalid into is it its list must new no not of old on only or page please row saved select should than
that the then there this to too value was when which will with without you your
""".split()

_LINES: dict[str, tuple[str, ...]] = {
    ".cs": (
        "        private readonly {n}{m} _{l}{m};\n",
        "        /// <summary>{V}s the {l} {w} {w} {k} {w} {w}.</summary>\n",
        "        public {n}{m} {V}{n}({m} {l}, int index{i})\n        {{\n",
        "            if ({l}.{m} == null || {l}.{m}.Count > {i})\n",
        '                throw new {n}Exception("{w} {l} {w} {k} {w} {w} {i}");\n',
        "            foreach ({m} {l} in {k}{n}.{V}{m}())\n            {{\n",
        "            {l}.{m} = {k}.{V}{n}({l}.{n}Id, {i});\n",
        '            var {l}{i} = new {n}{m}({k}, "{w}-{w}");\n',
        "            return {l}.{V}({k}.{m}, {l}{n}) ?? {k}{i};\n        }}\n\n",
        "            // {w} {k} {w} {w} {l} {w} {w} {w}\n",
    ),
    ".sql": (
        "CREATE PROCEDURE dbo.{V}{n}{m} @{l}Id int, @{k} nvarchar({i})\nAS\n",
        "    SELECT t.{n}Id, t.{m}, s.{n}{i}, s.{V}d\n",
        "      FROM dbo.{n}{m} t INNER JOIN dbo.{m} s ON s.{n}Id = t.{n}Id\n",
        "     WHERE t.{m} = @{l} AND s.{n} > {i}\n",
        "INSERT INTO dbo.{n} ({m}, {n}Id, {V}d) VALUES ('{w} {w}', {i}, {i})\n",
    ),
    ".css": (
        ".{l}-{k} .{w}{i} {{ margin: {i}px; color: #{x}; }}\n",
        "#{k}{n} td.{l} {{ width: {i}px; background: url(../img/{l}{i}.gif); }}\n",
    ),
    ".js": (
        "function {l}{V}{n}({k}, index) {{\n",
        "    var {l} = document.getElementById('{k}_{n}{i}');\n",
        "    if ({l}.{k} != {i}) {{ {l}.{w} = '{w} {w} {k}'; }}\n",
        "    return {k}.{l}{V}(this, '{w}', {i});\n}}\n",
        "    // {w} {w} {l} {w} {k} {w}\n",
    ),
}
_LINES[".aspx"] = _LINES[".ascx"] = (
    '    <asp:Label ID="{l}{n}" runat="server" CssClass="{k}" Text="{V} {w} {k} {w}" />\n',
    '    <tr><td class="{l}"><asp:TextBox ID="txt{n}{m}" runat="server" Width="{i}" /></td></tr>\n',
    '    <asp:RequiredFieldValidator ID="val{n}{i}" ControlToValidate="txt{m}{n}" Text="{w} {w}" />\n',
    '    <div id="{l}{i}" title="{w} {k} {w}"><%= {V}{n}({k}) %></div>\n',
    "    <p>{V} {w} {k} {w} {w} {l} {w} {w} {w} {k} {w} {w}.</p>\n",
)
_LINES[".resx"] = (
    '  <data name="{n}{m}{V}.Text" xml:space="preserve">\n'
    "    <value>{V} {w} {k} {w} {w} {l} {w}</value>\n  </data>\n",
    '  <data name="{l}{n}.Size" type="System.Drawing.Size, System.Drawing">\n'
    "    <value>{i}, {i}</value>\n  </data>\n",
)
_LINES[".xml"] = (
    '  <{l} id="{x}" name="{n}{m}"><{k}>{w} {w} {l}</{k}><rate>{i}.{i}</rate></{l}>\n',
    '  <entry key="{n}.{m}.{V}" value="{i}" type="{k}" />\n',
    "  <!-- {w} {w} {k} {w} {l} {w} -->\n",
)
_LINES[".config"] = _LINES[".csproj"] = (
    '    <add key="{n}{m}{V}" value="{l}{i}" />\n',
    '    <Compile Include="{n}s\\{n}{m}{i}.cs"><SubType>{k}</SubType></Compile>\n',
    '    <Reference Include="{n}.{m}.{V}, Version={i}.0.{i}.0" />\n',
)


_MARKUP = (".aspx", ".ascx", ".resx", ".xml", ".config", ".csproj")


class Dice:
    """Chance that is the same in every version of Python."""

    def __init__(self, *key: object) -> None:
        digest = hashlib.sha256(repr(key).encode()).digest()
        # Only this method: of the others Python does not promise that they stay as they are.
        self.random = random.Random(int.from_bytes(digest[:8], "big")).random  # noqa: S311

    def below(self, count: int) -> int:
        """A number from 0 up to, and without, `count`."""
        return int(self.random() * count)

    def pick(self, items: Sequence[_T]) -> _T:
        """One of them."""
        return items[int(self.random() * len(items))]

    def shuffled(self, items: Sequence[_T]) -> list[_T]:
        """All of them, in another order."""
        out = list(items)
        for last in range(len(out) - 1, 0, -1):
            other = self.below(last + 1)
            out[last], out[other] = out[other], out[last]
        return out


class Writer:
    """Writes lines of one file's language about the few things that this file is about, as programmers do."""

    def __init__(self, ending: str, nouns: int, dice: Dice) -> None:
        self._templates = _LINES[ending]
        self._nouns = [dice.pick(NOUNS) for _ in range(nouns)]
        self._verbs = [dice.pick(VERBS) for _ in range(2 + nouns // 3)]
        self._words = [dice.pick(WORDS) for _ in range(4 + nouns)]
        self._dice = dice

    def line(self) -> str:
        """One line, or a few that belong together."""
        dice = self._dice
        noun, other, number = dice.pick(self._nouns), dice.pick(self._nouns), dice.random()
        parts = dice.pick(self._templates).split("{w}")
        # Each {w} is a word of its own; the other holes are one draw for the line.
        text = parts[0] + "".join(dice.pick(self._words) + part for part in parts[1:])
        return text.format(
            n=noun,
            m=other,
            V=dice.pick(self._verbs),
            l=noun.lower(),
            k=other.lower(),
            i=int(number * 480),
            x=f"{int(number * 0xFFFFFF):06x}",
        )


def text(name: str, size: int, ending: str, nouns: int, dice: Dice) -> bytes:
    """A file of exactly `size` bytes. It names itself: of two that are alike a client would fetch one."""
    lines = [f"<!-- {name} -->\n" if ending in _MARKUP else f"/* {name} */\n"]
    writer = Writer(ending, nouns, dice)
    length = len(lines[0])
    while length < size:
        lines.append(writer.line())
        length += len(lines[-1])
    return ("".join(lines)[: size - 1] + "\n").encode("ascii")


def noise(name: str, size: int, dice: Dice) -> bytes:
    """A file of `size` bytes that cannot be compressed, as a picture."""
    return (b"GIF89a" + hashlib.shake_128(name.encode() + b"%d" % dice.below(1 << 30)).digest(size))[:size]
