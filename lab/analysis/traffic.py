"""Question 3: how the traffic is shared between client, proxy and server."""

from __future__ import annotations

from collections.abc import Sequence

from lab.analysis import line_model, words
from lab.analysis.cells import Cell
from lab.analysis.sentences import TRAFFIC, Sentence, named, said, unanswered
from lab.analysis.uses import basis
from lab.analysis.view import Use, View, slowest
from lab.model import DISABLED, ProxyState

_FROM_SERVER = ("server>client", "server>proxy")
_BACK = {"client>server": "server>client", "client>proxy": "proxy>client", "proxy>server": "server>proxy"}


def traffic(view: View) -> tuple[Sequence[Sentence], str]:
    """The sentences, and the share that the proxy served."""
    if view.volumes:
        return _published(view)
    name = view.main()
    cell = _fullest(view, name) if name else None
    if cell is None:
        return [unanswered(view, "no trial has its traffic on record")], words.NO_NUMBER
    parts = (cell.served_bytes, cell.relayed_bytes, cell.direct_bytes)
    whole = sum(part or 0 for part in parts)
    where = f"{words.operation(cell.operation)} {words.state(cell.proxy)} on {words.line(cell.line)}"
    if not cell.proxy.enabled or not whole or None in parts:
        told = said("pairs", f"{where}: {_pairs(cell)} ({basis(cell)}).", [cell], shown=TRAFFIC)
        return [told], words.NO_NUMBER
    served, relayed = words.amount(cell.served_bytes or 0), words.amount(cell.relayed_bytes or 0)
    past = words.amount(cell.direct_bytes) if cell.direct_bytes else "nothing"
    share = words.share(cell.served_bytes or 0, whole)
    text = (
        f"Of the {words.amount(whole)} of content of {where}, the proxy served {served} ({share}) "
        f"from its cache, fetched {relayed} from the server, and {past} went past it ({basis(cell)})."
    )
    return [said("shared", text, [cell], shown=TRAFFIC), *_arrived(view, cell)], share


def _fullest(view: View, operation: str) -> Cell | None:
    """The operation's cell with its traffic: fullest state first, then the slowest line."""
    for proxy in (*reversed(view.states), DISABLED):
        seen = {cell.line: cell for cell in view.of(operation) if cell.proxy == proxy and cell.traffic_trials}
        if (line := slowest(seen)) is not None:
            return seen[line]
    return None


def _pairs(cell: Cell) -> str:
    names = (("client>server", "client and server"), ("client>proxy", "client and proxy"))
    told: list[str] = []
    for pair, name in names:
        count = cell.over(pair, _BACK[pair])
        known = words.amount(count) if count is not None else "unknown"
        told.append(f"{known} between {name}")
    count = cell.over("proxy>server", "server>proxy")
    last = (
        f"{words.amount(count)} between proxy and server" if count is not None else "unknown beyond the proxy"
    )
    return words.listed([*told, last])


def _arrived(view: View, cell: Cell) -> list[Sentence]:
    base, here = view.base(cell), cell.over(*_FROM_SERVER)
    if base is None or here is None:
        return []
    there = base.over(*_FROM_SERVER)
    if not there:
        return []
    text = (
        f"Over the line ({words.line(cell.line)}) came {words.amount(here)} from the server "
        f"instead of {words.amount(there)} without a proxy ({words.share(here, there)} of it)."
    )
    return [said("arrived", text, [cell, base], shown=TRAFFIC)]


def _published(view: View) -> tuple[Sequence[Sentence], str]:
    """What the source's text says, and what its times say of the volumes, which is called fitted."""
    told = [said("published", text, shown=TRAFFIC) for text in view.volumes]
    headline = words.NO_NUMBER
    for name in view.operations:
        volumes = _fitted(view, name)
        if view.use(name) is not Use.SERVED or DISABLED not in volumes or len(volumes) < 2:
            continue
        cells = view.of(name)
        parts = words.listed(
            [f"{count / 1e6:.2f} MB {words.state(proxy)}" for proxy, count in volumes.items()]
        )
        text = f"Fitted to the times as fixed cost + volume ÷ rate ({len(cells)} cells): {named([name])} {parts}."
        told.append(said("fitted", text, cells, shown=TRAFFIC))
        if headline == words.NO_NUMBER:
            fullest = max(volumes, key=lambda proxy: -1.0 if proxy.full is None else proxy.full)
            least = volumes[fullest]
            headline = words.share(volumes[DISABLED] - least, volumes[DISABLED])
            both = [cell for cell in cells if cell.proxy in (DISABLED, fullest)]
            moved = f"{least / 1e6:.2f} MB over the line instead of {volumes[DISABLED] / 1e6:.2f} MB"
            text = (
                f"{words.capital(words.state(fullest))} {named([name])} moves {moved}, {headline} less, "
                f"as fitted to the published times ({len(both)} cells)."
            )
            told.insert(0, said("fitted-share", text, both, shown=TRAFFIC))
    return told, headline


def _fitted(view: View, operation: str) -> dict[ProxyState, float]:
    """Bytes over the line per state, by least squares of the times."""
    volumes = {}
    for proxy in (DISABLED, *view.states):
        row = [cell for cell in view.of(operation) if cell.proxy == proxy]
        found = line_model.additive(line_model.points(row), relative=False)
        if found is not None:
            volumes[proxy] = found.down_bytes
    return volumes
