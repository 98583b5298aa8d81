"""The members of a Raft group as a setting: `n0-127.0.0.1:9877;n1-127.0.0.1:9878`."""

from __future__ import annotations

from collections.abc import Mapping

from system_under_test.node.settings import Settings, setting


@setting
def members(settings: Settings, name: str, *, own: str) -> Mapping[str, str]:
    """Address of each by id; `own` is the setting that names the one that this process is. Raises ValueError."""
    self_id, written = settings.text(own), settings.text(name)
    addresses: dict[str, str] = {}
    for part in filter(None, written.split(";")):
        node, dash, address = part.strip().partition("-")
        if not dash or not node or node in addresses or not address.rpartition(":")[2].isdigit():
            raise ValueError(f"{name}: expected `id-host:port;…` with distinct ids, got {written!r}")
        addresses[node] = address
    if self_id not in addresses:
        raise ValueError(f"{own}: expected one of {', '.join(sorted(addresses))}, got {self_id!r}")
    return addresses
