"""Which node runs on which machine: decided from the inventory alone, before anything is reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.environments.ssh.inventory import Host, Inventory
from harness.errors import UsageError
from harness.system import NodeSpec

EVERY_GROUP = "all"


def placed(nodes: Sequence[NodeSpec], inventory: Inventory) -> Mapping[str, Host]:
    """Node -> its machine: the one that names it, otherwise the first free one of a group of its.

    Machines that are left over stay as they are. Raises UsageError for a node without a machine, and for a machine of a
    node that there is not.
    """
    names = {spec.name for spec in nodes}
    by_name = {host.node: host for host in inventory.machines if host.node}
    free = [host for host in inventory.machines if not host.node]
    found: dict[str, Host] = {}
    for spec in nodes:
        if spec.name in by_name:
            found[spec.name] = by_name[spec.name]
            continue
        wanted = {EVERY_GROUP, *spec.groups}
        host = next((host for host in free if wanted.intersection(host.groups)), None)
        if host is None:
            raise UsageError(_missing(spec, inventory, [name for name in by_name if name not in names]))
        free.remove(host)
        found[spec.name] = host
    return found


def _missing(spec: NodeSpec, inventory: Inventory, strangers: Sequence[str]) -> str:
    named = f"node = {spec.name!r}".replace("'", '"')
    ways = [named, *(f'groups = ["{group}"]' for group in spec.groups[:1])]
    words = f"{inventory.where}: no machine is left for node {spec.name}: give one more host {' or '.join(ways)}"
    if strangers:
        words += f"; there is a machine for {', '.join(strangers)}, but no such node in this run"
    return words
