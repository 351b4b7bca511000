"""The look in use: palette, fonts and sizes, and word when it changes. Handed to every widget that paints."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication

from lab import palette
from lab.model import ProxyState
from lab.palette import Palette, StateLook

FAMILIES = ["Inter", "Segoe UI", "Noto Sans", "Ubuntu", "DejaVu Sans"]
MONO = ["JetBrains Mono", "Cascadia Mono", "DejaVu Sans Mono"]
_DEFAULT_PX = 13.0
_TNUM = "tnum"


class Look(QObject):
    """Colours by token, fonts by size and weight.

    Signals: `changed` after another palette came into use.
    """

    changed = Signal()

    def __init__(self, name: str = "light", ratio: float = 1.0) -> None:
        super().__init__()
        self.palette: Palette = palette.load(name)
        self._ratio = ratio
        self._fonts: dict[tuple[int, int, bool], QFont] = {}
        self._colours: dict[str, QColor] = {}
        self.scale = ratio
        self.motion = True
        """False: nothing ever moves by itself"""

    def use(self, name: str) -> None:
        """Change to the palette `light` or `dark`."""
        if name != self.palette.name:
            self.palette = palette.load(name)
            self._colours.clear()
            self.changed.emit()

    def token(self, name: str) -> str:
        """A colour as `#RRGGBB`."""
        if name == "waiting_pip":
            return self.palette.mixed(self.palette.tokens["edge"], 0.5)
        return self.palette.tokens[name]

    def colour(self, name: str) -> QColor:
        """A token's colour."""
        found = self._colours.get(name)
        if found is None:
            found = self._colours[name] = QColor(self.token(name))
        return found

    def mixed(self, hue: str, share: float) -> QColor:
        """`share` of a colour over the surface."""
        key = f"{hue} {share}"
        if key not in self._colours:
            self._colours[key] = QColor(self.palette.mixed(hue, share))
        return self._colours[key]

    def pair(self, pair: str, upload: bool = False) -> QColor:
        """The colour of a pair of hosts: full for download, tint for upload."""
        hue = self.palette.pairs[pair]
        return self.mixed(hue, palette.TINT) if upload else self.mixed(hue, 1.0)

    def state(self, state: ProxyState, among: Sequence[ProxyState] = ()) -> StateLook:
        """How a proxy state is drawn."""
        return self.palette.state(state, among)

    def px(self, size: float) -> int:
        """A size of the type scale, in the ratio of the system's font."""
        return max(9, round(size * self._ratio))

    def font(self, size: int = 13, weight: int = 400, *, mono: bool = False) -> QFont:
        """A font by pixels and weight, with tabular figures."""
        key = (size, weight, mono)
        if key not in self._fonts:
            font = QFont()
            font.setFamilies(MONO if mono else FAMILIES)
            font.setPixelSize(self.px(size))
            font.setWeight(QFont.Weight(weight))
            if size >= 18:  # drawn wide for small sizes; tighter as it grows
                font.setLetterSpacing(QFont.SpacingType.PercentageSpacing, 98.5)
            font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
            if not mono:
                font.setFeature(QFont.Tag(_TNUM), 1)
            self._fonts[key] = font
        return self._fonts[key]


@cache
def load_fonts() -> None:
    """Make the shipped fonts known to the application; once."""
    folder = resources.files("resources").joinpath("fonts")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith((".otf", ".ttf")):
            QFontDatabase.addApplicationFontFromData(file.read_bytes())


def system_ratio() -> float:
    """How much larger than usual the system's font is; 1 at its default, which differs by a pixel or two."""
    font = QGuiApplication.font()
    pixels = font.pixelSize() if font.pixelSize() > 0 else font.pointSizeF() * 96 / 72
    return 1.0 if 11 <= pixels <= 15 else min(2.0, max(0.85, pixels / _DEFAULT_PX))


def system_palette() -> str:
    """`dark` where the desktop asks for it."""
    from PySide6.QtCore import Qt

    hints = QGuiApplication.styleHints()
    return "dark" if hints.colorScheme() == Qt.ColorScheme.Dark else "light"
