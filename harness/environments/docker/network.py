"""One network a run: a free subnet with fixed addresses, and free ports of 127.0.0.1 by which clients reach nodes."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import docker

from harness.environments.docker.engine import speaking
from harness.errors import HarnessError

SUBNETS = tuple(ipaddress.IPv4Network("10.213.0.0/16").subnets(new_prefix=24))
FIRST_ADDRESS = 10
MOST_NODES = 240


def make_network(client: Any, name: str, labels: Mapping[str, str], nodes: Sequence[str]) -> tuple[Any, dict[str, str]]:
    """The network and the address of each node. Raises HarnessError if no subnet is free."""
    if len(nodes) > MOST_NODES:
        raise HarnessError(f"{len(nodes)} nodes are more than a network of containers takes ({MOST_NODES})")
    taken = _routed()
    why = "all are routed elsewhere"
    for subnet in SUBNETS:
        if any(subnet.overlaps(other) for other in taken):
            continue
        pool = docker.types.IPAMPool(subnet=str(subnet), gateway=str(subnet[1]))
        with speaking(f"making network {name}"):
            try:
                network = client.networks.create(
                    name, driver="bridge", labels=dict(labels), ipam=docker.types.IPAMConfig(pool_configs=[pool])
                )
            except docker.errors.APIError as error:
                if "overlap" not in str(error):
                    raise
                why = str(error.explanation)
                continue
        return network, {node: str(subnet[FIRST_ADDRESS + index]) for index, node in enumerate(nodes)}
    raise HarnessError(f"no free subnet of 10.213.0.0/16 for the run's network: {why}; try stormproof cleanup")


def _routed() -> list[ipaddress.IPv4Network]:
    """Where this machine sends packets already; the engine asks only its own networks."""
    table = Path("/proc/net/route")
    if not table.exists():
        return []
    found = []
    for line in table.read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        destination, mask = (int.from_bytes(bytes.fromhex(fields[index])[::-1], "big") for index in (1, 7))
        if mask:
            found.append(ipaddress.IPv4Network((destination, bin(mask).count("1"))))
    return found


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody has now; somebody else may be quicker. They must stay the same for a whole
    run, while a port of the engine's own choice changes when a container is started again."""
    with_sockets = [socket.socket() for _ in range(count)]
    try:
        for one in with_sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in with_sockets]
    finally:
        for one in with_sockets:
            one.close()


def is_port_taken(error: Exception) -> bool:
    words = str(error)
    return "port is already allocated" in words or "address already in use" in words
