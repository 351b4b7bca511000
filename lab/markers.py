"""The outlines of the markers of proxy states, for whoever draws them."""

from __future__ import annotations

from math import cos, pi, sin

RADIUS = 0.47
"""Of the disc, which has no corners."""


def outline(shape: str) -> tuple[tuple[float, float], ...]:
    """The corners of a marker of size 1 around the origin, y downward; none for the disc."""
    fixed = {
        "disc": (),
        "square": ((-0.42, -0.42), (0.42, -0.42), (0.42, 0.42), (-0.42, 0.42)),
        "down": ((-0.54, -0.42), (0.54, -0.42), (0.0, 0.52)),
        "diamond": ((0.0, -0.58), (0.58, 0.0), (0.0, 0.58), (-0.58, 0.0)),
    }
    if shape in fixed:
        return fixed[shape]
    if shape == "star":
        return _round(10, 0.58, 0.25)
    return _round({"pentagon": 5, "hexagon": 6}[shape], 0.53, 0.53)


def _round(corners: int, outer: float, inner: float) -> tuple[tuple[float, float], ...]:
    points = []
    for n in range(corners):
        reach = inner if n % 2 else outer
        angle = 2 * pi * n / corners - pi / 2
        points.append((reach * cos(angle), reach * sin(angle)))
    return tuple(points)
