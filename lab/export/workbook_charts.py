"""Figures as native charts of Excel, drawn from the numbers beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lab import palette
from lab.export.deck_charts import MARKERS, log_base
from lab.export.figures import Figure, Kind, Series
from lab.export.files import clean

ROWS = 26
"""So many rows of a sheet a chart is high."""
_DASHES = {
    (): "solid",
    (7.0, 3.5): "dash",
    (1.2, 3.0): "round_dot",
    (7.0, 3.0, 1.2, 3.0): "dash_dot",
    (3.0, 2.5): "square_dot",
    (5.0, 2.5): "long_dash",
    (9.0, 2.5): "long_dash_dot",
}
"""The look's patterns as the nearest of Excel's; XlsxWriter writes no others."""

Column = tuple[str, Sequence[str | float | None]]


def columns(figure: Figure) -> list[Column]:
    """The figure's numbers as columns with heads: categories, a column per series, and lengths of error bars.

    What grows to the left of zero is below zero here, as a chart needs it. A gap is None.
    """
    unit = f" ({figure.up.unit})" if figure.up.unit else ""
    if figure.kind is Kind.SCATTER:
        pairs: list[Column] = []
        longest = max(len(series.points) for series in figure.series)
        for series in figure.series:
            rest = [None] * (longest - len(series.points))
            pairs.append((f"{series.name}, place", [*(point.x for point in series.points), *rest]))
            pairs.append((f"{series.name}{unit}", [*(point.value for point in series.points), *rest]))
        return pairs
    found: list[Column] = []
    if figure.groups:
        # A chart joins the rows under one outer name only where it is not repeated.
        before = ("", *figure.groups)
        found.append(
            (
                "line",
                [name if name != last else None for name, last in zip(figure.groups, before, strict=False)],
            )
        )
    found.append((figure.across.name, figure.categories))
    for series in figure.series:
        sign = -1 if series.left else 1
        found.append(
            (f"{series.name}{unit}", [None if p.value is None else sign * p.value for p in series.points])
        )
    for series in _with_bars(figure):
        found.append((f"{series.name}, above{unit}", [point.above for point in series.points]))
        found.append((f"{series.name}, below{unit}", [point.below for point in series.points]))
    return found


def _with_bars(figure: Figure) -> list[Series]:
    return [series for series in figure.series if any(point.low is not None for point in series.points)]


def insert(book: Any, sheet: Any, figure: Figure, heads: int, written: Sequence[Column]) -> None:
    """Draw the figure below its columns, whose heads are in row `heads`, counted from zero."""
    kinds: dict[Kind, dict[str, str]] = {
        Kind.BAR: {"type": "column"},
        Kind.STACKED: {"type": "bar", "subtype": "stacked"},
        Kind.LINE: {"type": "line"},
        Kind.SCATTER: {"type": "scatter"},
    }
    chart = book.add_chart(kinds[figure.kind])
    for place, series in enumerate(figure.series):
        chart.add_series(_series(sheet.get_name(), figure, series, place, heads, len(written[0][1])))
    chart.set_title({"name": clean(figure.title), "name_font": {"size": 13, "bold": True}, "overlay": False})
    chart.set_legend({"position": "bottom"})
    chart.show_blanks_as("gap")
    chart.set_size({"width": 860, "height": 480})
    _axes(chart, figure)
    options = {"description": clean(figure.alternative)[:2000], "object_position": 1}
    sheet.insert_chart(heads + len(written[0][1]) + 2, 0, chart, options)


def _series(name: str, figure: Figure, series: Series, place: int, heads: int, count: int) -> dict[str, Any]:
    from xlsxwriter.utility import xl_range_formula

    first, last = heads + 1, heads + count
    if figure.kind is Kind.SCATTER:
        last = heads + max(1, len(series.points))
        categories, column = [name, first, 2 * place, last, 2 * place], 2 * place + 1
    else:
        leading = 2 if figure.groups else 1
        categories, column = [name, first, 0, last, leading - 1], leading + place
    made: dict[str, Any] = {
        "name": series.name,
        "categories": categories,
        "values": [name, first, column, last, column],
    }
    hue = series.look.colour
    if figure.kind in (Kind.BAR, Kind.STACKED):
        made |= {"fill": {"color": hue}, "gap": 50, "overlap": 100 if figure.kind is Kind.STACKED else 0}
        made["invert_if_negative"] = False
    else:
        plain = MARKERS[series.look.marker] in ("x", "plus", "star")
        edge = hue if plain else palette.load("light").tokens["surface"]
        made["marker"] = {
            "type": MARKERS[series.look.marker],
            "size": 8,
            "fill": {"color": hue},
            "border": {"color": edge},
        }
        dash = {"color": hue, "width": 2, "dash_type": _DASHES.get(series.look.dash, "dash")}
        made["line"] = {"none": True} if figure.kind is Kind.SCATTER else dash
    bars = _with_bars(figure)
    if series in bars:
        after = 1 + len(figure.series) + 2 * bars.index(series)
        made["y_error_bars"] = {
            "type": "custom",
            "plus_values": f"={xl_range_formula(name, first, after, last, after)}",
            "minus_values": f"={xl_range_formula(name, first, after + 1, last, after + 1)}",
            "plus_data": [point.above for point in series.points],
            "minus_data": [point.below for point in series.points],
            "line": {"color": hue if figure.kind is Kind.LINE else palette.load("light").tokens["text"]},
        }
    return made


def _axes(chart: Any, figure: Figure) -> None:
    light = palette.load("light")
    plain = {"bold": False, "color": light.tokens["text2"]}
    across: dict[str, Any] = {
        "name": figure.across.title,
        "name_font": plain,
        "line": {"color": light.tokens["axis"]},
    }
    up: dict[str, Any] = {
        "name": figure.up.title,
        "name_font": plain,
        "major_gridlines": {"visible": True, "line": {"color": light.tokens["grid"]}},
        "line": {"none": True},
        "num_format": "General",
    }
    values = [value for value in figure.values if value > 0]
    if figure.up.log and values:
        base = log_base(values)
        up |= {
            "log_base": base,
            "major_unit": base,
            "min": base ** math.floor(math.log(min(values), base) + 1e-9),
            "max": base ** math.ceil(math.log(max(values), base) - 1e-9),
            "num_format": "[<1]0.0##;0",
        }
    elif figure.kind is not Kind.STACKED:
        up["min"] = 0
    if figure.kind is Kind.STACKED:
        # The first row on top, and yet the value axis at the bottom.
        across |= {"name": "", "reverse": True, "label_position": "low", "crossing": "max"}
        up["num_format"] = "General;General;0"
    # XlsxWriter names the axes by where they are: a bar chart's values are along its x axis.
    chart.set_x_axis(up if figure.kind is Kind.STACKED else across)
    chart.set_y_axis(across if figure.kind is Kind.STACKED else up)
