"""Markers of states, signs, pips and the mark of BranchLab, as painter paths: vector at every scale."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPen, QPolygonF, QTransform

from gui.theme.look import Look
from lab import markers
from lab.palette import StateLook

OK, WARN, TROUBLE, BUSY, UNKNOWN = "ok", "warn", "trouble", "running", "unknown"


def marker(shape: str) -> QPainterPath:
    """A state's marker around the origin, of size 1."""
    path = QPainterPath()
    corners = markers.outline(shape)
    if corners:
        path.addPolygon(QPolygonF([QPointF(x, y) for x, y in corners]))
    else:
        path.addEllipse(QPointF(0, 0), markers.RADIUS, markers.RADIUS)
    path.closeSubpath()
    return path


def draw_marker(
    painter: QPainter,
    look: Look,
    state: StateLook,
    centre: QPointF,
    size: float = 10,
    *,
    hollow: bool = False,
    hatched: bool = False,
    halo: float = 0.0,
) -> None:
    """A state's marker: filled, hollow (warm-up) or hatched (without proof), over a halo of the surface."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(centre)
    scaled = _scaled(marker(state.marker), size)
    if halo:
        pen = QPen(look.colour("surface"), 2 * halo)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        painter.strokePath(scaled, pen)
    hue = QColor(state.colour)
    if hollow or hatched:
        painter.fillPath(scaled, look.colour("surface"))
        if hatched:
            hatch(painter, scaled, hue)
        painter.strokePath(scaled, QPen(hue, 1.4))
    else:
        painter.fillPath(scaled, hue)
    painter.restore()


def hatch(painter: QPainter, path: QPainterPath, hue: QColor, step: float = 3.2) -> None:
    """Fill a path with 45° strokes: there is a value, but no proof."""
    painter.save()
    painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
    painter.setPen(QPen(hue, 1.2))
    box = path.boundingRect()
    x = box.left() - box.height()
    while x < box.right():
        painter.drawLine(QPointF(x, box.bottom()), QPointF(x + box.height(), box.top()))
        x += step
    painter.restore()


def draw_sign(painter: QPainter, look: Look, sign: str, box: QRectF, turn: float = 0.0) -> None:
    """A sign of 12 to 15 px: ok, warn, trouble, running (`turn` from 0 to 1) or unknown."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(box.center())
    painter.scale(box.width() / 14, box.height() / 14)
    {OK: _ok, WARN: _warn, TROUBLE: _trouble}.get(sign, _ring)(painter, look, sign, turn)
    painter.restore()


def draw_ring(painter: QPainter, look: Look, box: QRectF) -> None:
    """Where the keyboard is: 2 px of accent, 2 px outside of a card."""
    painter.save()
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(look.colour("accent"), 2))
    painter.drawRoundedRect(box.adjusted(-3, -3, 3, 3), 10, 10)
    painter.restore()


def draw_pip(painter: QPainter, look: Look, state: StateLook, standing: str, box: QRectF) -> None:
    """One attempt in the matrix. `standing` is one of `lab.live`'s or `lab.events.Standing`'s words."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    hue = QColor(state.colour)
    path = QPainterPath()
    path.addRoundedRect(box.adjusted(0.6, 0.6, -0.6, -0.6), 2, 2)
    if standing == "waiting":
        painter.strokePath(path, QPen(look.colour("waiting_pip"), 1))
    elif standing == "running":
        painter.strokePath(path, QPen(look.colour("accent"), 1.4))
        half = QRectF(box.left() + 2.2, box.top() + 2.2, box.width() * 0.42, box.height() - 4.4)
        painter.fillRect(half, look.colour("accent"))
    elif standing == "failed":
        trouble = look.colour("trouble")
        painter.strokePath(path, QPen(trouble, 1.2))
        _cross(painter, trouble, box.center(), min(box.width(), box.height()) * 0.26, 1.4)
    elif standing == "void":
        hatch(painter, path, hue)
        painter.strokePath(path, QPen(hue, 1.1))
    elif standing == "launch":
        painter.strokePath(path, QPen(hue, 1.1))
        painter.setPen(QPen(hue, 1.2))
        y = box.center().y()
        painter.drawLine(QPointF(box.left() + 2.5, y), QPointF(box.right() - 2.5, y))
    else:
        painter.fillPath(path, look.mixed(state.colour, 0.45))
        painter.strokePath(path, QPen(hue, 1.1))
    painter.restore()


def draw_warm_up(painter: QPainter, look: Look, state: StateLook, standing: str, box: QRectF) -> None:
    """The small hollow square of an attempt that is never counted."""
    if standing in ("failed", "void", "running"):
        grown = box.adjusted(-1, -1, 1, 1)
        draw_pip(painter, look, state, standing, grown)
        return
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    hue = look.colour("waiting_pip") if standing == "waiting" else QColor(state.colour)
    painter.setPen(QPen(hue, 1.1))
    painter.drawRoundedRect(box.adjusted(0.6, 0.6, -0.6, -0.6), 1.5, 1.5)
    painter.restore()


def draw_mark(painter: QPainter, look: Look, box: QRectF) -> None:
    """The mark: a trunk and a branch, three nodes."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(box.topLeft())
    painter.scale(box.width() / 20, box.height() / 20)
    accent = look.colour("accent")
    pen = QPen(accent, 2.2)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    trunk = QPainterPath(QPointF(5, 6))
    trunk.lineTo(5, 14)
    branch = QPainterPath(QPointF(5, 12))
    branch.cubicTo(5, 8.5, 15, 12.5, 15, 7)
    painter.strokePath(trunk, pen)
    painter.strokePath(branch, pen)
    painter.setPen(pen)
    painter.setBrush(look.colour("surface"))
    painter.drawEllipse(QPointF(5, 3.8), 2.5, 2.5)
    painter.setBrush(accent)
    painter.drawEllipse(QPointF(15, 4.6), 2.3, 2.3)
    painter.drawEllipse(QPointF(5, 16.4), 2.0, 2.0)
    painter.restore()


def _ok(painter: QPainter, look: Look, sign: str, turn: float) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(look.colour("ok"))
    painter.drawEllipse(QPointF(0, 0), 6.8, 6.8)
    pen = QPen(look.colour("surface"), 1.7)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    tick = QPainterPath(QPointF(-3, 0.2))
    tick.lineTo(-0.9, 2.3)
    tick.lineTo(3.1, -2)
    painter.strokePath(tick, pen)


def _warn(painter: QPainter, look: Look, sign: str, turn: float) -> None:
    path = QPainterPath()
    path.addPolygon(QPolygonF([QPointF(0, -5.6), QPointF(6, 5.2), QPointF(-6, 5.2)]))
    path.closeSubpath()
    warn = look.colour("warn")
    pen = QPen(warn, 1.8)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.fillPath(path, warn)
    painter.strokePath(path, pen)
    painter.setPen(QPen(look.colour("surface"), 1.5))
    painter.drawLine(QPointF(0, -2.4), QPointF(0, 1.6))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(look.colour("surface"))
    painter.drawEllipse(QPointF(0, 3.6), 0.95, 0.95)


def _trouble(painter: QPainter, look: Look, sign: str, turn: float) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(look.colour("trouble"))
    painter.drawRoundedRect(QRectF(-6.5, -6.5, 13, 13), 2.4, 2.4)
    _cross(painter, look.colour("surface"), QPointF(0, 0), 2.7, 1.7)


def _ring(painter: QPainter, look: Look, sign: str, turn: float) -> None:
    box = QRectF(-5.8, -5.8, 11.6, 11.6)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if sign == BUSY:
        painter.setPen(QPen(look.mixed(look.token("accent"), 0.3), 2))
        painter.drawEllipse(box)
        pen = QPen(look.colour("accent"), 2)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        painter.setPen(pen)
        painter.drawArc(box, round((90 - 360 * turn) * 16), -120 * 16)
        return
    pen = QPen(look.colour("waiting"), 1.5)
    pen.setDashPattern([2.0, 1.6])
    painter.setPen(pen)
    painter.drawEllipse(box)


def _cross(painter: QPainter, hue: QColor, centre: QPointF, reach: float, width: float) -> None:
    pen = QPen(QBrush(hue), width)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(pen)
    x, y = centre.x(), centre.y()
    painter.drawLine(QPointF(x - reach, y - reach), QPointF(x + reach, y + reach))
    painter.drawLine(QPointF(x - reach, y + reach), QPointF(x + reach, y - reach))


def _scaled(path: QPainterPath, size: float) -> QPainterPath:
    return QTransform.fromScale(size, size).map(path)


def rounded(corners: Sequence[tuple[float, float]], radius: float) -> QPainterPath:
    """A path along right-angled corners, each rounded."""
    path = QPainterPath(QPointF(*corners[0]))
    for before, here, after in zip(corners, corners[1:], corners[2:], strict=False):
        one = _towards(here, before, radius)
        two = _towards(here, after, radius)
        path.lineTo(one)
        path.quadTo(QPointF(*here), two)
    path.lineTo(QPointF(*corners[-1]))
    return path


def _towards(start: tuple[float, float], end: tuple[float, float], far: float) -> QPointF:
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = max(1e-6, (dx * dx + dy * dy) ** 0.5)
    part = min(far, length / 2) / length
    return QPointF(start[0] + dx * part, start[1] + dy * part)
