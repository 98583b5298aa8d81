"""An inventory is read strictly: what is wrong is named with file and key, what was expected, and what came."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from harness.environments.ssh.inventory import Inventory, parse_inventory, read_inventory
from harness.environments.ssh.placement import placed
from harness.errors import UsageError
from harness.program import PythonProgram
from harness.system import NodeSpec

HOST_KEY = "ssh-ed25519 " + base64.b64encode(b"\0\0\0\x0bssh-ed25519" + b"\0\0\0\x20" + bytes(32)).decode()
DEFAULTS = "[defaults]\nagent = true\n"
MACHINE = '[hosts.m1]\naddress = "192.0.2.11"\nnode = "b1"\n'


def parsed(text: str) -> Inventory:
    return parse_inventory(text, "hosts.toml")


def test_a_host_has_what_it_says_and_otherwise_what_the_defaults_say(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("")
    file = tmp_path / "hosts.toml"
    file.write_text(
        '[defaults]\nuser = "storm"\nsudo = true\nkey = "key"\njump = "gate"\n'
        '[hosts.gate]\naddress = "gate.example"\njump = ""\nagent = true\n'
        f'[hosts.m1]\naddress = "m1.example"\ninside = "10.0.0.1"\nport = 2222\nhost_key = "{HOST_KEY} a comment"\n'
        'groups = ["brokers"]\n'
    )
    inventory = read_inventory(str(file))
    gate, machine = inventory.hosts["gate"], inventory.hosts["m1"]
    assert inventory.machines == (machine,), "a host that is for no node only leads to others"
    assert (gate.jump, gate.key, gate.port) == ("", None, 22)
    assert (machine.user, machine.sudo, machine.key, machine.jump) == ("storm", True, tmp_path / "key", "gate")
    assert machine.inside == machine.clients == "10.0.0.1", "behind a jump host clients are inside as well"
    assert machine.host_key is not None
    assert machine.host_key[0] == "ssh-ed25519"
    assert str(machine) == "m1 (storm@m1.example:2222)"


def test_clients_come_by_the_address_unless_it_says_otherwise() -> None:
    machine = parsed(DEFAULTS + MACHINE.replace("192.0.2.11", "m1.example") + 'inside = "10.0.0.1"').hosts["m1"]
    assert (machine.inside, machine.clients) == ("10.0.0.1", "m1.example")
    machine = parsed(DEFAULTS + MACHINE + 'clients = "10.9.9.9"').hosts["m1"]
    assert (machine.inside, machine.clients) == ("192.0.2.11", "10.9.9.9")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "hosts.toml: an inventory has from 1 to 1000 tables [hosts.NAME], got 0"),
        ("[hosts", "hosts.toml: not TOML: "),
        ("host = 1", "hosts.toml: unknown key 'host' of an inventory; did you mean hosts?"),
        ("hosts = 5", "hosts.toml: hosts takes a table of keys and values, got 5"),
        ("[hosts]\nm1 = 5", "hosts.toml: hosts.m1 takes a table of keys and values, got 5"),
        ('[defaults]\naddress = "x"', "hosts.toml: defaults: unknown key 'address' of the defaults; known are:"),
        (MACHINE, "hosts.toml: hosts.m1 lacks a key: name the file of a private one, or say agent = true"),
        (MACHINE + 'key = "nowhere"', "hosts.m1.key takes the file of a private key, got 'nowhere': there is no file"),
        (
            MACHINE + 'key = "k"\nagent = true',
            "hosts.toml: hosts.m1 has key and agent = true; leave one of the two out",
        ),
        (DEFAULTS + '[hosts.m1]\nnode = "b1"', "hosts.toml: hosts.m1 lacks address: say by which name or address"),
        (DEFAULTS + MACHINE + "port = 0", "hosts.toml: hosts.m1.port takes a whole number from 1 to 65535, got 0"),
        (DEFAULTS + MACHINE + 'port = "22"', "hosts.m1.port takes a whole number from 1 to 65535, got '22'"),
        (DEFAULTS + MACHINE + "user = 5", "hosts.toml: hosts.m1.user takes text, got 5"),
        (DEFAULTS + MACHINE + 'user = ""', "hosts.m1.user is empty; name a user, or leave it out for root"),
        (DEFAULTS + MACHINE + 'sudo = "yes"', "hosts.toml: hosts.m1.sudo takes true or false, got 'yes'"),
        (DEFAULTS + MACHINE + "nodes = []", "hosts.m1: unknown key 'nodes' of a host; did you mean node?"),
        (DEFAULTS + MACHINE + 'groups = ["all"]', "hosts.m1 has node and groups; a machine takes one node"),
        (DEFAULTS + MACHINE.replace("node", "groups"), "hosts.m1.groups takes a list of names of groups"),
        (
            DEFAULTS + MACHINE.replace("192.0.2.11", "m1"),
            "hosts.m1.address takes an IPv4 address, got 'm1'; a name needs",
        ),
        (DEFAULTS + MACHINE + 'inside = "::1"', "hosts.toml: hosts.m1.inside takes an IPv4 address, got '::1'"),
        (DEFAULTS + MACHINE + 'host_key = "AAAA"', "hosts.m1.host_key takes a type and a key, as 'ssh-ed25519 AAAA…'"),
        (DEFAULTS + MACHINE + f'host_key = "{HOST_KEY.replace("ssh-ed25519", "ssh-rsa")}"', "takes a type and a key"),
        (DEFAULTS + MACHINE + 'jump = "gate"', "hosts.toml: hosts.m1.jump: unknown host 'gate'; known are: m1"),
        (DEFAULTS + MACHINE + 'jump = "m1"', "hosts.toml: hosts.m1.jump leads in a cycle: m1 → m1"),
        (DEFAULTS + MACHINE + MACHINE.replace("m1", "m2"), "hosts.m2 and hosts.m1 have both b1 as node; each node has"),
        (
            DEFAULTS + MACHINE + MACHINE.replace("m1", "m2").replace("b1", "b2"),
            "hosts.m2 and hosts.m1 have both 192.0.2.11 as inside",
        ),
        (DEFAULTS + MACHINE.replace("m1", '"../m1"'), "hosts.toml: hosts: '../m1' cannot be the name of a host"),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        parsed(text)
    said = str(raised.value)
    assert words in said
    assert said.startswith("hosts.toml: ")
    assert "\n" not in said


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match=r"inventory nowhere\.toml cannot be read: No such file or directory"):
        read_inventory("nowhere.toml")


def machines(*places: str) -> Inventory:
    hosts = (f'[hosts.m{number}]\naddress = "192.0.2.{number}"\n{place}\n' for number, place in enumerate(places, 1))
    return parsed(DEFAULTS + "".join(hosts))


def node(name: str, *groups: str) -> NodeSpec:
    return NodeSpec(name=name, groups=groups, program=PythonProgram(main="none:main"))


B1, B2, C1 = node("b1", "brokers"), node("b2", "brokers"), node("c1", "controllers")
BROKER, ANY = 'groups = ["brokers"]', 'groups = ["all"]'


def test_a_node_is_put_where_it_is_named_otherwise_on_the_first_free_machine_of_its_group() -> None:
    found = placed([B1, B2, C1], machines(ANY, BROKER, 'node = "b1"', 'groups = ["controllers"]', BROKER))
    assert {name: host.name for name, host in found.items()} == {"b1": "m3", "b2": "m1", "c1": "m4"}


@pytest.mark.parametrize(
    ("inventory", "words"),
    [
        (machines(BROKER), 'hosts.toml: no machine is left for node b2: give one more host node = "b2" or groups'),
        (machines(BROKER, 'node = "b9"'), "there is a machine for b9, but no such node in this run"),
    ],
)
def test_a_node_without_a_machine_is_named(inventory: Inventory, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        placed([B1, B2], inventory)
    assert words in str(raised.value)
