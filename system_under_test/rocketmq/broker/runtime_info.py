"""What a broker says of itself to administrators (brokerStatus); with RocketMQ's names where it has them."""

from __future__ import annotations

from collections.abc import Iterator

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.context import BrokerContext
from system_under_test.rocketmq.broker.put_rate import PutRate
from system_under_test.rocketmq.broker.request_handler import Handlers
from system_under_test.rocketmq.broker.role import Roles
from system_under_test.rocketmq.controller.protocol import json_body
from system_under_test.rocketmq.topic import SCHEDULE_TOPIC

DELAY_PROGRESS = "scheduleMessageOffset_"
"""Names, with a level behind it, this level's progress and its end, with a comma between."""


class RuntimeInfo:
    def __init__(self, broker: BrokerContext, roles: Roles, put_rate: PutRate) -> None:
        self._boot_ms = broker.host.clock.wall_ns() // 1_000_000
        self._store, self._tables, self._config = broker.store, broker.tables, broker.config
        self._roles = roles
        self._put_rate = put_rate

    @property
    def handlers(self) -> Handlers:
        return {RequestCode.GET_BROKER_RUNTIME_INFO: self._answer}

    def _answer(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        store, roles = self._store, self._roles
        table = {
            "bootTimestamp": self._boot_ms,
            "brokerClusterName": self._config.cluster,
            "brokerName": self._config.group,
            "brokerControllerId": roles.broker_id,
            "brokerRoleId": roles.role_id,
            "role": roles.role.value,
            "masterEpoch": roles.acted_master_epoch,
            "commitLogMinOffset": store.min_offset,
            "commitLogMaxOffset": store.max_offset,
            "flushedOffset": store.flushed_offset,
            "confirmOffset": store.confirm_offset,
            "dispatchBehindBytes": store.max_offset - store.dispatched_offset,
            "topics": len(self._tables.topics.entries),
            "putTps": self._put_rate,
            "consumerGroups": len(self._tables.groups.entries),
            **dict(self._delay_levels()),
        }
        shown = {name: "none" if value is None else str(value) for name, value in table.items()}
        return RemotingCommand.response(ResponseCode.SUCCESS, body=json_body({"table": shown}))

    def _delay_levels(self) -> Iterator[tuple[str, str]]:
        """Of each level in which anything ever waited, how far it has come and where it ends."""
        store = self._store
        store.settle_delay_progress()
        for level in range(1, 1 + len(self._config.delays.levels.delays_ms)):
            begin, end = store.queue_range(SCHEDULE_TOPIC, level - 1)
            if end:
                yield f"{DELAY_PROGRESS}{level}", f"{max(begin, store.delay_progress.offset(level))},{end}"
