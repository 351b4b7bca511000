"""Hosts of Ansible inventories, and what is refused, with its line."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from lab import inventory
from lab.errors import BadInput

INI = """\
# the office
mail.example.com
[web]
web[01:03].example.com ansible_user=admin ansible_port=2222  # all three
bastion ansible_host=198.51.100.9

[db]
db-[a:b] ansible_ssh_common_args="-o ProxyJump=gate.example.com" ansible_ssh_private_key_file=~/.ssh/db

[prod:children]
web
db

[prod:vars]
ansible_user = deploy
; the end
"""
YAML = """\
---
# the same in YAML
all:
  vars:
    ansible_user: root   # everywhere
    packages:
      - apache2
      - name: squid
        state: present
    motd: |
      all: {{ this }}
        is text
  hosts:
    one.example.com:
    "two": {ansible_host: 10.0.0.2, ansible_port: 2200}
  children:
    web:
      vars: {ansible_user: web}
      hosts:
        w[1:2]:
          ansible_user: 'anna'
        w3:
    empty: {}
"""


def test_ini_with_ranges_groups_and_their_variables() -> None:
    found = inventory.parsed(INI, "hosts").hosts
    assert [one.name for one in found] == [
        "mail.example.com",
        *(f"web0{n}.example.com" for n in (1, 2, 3)),
        "bastion",
        "db-a",
        "db-b",
    ]
    mail, web, _, _, bastion, db, _ = found
    assert (mail.user, mail.groups) == ("", ())
    assert (web.user, web.port, web.groups) == ("admin", 2222, ("web", "prod"))
    assert (bastion.where, bastion.user) == ("198.51.100.9", "deploy")
    assert (db.jump, db.key) == ("gate.example.com", "~/.ssh/db")


def test_yaml_with_lists_texts_and_braces_passed_over() -> None:
    one, two, *web = inventory.parsed(YAML, "hosts.yml").hosts
    assert (one.name, one.user, one.where) == ("one.example.com", "root", "one.example.com")
    assert (two.where, two.port) == ("10.0.0.2", 2200)
    assert [(host.name, host.user, host.groups) for host in web] == [
        ("w1", "anna", ("web",)),
        ("w2", "anna", ("web",)),
        ("w3", "web", ("web",)),
    ]


def test_the_kind_is_told_by_the_text_where_the_name_does_not() -> None:
    assert len(inventory.parsed(YAML, "inventory").hosts) == 5
    assert len(inventory.parsed(INI, "inventory").hosts) == 7


def test_what_only_ansible_knows_is_left_out_and_named() -> None:
    found = inventory.parsed(
        "a ansible_host={{x}}\nb ansible_connection=winrm\nc ansible_port=no\nd\n", "hosts"
    )
    assert [one.name for one in found.hosts] == ["d"]
    assert [note.split(":")[0] for note in found.notes] == ["a", "b", "c"]


def test_a_group_that_holds_itself_ends() -> None:
    found = inventory.parsed(
        "[a:children]\nb\n[b:children]\na\n[b]\nhost\n[a:vars]\nansible_user=u\n", "hosts"
    )
    assert found.hosts[0].user == "u"


def test_an_ipv6_address_and_a_port_beside_a_name() -> None:
    found = inventory.parsed("h.example.com:2200\n[v6]\ns ansible_host=2001:db8::1\n", "hosts").hosts
    assert (found[0].where, found[0].port) == ("h.example.com", 2200)
    assert (found[1].where, found[1].port) == ("2001:db8::1", 0)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("h", "[web:hots]\n", "h:1: [web:hots]"),
        ("h", "a b c\n", "h:1: after a host's name"),
        ("h", "[w]\na 'b\n", "h:2: a quote"),
        ("h", "", "no host stands in it"),
        ("h", "\0\1", "is no name of a host"),
        ("h", "w[1:99999999]\n", "means"),
        ("h.yml", "all:\n\thosts:\n", "h.yml:2"),
        ("h.yml", "all: &x\n  hosts:\n    a:\n", "anchors"),
        ("h.yml", "all:\n  hosts:\n    a: {b: {c: d}}\n", "between braces"),
        ("h.yml", "all:\n  hots:\n    a:\n", "not 'hots'"),
        ("h.yml", "a:\n  hosts:\n    x:\n  hosts:\n    y:\n", "twice"),
        ("h.yml", "a:\n---\nb:\n", "second document"),
        ("h.json", '{"_meta": {}}', "ansible-inventory"),
        ("h.yml", "- hosts: all\n", "a name with a colon"),
    ],
)
def test_junk_is_refused_kindly(name: str, text: str, told: str) -> None:
    with pytest.raises(BadInput, match=told.replace("[", r"\[")):
        inventory.parsed(text, name)


@settings(max_examples=300, deadline=None)
@given(some.text(alphabet="ab:[]{}&*-#'\"\n\t =,01", max_size=60), some.sampled_from(["h", "h.yml"]))
def test_nothing_but_bad_input_comes_of_any_text(text: str, name: str) -> None:
    begin = time.process_time()
    with contextlib.suppress(BadInput):
        inventory.parsed(text, name)
    assert time.process_time() - begin < 5


def test_files_that_are_none(tmp_path: Path) -> None:
    script, vault, binary = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    script.write_text("#!/usr/bin/env python3\n")
    vault.write_text("$ANSIBLE_VAULT;1.1;AES256\n61\n")
    binary.write_bytes(b"\xff\xfe\x00")
    for path, told in (
        (script, "not run here"),
        (vault, "encrypted"),
        (binary, "UTF-8"),
        (tmp_path, "folder"),
        (tmp_path / "d", "cannot be read"),
    ):
        with pytest.raises(BadInput, match=told):
            inventory.read(path)


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text(INI)
    assert len(inventory.read(path).hosts) == 7
