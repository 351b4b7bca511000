"""By which of its devices this host reaches others."""

import errno
from typing import Any, Dict, List, Optional

from ssh_agents import given, netlink, protocol


def look(args: Dict[str, Any], call: protocol.Call) -> Dict[str, Any]:
    """Verb `routes.look`: by address, the name of the device that leads there; null where no route does.

    `lo` for an address of this host's own. Changes nothing.
    """
    addresses: List[str] = list(given.addresses(args, "addresses"))
    with netlink.route_socket() as ask:
        names = {link.number: name for name, link in netlink.links(ask).items()}
        return {"devices": {address: names.get(_index(ask, address) or 0) for address in addresses}}


def _index(ask: netlink.Socket, address: str) -> Optional[int]:
    try:
        return netlink.route(ask, address)[0]
    except OSError as error:
        if error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EACCES, errno.EINVAL, errno.ENODEV):
            return None
        raise
