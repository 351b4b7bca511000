"""The cache brought to a fullness: on a stand-in cache that stores, lists and purges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest
from stand_in_hosts import Args, StandInAgent, agent, connected, root

from lab import design
from lab.asking import Declined
from lab.errors import Stopped, TrialFailed
from lab.model import DISABLED, Cache, ProxyState, Role
from lab.rig import fullness
from lab.rig.fullness import Found, Fullness, Ours
from lab.stop import Stop

ORIGIN = "http://198.51.100.1:80/"
OTHER = "http://203.0.113.9:80/somebody/elses"
EMPTY, NINETY, FULL = (ProxyState(full=n) for n in (0, 90, 100))
GET = tuple(f"svn/trunk/{n:03}" for n in range(150))


def url(key: str) -> str:
    return f"{ORIGIN}{key}"


@dataclass
class Cached:
    """A caching proxy's store, and what the operations bring into it."""

    wants: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"get": GET, "history": ()})
    store: dict[str, int] = field(default_factory=lambda: {OTHER: 999})
    too_large: set[str] = field(default_factory=set)
    fills: list[str] = field(default_factory=list)
    others: int = 0
    meanwhile: tuple[str, ...] = ()
    """what somebody else brings in during the next fill"""

    def fill(self, operation: str, stop: Stop) -> None:
        stop.check()
        self.fills.append(operation)
        self.store.update((url(key), 100) for key in self.wants[operation] if key not in self.too_large)

    def noted(self, operation: str, stop: Stop) -> set[str]:
        """As `fill`, through something that says what was asked for."""
        self.fill(operation, stop)
        for one in self.meanwhile:
            self.store[one] = 77
        self.meanwhile = ()
        return {url(key) for key in self.wants[operation]}

    def listed(self, args: Args) -> Args:
        assert args == {"kind": "apache-disk", "folder": "/var/cache/lab"}
        objects = [
            {"key": self._key(one), "url": one, "bytes": n, "files": 2} for one, n in self.store.items()
        ]
        return {
            "events": [("objects", {"objects": objects[n : n + 50]}) for n in range(0, len(objects), 50)],
            "objects": len(objects),
            "others": self.others,
        }

    def told(self, args: Args) -> Args:
        """As `listed`, of any kind of cache."""
        return self.listed({"kind": "apache-disk", "folder": "/var/cache/lab"})

    def purged(self, args: Args) -> Args:
        assert (args["kind"], args["folder"]) == ("apache-disk", "/var/cache/lab")
        return self.gone(args)

    def gone(self, args: Args) -> Args:
        """As `purged`, of any kind of cache."""
        there = [one for one in args["urls"] if self.store.pop(one, None) is not None]
        return {"removed": len(there), "already_gone": len(args["urls"]) - len(there)}

    def keys(self) -> set[str]:
        return {self._key(one) for one in self.store if one.startswith(ORIGIN)}

    @staticmethod
    def _key(one: str) -> str:
        return one.split("/", 3)[3]


@dataclass
class World:
    cached: Cached
    fullness: Fullness
    agent: StandInAgent


@pytest.fixture
def world() -> World:
    return made()


def made(cached: Cached | None = None, ours: Ours | None = None) -> World:
    cached = cached or Cached()
    proxy = connected("proxy", Role.PROXY, {"cache.list": cached.listed, "cache.purge": cached.purged})
    cache = Cache(kind="apache-disk", folder="/var/cache/lab")
    ours = Ours() if ours is None else ours
    one = Fullness(proxy, cache, ORIGIN, cached.fill, ours=ours, noted=cached.noted)
    return World(cached, one, root(proxy))


def test_a_full_cache_is_what_the_operation_brings_into_an_empty_one() -> None:
    world = made(ours=Ours(keys={"svn/left/over"}))
    world.cached.store[url("svn/left/over")] = 5
    learnt = world.fullness.learn("get", Stop())
    assert (learnt.list_of, learnt.objects, learnt.cache_bytes) == ("get", 150, 15_000)
    assert world.fullness.listed("get") == 150
    assert world.cached.keys() == set(GET)
    assert world.cached.store[OTHER] == 999


def test_an_operation_that_brings_nothing_takes_the_list_of_get(world: World) -> None:
    world.fullness.learn("get", Stop())
    learnt = world.fullness.learn("history", Stop(), instead="get")
    assert (learnt.list_of, learnt.objects, learnt.cache_bytes) == ("get", 150, 15_000)
    # The state is real: what fills the cache for it is Get.
    assert world.cached.keys() == set()
    found = world.fullness.bring("history", FULL, 7, Stop())
    assert (found.full, found.objects, world.cached.fills[-1]) == (100.0, 150, "get")


def test_without_a_get_an_operation_that_brings_nothing_has_an_empty_list(world: World) -> None:
    assert world.fullness.learn("history", Stop(), instead="get").objects == 0
    found = world.fullness.bring("history", FULL, 7, Stop())
    assert found == Found(full=0.0, objects=0, cache_bytes=0, purged=())
    assert not found.holds(FULL, 0)


def test_a_state_leaves_out_a_seeded_sample_and_nothing_else(world: World) -> None:
    world.fullness.learn("get", Stop())
    found = world.fullness.bring("get", NINETY, 7, Stop())
    assert found.purged == design.purge_sample(GET, 90, 7)
    assert (found.full, found.objects, found.cache_bytes) == (90.0, 135, 13_500)
    assert world.cached.keys() == set(GET) - set(found.purged)
    assert world.cached.store[OTHER] == 999
    assert world.fullness.bring("get", NINETY, 7, Stop()) == found
    assert world.fullness.bring("get", NINETY, 8, Stop()).purged != found.purged


def test_a_cache_is_filled_only_where_something_is_missing(world: World) -> None:
    world.fullness.learn("get", Stop())
    for state in (FULL, NINETY, FULL, FULL, EMPTY, EMPTY, NINETY):
        found = world.fullness.bring("get", state, 7, Stop())
        assert found.holds(state, 150)
    # To learn; from 90 % up to full; from empty up to 90 %.
    assert world.cached.fills == ["get"] * 3


def test_what_somebody_else_purged_comes_back(world: World) -> None:
    world.fullness.learn("get", Stop())
    for key in GET[:40]:
        del world.cached.store[url(key)]
    assert world.fullness.bring("get", FULL, 7, Stop()).objects == 150


def test_objects_of_no_use_to_the_operation_are_neither_counted_nor_purged(world: World) -> None:
    world.fullness.learn("get", Stop())
    world.cached.store[url("svn/branches/dead")] = 77
    found = world.fullness.bring("get", EMPTY, 7, Stop())
    assert (found.full, found.objects, found.cache_bytes) == (0.0, 0, 0)
    assert world.cached.keys() == {"svn/branches/dead"}


def test_what_is_still_missing_after_a_fill_names_three_and_the_likely_reasons(world: World) -> None:
    world.fullness.learn("get", Stop())
    world.cached.store.clear()
    world.cached.too_large = set(GET[:5])
    with pytest.raises(TrialFailed, match="5 objects are not in the cache after a fill") as caught:
        world.fullness.bring("get", FULL, 7, Stop())
    assert ", ".join(GET[:3]) in str(caught.value)
    assert GET[3] not in str(caught.value)
    assert caught.value.host == "proxy"
    for reason in ("port", "too small", "password", "https", "storing"):
        assert reason in caught.value.advice


def test_a_missing_object_that_is_to_be_left_out_anyway_is_no_trouble(world: World) -> None:
    world.fullness.learn("get", Stop())
    sample = design.purge_sample(GET, 90, 7)
    for key in sample:
        del world.cached.store[url(key)]
    assert world.fullness.bring("get", NINETY, 7, Stop()).full == 90.0
    assert world.cached.fills == ["get"]


def test_many_objects_are_purged_in_requests_that_stay_small(
    monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    monkeypatch.setattr(fullness, "CHUNK", 40)
    world.fullness.learn("get", Stop())
    world.fullness.bring("get", EMPTY, 7, Stop())
    assert [len(args["urls"]) for args in world.agent.args("cache.purge")] == [40, 40, 40, 30]
    assert world.cached.keys() == set()


def test_a_disabled_proxy_has_no_fullness(world: World) -> None:
    world.fullness.learn("get", Stop())
    with pytest.raises(ValueError, match="disabled"):
        world.fullness.bring("get", DISABLED, 7, Stop())
    assert not Found(0.0, 0, 0, ()).holds(DISABLED, 150)


def test_the_users_stop_is_heard_while_listing(world: World) -> None:
    stop = Stop()
    stop.request()
    with pytest.raises(Stopped):
        world.fullness.learn("get", stop)
    assert world.cached.fills == []


def test_a_cache_that_the_user_may_read_needs_no_root() -> None:
    cached = Cached()
    proxy = connected(
        "proxy", Role.PROXY, {"cache.list": cached.listed, "cache.purge": cached.purged}, root="none"
    )
    one = Fullness(proxy, Cache(kind="apache-disk", folder="/var/cache/lab"), ORIGIN, cached.fill)
    assert one.learn("get", Stop()).objects == 150


@pytest.mark.parametrize(
    ("full", "objects", "asked", "holds"),
    [
        (90.0, 135, 90.0, True),
        (100 * 134 / 150, 134, 90.0, False),
        (100 * 50 / 150, 50, 33.3, True),
        (100 * 49 / 150, 49, 33.3, False),
        (100.0, 150, 100.0, True),
        (0.0, 0, 0.0, True),
        (100 / 150, 1, 0.0, False),
    ],
)
def test_a_state_holds_to_the_nearest_object(full: float, objects: int, asked: float, holds: bool) -> None:
    assert Found(full, objects, 1, ()).holds(ProxyState(full=asked), 150) is holds


def test_whatever_share_is_asked_what_is_brought_holds(world: World) -> None:
    world.fullness.learn("get", Stop())
    shares: Iterable[float] = (0.1, 1, 12.5, 33.3, 37.5, 50, 66.6, 99, 99.9)
    bring: Callable[[float], Found] = lambda full: world.fullness.bring(  # noqa: E731
        "get", ProxyState(full=full), 3, Stop()
    )
    for full in shares:
        assert bring(full).holds(ProxyState(full=full), 150), full


# ---- each kind of cache


@pytest.mark.parametrize(
    ("cache", "by_root", "told"),
    [
        (
            Cache(kind="squid", folder="/var/spool/squid"),
            True,
            {"kind": "squid", "folder": "/var/spool/squid", "port": 3128, "host": "192.0.2.7"},
        ),
        (Cache(kind="nginx-proxy-cache", folder="/n"), True, {"kind": "nginx-proxy-cache", "folder": "/n"}),
        (
            Cache(kind="folder", folder="/p4p", owns=True),
            False,
            {"kind": "folder", "folder": "/p4p", "owns": True},
        ),
        (
            Cache(kind="command", list=("ls",), purge=("rm", "{url}")),
            False,
            {"kind": "command", "list": ["ls"], "purge": ["rm", "{url}"]},
        ),
    ],
)
def test_each_kind_is_told_what_it_needs_by_the_agent_that_may(
    cache: Cache, by_root: bool, told: Args
) -> None:
    empty = {"cache.list": lambda args: {"events": [], "objects": 0}}
    proxy = connected("proxy", Role.PROXY, empty, url="http://192.0.2.7:3128")
    Fullness(proxy, cache, ORIGIN, lambda operation, stop: None).learn("get", Stop())
    assert root(proxy).args("cache.list")[:1] == ([told] if by_root else [])
    assert agent(proxy).args("cache.list")[:1] == ([] if by_root else [told])


@pytest.mark.parametrize(
    ("kind", "origin", "asked"),
    [
        ("squid", "http://198.51.100.1:80/svn/", ["http://198.51.100.1:80/svn/branchlab-may-purge"]),
        ("squid", "http://2001:db8::1:8080/svn/", ["http://[2001:db8::1]:8080/svn/branchlab-may-purge"]),
        ("nginx-proxy-cache", "http://198.51.100.1:80/svn/", None),
    ],
)
def test_only_squid_is_asked_whether_a_purge_is_let_and_of_nothing(
    kind: str, origin: str, asked: list[str] | None
) -> None:
    proxy = connected("proxy", Role.PROXY, {"cache.purge": lambda args: {}}, url="http://192.0.2.7:3128")
    Fullness(proxy, Cache(kind=kind, folder="/n"), origin, lambda operation, stop: None).try_purge(Stop())
    assert [args["urls"] for args in root(proxy).args("cache.purge")] == ([asked] if asked else [])


@pytest.mark.parametrize("kind", ["folder", "command"])
def test_where_objects_have_no_urls_all_that_appears_is_the_list(kind: str) -> None:
    cached = Cached()
    proxy = connected(
        "proxy", Role.PROXY, {"cache.list": cached.told, "cache.purge": cached.gone}, root="none"
    )
    cache = Cache(kind=kind, folder="/p4p", owns=True, list=("ls",), purge=("rm",))
    one = Fullness(proxy, cache, ORIGIN, cached.fill)
    assert one.learn("get", Stop()).objects == 150
    # The profile said that all of it may go; but only who was shown it agreed to that.
    assert OTHER in cached.store
    one.ours.keys.add(cached._key(OTHER))
    assert one.learn("get", Stop()).objects == 150
    assert OTHER not in cached.store
    assert one.bring("get", NINETY, 7, Stop()).full == 90.0


def test_keys_that_name_no_url_are_told_apart_from_a_cache_that_stores_nothing(world: World) -> None:
    world.cached.wants["get"] = ()
    assert world.fullness.learn("get", Stop()).objects == 0
    world.cached.others = 12
    with pytest.raises(TrialFailed, match="12 files whose keys name no URL") as caught:
        world.fullness.learn("get", Stop())
    assert "proxy_cache_key" in caught.value.advice


def test_at_the_end_what_the_run_brought_in_goes_and_nothing_else() -> None:
    world = made(ours=Ours(passing={"/run-0a1b2c3d/"}))
    world.fullness.learn("get", Stop())
    world.cached.store[url("svn/place/run-0a1b2c3d/work/a.txt")] = 7
    world.cached.store[url("svn/colleague/report.txt")] = 8
    world.fullness.clear()
    assert world.cached.store == {OTHER: 999, url("svn/colleague/report.txt"): 8}


def test_in_a_lab_of_our_own_everything_of_the_repository_goes() -> None:
    world = made(ours=Ours(everything=True))
    world.fullness.learn("get", Stop())
    world.cached.store[url("svn/whatever")] = 8
    world.fullness.clear()
    assert world.cached.store == {OTHER: 999}


REPORT = "svn/colleague/report.txt"


def test_what_others_bring_in_during_a_fill_is_neither_listed_nor_purged(world: World) -> None:
    """Field fault: a colleague's fetch became "full cache for History: 1 objects", and was purged."""
    world.cached.meanwhile = (url(REPORT),)
    learnt = world.fullness.learn("get", Stop())
    assert (learnt.objects, learnt.others, world.fullness.listed("get")) == (150, 1, 150)
    world.cached.meanwhile = (url("svn/colleague/second.txt"),)
    learnt = world.fullness.learn("history", Stop(), instead="get")
    assert (learnt.list_of, learnt.objects, learnt.others) == ("get", 150, 2)
    assert world.cached.keys() == {REPORT, "svn/colleague/second.txt"}
    for state in (FULL, EMPTY):
        assert world.fullness.bring("get", state, 7, Stop()).holds(state, 150)
        assert url(REPORT) in world.cached.store
    world.fullness.clear()
    assert world.cached.keys() == {REPORT, "svn/colleague/second.txt"}


def test_what_others_brought_in_and_the_operation_needs_ends_the_run_and_stays(world: World) -> None:
    world.cached.store[url(GET[3])] = 5
    with pytest.raises(
        Declined, match=f"1 objects that get needs came into the cache by others, e.g. {GET[3]}"
    ):
        world.fullness.learn("get", Stop())
    assert url(GET[3]) in world.cached.store
    assert world.agent.args("cache.purge") == []


def test_an_escaped_name_is_the_same_object_for_client_and_cache() -> None:
    world = made(Cached(wants={"get": ("svn/a b.txt", "svn/c%20d.txt?")}))
    world.fullness._noted = lambda operation, stop: [
        world.cached.fill(operation, stop) or "",
        f"{ORIGIN}svn/a%20b.txt",
        "/svn/c%20d.txt",
    ]
    assert world.fullness.learn("get", Stop()).objects == 2


@pytest.mark.parametrize("address", ["2001:db8::1", "[2001:db8::1]"])
def test_an_address_of_ipv6_is_known_with_and_without_its_brackets(address: str) -> None:
    listing = {"objects": [{"key": "/svn/a", "url": f"http://{address}:80/svn/a", "bytes": 1, "files": 2}]}
    proxy = connected("proxy", Role.PROXY, {"cache.list": lambda args: {"events": [("objects", listing)]}})
    cache = Cache(kind="apache-disk", folder="/var/cache/lab")
    found, others = Fullness(proxy, cache, "http://2001:db8::1:80/svn/", lambda *_: None).standing(Stop())
    assert (set(found), others) == ({"/svn/a"}, 0)


def test_what_is_added_takes_nothing_out_whoever_brought_it_in(world: World) -> None:
    world.cached.store[url(GET[0])] = 5  # a colleague's
    world.cached.store[url("svn/other")] = 7
    learnt = world.fullness.add("get", Stop())
    assert (learnt.objects, learnt.others) == (150, 1)
    assert world.fullness.keys("get") == set(GET)
    assert world.cached.keys() == {*GET, "svn/other"}
    assert "cache.purge" not in {verb for verb, _ in world.agent.asked}
    world.fullness.refuse_empty("get")


def test_a_cache_that_keeps_nothing_is_said_with_the_likely_reasons(world: World) -> None:
    world.cached.too_large = set(GET)
    assert world.fullness.add("get", Stop()).objects == 0
    with pytest.raises(TrialFailed, match="nothing that get needs is in the cache") as failed:
        world.fullness.refuse_empty("get")
    assert "too small" in failed.value.advice


def test_only_what_may_go_is_taken_out_of_what_is_there() -> None:
    world = made(ours=Ours(keys=set(GET[:5])))
    for key in (*GET[:3], GET[9]):
        world.cached.store[url(key)] = 5
    assert world.fullness.take_out({*GET[:5], GET[9]}, Stop()) == 3
    assert world.cached.keys() == {GET[9]}
