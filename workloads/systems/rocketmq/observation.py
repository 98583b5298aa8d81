"""What the nodes of RocketMQ itself are, asked of the active controller, as the events that our own nodes write.

A broker's role is what the controllers gave it, which a broker that is cut off does not know; a controller leads where
it answers that it is active, or where another one names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from system_under_test.rocketmq.client.controller_client import ControllerClient
from system_under_test.rocketmq.client.errors import ClientError
from system_under_test.rocketmq.controller.protocol import GroupState
from workloads.systems.rocketmq.settings import (
    CONTROLLER_PORT,
    RocketmqSettings,
    addresses,
    broker_groups,
    controller_names,
    node_of,
)

Event = Mapping[str, Any]


async def observed(settings: RocketmqSettings, host: Any) -> Mapping[str, tuple[Event, ...]]:
    """Node -> events; empty where no controller is active."""
    names = controller_names(settings)
    controllers = ControllerClient(host, addresses(names, CONTROLLER_PORT), 1.5)
    try:
        active = node_of(await controllers.find_active())
        groups = await controllers.sync_state_data([group.name for group in broker_groups(settings)])
    except ClientError:
        return {}
    finally:
        controllers.close()
    seen: dict[str, tuple[Event, ...]] = {
        name: ({"event": "role", "role": "leader" if name == active else "follower"},) for name in names
    }
    for _, group in sorted(groups.items()):
        seen |= _brokers(group)
    return seen


def _brokers(group: GroupState) -> dict[str, tuple[Event, ...]]:
    info = group.info
    found: dict[str, tuple[Event, ...]] = {}
    for replica in (*group.in_sync, *group.not_in_sync):
        is_master = replica.broker_id == info.master_id
        role: Event = {
            "event": "role",
            "group": group.group,
            "role": "master" if is_master else "slave",
            "master_epoch": info.master_epoch,
            "broker_id": replica.broker_id,
        }
        members: Event = {
            "event": "sync_state_set",
            "members": sorted(member.broker_id for member in group.in_sync),
            "epoch": info.sync_state_set.epoch,
        }
        found[node_of(replica.address)] = (role, members) if is_master else (role,)
    return found
