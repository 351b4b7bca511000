"""Figures as native charts of PowerPoint: editable, with their data sheet, error bars, gaps and log axes.

python-pptx has no call for error bars, the base of a log axis and patterns in pixels: these are written into the
chart's XML (ECMA-376, part 1, 21.2). PowerPoint has fewer markers than the look: ▼ becomes its triangle, ⬟ its
cross, ⬢ its plus.
"""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from lab import palette
from lab.axis import spread, time_ticks
from lab.export.figures import Axis, Figure, Kind, Series

if TYPE_CHECKING:
    from pptx.chart.chart import Chart

MARKERS = {
    "square": "square",
    "down": "triangle",
    "diamond": "diamond",
    "disc": "circle",
    "pentagon": "x",
    "hexagon": "plus",
    "star": "star",
}
"""The look's markers as DrawingML's."""
LINE_PT = 2.0
_NS = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'


_INNER = (0.075, 0.03, 0.70, 0.83)
"""The plot of a line chart in shares of the chart: what is left of it holds axes, and names at the lines' ends."""
_CHART_PT = 330.0
"""About how high a chart is on a slide, in points."""
_LAYOUT = (
    '<c:layout {ns}><c:manualLayout><c:layoutTarget val="inner"/><c:xMode val="edge"/><c:yMode val="edge"/>'
    '<c:x val="{x}"/><c:y val="{y}"/><c:w val="{w}"/><c:h val="{h}"/></c:manualLayout></c:layout>'
)
_SHOWN = "".join(
    f'<c:show{name} val="{{{key}}}"/>'
    for name, key in (
        ("LegendKey", "on"),
        ("Val", "on"),
        ("CatName", "off"),
        ("SerName", "on"),
        ("Percent", "off"),
        ("BubbleSize", "off"),
    )
)
_LABEL = (
    '<c:dLbls {ns}><c:dLbl><c:idx val="{n}"/><c:layout><c:manualLayout><c:x val="0.012"/><c:y val="{y}"/>'
    '</c:manualLayout></c:layout><c:numFmt formatCode="[&lt;1]0.000&quot; s&quot;;0.00&quot; s&quot;" '
    'sourceLinked="0"/><c:spPr><a:noFill/></c:spPr><c:txPr><a:bodyPr wrap="none"/><a:lstStyle/><a:p><a:pPr>'
    '<a:defRPr sz="{size}"><a:solidFill><a:srgbClr val="{ink}"/></a:solidFill></a:defRPr></a:pPr>'
    '<a:endParaRPr lang="en-US"/></a:p></c:txPr><c:dLblPos val="r"/>'
    + _SHOWN.format(on=1, off=0)
    + "<c:separator>  </c:separator></c:dLbl>"
    + _SHOWN.format(on=0, off=0)
    + "</c:dLbls>"
)


def kind(figure: Figure) -> Any:
    """The chart's type, as python-pptx calls it."""
    from pptx.enum.chart import XL_CHART_TYPE as TYPES

    return {
        Kind.BAR: TYPES.COLUMN_CLUSTERED,
        Kind.STACKED: TYPES.BAR_STACKED,
        Kind.LINE: TYPES.LINE_MARKERS,
        Kind.SCATTER: TYPES.XY_SCATTER,
    }[figure.kind]


def data(figure: Figure) -> Any:
    """The chart's data sheet. What has no value is an empty cell, and so a gap."""
    from pptx.chart.data import CategoryChartData, XyChartData

    if figure.kind is Kind.SCATTER:
        scatter = XyChartData(number_format="0.000")
        for series in figure.series:
            points = scatter.add_series(series.name)
            for point in series.points:
                points.add_data_point(point.x, point.value)
        return scatter
    sheet = CategoryChartData(number_format="0.000")
    if figure.groups:
        for group in dict.fromkeys(figure.groups):
            head = sheet.add_category(group)
            for name, of in zip(figure.categories, figure.groups, strict=True):
                if of == group:
                    head.add_sub_category(name)
    else:
        sheet.categories = figure.categories
    for series in figure.series:
        sign = -1 if series.left else 1
        sheet.add_series(series.name, [None if p.value is None else sign * p.value for p in series.points])
    return sheet


def dressed(chart: Chart, figure: Figure, points: float) -> None:
    """Colours, markers, patterns, axes and error bars of a chart that was made from `data`. Text in points."""
    from pptx.enum.chart import XL_LEGEND_POSITION
    from pptx.util import Pt

    light = palette.load("light")
    chart.has_title = False
    chart.font.size = Pt(points)
    chart.font.color.rgb = rgb(light.tokens["text2"])
    chart.has_legend = len(figure.series) > 1 and figure.kind is not Kind.LINE
    if chart.has_legend:
        chart.legend.position = XL_LEGEND_POSITION.BOTTOM
        chart.legend.include_in_layout = False
        chart.legend.font.size = Pt(points)
        chart.legend.font.color.rgb = rgb(light.tokens["text"])
    for series, shown in zip(figure.series, chart.plots[0].series, strict=True):
        _series(shown, series, figure.kind)
    _plot(chart, figure)
    _axes(chart, figure, points)
    _gaps(chart)
    _numbered(chart)
    if figure.kind is Kind.LINE:
        _ends(chart, figure, points)
    if figure.kind in (Kind.BAR, Kind.LINE):
        _error_bars(chart, figure)


def rgb(hue: str) -> Any:
    """A colour `#RRGGBB` as python-pptx takes it."""
    from pptx.dml.color import RGBColor

    return RGBColor.from_string(hue.removeprefix("#"))


def _series(shown: Any, series: Series, figure_kind: Kind) -> None:
    from pptx.util import Pt

    hue = rgb(series.look.colour)
    if figure_kind in (Kind.BAR, Kind.STACKED):
        shown.format.fill.solid()
        shown.format.fill.fore_color.rgb = hue
        shown.invert_if_negative = False
        return
    from pptx.enum.chart import XL_MARKER_STYLE

    shown.smooth = False
    shown.marker.style = getattr(
        XL_MARKER_STYLE, {"x": "X"}.get(MARKERS[series.look.marker], MARKERS[series.look.marker].upper())
    )
    shown.marker.size = 9
    outlined = MARKERS[series.look.marker] in ("x", "plus", "star")
    shown.marker.format.fill.solid()
    shown.marker.format.fill.fore_color.rgb = hue
    shown.marker.format.line.color.rgb = hue if outlined else rgb(palette.load("light").tokens["surface"])
    shown.marker.format.line.width = Pt(1.75 if outlined else 0.75)
    if figure_kind is Kind.SCATTER:
        shown.format.line.fill.background()
        return
    shown.format.line.color.rgb = hue
    shown.format.line.width = Pt(LINE_PT)
    _dash(shown, series)


def _dash(shown: Any, series: Series) -> None:
    """The look's pattern, whose pixels are for a line 2 px wide, in shares of this line's width."""
    from lxml import etree

    dash = series.look.dash
    if not dash:
        return
    pairs = [(dash[n], dash[n + 1]) for n in range(0, len(dash) - 1, 2)]
    stops = "".join(f'<a:ds d="{round(on * 50000)}" sp="{round(off * 50000)}"/>' for on, off in pairs)
    line = shown.format.line._get_or_add_ln()  # there is no call for one's own pattern
    line.set("cap", "flat")
    fill = line.find("{*}solidFill")
    fill.addnext(etree.fromstring(f"<a:custDash {_NS}>{stops}</a:custDash>"))


def _plot(chart: Any, figure: Figure) -> None:
    plot = chart.plots[0]
    if figure.kind is Kind.BAR:
        plot.gap_width, plot.overlap = 55, 0
    elif figure.kind is Kind.STACKED:
        plot.gap_width, plot.overlap = 45, 100
    elif figure.kind is Kind.LINE:
        plot.vary_by_categories = False


def _axes(chart: Any, figure: Figure, points: float) -> None:
    from pptx.enum.chart import XL_TICK_LABEL_POSITION, XL_TICK_MARK

    light = palette.load("light")
    across, up = chart.category_axis, chart.value_axis
    for axis, asked in ((across, figure.across), (up, figure.up)):
        axis.format.line.color.rgb = rgb(light.tokens["axis"])
        axis.major_tick_mark = XL_TICK_MARK.NONE
        axis.has_major_gridlines = False
        if asked.title and not (figure.kind is Kind.STACKED and asked is figure.across):
            _title(axis, asked, points)
    up.has_major_gridlines = True
    up.major_gridlines.format.line.color.rgb = rgb(light.tokens["grid"])
    up.tick_labels.number_format_is_linked = False
    up.tick_labels.number_format = "General"
    up.format.line.fill.background()
    _scaled(up, figure, figure.up)
    if figure.kind is Kind.STACKED:
        across.reverse_order = True
        across.tick_label_position = XL_TICK_LABEL_POSITION.LOW
        up.tick_labels.number_format = (
            "General;General;0"  # what stays inside is drawn left, and is not below zero
        )
        _crosses_at_far_end(across)
    elif figure.kind is Kind.SCATTER:
        across.has_major_gridlines = False
        across.tick_labels.number_format_is_linked = False
        across.tick_labels.number_format = "0"


def _title(axis: Any, asked: Axis, points: float) -> None:
    from pptx.util import Pt

    axis.has_title = True
    frame = axis.axis_title.text_frame
    frame.text = asked.title
    font = frame.paragraphs[0].runs[0].font
    font.size, font.bold = Pt(points), False
    font.color.rgb = rgb(palette.load("light").tokens["text2"])


def _scaled(axis: Any, figure: Figure, asked: Axis) -> None:
    """Linear from zero; or by logarithms, whose ticks are powers of the base."""
    from lxml import etree

    values = [value for value in figure.values if value > 0]
    if not asked.log or not values:
        if figure.kind is not Kind.STACKED and values:
            ticks = time_ticks(max(values) * 1.03, most=6)
            axis.minimum_scale, axis.maximum_scale, axis.major_unit = 0, ticks[-1], ticks[1]
        return
    base = log_base(values)
    axis.minimum_scale = base ** math.floor(math.log(min(values), base) + 1e-9)
    axis.maximum_scale = base ** math.ceil(math.log(max(values), base) - 1e-9)
    axis.tick_labels.number_format = "[<1]0.0##;0"
    axis.major_unit = base  # without it other programs step by tens whatever the base is
    scaling = axis._element.find("{*}scaling")
    scaling.insert(0, etree.fromstring(f'<c:logBase {_NS} val="{base}"/>'))


def log_base(values: list[float]) -> int:
    """2 where that gives few enough ticks, else 10."""
    return 2 if max(values) / min(values) <= 200 else 10


def _crosses_at_far_end(across: Any) -> None:
    """The first row on top, and yet the value axis at the bottom."""
    across._element.getparent().xpath("./c:valAx/c:crosses")[0].set("val", "max")


def _ends(chart: Any, figure: Figure, points: float) -> None:
    """Marker, name and last value at the end of each line, moved apart from each other; so there is no legend."""
    from lxml import etree

    left, top, wide, high = _INNER
    area = chart._chartSpace.xpath(".//c:plotArea")[0]
    old = area.find("{*}layout")
    if old is not None:
        area.remove(old)
    area.insert(0, etree.fromstring(_LAYOUT.format(ns=_NS, x=left, y=top, w=wide, h=high)))
    axis = chart.value_axis
    low, most = axis.minimum_scale or 0.0, axis.maximum_scale or max(figure.values)
    scale = math.log if figure.up.log else float
    ends = []
    for series, element in zip(figure.series, chart._chartSpace.xpath(".//c:ser"), strict=True):
        last = [n for n, point in enumerate(series.points) if point.value]
        if last:
            value = series.points[last[-1]].value or 0.0
            share = (scale(value) - scale(low)) / (scale(most) - scale(low))
            ends.append((top + high * (1 - share), last[-1], element))
    ends.sort(key=lambda end: end[0])
    places = spread([end[0] for end in ends], points * 1.5 / _CHART_PT, top, top + high)
    for (at, place, element), wished in zip(ends, places, strict=True):
        size = round(points * 100)
        element.find("{*}cat").addprevious(
            etree.fromstring(
                _LABEL.format(ns=_NS, n=place, y=f"{wished - at:.4f}", size=size, ink=_ink("text"))
            )
        )


def _ink(token: str) -> str:
    return palette.load("light").tokens[token].removeprefix("#")


def _gaps(chart: Any) -> None:
    from lxml import etree

    space = chart._chartSpace.find("{*}chart")
    old = space.find("{*}dispBlanksAs")
    if old is not None:
        old.set("val", "gap")
        return
    space.append(etree.fromstring(f'<c:dispBlanksAs {_NS} val="gap"/>'))


def _numbered(chart: Any) -> None:
    """Axes by numbers that are none below zero, as the schema wants them; python-pptx writes others."""
    for element in chart._chartSpace.xpath(".//c:axId | .//c:crossAx"):
        element.set("val", element.get("val").lstrip("-"))


def _error_bars(chart: Any, figure: Figure) -> None:
    """Intervals as real error bars, whose lengths stand in the chart's data sheet and can be edited there."""
    from lxml import etree

    with_bars = [series for series in figure.series if any(p.low is not None for p in series.points)]
    if not with_bars:
        return
    chart.part.chart_workbook.update_from_xlsx_blob(_sheet(figure, with_bars))
    for series, element in zip(figure.series, chart._chartSpace.xpath(".//c:ser"), strict=True):
        if series not in with_bars:
            continue
        column = 1 + len(figure.series) + 2 * with_bars.index(series)
        above = _numbers(column, [point.above for point in series.points])
        below = _numbers(column + 1, [point.below for point in series.points])
        direction = '<c:errDir val="y"/>' if figure.kind is Kind.LINE else ""
        hue = series.look.colour.removeprefix("#") if figure.kind is Kind.LINE else "1C2127"
        text = (
            f'<c:errBars {_NS}>{direction}<c:errBarType val="both"/><c:errValType val="cust"/>'
            f'<c:noEndCap val="0"/><c:plus>{above}</c:plus><c:minus>{below}</c:minus>'
            f'<c:spPr><a:ln w="11430"><a:solidFill><a:srgbClr val="{hue}"/></a:solidFill></a:ln></c:spPr></c:errBars>'
        )
        element.find("{*}cat").addprevious(etree.fromstring(text))


def _numbers(column: int, values: list[float | None]) -> str:
    from xlsxwriter.utility import xl_col_to_name

    name = xl_col_to_name(column)
    points = "".join(
        f'<c:pt idx="{n}"><c:v>{value!r}</c:v></c:pt>' for n, value in enumerate(values) if value is not None
    )
    return (
        f"<c:numRef><c:f>Sheet1!${name}$2:${name}${len(values) + 1}</c:f><c:numCache>"
        f'<c:formatCode>General</c:formatCode><c:ptCount val="{len(values)}"/>{points}</c:numCache></c:numRef>'
    )


def _sheet(figure: Figure, with_bars: list[Series]) -> bytes:
    """The data sheet as python-pptx lays it out, and after it the lengths of the error bars."""
    from xlsxwriter import Workbook

    file = io.BytesIO()
    with Workbook(file, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}) as book:
        sheet = book.add_worksheet("Sheet1")
        number = book.add_format({"num_format": "0.000"})
        sheet.write_column(1, 0, figure.categories)
        columns = [(series.name, [point.value for point in series.points]) for series in figure.series]
        for series in with_bars:
            columns.append((f"{series.name}, above", [point.above for point in series.points]))
            columns.append((f"{series.name}, below", [point.below for point in series.points]))
        for column, (head, values) in enumerate(columns, 1):
            sheet.write_string(0, column, head)
            for row, value in enumerate(values, 1):
                if value is not None:
                    sheet.write_number(row, column, value, number)
    return file.getvalue()
