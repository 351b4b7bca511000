"""One deck being written: slides from a template's layouts, their placeholders filled by kind, text made to fit."""

from __future__ import annotations

import copy
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab import palette
from lab.export import deck_charts, fitting
from lab.export.deck_template import PX
from lab.export.figures import Figure
from lab.export.files import clean
from lab.export.tables import Entry, Table

if TYPE_CHECKING:
    from pptx.presentation import Presentation

PT = 0.75
"""Points of a pixel of the look."""
ROW_PX = 64
NO_STYLE = "{2D5ABB26-0587-4C30-8999-92F81FD0307C}"
"""PowerPoint's table style *No Style, No Grid*."""
CHART_PX = 18
NOTE = " note"
"""How the name of the text under a chart ends."""
MARK = "BranchLab "
"""How the names of charts and tables begin that an update may change."""
_HAIR = (
    '<a:lnB xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" w="9525"><a:solidFill>'
    '<a:srgbClr val="{}"/></a:solidFill></a:lnB>'
)


@dataclass(frozen=True, slots=True)
class Box:
    """A place on a slide, in pixels of 1/96 inch."""

    x: float
    y: float
    w: float
    h: float

    @property
    def emu(self) -> tuple[int, int, int, int]:
        """The same for python-pptx."""
        return round(self.x * PX), round(self.y * PX), round(self.w * PX), round(self.h * PX)


class Slides:
    """Slides written one after another into a presentation."""

    def __init__(self, made: Presentation, source: str) -> None:
        self._made, self._source = made, source
        self._light = palette.load("light")
        self._width = int(made.slide_width or 0) / PX
        self._height = int(made.slide_height or 0) / PX
        # A template may be of another size than 1280×720; text and rows go with it.
        self._scale = max(0.6, min(2.0, self._height / 720))

    def opening(self, title: str, under: str, notes: str) -> None:
        """The title slide."""
        slide = self._slide(("title", "ctrTitle"), title, 44, lines=3)
        for shape in list(slide.placeholders):
            if shape.placeholder_format.type is not None and _kind(shape) in ("subTitle", "body", "obj"):
                self._say(shape.text_frame, under, 24, ink="text2")
                break
        self._finish(slide, notes)

    def answers(self, title: str, rows: Sequence[tuple[str, str, str]], notes: str) -> None:
        """Numbers with what they say: number, question, sentence."""
        slide = self._slide(("titleOnly",), title)
        area = self._area(slide)
        step = area.h / max(3, len(rows))
        left, scale = 170 * area.w / 1152, self._scale
        room = step - 32 * scale
        sizes = [
            fitting.fitted(text, (area.w - left) * 1.1, room, 24 * scale, least=12) for _, _, text in rows
        ]
        size = min(sizes, default=0) / scale
        for place, (number, asked, text) in enumerate(rows):
            top = area.y + place * step
            self._text(slide, Box(area.x, top, left, step - 6), number, 38, bold=True)
            box = self._text(slide, Box(area.x + left, top, area.w - left, step - 6), asked, 16, ink="text2")
            paragraph = box.text_frame.add_paragraph()
            self._run(paragraph, text, size)
        self._finish(slide, notes)

    def figure(self, figure: Figure) -> None:
        """A native chart; what is missing in it, and what its points are, in a line under it."""
        slide = self._slide(("chart", "obj", "titleOnly"), figure.title)
        area = self._area(slide)
        under = beneath(figure)
        chart_box = Box(area.x, area.y, area.w, area.h - 44)
        place = self._placeholder(slide, ("chart", "obj", ""))
        if figure.empty:
            self._drop(place)
            self._text(slide, chart_box, "No kept attempt to draw.", 24, ink="text3")
        else:
            frame = self._chart(slide, place, chart_box, figure)
            frame.name = f"{MARK}{figure.key}"
            described(frame, figure.alternative)
            deck_charts.dressed(frame.chart, figure, CHART_PX * PT * self._scale)
        size = fitting.fitted(under, area.w, 40 * self._scale, 16 * self._scale, least=10) / self._scale
        foot = Box(area.x, area.y + area.h - 40, area.w, 40)
        self._text(slide, foot, under, size, ink="text2", anchor="b").name = f"{MARK}{figure.key}{NOTE}"
        self._finish(slide, f"{figure.title} {figure.measured} {figure.note}".strip())

    def table(self, table: Table, notes: str, title: str = "") -> None:
        """A native table, on as many slides as its rows need."""
        area = self._area(None)
        widths = fitting.shares(table)
        room = area.h - 40 * self._scale
        size = fitting.text_size(table, widths, area.w, room, self._scale)
        parts = fitting.pages_of(table, widths, area.w, room, size)
        for number, rows in enumerate(parts, 1):
            more = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
            slide = self._slide(("tbl", "obj", "titleOnly"), (title or table.title) + more)
            here = self._area(slide)
            place = self._placeholder(slide, ("tbl", "obj", ""))
            heights = fitting.row_heights(table, rows, widths, here.w, size)
            spare = (room - sum(heights)) / len(heights)
            heights = [
                min(ROW_PX * self._scale, high + spare) if high < ROW_PX * self._scale else high
                for high in heights
            ]
            frame = self._grid(
                slide, place, Box(here.x, here.y, here.w, sum(heights)), len(heights), len(widths)
            )
            frame.name = f"{MARK}{table.key}" + (f" {number}" if number > 1 else "")
            described(frame, f"{table.title} {table.sub}")
            self._filled(frame.table, table, rows, heights, [share * here.w for share in widths], size)
            foot = Box(here.x, here.y + here.h - 32 * self._scale, here.w, 32 * self._scale)
            told = f"{table.sub[:1].upper()}{table.sub[1:]}." if table.sub else ""
            self._text(slide, foot, told, 16, ink="text2", anchor="b")
            self._finish(slide, notes)

    def _slide(self, wanted: Sequence[str], title: str, size: float = 34, lines: int = 2) -> Any:
        layout = self._layout(wanted)
        slide = self._made.slides.add_slide(layout)
        head = slide.shapes.title
        if head is None:
            head = slide.shapes.add_textbox(*Box(64, 40, self._width - 128, 94).emu)
        width, height = int(head.width) / PX, int(head.height) / PX
        room = max(40.0, min(height, size * self._scale * fitting.LINE * (lines + 0.3)))
        wished = min(size * self._scale, _title_px(layout) or size * self._scale)
        theirs = _title_px(layout) > wished
        self._say(head.text_frame, title, wished if theirs else 0, fit=(width, room, wished))
        return slide

    def _layout(self, wanted: Sequence[str]) -> Any:
        """The first layout that has a title and, of the kinds wanted, the best one's placeholder."""
        layouts = [layout for layout in self._made.slide_layouts if _has(layout, ("title", "ctrTitle"))]
        layouts = layouts or list(self._made.slide_layouts)
        for kind in wanted:
            for layout in layouts:
                if layout._element.get("type") == kind:  # a layout's kind has no call
                    return layout
            if kind in ("chart", "tbl", "obj"):
                alone = [layout for layout in layouts if len(_content(layout)) == 1 and _has(layout, (kind,))]
                if alone:
                    return alone[0]
        return min(layouts, key=lambda layout: len(_content(layout)))

    def _area(self, slide: Any) -> Box:
        """Where content goes: the layout's own place for it, else between title and foot."""
        place = self._placeholder(slide, ("chart", "tbl", "obj", "")) if slide is not None else None
        if place is not None and place.width and place.height:
            return Box(*(int(v) / PX for v in (place.left, place.top, place.width, place.height)))
        margin = 64 if self._width > 1000 else 48
        top, bottom, left, wide = (
            140 * self._scale,
            650 * self._scale,
            float(margin),
            self._width - 2 * margin,
        )
        title = slide.shapes.title if slide is not None else None
        if title is not None and title.width:
            left, wide = int(title.left) / PX, int(title.width) / PX
            top = (int(title.top) + int(title.height)) / PX + 8
        feet = (
            [int(s.top) / PX for s in slide.slide_layout.placeholders if _kind(s) in ("ftr", "sldNum", "dt")]
            if slide
            else []
        )
        low = [foot for foot in feet if foot > self._height / 2]
        return Box(left, top, wide, max(120.0, min([bottom, *(foot - 8 for foot in low)]) - top))

    def _placeholder(self, slide: Any, kinds: Sequence[str]) -> Any:
        for kind in kinds:
            for shape in slide.placeholders:
                if (shape._element.xpath("string(.//p:ph/@type)") or "") == kind and not shape.has_chart:
                    return shape
        return None

    def _chart(self, slide: Any, place: Any, box: Box, figure: Figure) -> Any:
        from pptx.shapes.placeholder import ChartPlaceholder

        if place is None:
            return slide.shapes.add_chart(deck_charts.kind(figure), *box.emu, deck_charts.data(figure))
        # A placeholder for any content takes a chart as one for charts does.
        frame = ChartPlaceholder(place._element, place._parent).insert_chart(
            deck_charts.kind(figure), deck_charts.data(figure)
        )
        frame.left, frame.top, frame.width, frame.height = box.emu
        return frame

    def _grid(self, slide: Any, place: Any, box: Box, rows: int, columns: int) -> Any:
        from pptx.shapes.placeholder import TablePlaceholder

        if place is None:
            return slide.shapes.add_table(rows, columns, *box.emu)
        frame = TablePlaceholder(place._element, place._parent).insert_table(rows=rows, cols=columns)
        frame.left, frame.top, frame.width, frame.height = box.emu
        return frame

    def _filled(
        self,
        grid: Any,
        table: Table,
        rows: Sequence[Sequence[Entry]],
        heights: Sequence[float],
        widths: Sequence[float],
        size: float,
    ) -> None:
        grid._tbl.tblPr.find("{*}tableStyleId").text = NO_STYLE  # styles have no call
        grid.horz_banding = False
        grid.first_row = bool(fitting.head_row(table))
        for column, wide in zip(grid.columns, widths, strict=True):
            column.width = round(wide * PX)
        for row, entries, high in zip(grid.rows, (*fitting.head_row(table), *rows), heights, strict=True):
            row.height = round(high * PX)
            for n, entry in enumerate(entries):
                self._cell(row.cells[n], entry, size, right=table.numeric[n])

    def _cell(self, cell: Any, entry: Entry, size: float, *, right: bool) -> None:
        from lxml import etree
        from pptx.enum.text import MSO_ANCHOR, PP_ALIGN

        cell.margin_left = cell.margin_right = round(6 * PX)
        cell.margin_top = cell.margin_bottom = 0
        cell.vertical_anchor = MSO_ANCHOR.MIDDLE
        paragraph = cell.text_frame.paragraphs[0]
        self._run(paragraph, entry.text, size / self._scale, bold=entry.bold, ink=entry.tone or "text")
        if right:
            paragraph.alignment = PP_ALIGN.RIGHT
        hair = self._light.tokens["hair"].removeprefix("#")
        cell._tc.get_or_add_tcPr().insert(0, etree.fromstring(_HAIR.format(hair)))

    def _text(
        self,
        slide: Any,
        box: Box,
        text: str,
        size: float,
        *,
        bold: bool = False,
        ink: str = "text",
        anchor: str = "t",
    ) -> Any:
        made = slide.shapes.add_textbox(*box.emu)
        frame = made.text_frame
        frame.word_wrap = True
        frame.margin_left = frame.margin_right = frame.margin_top = frame.margin_bottom = 0
        frame._txBody.bodyPr.set("anchor", anchor)
        self._run(frame.paragraphs[0], text, size, bold=bold, ink=ink)
        return made

    def _say(
        self,
        frame: Any,
        text: str,
        size: float,
        *,
        ink: str = "",
        fit: tuple[float, float, float] | None = None,
    ) -> None:
        """Text into a placeholder, whose font and colour stay the template's unless they are given."""
        told = clean(text).replace("\n", " ")
        frame.text = ""
        points = None
        if fit is not None:
            width, height, wished = fit
            pixels = fitting.fitted(told, width, height, wished)
            told = fitting.cut(told, width, height, pixels)
            points = pixels * PT if pixels < wished or size else None
        elif size:
            points = size * PT * self._scale
        run = frame.paragraphs[0].add_run()
        run.text = told
        if points is not None:
            run.font.size = _pt(points)
        if ink:
            run.font.color.rgb = inked(ink)
        _direction(frame.paragraphs[0], told)

    def _run(self, paragraph: Any, text: str, size: float, *, bold: bool = False, ink: str = "text") -> None:
        run = paragraph.add_run()
        run.text = clean(text)
        run.font.size = _pt(size * PT * self._scale)
        run.font.bold = bold
        run.font.color.rgb = inked(ink)
        _direction(paragraph, text)

    def _finish(self, slide: Any, notes: str) -> None:
        """Foot and number where the layout has them, no empty placeholder left, and the notes."""
        for shape in list(slide.placeholders):
            if shape.has_text_frame and not shape.text_frame.text.strip():
                self._drop(shape)
        for shape in slide.slide_layout.placeholders:
            if _kind(shape) in ("ftr", "sldNum"):
                element = copy.deepcopy(shape._element)  # python-pptx leaves feet out
                slide.shapes._spTree.append(element)
                element.xpath(".//p:cNvPr")[0].set("id", str(900 + len(slide.shapes)))
        for shape in slide.placeholders:
            if _kind(shape) == "ftr":
                shape.text_frame.text = self._source
                # LibreOffice takes a foot without properties of its own for its own, in its own font.
                theirs = _foot_alignment(slide.slide_layout)
                shape.text_frame.paragraphs[0]._p.get_or_add_pPr().set("algn", theirs)
        slide.notes_slide.notes_text_frame.text = clean(notes)

    def _drop(self, shape: Any) -> None:
        if shape is not None:
            shape._element.getparent().remove(shape._element)  # there is no call for it


def _kind(shape: Any) -> str:
    return str(shape._element.xpath("string(.//p:ph/@type)")) or "obj"


def _has(layout: Any, kinds: Sequence[str]) -> bool:
    return any(_kind(shape) in kinds for shape in layout.placeholders)


def _content(layout: Any) -> list[Any]:
    """The placeholders of a layout that want content."""
    around = ("title", "ctrTitle", "ftr", "sldNum", "dt")
    return [shape for shape in layout.placeholders if _kind(shape) not in around]


def _foot_alignment(layout: Any) -> str:
    """How a template aligns its foot."""
    for shapes in (layout.placeholders, layout.slide_master.placeholders):
        for shape in shapes:
            if _kind(shape) == "ftr":
                for level in shape._element.iterfind(".//{*}lstStyle/{*}lvl1pPr[@algn]"):
                    return str(level.get("algn"))
    return "l"


def beneath(figure: Figure) -> str:
    """What stands under a chart: what its points are, and what is missing in it."""
    sub = f"{figure.sub[:1].upper()}{figure.sub[1:]}." if figure.sub else ""
    return " ".join(part for part in (sub, figure.note) if part)


def inked(token: str) -> Any:
    """A colour of the light palette by its token."""
    return deck_charts.rgb(palette.load("light").tokens[token])


def described(frame: Any, text: str) -> None:
    """Alternative text for who cannot see a chart or a table."""
    frame._element.xpath(".//p:cNvPr")[0].set("descr", clean(text)[:2000])  # no call for it


def _title_px(layout: Any) -> float:
    """The size in pixels that a layout's titles have by themselves; 0 where the template does not say."""
    for shapes in (layout.placeholders, layout.slide_master.placeholders):
        for shape in shapes:
            if _kind(shape) in ("title", "ctrTitle"):
                for run in shape._element.iterfind(".//{*}lstStyle/{*}lvl1pPr/{*}defRPr[@sz]"):
                    return int(run.get("sz")) / 100 / PT
    styles = layout.slide_master._element.find("{*}txStyles/{*}titleStyle/{*}lvl1pPr/{*}defRPr[@sz]")
    return 0.0 if styles is None else int(styles.get("sz")) / 100 / PT


def _direction(paragraph: Any, text: str) -> None:
    """Arabic and Hebrew are written from the right."""
    strong = next(
        (unicodedata.bidirectional(c) for c in text if unicodedata.bidirectional(c) in ("L", "R", "AL")), "L"
    )
    if strong != "L":
        properties = paragraph._p.get_or_add_pPr()  # there is no call for it
        properties.set("rtl", "1")
        properties.set("algn", "r")


def _pt(points: float) -> Any:
    from pptx.util import Pt

    return Pt(round(points * 2) / 2)
