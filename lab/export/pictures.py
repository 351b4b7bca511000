"""A figure as a picture: PNG of any resolution, always light."""

from __future__ import annotations

import struct
import zlib
from contextlib import ExitStack
from importlib import resources
from pathlib import Path

from lab.export import drawing
from lab.export.figures import Figure

_CSS_DPI = 96
_INCH_M = 0.0254


def png(figure: Figure, dpi: int = 200) -> bytes:
    """The figure as a PNG that says its resolution, so that it is put into a text in its true size."""
    import resvg_py

    with ExitStack() as open_files:
        fonts = [
            str(open_files.enter_context(resources.as_file(file)))
            for file in resources.files("resources").joinpath("fonts").iterdir()
            if Path(file.name).suffix in (".otf", ".ttf")
        ]
        data = resvg_py.svg_to_bytes(
            svg_string=drawing.svg(figure), zoom=dpi / _CSS_DPI, font_files=fonts, sans_serif_family="Inter"
        )
    return _with_resolution(bytes(data), dpi)


def _with_resolution(data: bytes, dpi: int) -> bytes:
    """The same PNG with a `pHYs` chunk (PNG, third edition, 11.3.4.3) after its head."""
    per_metre = round(dpi / _INCH_M)
    body = b"pHYs" + struct.pack(">IIB", per_metre, per_metre, 1)
    chunk = struct.pack(">I", 9) + body + struct.pack(">I", zlib.crc32(body))
    head = 8 + 4 + 4 + 13 + 4  # signature and the chunk IHDR
    return data[:head] + chunk + data[head:]
