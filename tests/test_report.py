"""The HTML report and the Markdown tables: self-contained, escaped, every value of the run in them."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import export_runs as runs
import pytest

from lab.export import report
from lab.export.contents import Contents
from lab.model import ProxyState

EVIL = "<script>alert(1)</script> | `x` & \x1b[31m\x07 我们"


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    wanted = runs.asked(runs.SIX[:3], name=EVIL)
    lost = runs.trials(wanted, operation="get", line=runs.SIX[1], state=ProxyState(full=90))
    return runs.made(tmp_path_factory.mktemp("report"), wanted, lost)


@pytest.fixture(scope="module")
def page(contents: Contents) -> str:
    return report.html(contents, contents.figures).decode("utf-8")


class Read(HTMLParser):
    """Tags, links and the text of table cells."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.cells: list[str] = []
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [
            value or "" for name, value in attrs if name in ("href", "src", "xlink:href", "action")
        ]
        self._in_cell = tag == "td"
        if self._in_cell:
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.cells[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag != "td"


def test_the_page_needs_nothing_from_anywhere(page: str) -> None:
    read = Read()
    read.feed(page)
    assert read.links == []
    assert not {"script", "link", "iframe", "object", "img"} & set(read.tags)
    assert not re.search(r"url\(|@import", page)
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page


def test_the_page_has_every_table_and_figure(contents: Contents, page: str) -> None:
    read = Read()
    read.feed(page)
    assert read.cells == [entry.text for table in contents.tables for row in table.rows for entry in row]
    assert read.tags.count("svg") == len(contents.figures)
    for finding in contents.summary.findings:
        assert finding.headline in page


def test_what_others_wrote_is_text(page: str) -> None:
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\x1b" not in page
    assert "\x07" not in page
    assert "我们" in page


def test_light_and_dark_and_paper(page: str) -> None:
    assert "@media screen and (prefers-color-scheme: dark)" in page
    assert "@media print" in page


def test_markdown_tables_are_whole_and_marks_are_text(contents: Contents) -> None:
    text = report.markdown(contents).decode("utf-8")
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    expected = [len(table.heads) for table in contents.tables for _ in range(len(table.rows) + 2)]
    assert [len(row) for row in rows] == expected
    assert r"\<script\>" in text
    assert "\x1b" not in text
    assert "failed" in text
    assert not re.search(r"\b(nan|null|None)\b", text)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no browser here")
def test_a_browser_opens_it_without_a_complaint(page: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(page, "utf-8")
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/home",
         "--enable-logging=stderr", "--dump-dom", f"file://{tmp_path}/a.html"],
        capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0
    assert "CONSOLE" not in done.stderr
    assert done.stdout.count("<svg") == page.count("<svg")
