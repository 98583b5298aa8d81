"""What slaves of configured masters say of themselves. Those of version 4 say nothing, and are never parted.

Those of Apache RocketMQ 5 do not say whether they follow: their master says how much each of its slaves lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.message_client import MessageClient


async def replication_status(client: MessageClient, slave: str) -> Mapping[str, Any] | None:
    """By its administrators' answer; None of one that does not know the question. Raises ClientError."""
    try:
        return await client.ha_status(slave)
    except ClientError as error:
        if error.code != "not-supported":
            raise
        return None


def is_parted(status: Mapping[str, Any] | None) -> bool:
    """Whether this slave has nothing in common with its master any more."""
    return _state(status) == "SUSPEND"


def is_transferring(status: Mapping[str, Any]) -> bool:
    """Whether it follows its master."""
    return _state(status) == "TRANSFER"


async def follows(client: MessageClient, slave: str, master: str, slaves: int) -> bool:
    """Whether this one of so many slaves follows its master, is parted from it for good, or does not know the question.
    Raises ClientError."""
    status = await replication_status(client, slave)
    if status is None or is_parted(status) or is_transferring(status):
        return True
    if _state(status):
        return False
    connections = ((await replication_status(client, master)) or {}).get("haConnectionInfo") or []
    whole = [connection for connection in connections if connection.get("diff") == 0]
    return len(whole) >= slaves


def _state(status: Mapping[str, Any] | None) -> str:
    return "" if status is None else str(status.get("haClientRuntimeInfo", {}).get("state") or "")
