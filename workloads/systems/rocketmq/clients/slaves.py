"""What slaves of configured masters say of themselves. Those of version 4 say nothing, and are never parted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from system_under_test.rocketmq.client.errors import ClientError
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


def _state(status: Mapping[str, Any] | None) -> str:
    return "" if status is None else str(status.get("haClientRuntimeInfo", {}).get("state"))
