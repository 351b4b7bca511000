"""Colour arithmetic: mixing in OKLab, contrast, CIEDE2000, and what colour-blind people see. Pure."""

from __future__ import annotations

from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

Rgb = tuple[float, float, float]

BLINDNESS: dict[str, tuple[Rgb, Rgb, Rgb]] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""Matrices at full severity on linear RGB, by Machado, Oliveira and Fernandes (2009)."""


def parsed(text: str) -> Rgb:
    """sRGB from 0 to 1 of `#RRGGBB`."""
    return int(text[1:3], 16) / 255, int(text[3:5], 16) / 255, int(text[5:7], 16) / 255


def written(rgb: Rgb) -> str:
    """`#RRGGBB` of sRGB from 0 to 1."""
    return "#" + "".join(f"{round(min(1.0, max(0.0, part)) * 255):02X}" for part in rgb)


def mix(ground: str, colour: str, share: float) -> str:
    """`share` of `colour` over `ground`, mixed evenly to the eye (OKLab)."""
    a, b = _oklab(_linear(parsed(ground))), _oklab(_linear(parsed(colour)))
    mixed = (
        a[0] + (b[0] - a[0]) * share,
        a[1] + (b[1] - a[1]) * share,
        a[2] + (b[2] - a[2]) * share,
    )
    return written(_gamma(_from_oklab(mixed)))


def ramp(ground: str, colour: str, steps: int) -> list[str]:
    """Slow (pale) to fast (strong): `steps` colours, the last one the full colour."""
    if steps == 1:
        return [colour]
    return [mix(ground, colour, 0.30 + 0.70 * step / (steps - 1)) for step in range(steps)]


def contrast(a: str, b: str) -> float:
    """The ratio of luminances that WCAG 2 defines, 1 to 21."""
    one, two = _luminance(a), _luminance(b)
    return (max(one, two) + 0.05) / (min(one, two) + 0.05)


def difference(a: str, b: str, blindness: str = "normal") -> float:
    """CIEDE2000 between two colours, as somebody with this colour vision (a key of `BLINDNESS`) sees them."""
    return _ciede2000(_cielab(_seen(a, blindness)), _cielab(_seen(b, blindness)))


def _seen(colour: str, blindness: str) -> Rgb:
    r, g, b = _linear(parsed(colour))
    one, two, three = (
        min(1.0, max(0.0, row[0] * r + row[1] * g + row[2] * b)) for row in BLINDNESS[blindness]
    )
    return one, two, three


def _luminance(colour: str) -> float:
    r, g, b = _linear(parsed(colour))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def _linear(rgb: Rgb) -> Rgb:
    r, g, b = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb)
    return r, g, b


def _gamma(rgb: Rgb) -> Rgb:
    def one(part: float) -> float:
        part = max(0.0, part)
        return part * 12.92 if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055

    return one(rgb[0]), one(rgb[1]), one(rgb[2])


def _oklab(rgb: Rgb) -> Rgb:
    r, g, b = rgb
    long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    middle = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


def _from_oklab(lab: Rgb) -> Rgb:
    light, a, b = lab
    long = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (light - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )


def _cielab(rgb: Rgb) -> Rgb:
    r, g, b = rgb
    x = (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047
    y = 0.2126729 * r + 0.7151522 * g + 0.0721750 * b
    z = (0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883

    def root(part: float) -> float:
        return part ** (1 / 3) if part > 216 / 24389 else (24389 / 27 * part + 16) / 116

    fx, fy, fz = root(x), root(y), root(z)
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def _ciede2000(one: Rgb, two: Rgb) -> float:
    mean_c7 = ((hypot(one[1], one[2]) + hypot(two[1], two[2])) / 2) ** 7
    g = 0.5 * (1 - sqrt(mean_c7 / (mean_c7 + 25**7)))
    a1, a2 = one[1] * (1 + g), two[1] * (1 + g)
    c1, c2 = hypot(a1, one[2]), hypot(a2, two[2])
    h1, h2 = degrees(atan2(one[2], a1)) % 360, degrees(atan2(two[2], a2)) % 360
    dl, dc = two[0] - one[0], c2 - c1
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    dh = 2 * sqrt(c1 * c2) * sin(radians(turn / 2))
    ml, mc = (one[0] + two[0]) / 2, (c1 + c2) / 2
    mh = h1 + h2 if c1 * c2 == 0 else (h1 + turn / 2) % 360
    t = (
        1
        - 0.17 * cos(radians(mh - 30))
        + 0.24 * cos(radians(2 * mh))
        + 0.32 * cos(radians(3 * mh + 6))
        - 0.20 * cos(radians(4 * mh - 63))
    )
    sl = 1 + 0.015 * (ml - 50) ** 2 / sqrt(20 + (ml - 50) ** 2)
    sc, sh = 1 + 0.045 * mc, 1 + 0.015 * mc * t
    rotation = -2 * sqrt(mc**7 / (mc**7 + 25**7)) * sin(radians(60 * exp(-(((mh - 275) / 25) ** 2))))
    return sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + rotation * dc / sc * dh / sh)
