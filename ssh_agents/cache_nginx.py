"""Kind `nginx-proxy-cache`: the folder of nginx's proxy_cache_path.

What is known of its files is from nginx's src/http/ngx_http_cache.h and ngx_http_file_cache.c: a binary head, which
ends with the hash of a variant; a line `KEY: ...`; then the answer as it came. A file is named by the MD5 of its
key, or, as a further variant (Vary), by that hash in its head; it lies in folders named by the end of its name.
nginx notices by itself that a file is gone: it opens it anew for every request.
"""

import binascii
import hashlib
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set

from ssh_agents import cache_folder, protocol
from ssh_agents.cache_folder import Folder, Where

FILE = re.compile(r"[0-9a-f]{32}")
FOLDER = re.compile(r"[0-9a-f]{1,2}")
TEMPORARY = re.compile(r"(?:[0-9a-f]{32}\.)?[0-9]{10}")  # NGX_HTTP_CACHE: renamed when it is whole
KEY = b"\nKEY: "
LEVELS = 3
# Without "://" a host that begins with s could be a part of the scheme, and https is never measured.
_URL = re.compile(
    r"(https?(?=://)|http|https)(?:://)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(/[\x21-\x7e]*)?"
)


class _File(NamedTuple):
    folder: Folder
    name: str
    url: str
    length: int


def listed(args: Dict[str, Any], call: protocol.Call, tell: Callable[[str, int, int], None]) -> int:
    """Tell each object: URL, bytes and files, all variants together. Returns how many files have keys without URL."""
    found: Dict[str, List[int]] = {}

    def one(file: _File) -> None:
        found.setdefault(file.url, []).append(file.length)

    others = _walked(args, call, one)
    for url, lengths in found.items():
        tell(url, sum(lengths), len(lengths))
    return others


def purged(
    args: Dict[str, Any], call: protocol.Call, wanted: Optional[List[str]], tell: Callable[[str, int], None]
) -> None:
    """Delete the objects of these URLs, or all whose key has a URL (None), and tell each: URL and bytes."""
    urls: Optional[Set[str]] = None if wanted is None else set(wanted)
    gone: Dict[str, int] = {}

    def one(file: _File) -> None:
        if (urls is None or file.url in urls) and cache_folder.unlinked(file.folder, file.name):
            gone[file.url] = gone.get(file.url, 0) + file.length

    _walked(args, call, one)
    for url, length in gone.items():
        tell(url, length)


def key_of(name: str, head: bytes) -> Optional[bytes]:
    """The key in the first bytes of the file `name`; None if no nginx made this file under this name."""
    begin = head.find(KEY)
    end = head.find(b"\n", begin + len(KEY))
    if begin < 0 or end < 0:
        return None
    key = head[begin + len(KEY) : end]
    main = hashlib.md5(key).hexdigest()  # noqa: S324 - nginx's own way to name it
    return key if name == main or binascii.unhexlify(name) in head[:begin] else None


def url_of(key: bytes) -> Optional[str]:
    """The URL that a key says, `http://host:port/path` with its port; None where it says none.

    Read are `$scheme$proxy_host$request_uri` (nginx's default), `$scheme://$host$request_uri` and the like.
    """
    match = _URL.fullmatch(key.decode("ascii", "replace"))
    if match is None:
        return None
    scheme, host, port, path = match.groups()
    return "%s://%s:%s%s" % (scheme, host.lower(), port or {"http": 80, "https": 443}[scheme], path or "/")


def _walked(args: Dict[str, Any], call: protocol.Call, one: Callable[[_File], None]) -> int:
    """Tell of every file whose key has a URL; how many have not. Refuses what nginx does not make."""
    foreign = cache_folder.foreign_to("nginx")
    others = 0

    def seen(folder: Folder, where: Where, names: List[str]) -> List[str]:
        nonlocal others
        inner = []
        for name in names:
            if FOLDER.fullmatch(name) and len(where) < LEVELS:
                inner.append(name)
            elif FILE.fullmatch(name) and name.endswith("".join(reversed(where))):
                length, head = cache_folder.size(folder, name), cache_folder.head(folder, name)
                key = key_of(name, head)
                if key is None and cache_folder.looked(folder, name) is not None:
                    foreign(where, name)
                url = None if key is None else url_of(key)
                if url is None or length is None:
                    others += key is not None
                else:
                    one(_File(folder, name, url, length))
            elif not TEMPORARY.fullmatch(name) and not name.startswith(".branchlab"):
                foreign(where, name)
        return inner

    with cache_folder.root(args) as root:
        cache_folder.walk(root, call, seen, foreign)
    return others
