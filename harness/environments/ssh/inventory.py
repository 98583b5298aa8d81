"""An inventory: the machines that nodes may run on, how each is reached, and for which nodes it is. In TOML:

    [defaults]                        # of all hosts, each of which may say otherwise
    user = "storm"                    # root unless it is named
    sudo = true                       # where the user is not root: without a password
    key = "~/.ssh/storm"              # a private key's file, seen from the inventory; agent = true asks the SSH agent
    port = 22
    jump = "gate"                     # another host here, through which this machine is reached

    [hosts.gate]                      # a host without node or groups only leads to others
    address = "192.0.2.1"
    jump = ""                         # none, whatever the defaults say

    [hosts.m1]
    address = "10.0.0.11"             # a name or an address, by which it is reached
    host_key = "ssh-ed25519 AAAA…"    # pinned; without it, the user's known_hosts has to know it
    inside = "172.16.0.11"            # IPv4, by which nodes reach each other; the address, unless it is named
    clients = "10.0.0.11"             # by which clients reach its node; the address, or inside behind a jump host
    real_clock = true                 # its own clock may be set, with --real-clock; false unless it is said
    node = "b1"                       # the node it is for; or any one node of
    groups = ["servers"]              # these groups (`all` is every node)

A machine takes one node: faults strike a machine's whole network, and nodes of a kind share their ports.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from harness import path_name, toml_file
from harness.bounds import Bounds, fitting, quote
from harness.errors import UsageError
from harness.nearest import unknown
from harness.reading import read_given

LONGEST_INVENTORY_BYTES = 1 << 20
MOST_HOSTS = 1_000
SSH_PORT = 22


@dataclass(frozen=True, kw_only=True)
class Keys:
    """What may stand under a host, as it is written."""

    address: str = ""
    port: Annotated[int, Bounds(1, 65_535)] = SSH_PORT
    user: str = "root"
    sudo: bool = False
    key: str = ""
    agent: bool = False
    real_clock: bool = False
    jump: str = ""
    host_key: str = ""
    inside: str = ""
    clients: str = ""
    node: str = ""


OF_ONE_HOST = ("address", "host_key", "inside", "clients", "node", "groups")
HOST_KEYS = (*(field.name for field in fields(Keys)), "groups")
DEFAULT_KEYS = tuple(name for name in HOST_KEYS if name not in OF_ONE_HOST)


@dataclass(frozen=True, kw_only=True)
class Host:
    """A machine, and how it is reached."""

    name: str
    address: str
    port: int
    user: str
    sudo: bool
    key: Path | None
    """The file of its key; None: the SSH agent is asked."""
    jump: str
    """The host through which it is reached; empty: at once."""
    host_key: tuple[str, bytes] | None
    """Its type and what it is; None: as the user's known_hosts says."""
    inside: str
    clients: str
    node: str
    groups: tuple[str, ...]
    real_clock: bool
    """Whether its own clock may be set."""

    def __str__(self) -> str:
        return f"{self.name} ({self.user}@{self.address}:{self.port})"

    @property
    def takes_nodes(self) -> bool:
        return bool(self.node or self.groups)


@dataclass(frozen=True, kw_only=True)
class Inventory:
    where: str
    """The file, for messages and commands."""
    hosts: Mapping[str, Host]

    @property
    def machines(self) -> tuple[Host, ...]:
        """Those that take nodes, in their order."""
        return tuple(host for host in self.hosts.values() if host.takes_nodes)


def read_inventory(where: str) -> Inventory:
    """Raises UsageError with the file and the key that is wrong."""
    path = Path(where)
    try:
        text = read_given(path, LONGEST_INVENTORY_BYTES).decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"inventory {where} cannot be read: {reason}") from None
    return parse_inventory(text, where)


def parse_inventory(text: str, where: str) -> Inventory:
    """`where` names the file, beside which keys are looked for. Raises UsageError."""
    data = toml_file.parsed(text, where)
    _refuse_unknown(data, ("defaults", "hosts"), where, "an inventory")
    defaults = _table(data.get("defaults", {}), f"{where}: defaults")
    _refuse_unknown(defaults, DEFAULT_KEYS, f"{where}: defaults", "the defaults")
    tables = _table(data.get("hosts", {}), f"{where}: hosts")
    if not 0 < len(tables) <= MOST_HOSTS:
        raise UsageError(f"{where}: an inventory has from 1 to {MOST_HOSTS} tables [hosts.NAME], got {len(tables)}")
    hosts = {name: _host(name, table, defaults, where) for name, table in tables.items()}
    for host in hosts.values():
        _require_reachable(host, hosts, where)
    _require_different(hosts, where)
    return Inventory(where=where, hosts=hosts)


def _host(name: str, table: Any, defaults: Mapping[str, Any], where: str) -> Host:
    place = f"{where}: hosts.{name}"
    _checked_name(name, f"{where}: hosts")
    given = _table(table, place)
    _refuse_unknown(given, HOST_KEYS, place, "a host")
    merged = {**defaults, **given}
    if "key" in given and "agent" not in given:
        merged.pop("agent", None)
    if "agent" in given and "key" not in given:
        merged.pop("key", None)
    groups = _groups(merged.pop("groups", []), f"{place}.groups")
    keys = Keys(**{key: fitting(Keys, key, value, what=f"{place}.{key}") for key, value in merged.items()})
    if not keys.address.strip():
        raise UsageError(f'{place} lacks address: say by which name or address it is reached, address = "192.0.2.11"')
    if keys.node and groups:
        raise UsageError(f"{place} has node and groups; a machine takes one node: leave one of the two out")
    if not keys.user.strip():
        raise UsageError(f"{place}.user is empty; name a user, or leave it out for root")
    takes_nodes = bool(keys.node or groups)
    inside = _inside(keys, place) if takes_nodes else ""
    return Host(
        name=name,
        address=keys.address,
        port=keys.port,
        user=keys.user,
        sudo=keys.sudo,
        key=_key(keys, place, Path(where).parent),
        jump=keys.jump,
        host_key=_host_key(keys.host_key, f"{place}.host_key") if keys.host_key else None,
        inside=inside,
        clients=keys.clients or (inside if keys.jump else keys.address),
        node=keys.node,
        groups=groups,
        real_clock=keys.real_clock,
    )


def _key(keys: Keys, place: str, beside: Path) -> Path | None:
    if keys.agent and keys.key:
        raise UsageError(f"{place} has key and agent = true; leave one of the two out")
    if keys.agent:
        return None
    if not keys.key:
        raise UsageError(f"{place} lacks a key: name the file of a private one, or say agent = true")
    path = beside / Path(keys.key).expanduser()
    if not path.is_file():
        raise UsageError(f"{place}.key takes the file of a private key, got {quote(keys.key)}: there is no file {path}")
    return path


def _inside(keys: Keys, place: str) -> str:
    name, value = ("inside", keys.inside) if keys.inside else ("address", keys.address)
    try:
        return str(ipaddress.IPv4Address(value))
    except ValueError:
        more = "" if keys.inside else "; a name needs beside it inside, by which nodes reach each other"
        raise UsageError(f"{place}.{name} takes an IPv4 address, got {quote(value)}{more}") from None


def _host_key(text: str, place: str) -> tuple[str, bytes]:
    """As ssh-keyscan prints it, without the name of the host."""
    kind, _, encoded = text.strip().partition(" ")
    try:
        data = base64.b64decode(encoded.partition(" ")[0], validate=True)
    except binascii.Error:
        data = b""
    if not data or data[4 : 4 + int.from_bytes(data[:4], "big")] != kind.encode(errors="replace"):
        raise UsageError(
            f"{place} takes a type and a key, as 'ssh-ed25519 AAAA…' in a line of known_hosts, got {quote(text)}"
        )
    return kind, data


def _groups(value: Any, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise UsageError(f'{place} takes a list of names of groups, as ["all"], got {quote(value)}')
    return tuple(value)


def _require_reachable(host: Host, hosts: Mapping[str, Host], where: str) -> None:
    """Each is reached by way of hosts that there are, in no circle."""
    passed = [host.name]
    while host.jump:
        if host.jump not in hosts:
            raise UsageError(f"{where}: hosts.{host.name}.jump: {unknown('host', host.jump, list(hosts))}")
        if host.jump in passed:
            raise UsageError(f"{where}: hosts.{host.name}.jump leads in a cycle: {' → '.join([*passed, host.jump])}")
        host = hosts[host.jump]
        passed.append(host.name)


def _require_different(hosts: Mapping[str, Host], where: str) -> None:
    """A node and an address inside the cluster belong to one machine each."""
    seen: dict[tuple[str, str], str] = {}
    for host in hosts.values():
        for key, value in (("node", host.node), ("inside", host.inside)):
            if value and seen.setdefault((key, value), host.name) != host.name:
                raise UsageError(
                    f"{where}: hosts.{host.name} and hosts.{seen[key, value]} have both {value} as {key}; each node "
                    "has a machine of its own"
                )


def _checked_name(name: str, place: str) -> None:
    try:
        path_name.checked(name, "a host")
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None


def _table(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{place} takes a table of keys and values, got {quote(value)}")
    return value


def _refuse_unknown(table: Mapping[str, Any], names: tuple[str, ...], where: str, of: str) -> None:
    for key in table:
        if key not in names:
            raise UsageError(f"{where}: {unknown('key', key, names, of=f' of {of}')}")
