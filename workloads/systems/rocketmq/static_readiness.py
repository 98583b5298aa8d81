"""Until the workload's static topic is there, and every queue of it is led: an administrator makes it, and ends the
moves that others began."""

from __future__ import annotations

from typing import Any

from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.admin_client import AdminClient
from system_under_test.rocketmq.client.static_topic_client import StaticTopicClient
from system_under_test.rocketmq.static_topic.placement import placed
from system_under_test.rocketmq.static_topic.remapping import CannotMove
from workloads.systems.rocketmq.clients.connect import request_timeout_s
from workloads.systems.rocketmq.settings import (
    NAMESERVER_PORT,
    TOPIC,
    RocketmqSettings,
    addresses,
    broker_groups,
    name_server_names,
)

RETRY_S = 0.1


async def until_led(settings: RocketmqSettings, host: Any) -> None:
    admin = AdminClient(host, request_timeout_s(settings))
    topics = StaticTopicClient(admin)
    try:
        while True:
            try:
                masters = await _masters(admin, settings)
                await topics.create(masters, TOPIC, placed(settings.static_queues, dict.fromkeys(masters, 0.0)))
                for queue_id in range(settings.static_queues):
                    await topics.move(masters, TOPIC, queue_id, None)
                return
            except (ClientError, CannotMove):
                await host.clock.sleep(RETRY_S)
    finally:
        admin.close()


async def _masters(admin: AdminClient, settings: RocketmqSettings) -> dict[str, str]:
    """Of all groups. Raises ClientError."""
    reasons = []
    for server in addresses(name_server_names(settings), NAMESERVER_PORT):
        try:
            found = {group.name: group.brokers.get(0) for group in await admin.broker_groups(server)}
        except ClientError as error:
            reasons.append(error.detail)
            continue
        masters = {group.name: found.get(group.name) for group in broker_groups(settings)}
        known = {name: address for name, address in masters.items() if address is not None}
        if len(known) == len(masters):
            return known
        reasons.append(f"{server} knows masters of {', '.join(known)} only")
    raise ClientError("no-route", True, "; ".join(reasons))
