"""Figures as SVG and PNG: whole XML, text as text, every value in its place, gaps open, readable by other code."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import export_runs as runs
import pytest
from PIL import Image

from lab import palette
from lab.export import canvas, drawing, pictures
from lab.export.contents import Contents
from lab.export.figures import Figure, Kind
from lab.model import ProxyState

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    wanted = runs.asked(runs.SIX[:3])
    lost = runs.trials(wanted, operation="get", line=runs.SIX[1], state=ProxyState(full=90))
    return runs.made(tmp_path_factory.mktemp("drawing"), wanted, lost)


def by_key(contents: Contents, key: str) -> Figure:
    return next(figure for figure in contents.figures if figure.key == key)


def drawn(figure: Figure, **how: bool) -> ET.Element:
    return ET.fromstring(drawing.svg(figure, **how))  # noqa: S314 - our own


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_every_figure_is_drawn_inside_its_frame(contents: Contents) -> None:
    for figure in contents.figures:
        root = drawn(figure)
        width, height = float(root.get("width", 0)), float(root.get("height", 0))
        for element in root.iter():
            numbers = [float(n) for n in re.findall(r"-?\d+\.?\d*", element.get("points", ""))]
            assert all(-1 <= x <= width for x in numbers[::2]), figure.key
            assert all(-1 <= y <= height for y in numbers[1::2]), figure.key
            for name, limit in (("x", width), ("y", height)):
                assert -1 <= float(element.get(name, 0)) <= limit, figure.key
        assert "nan" not in drawing.svg(figure)
        assert root.find(f"{SVG}title").text == figure.title
        assert root.find(f"{SVG}desc").text == figure.alternative


def test_markers_stand_at_the_values_on_a_log_axis(contents: Contents) -> None:
    figure = by_key(contents, "get-line")
    full = figure.series[3]
    light = palette.load("light")
    discs = [
        float(c.get("cy", 0))
        for c in drawn(figure).iter(f"{SVG}circle")
        if light.states["full"] in c.get("style", "") and "stroke" in c.get("style", "")
    ]
    values = [point.value or 0 for point in full.points]
    assert len(discs) == len(values)
    scale = (discs[2] - discs[0]) / (math.log(values[2]) - math.log(values[0]))
    assert discs[1] == pytest.approx(discs[0] + scale * (math.log(values[1]) - math.log(values[0])), abs=0.2)


def test_a_line_is_interrupted_where_a_value_is_missing(contents: Contents) -> None:
    hue = palette.load("light").states["ninety"]
    root = drawn(by_key(contents, "get-line"))
    lines = [e for e in root.iter(f"{SVG}polyline") if f"stroke:{hue};stroke-width:2" in e.get("style", "")]
    assert lines == []  # one point on each side of the gap: nothing to join
    trouble = palette.load("light").tokens["trouble"]
    assert sum(trouble in e.get("style", "") for e in root.iter(f"{SVG}polyline")) == 2
    assert any("128/256 kbit/s (failed)" in text for text in texts(root))
    assert "failed" in texts(drawn(by_key(contents, "get-traffic")))


def test_names_and_last_values_stand_at_the_ends_apart_from_each_other(contents: Contents) -> None:
    root = drawn(by_key(contents, "get-line"))
    places = [
        float(e.get("y", 0))
        for e in root.iter(f"{SVG}text")
        if e.text and (e.text == "disabled" or e.text.endswith("full")) and float(e.get("x", 0)) > 600
    ]
    assert len(places) == 4
    assert min(b - a for a, b in pairwise(places)) >= 14


def test_bars_begin_at_zero_and_are_as_high_as_their_values(contents: Contents) -> None:
    figure = by_key(contents, "bars-1")
    hue = palette.load("light").states["disabled"]
    bars = [e for e in drawn(figure).iter(f"{SVG}rect") if hue in e.get("style", "")]
    heights = [float(e.get("height", 0)) for e in bars]
    values = [point.value or 0 for point in figure.series[0].points]
    assert heights[0] / heights[1] == pytest.approx(values[0] / values[1], rel=0.02)
    ends = [float(e.get("y", 0)) + float(e.get("height", 0)) for e in bars]
    assert max(ends) - min(ends) <= 0.2


def test_in_a_page_the_pages_colours_are_used(contents: Contents) -> None:
    for figure in contents.figures:
        text = drawing.svg(figure, by_name=True, titled=False)
        assert not re.search(r"#[0-9A-Fa-f]{6}", text)
        assert set(re.findall(r"var\(--([\w-]+)\)", text)) <= set(canvas.variables("dark"))


def test_text_of_others_is_no_markup_and_long_titles_are_broken(contents: Contents) -> None:
    figure = replace(
        by_key(contents, "get-line"), title="</svg><script>alert(1)</script> \x1b[31m" + "很长的标题" * 60
    )
    root = drawn(figure)
    assert not [e for e in root.iter() if "script" in e.tag]
    assert sum("标题" in text for text in texts(root)) > 5
    assert canvas.lines("a bb ccc", 3) == ["a bb", "ccc"]


def test_nothing_kept_is_said(tmp_path: Path) -> None:
    wanted = runs.asked(runs.SIX[:2], operations=("get",))
    contents = runs.made(tmp_path, wanted, runs.trials(wanted))
    for figure in contents.figures:
        assert "No kept attempt to draw." in texts(drawn(figure))


def test_a_png_has_its_resolution_and_its_colours(contents: Contents) -> None:
    figure = by_key(contents, "get-traffic")
    root = drawn(figure)
    with Image.open(io.BytesIO(pictures.png(figure, 192))) as picture:
        assert picture.size == (2 * float(root.get("width", 0)), 2 * float(root.get("height", 0)))
        assert picture.info["dpi"] == pytest.approx((192, 192), abs=0.1)
        pixels = picture.convert("RGB")
        assert pixels.getpixel((2, 2)) == (255, 255, 255)
        hues = {
            pixels.getpixel((x, y)) for x in range(0, pixels.width, 5) for y in range(0, pixels.height, 5)
        }
    hue = palette.load("light").pairs["client-proxy"].removeprefix("#")
    assert tuple(bytes.fromhex(hue)) in hues


def test_every_kind_is_drawn(contents: Contents) -> None:
    assert {figure.kind for figure in contents.figures} == set(Kind)
