"""The presentation that slides are put into: BranchLab's own, made here from the palette, or a company's file."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab import palette
from lab.errors import BadInput

if TYPE_CHECKING:
    from pptx.presentation import Presentation

PX = 9525
"""English Metric Units of a pixel: the look is measured on 1280×720, 96 of them to the inch."""
SIZES = {"16:9": (1280, 720), "4:3": (960, 720)}
_MAIN = "application/vnd.openxmlformats-officedocument.presentationml.{}.main+xml"
_MOST = 200 * 2**20
_INKS = ("text", "surface", "text2", "sunken")
_KEPT = ("title", "obj", "titleOnly")
_HAIR = """<p:cxnSp xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"
 xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><p:nvCxnSpPr><p:cNvPr id="90" name="Foot line"/>
<p:cNvCxnSpPr/><p:nvPr userDrawn="1"/></p:nvCxnSpPr><p:spPr><a:xfrm><a:off x="{x}" y="{y}"/><a:ext cx="{w}" cy="0"/>
</a:xfrm><a:prstGeom prst="line"><a:avLst/></a:prstGeom><a:ln w="9525"><a:solidFill><a:srgbClr val="{hair}"/>
</a:solidFill></a:ln></p:spPr></p:cxnSp>"""


def own(size: str = "16:9") -> Presentation:
    """BranchLab's template, `16:9` or `4:3`: title, title and content, title only. Raises BadInput otherwise."""
    import pptx

    if size not in SIZES:
        raise BadInput(f"there are no slides of {size}", advice=f"Write {' or '.join(SIZES)}.")
    made = pptx.Presentation()
    width, height = SIZES[size]
    made.slide_width, made.slide_height = width * PX, height * PX  # type: ignore[assignment]
    for layout in list(made.slide_layouts):
        if layout._element.get("type") not in _KEPT:  # python-pptx has no call for it
            made.slide_layouts.remove(layout)
    _themed(made.slide_master)
    _placed(made, width, height)
    return made


def theirs(path: Path) -> Presentation:
    """A company's `.pptx` or `.potx`, without the slides in it; its layouts, fonts and colours stay.

    Raises BadInput for anything else.
    """
    made = presentation(path)
    _emptied(made)
    return made


def presentation(path: Path) -> Presentation:
    """A presentation or template as it is. Raises BadInput for anything else."""
    import pptx

    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: it cannot be read: {error.strerror}") from error
    try:
        made = pptx.Presentation(io.BytesIO(_as_presentation(data)))
        layouts = len(made.slide_layouts)
    except Exception as error:
        raise BadInput(
            f"{path}: this is no PowerPoint presentation or template",
            advice="Save it in PowerPoint as .pptx or .potx, without a password, and try again.",
        ) from error
    if not layouts:
        raise BadInput(f"{path}: it has no layouts")
    return made


def _as_presentation(data: bytes) -> bytes:
    """The same package, called a presentation: python-pptx refuses templates and shows by their content type."""
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        if sum(item.file_size for item in package.infolist()) > _MOST:
            raise ValueError("too large")
        types = package.read("[Content_Types].xml")
        plain = types
        for kind in ("template", "slideshow"):
            plain = plain.replace(_MAIN.format(kind).encode(), _MAIN.format("presentation").encode())
        if plain == types:
            return data
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as copy:
            for item in package.infolist():
                copy.writestr(item, plain if item.filename == "[Content_Types].xml" else package.read(item))
    return made.getvalue()


def _emptied(made: Presentation) -> None:
    ids = made.slides._sldIdLst  # python-pptx cannot remove slides
    for one in list(ids):
        made.part.drop_rel(one.rId)
        ids.remove(one)
    # Sections name slides by their numbers; PowerPoint repairs a file whose sections name slides that are gone.
    for section in made._element.xpath(".//*[local-name()='sectionLst']"):
        extension = section.getparent()
        extension.getparent().remove(extension)


def _themed(master: Any) -> None:
    """Theme colours in the order of the look, and Arial, which is everywhere."""
    light = palette.load("light")
    inks = [light.tokens[name] for name in _INKS]
    states = [light.states[name] for name in ("disabled", "empty", "ninety", "full", "other")]
    colours = [*inks, *states, light.tokens["accent"], light.tokens["accent"], light.states["ninety"]]
    names = ("dk1", "lt1", "dk2", "lt2", *(f"accent{n}" for n in range(1, 7)), "hlink", "folHlink")
    scheme = "".join(
        f'<a:{name}><a:srgbClr val="{hue.removeprefix("#")}"/></a:{name}>'
        for name, hue in zip(names, colours, strict=True)
    )
    part = master.part.part_related_by(
        "http://schemas.openxmlformats.org/officeDocument/2006/relationships/theme"
    )
    text = part.blob.decode("utf-8")
    text = re.sub(
        r"<a:clrScheme.*?</a:clrScheme>", f'<a:clrScheme name="BranchLab">{scheme}</a:clrScheme>', text
    )
    text = re.sub(r'<a:latin typeface="[^"]*"', '<a:latin typeface="Arial"', text)
    part._blob = text.replace('name="Office Theme"', 'name="BranchLab"').encode()


def _placed(made: Presentation, width: int, height: int) -> None:
    """Placeholders where the look has them, on the master; layouts take them from there."""
    from lxml import etree
    from pptx.util import Pt

    margin = 64 if width > 1000 else 48
    inner, foot = width - 2 * margin, 684
    boxes = {
        "title": (margin, 40, inner, 94),
        "body": (margin, 140, inner, 510),
        "ftr": (margin, foot, inner - 120, 24),
        "sldNum": (width - margin - 100, foot, 100, 24),
        "dt": (margin + inner // 2, foot, 120, 24),
    }
    master = made.slide_master
    for shape in master.placeholders:
        kind = shape._element.xpath("string(.//p:ph/@type)") or "body"
        _put(shape, boxes[kind])
        _inset(shape, "b" if kind == "title" else "ctr" if kind in ("ftr", "sldNum", "dt") else "t")
        if kind in ("ftr", "sldNum"):
            level = next(shape._element.iter("{*}lvl1pPr"))
            level.set("algn", "l" if kind == "ftr" else "r")
            level.find("{*}defRPr").set("sz", "1050")
    hair = palette.load("light").tokens["hair"].removeprefix("#")
    line = _HAIR.format(x=margin * PX, y=676 * PX, w=inner * PX, hair=hair)
    master.shapes._spTree.append(etree.fromstring(line))
    _styled(master, Pt)
    for layout in made.slide_layouts:
        for shape in list(layout.placeholders):
            kind = shape._element.xpath("string(.//p:ph/@type)")
            if kind == "ctrTitle":
                _put(shape, (margin, 200, inner, 150))
                _inset(shape, "b")
            elif kind == "subTitle":
                _put(shape, (margin, 366, inner, 150))
                for level in shape._element.xpath(".//*[@algn='ctr']"):
                    level.set("algn", "l")
            elif kind == "dt":
                shape._element.getparent().remove(shape._element)


def _put(shape: Any, box: tuple[int, int, int, int]) -> None:
    shape.left, shape.top, shape.width, shape.height = (value * PX for value in box)


def _inset(shape: Any, anchor: str) -> None:
    body = shape._element.xpath(".//a:bodyPr")[0]
    for side in ("lIns", "rIns", "tIns", "bIns"):
        body.set(side, "0")
    body.set("anchor", anchor)


def _styled(master: Any, points: Any) -> None:
    """Titles left and bold; text of 24 px (18 points) and less the deeper it is."""
    styles = master._element.find("{*}txStyles")
    level = styles.find("{*}titleStyle/{*}lvl1pPr")
    level.set("algn", "l")
    run = level.find("{*}defRPr")
    run.set("sz", "2550")
    run.set("b", "1")
    for number, size in enumerate((18, 18, 16, 16, 16), 1):
        for run in styles.findall(f"{{*}}bodyStyle/{{*}}lvl{number}pPr/{{*}}defRPr"):
            run.set("sz", str(int(points(size).pt * 100)))
