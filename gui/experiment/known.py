"""What there is to choose from: drivers, data sets. Read once; `forget` reads it again."""

from __future__ import annotations

from functools import cache

from lab import recipes, store, units, vcs
from lab.errors import BadInput
from lab.model import OPERATIONS, TrafficClass

DATA = (recipes.QUICK, recipes.LIKE_2008)
CLASS_WORDS = {
    TrafficClass.CACHEABLE: "uses the proxy",
    TrafficClass.SERVER: "asks the server",
    TrafficClass.LOCAL: "no traffic",
    TrafficClass.NOT_APPLICABLE: "n/a",
}
"""What an operation does on the wire, in the words of its card."""


@cache
def driver(name: str) -> vcs.Driver | None:
    """The driver of this name; None where there is none, or it is wrong."""
    try:
        return vcs.driver(name, store.data_folder() / "vcs")
    except BadInput:
        return None


@cache
def titles() -> dict[str, str]:
    """Every driver's title by its name."""
    found = {name: driver(name) for name in sorted(vcs.names(store.data_folder() / "vcs"))}
    return {name: one.title for name, one in found.items() if one is not None}


def classes(name: str) -> dict[str, TrafficClass]:
    """What each operation of a driver does on the wire; nothing where there is no such driver."""
    found = driver(name)
    return {} if found is None else {one: found.traffic_class(one) for one in OPERATIONS}


def data_text(recipe: recipes.Recipe) -> str:
    """`made: 150 files, 600 kB`."""
    files = sum(one.files for one in recipe.extensions)
    size = sum(one.bytes for one in recipe.extensions)
    return f"made: {files} files, {units.bytes_text(size)}".replace(".0 ", " ")


def forget() -> None:
    """Read everything again when it is asked for next."""
    driver.cache_clear()
    titles.cache_clear()
