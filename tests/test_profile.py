"""A profile is checked whole, before anything is touched; what is wrong has a file, a line and a cure."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import profile, toml_places, units
from lab.errors import BadInput
from lab.model import Cache, Change, Line, ProxyState, Role, Until
from ssh_agents import line_asked, protocol

GOOD = """\
# The lab of our office.
schema = 1
name = "Minsk office"

[hosts.server]
role = "server"
ssh = "admin@tfs.example.com:22" # a remark
address = "198.51.100.10"

[hosts.proxy]
role = "proxy"
ssh = "proxy.office.example.com"
sudo = true
cache = { kind = "apache-disk", folder = "/var/cache/branchlab" }
url = "http://proxy.office.example.com:8081"

[hosts.desk-1]
role = "client"
ssh = "desk-1"

[[experiments]]
name = "Do we need the proxy?"
vcs = "subversion"
repository = "http://{server}/svn/trunk"
data = "quick"
change = { files = 50, lines = "10 %" }
operations = ["get", "check-out", "undo", "check-in", "history", "diff"]
lines = [
    "64/128 kbit/s", # the slowest
    "128/256 kbit/s",
    "1/2 Mbit/s 40 ms",
]
states = ["disabled", "0 %", { purge = "10 %" }, "100 %"]
disabled_only = []
attempts = 4
warm_up = 1
order = "blocks"
seed = 2008
"""
PATH = Path("minsk.toml")


def parsed(text: str) -> profile.Profile:
    return profile.parsed(text, PATH)


def refused(text: str) -> list[str]:
    with pytest.raises(BadInput) as error:
        parsed(text)
    return str(error.value).splitlines()


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_a_good_profile_is_read_whole() -> None:
    known = parsed(GOOD)
    assert known.lab.name == "Minsk office"
    assert [(host.name, host.role) for host in known.lab.hosts] == [
        ("server", Role.SERVER),
        ("proxy", Role.PROXY),
        ("desk-1", Role.CLIENT),
    ]
    server, proxy, desk = known.lab.hosts
    assert (server.ssh, server.address, server.root) == ("admin@tfs.example.com:22", "198.51.100.10", "none")
    assert proxy.root == "sudo"
    assert proxy.cache == Cache(kind="apache-disk", folder="/var/cache/branchlab")
    assert proxy.url == "http://proxy.office.example.com:8081"
    assert desk.cache is None
    asked = known.experiment()
    assert asked.lines[2] == Line(upload_bps=1_000_000, download_bps=2_000_000, delay_s=0.04)
    assert asked.states[2] == ProxyState(full=90)
    assert asked.change == Change(files=50, share=0.1)
    assert (asked.attempts, asked.warm_up, asked.order, asked.seed) == (4, 1, "blocks", 2008)
    assert known.warnings == ()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            'role = "server"',
            'role = "servr"',
            "minsk.toml:6: hosts.server.role: unknown role `servr`: write one of",
        ),
        ('role = "server"', "role = 5", "minsk.toml:6: hosts.server.role: unknown role `5`"),
        ('ssh = "desk-1"', "", "minsk.toml:17: hosts.desk-1: `ssh` is missing: write ssh ="),
        ('ssh = "desk-1"', 'ssh = "a b"', "minsk.toml:19: hosts.desk-1.ssh: `a b` names no host"),
        ('ssh = "desk-1"', 'ssh = "unix:lab"', "write unix:/path"),
        ('ssh = "desk-1"', 'ssh = "d:70000"', "`d:70000` names no host"),
        ('ssh = "desk-1"', 'ssh = "::1"', "write [::1]:22"),
        ("address =", "adress =", "unknown key `adress` (did you mean address?)"),
        ('"198.51.100.10"', '"198.51.100.300"', "no IPv4 address: write one such as 198.51.100.10"),
        ("sudo = true", 'sudo = "yes"', "minsk.toml:13: hosts.proxy.sudo: `yes`: "),
        ("sudo = true", 'sudo = true\nroot = "direct"', "take one of them out"),
        ("sudo = true", 'root = "su"', "unknown way to root `su`"),
        (', folder = "/var/cache/branchlab"', "", "minsk.toml:14: hosts.proxy.cache: `folder` is missing"),
        ('"/var/cache/branchlab"', '"cache"', "hosts.proxy.cache.folder: `cache` is no folder of its own"),
        ("apache-disk", "command", "minsk.toml:14: hosts.proxy.cache: `list` is missing: write list = ["),
        ("apache-disk", "folder", "`owns` is missing: write owns = true, if everything in this folder may"),
        ('", folder =', '", owns = true, folder =', "a cache of kind apache-disk has no `owns`: take it out"),
        (', folder = "/var/cache/branchlab"', ', purge = ["x"]', "`folder` is missing"),
        ('"/var/cache/branchlab"', '"/var/cache/branchlab", owns = 1', "hosts.proxy.cache.owns: `1`"),
        ('"/var/cache/branchlab"', '"/"', "`/` is no folder of its own"),
        ("cache = {", "# cache = {", "minsk.toml:10: hosts.proxy: its cache is missing"),
        ('"http://proxy.office.example.com:8081"', '"proxy:8081"', "is no address of a proxy: write"),
        ('"http://proxy.office.example.com:8081"', '"http://u:p@x:1"', "without a password"),
        (
            '"128/256 kbit/s"',
            '"128 kilobananas"',
            "minsk.toml:30: experiments.1.lines.2: `kilobananas` is no unit",
        ),
        (
            '"128/256 kbit/s"',
            '"0/256 kbit/s"',
            "minsk.toml:30: experiments.1.lines.2: a rate of 0 kbit/s lets",
        ),
        ('"128/256 kbit/s"', "128", "minsk.toml:30: experiments.1.lines.2: `128` is no text"),
        (
            '"128/256 kbit/s"',
            '"64/128 kbit/s"',
            "minsk.toml:30: experiments.1.lines.2: `64/128 kbit/s` stands there",
        ),
        ('"0 %"', '"90 %"', "minsk.toml:33: experiments.1.states.3: `90 %` stands there twice"),
        ('"0 %"', '"190 %"', "experiments.1.states.2: 190 % is more than all"),
        ('"check-out",', '"chekout",', "unknown operation `chekout`"),
        ('"check-out",', '"get",', "`get` stands there twice"),
        ("disabled_only = []", 'disabled_only = ["push"]', "unknown operation `push`"),
        ('"diff"]\n', '"history"]\n', "stands there twice"),
        (
            "attempts = 4",
            "attempts = 1",
            "minsk.toml:35: experiments.1.attempts: 1 attempts, 1 of them warm-up",
        ),
        ("attempts = 4", 'attempts = "4"', "experiments.1.attempts: `4`: input should be a valid integer"),
        (
            "attempts = 4",
            "attempts = true",
            "experiments.1.attempts: `True`: input should be a valid integer",
        ),
        ("warm_up = 1", "warm_up = -1", "experiments.1.warm_up: `-1`: input should be greater"),
        ('order = "blocks"', 'order = "bloks"', "(did you mean blocks?)"),
        ('lines = "10 %"', "lines = 10", "experiments.1.change.lines: `10` is no share: write"),
        ("files = 50", "fils = 50", "experiments.1.change.fils: unknown key `fils` (did you mean files?)"),
        ("{server}", "{srver}", "(did you mean server?)"),
        ("{server}", "{server", "has a brace too many"),
        ("schema = 1", "schema = 2", "a newer BranchLab wrote this"),
        ("schema = 1", 'schema = "1"', "the first line should be: schema = 1"),
        ("schema = 1", "schema = -1", "the first line should be: schema = 1"),
        ('name = "Minsk office"', "name = 1", "minsk.toml:3: name: this should be a text"),
        ('name = "Minsk office"', 'title = "x"', "minsk.toml:3: title: unknown key"),
        (
            'name = "Minsk office"',
            'name = "a\\u001b]0;b"',
            "minsk.toml:3: name: this should be a text of one line",
        ),
        ('"Do we need the proxy?"', '"a\\nb"', "minsk.toml:22: experiments.1.name: 'a\\nb' cannot be shown"),
        ("[hosts.desk-1]", f"[hosts.{'d' * 61}]", "the host's name is too long: write 60 letters at most"),
        (
            'ssh = "desk-1"',
            'ssh = "desk-1"\naddress = "198.51.100.10"',
            "minsk.toml:20: hosts.desk-1.address: 198.51.100.10 is the address of server already",
        ),
        ('"/var/cache/branchlab"', '"/var/cache/../../etc"', "write it without `..`"),
        ('"http://proxy.office.example.com:8081"', '"https://p:1"', "is no address of a proxy"),
        ('"http://proxy.office.example.com:8081"', '"http://p:1/path"', "is no address of a proxy"),
        ('"http://proxy.office.example.com:8081"', '"http://p:99999"', "is no address of a proxy"),
        ("//{server}/svn", "//{server}:abc/svn", 'write "http://{server}/NAME/trunk"'),
        ("//{server}/svn", "//{server}:99999/svn", "is no place where BranchLab can serve"),
        ("//{server}/svn", "//{client}/svn", "is no place where BranchLab can serve"),
        ("http://{server}/svn", "https://{server}/svn", "is no place where BranchLab can serve"),
        ("/svn/trunk", "/svn", "is no place where BranchLab can serve"),
        ("seed = 2008", f"seed = {1 << 63}", "minsk.toml:38: experiments.1.seed:"),
        ("seed = 2008", f"seed = {'9' * 5000}", "minsk.toml: this cannot be read as TOML: Exceeds the limit"),
        ("seed = 2008", f"seed = {'[' * 20_000}", "minsk.toml: this cannot be read as TOML: "),
        ("attempts = 4", "attempts = 1000000000", "more than 100000 trials: write fewer"),
        ('role = "client"', 'role = "router"', "no host is the client: add one"),
        ('role = "client"', 'role = "server"', "server is the server already: a lab has one of them"),
        (
            "schema = 1",
            'schema = 1\nline = "office host"',
            "minsk.toml:3: line: `office host` is no place for",
        ),
        ("schema = 1", 'schema = 1\nline = "router"', "line: no host is the router: give one"),
        ("[hosts.desk-1]", '[hosts."desk 1"]', "is no name of a host"),
        ("[[experiments]]", "[experiments]", "write [[experiments]]"),
        ('name = "Do we need the proxy?"', "", "experiments.1: `name` is missing"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_cure(old: str, new: str, told: str) -> None:
    lines = refused(changed(old, new))
    assert any(told in line for line in lines), lines
    assert all(line.startswith("minsk.toml:") for line in lines)


def test_a_line_is_held_where_the_profile_says_else_on_a_router_else_on_the_server() -> None:
    router = GOOD.replace(
        "[[experiments]]", '[hosts.gate]\nrole = "router"\nssh = "gate"\n\n[[experiments]]', 1
    )
    for text, line, place, holders in (
        (GOOD, "", "server", ["server"]),
        (router, "", "router", ["gate"]),
        (router, "server", "server", ["server"]),
        (GOOD, "office", "office", ["desk-1", "proxy"]),
    ):
        lab = profile.parsed(f'line = "{line}"\n{text}' if line else text, Path("minsk.toml")).lab
        assert (lab.place, [host.name for host in lab.holders]) == (place, holders)


def test_only_what_is_wrong_is_told() -> None:
    assert len(refused(changed('role = "server"', 'role = "servr"'))) == 1


def test_all_problems_are_told_at_once_in_the_order_of_the_file() -> None:
    text = (
        GOOD.replace('role = "server"', 'role = "servr"')
        .replace('"0 %"', '"0"')
        .replace('"128/256 kbit/s"', '"128 kilobananas"')
    )
    assert [line.split(":")[1] for line in refused(text)] == ["6", "30", "33"]


def test_a_state_with_the_proxy_needs_one() -> None:
    lines = refused(changed('role = "proxy"', 'role = "client"'))
    assert "no host is it: add one" in lines[0]
    without = changed('role = "proxy"', 'role = "client"').replace(
        'states = ["disabled", "0 %", { purge = "10 %" }, "100 %"]', 'states = ["disabled"]'
    )
    assert parsed(without).experiment().states == (ProxyState(full=None),)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("schema = 1\nx = [1,\n", "minsk.toml:"),
        ("schema = 1\n\n[hosts.a]\n[hosts.a]\n", "minsk.toml:4: this is no TOML: cannot declare"),
        ("schema = 1\nschema = 1\n", "minsk.toml:2: this is no TOML"),
        ("schema 1\n", "minsk.toml:1: this is no TOML"),
    ],
)
def test_what_is_no_toml_is_told_with_its_line(text: str, told: str) -> None:
    assert refused(text)[0].startswith(told)


def test_an_experiment_named_twice_is_refused() -> None:
    again = GOOD[GOOD.index("[[experiments]]") :]
    assert "there is another experiment `Do we need the proxy?`" in refused(f"{GOOD}\n{again}")[0]


def test_experiments_are_found_by_name() -> None:
    known = parsed(GOOD)
    assert known.experiment("Do we need the proxy?") == known.experiment()
    with pytest.raises(BadInput, match=r"did you mean Do we need the proxy\?"):
        known.experiment("Do we need a proxy?")
    head = GOOD[: GOOD.index("[[experiments]]")]
    with pytest.raises(BadInput, match="no experiments"):
        parsed(head).experiment()


def test_doubts_are_warnings_with_their_line() -> None:
    known = parsed(changed('"128/256 kbit/s"', '"256/128 kbit/s"'))
    assert known.experiment().lines[1].upload_bps == 256_000
    assert known.warnings[0].startswith(
        "minsk.toml:30: experiments.1.lines.2: the upload, 256 kbit/s, is above"
    )


def test_the_published_experiment_is_understood() -> None:
    text = changed(
        "disabled_only = []", 'disabled_only = ["check-out", "check-in", "history"]\nlaunches = true'
    )
    asked = parsed(text.replace('"blocks"', '"published"')).experiment()
    assert asked.launches
    assert (asked.order, asked.disabled_only) == ("published", ("check-out", "check-in", "history"))


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        profile.load(tmp_path / "none.toml")
    with pytest.raises(BadInput, match="cannot be read"):
        profile.load(tmp_path)
    path = tmp_path / "a.toml"
    path.write_bytes(b'schema = 1\nname = "\xe9"\n')
    with pytest.raises(BadInput, match=r"a\.toml:2: this is no UTF-8"):
        profile.load(path)


@pytest.mark.parametrize("text", [GOOD, GOOD.replace("\n", "\r\n")])
def test_comments_and_order_survive_saving(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(text.encode())
    path.chmod(0o640)
    document = profile.document(path)
    profile.save(document, path)
    assert path.read_bytes() == text.encode()
    document["experiments"][0]["attempts"] = 6  # type: ignore[index]
    assert profile.save(document, path).experiment().attempts == 6
    assert path.read_bytes() == text.replace("attempts = 4", "attempts = 6").encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [file.name for file in tmp_path.iterdir()] == ["a.toml"]


def test_a_wrong_profile_is_not_saved(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(GOOD)
    document = profile.document(path)
    document["schema"] = tomlkit.item(7)
    with pytest.raises(BadInput):
        profile.save(document, path)
    assert path.read_text() == GOOD


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert profile.load(path).lab.name == "Minsk office"
    assert profile.load(str(path)).path == path


def test_the_place_of_every_key_and_member() -> None:
    text = '''\
# a = 1
"quoted key" = """
[not.a.table]
b = 2"""
c.d = { e = 1, f = [ 2, { g = 3 } ] } # h = 4
[x.y]
list = [ # ]
  'a, ]', # one
  "b\\"]",
  [ 1, 2,
    3 ],
]
[[z]]
[[z]]
when = 1979-05-27 07:32:00
[z.sub]
last = true'''
    tomllib.loads(text)
    lines = toml_places.lines(text)
    assert {place: lines[place] for place in EXPECTED} == EXPECTED
    assert ("b",) not in lines
    assert ("h",) not in lines


EXPECTED: dict[toml_places.Place, int] = {
    ("quoted key",): 2,
    ("c", "d"): 5,
    ("c", "d", "e"): 5,
    ("c", "d", "f", 1, "g"): 5,
    ("x", "y"): 6,
    ("x", "y", "list"): 7,
    ("x", "y", "list", 0): 8,
    ("x", "y", "list", 1): 9,
    ("x", "y", "list", 2, 2): 11,
    ("z", 0): 13,
    ("z", 1): 14,
    ("z", 1, "when"): 15,
    ("z", 1, "sub", "last"): 17,
}


@settings(max_examples=300)
@given(st.text(alphabet="[]{}=,.\"'#\\\n \tab1-", max_size=60))
def test_any_text_has_places_or_none_and_comes_to_an_end(text: str) -> None:
    assert all(1 <= line <= text.count("\n") + 1 for line in toml_places.lines(text).values())


def test_every_key_of_a_document_is_found() -> None:
    def below(value: object, place: toml_places.Place) -> list[toml_places.Place]:
        inner = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        return [place, *(found for key, child in inner for found in below(child, (*place, key)))]

    lines = toml_places.lines(GOOD)
    # The place of the whole is no place; a table that holds only tables stands where its first one does.
    assert set(below(tomllib.loads(GOOD), ())) - {()} == set(lines)


@pytest.mark.parametrize(
    ("line", "cure"),
    [
        ("64/128 kbit/s", ""),
        ("8/16 bit/s", ""),
        ("1/2 Mbit/s 60 s", ""),
        ("1/2 Mbit/s loss 99.9 %", ""),
        ("1/2 Mbit/s queue 1600 bytes", ""),
        ("30/39 Gbit/s queue 800 ms", ""),
        ("100.001/200 kbit/s", "write 100 kbit/s"),
        ("1/2 bit/s", "write 8 bit/s"),
        ("40/40 Gbit/s", "write 4 Gbit/s"),
        ("1/2 Mbit/s 61 s", "no delay above 60 s"),
        ("1/2 Mbit/s loss 100 %", "lets nothing through"),
        ("1/2 Mbit/s queue 1599 bytes", "a queue holds from 1600 bytes"),
        ("1/2 Mbit/s queue 9 GB", "a queue holds from 1600 bytes"),
        ("1/2 Mbit/s queue 100000 min", "a queue holds from 1600 bytes"),
    ],
)
def test_a_line_that_no_host_can_hold_is_refused_before_any_is_touched(line: str, cure: str) -> None:
    """Held against the agent itself, which has the last word."""
    asked = units.parse_line(line).line
    assert asked.upload_bps is not None
    assert asked.download_bps is not None
    request = {
        "office": ["192.0.2.1"],
        "upload_bps": asked.upload_bps,
        "download_bps": asked.download_bps,
        "queue_upload_bytes": asked.queue_for(asked.upload_bps),
        "queue_download_bytes": asked.queue_for(asked.download_bps),
        "delay_s": asked.delay_s,
        "jitter_s": asked.jitter_s,
        "loss": asked.loss,
    }
    text = changed('"128/256 kbit/s"', f'"{line}"').replace('    "64/128 kbit/s", # the slowest\n', "")
    if cure:
        with pytest.raises(protocol.Refused):
            line_asked.asked(request)
        assert cure in refused(text)[0]
    else:
        line_asked.asked(request)
        parsed(text)


OWN = GOOD.replace('data = "quick"\n', "").replace(
    'repository = "http://{server}/svn/trunk"',
    'repository = "http://svn.example.com:8080/project/trunk"\nscratch = "http://svn.example.com:8080/project/lab"',
)


def test_a_repository_as_it_is_is_read_with_its_scratch_place() -> None:
    asked = parsed(OWN).experiment()
    assert (asked.data, asked.repository) == (None, "http://svn.example.com:8080/project/trunk")
    assert asked.scratch == "http://svn.example.com:8080/project/lab"
    text = OWN.replace("svn.example.com:8080", "{server}")
    assert parsed(text).experiment().scratch == "http://{server}/project/lab"
    reading = OWN.replace(
        '["get", "check-out", "undo", "check-in", "history", "diff"]', '["get", "diff"]'
    ).replace('scratch = "', '# "')
    assert parsed(reading).experiment().scratch is None


def test_a_proxy_of_the_users_own_may_want_a_user() -> None:
    url = 'url = "http://proxy.office.example.com:8081"'
    text = GOOD.replace(url, f'{url}\nuser = "joe"')
    assert parsed(text).lab.one(Role.PROXY).user == "joe"
    for wrong in (
        text.replace('user = "joe"', 'user = "joe"\nservices = "/srv/branchlab"'),
        GOOD.replace('role = "client"', 'role = "client"\nuser = "joe"', 1),
    ):
        assert any("only a proxy that is used as it is asks for a `user`" in line for line in refused(wrong))


def test_a_repository_as_it_is_may_want_a_user_and_speak_https() -> None:
    asked = parsed(OWN.replace("vcs =", 'user = "anna"\nvcs =')).experiment()
    assert (asked.user, asked.ca) == ("anna", None)
    text = OWN.replace("http://svn", "https://svn").replace("vcs =", 'ca = "/etc/ssl/company.pem"\nvcs =')
    states = next(line for line in text.splitlines() if line.startswith("states ="))
    text = text.replace(states, 'states = ["disabled"]')
    asked = parsed(text).experiment()
    assert (asked.user, asked.ca) == (None, "/etc/ssl/company.pem")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("vcs =", 'ca = "/company.pem"\nvcs =', "experiments.1.ca: the repository is not on https"),
        ("vcs =", 'ca = "company.pem"\nvcs =', "experiments.1.ca: `company.pem` is no"),
        ("vcs =", 'user = "anna:secret"\nvcs =', "is no name of a user"),
        ("vcs =", 'user = "--password"\nvcs =', "is no name of a user"),
        ("vcs =", 'data = "quick"\nuser = "anna"\nvcs =', 'experiments.1.user: data = "quick" makes a'),
        (
            'scratch = "',
            '# "',
            "minsk.toml:21: experiments.1: check-out and check-in would change the repository",
        ),
        (
            'scratch = "',
            '# "',
            'write scratch = "http://svn.example.com:8080/project/branchlab-scratch", a place',
        ),
        ('scratch = "', '# "', "branchlab scratch PROFILE"),
        ("vcs =", 'data = "quick"\nvcs =', 'minsk.toml:26: experiments.1.scratch: data = "quick" makes a'),
        ("vcs =", 'data = "quick"\nvcs =', "is no place where BranchLab can serve a repository"),
        (
            "http://svn",
            "https://svn",
            "minsk.toml:24: experiments.1.repository: `https://svn.example.com:8080",
        ),
        ("http://svn", "https://svn", "over https can be cached"),
        ("http://svn", "svn://svn", "is no http address"),
        ("http://svn", "http://anna:secret@svn", "has a user or a password in it"),
        ("http://svn", "http://anna:secret@svn:70000", "has a user or a password in it"),
        ("http://svn", "https://anna:secret@svn", "has a user or a password in it"),
        ("http://svn", "http://anna:secret{@svn", "has a brace too many"),
        ("/project/lab", "/project/!svn/lab", "is where a Subversion server keeps its own"),
        ("/project/trunk", "/project/trunk?p=5", "has no ? and no #"),
        ("/project/trunk", "/project/trunk#x", "has no ? and no #"),
        ("/project/trunk", "/project/../trunk", "is no plain name of a folder"),
        ("/project/trunk", "/project/trunk@5", "write %40"),
        ("//svn.example.com:8080/project/trunk", "//{client}/project/trunk", "has signs that no address has"),
        (":8080/project/lab", ":8081/project/lab", "minsk.toml:25: experiments.1.scratch: `http://svn"),
        (":8080/project/lab", ":8081/project/lab", "on another server than the repository"),
        ("/project/lab", "/project/trunk", "lies within it"),
        ("/project/lab", "/project/trunk/lab", "lies within it"),
        ("/project/lab", "/project", "lies within it"),
        ("/project/lab", "/project/%74runk/lab", "lies within it"),
        ('"http://svn.example.com:8080/project/lab"', "5", "experiments.1.scratch: `5` is no text"),
    ],
)
def test_a_repository_as_it_is_is_refused_with_line_and_cure(old: str, new: str, told: str) -> None:
    assert old in OWN
    lines = refused(OWN.replace(old, new, 1))
    assert any(told in line for line in lines), lines
    assert not any("secret" in line for line in lines)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"http://proxy.office.example.com:8081"', '"http://me:s3cret@proxy.example.com:8081"'),
        ('"http://proxy.office.example.com:8081"', '"http://me:s3cret@proxy.example.com:8081/x y"'),
        ('ssh = "desk-1"', 'ssh = "joe:s3cret@desk-1"'),
        ('ssh = "desk-1"', 'ssh = "joe:s3@cret@desk-1:22"'),
        ('ssh = "desk-1"', 'ssh = "joe:s3cret@::1"'),
        ('"http://{server}/svn/trunk"', '"http://me:s3cret@{server}/svn/trunk"'),
        ('"http://{server}/svn/trunk"', '"http://{server}/svn/trunk?private_token=s3cret"'),
        ('"http://proxy.office.example.com:8081"', '"http://proxy.example.com:8081/?key=s3cret"'),
    ],
)
def test_a_password_in_a_profile_is_refused_and_never_repeated(old: str, new: str) -> None:
    assert old in GOOD
    lines = refused(GOOD.replace(old, new, 1))
    assert lines
    assert not any("cret" in line for line in lines), lines


def test_neither_data_nor_a_repository_is_no_experiment() -> None:
    lines = refused(
        GOOD.replace('data = "quick"\n', "").replace('repository = "http://{server}/svn/trunk"\n', "")
    )
    assert len(lines) == 1
    assert "neither data nor a repository is named" in lines[0]


@pytest.mark.parametrize(
    ("table", "cache"),
    [
        ('kind = "squid", folder = "/var/spool/squid"', Cache(kind="squid", folder="/var/spool/squid")),
        (
            'kind = "folder", folder = "/p4p/cache", owns = true',
            Cache(kind="folder", folder="/p4p/cache", owns=True),
        ),
        (
            'kind = "command", list = ["ls", "/x"], purge = ["rm", "{url}"]',
            Cache(kind="command", list=("ls", "/x"), purge=("rm", "{url}")),
        ),
    ],
)
def test_each_kind_of_cache_has_keys_of_its_own(table: str, cache: Cache) -> None:
    text = changed('kind = "apache-disk", folder = "/var/cache/branchlab"', table)
    assert parsed(text).lab.one(Role.PROXY).cache == cache


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('kind = "squid"', "`folder` is missing: write folder ="),
        (
            'kind = "folder", folder = "/p4p", owns = true',
            "is of a proxy that is used as it is: take `services` out",
        ),
        ('kind = "command", list = [""], purge = ["x"]', "`list` is a program and its words"),
        ('kind = "command", list = ["x"], purge = []', "`purge` is missing"),
    ],
)
def test_a_cache_that_no_proxy_of_our_own_could_have_is_refused(table: str, told: str) -> None:
    old = 'cache = { kind = "apache-disk", folder = "/var/cache/branchlab"'
    text = changed(old, f'services = "/srv/x"\ncache = {{ {table}')
    assert any(told in line for line in refused(text)), refused(text)


def test_a_line_may_have_its_price_a_month() -> None:
    known = parsed(changed('    "1/2 Mbit/s 40 ms",', '    { line = "1/2 Mbit/s 40 ms", price = 45 },'))
    (experiment,) = known.experiments
    assert experiment.prices == (None, None, 45.0)
    assert experiment.price(experiment.lines[2]) == 45.0
    assert experiment.price(experiment.lines[0]) is None
    assert parsed(GOOD).experiments[0].prices == ()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('{ line = "1/2 Mbit/s", price = -1 }', "`-1` is no price a month: write a number such as 45"),
        ('{ line = "1/2 Mbit/s", price = "45 EUR" }', "is no price a month"),
        ('{ line = "1/2 Mbit/s", price = inf }', "is no price a month"),
        ('{ line = "1/2 Mbit/s", price = true }', "is no price a month"),
        ('{ line = "1/2 Mbit/s", cost = 45 }', "a line's table has a line and a price: write { line ="),
        ("{ price = 45 }", "a line's table has a line and a price"),
        ('{ line = "1,024/2 Mbit/s" }', "1,024 or 1.024? Write 1024."),
    ],
)
def test_a_wrong_price_is_refused_with_its_line(entry: str, words: str) -> None:
    (told,) = refused(changed('"1/2 Mbit/s 40 ms",', f"{entry},"))
    assert told.startswith("minsk.toml:31: experiments.1.lines.3: ")
    assert words in told


def test_a_line_with_a_price_is_the_same_line_as_without() -> None:
    told = refused(changed('"128/256 kbit/s",', '{ line = "64/128 kbit/s", price = 9 },'))
    assert "stands there twice" in told[0]


def test_blocks_may_be_repeated_until_all_is_stable() -> None:
    assert parsed(GOOD).experiments[0].until is None
    (experiment,) = parsed(GOOD + 'until = { within = "5 %" }\n').experiments
    assert experiment.until == Until(within=0.05, at_most=12)
    for wrong, words in (
        ('{ within = "5 %", at_most = 4 }', "write at_most = 10"),
        ("{ at_most = 9 }", '`within` is missing: write within = "5 %"'),
        ('{ within = "5 %", most = 9 }', "unknown key `most`"),
        ('{ within = "500 %" }', "more than all"),
    ):
        (told,) = refused(GOOD + f"until = {wrong}\n")
        assert told.startswith("minsk.toml:39: experiments.1.until"), told
        assert words in told
    (told,) = refused(changed('order = "blocks"', 'order = "published"') + 'until = { within = "5 %" }\n')
    assert 'write order = "blocks", or take `until` out' in told


def test_a_trial_may_have_a_limit() -> None:
    assert parsed(GOOD).experiments[0].limit_s is None
    assert parsed(GOOD + 'limit = "15 min"\n').experiments[0].limit_s == 900
    for wrong in ('"0.5 s"', '"25 h"', "15", '"1500 min"'):
        (told,) = refused(GOOD + f"limit = {wrong}\n")
        assert told.startswith("minsk.toml:39: experiments.1.limit: "), told


DESKS = GOOD.replace(
    'ssh = "desk-1"\n', 'ssh = "desk-1"\n\n[hosts.desk-2]\nrole = "client"\nssh = "desk-2"\n'
)


@pytest.mark.parametrize(
    ("said", "clients", "names"),
    [
        ("", 1, ["desk-1"]),
        ("clients = 1", 1, ["desk-1"]),
        ("clients = 2", 2, ["desk-1", "desk-2"]),
        ('clients = ["desk-2"]', ("desk-2",), ["desk-2"]),
        ('clients = ["desk-2", "desk-1"]', ("desk-2", "desk-1"), ["desk-2", "desk-1"]),
    ],
)
def test_an_experiment_may_name_its_clients(said: str, clients: object, names: list[str]) -> None:
    found = parsed(f"{DESKS}{said}\n")
    (experiment,) = found.experiments
    assert experiment.clients == clients
    assert experiment.at_once == len(names)
    assert [host.name for host in found.lab.taking_part(experiment)] == names


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("clients = 3", "3 clients are wanted, and the lab has 2 (desk-1, desk-2): write 2 at most, or add hosts"),
        ("clients = 0", "at least one client does the work: write clients = 3"),
        ("clients = true", "neither a number of clients nor a list of them: write clients = 3"),
        ("clients = []", "no client is named: write clients = 3"),
        ("clients = [1]", "neither a number of clients nor a list"),
        ('clients = ["desk-2", "desk-2"]', "`desk-2` stands there twice: take one out"),
        ('clients = ["desk-1", "server"]', "`server` is no client, but the server: write one of desk-1, desk-2"),
        ('clients = ["desk-22"]', "there is no host `desk-22` (did you mean desk-2?): write one of desk-1, desk-2"),
    ],
)  # fmt: skip
def test_clients_that_the_lab_has_not_are_refused_with_line_and_cure(said: str, told: str) -> None:
    (line,) = refused(f"{DESKS}{said}\n")
    assert line.startswith(f"minsk.toml:{DESKS.count(chr(10)) + 1}: experiments.1.clients")
    assert told in line
