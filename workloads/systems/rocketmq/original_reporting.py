"""What is known of nodes of Apache RocketMQ: the answers to administrators' requests, and what they log.

Of what a node's logs tell of they tell everything, to the millisecond where this project has set them up; its answers,
asked for twice a second, count for the rest, and for all of it where logs cannot be dated. No release says in any
answer up to where its log is confirmed, nor logs it each time, so no check by confirmed offsets is made.

`RocketmqInvariants` are not fed with any of this: they hold what nodes do against each other at every moment, and
between two answers anything may have happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from harness.reporting import Account, Event, Report
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.admin_client import AdminClient, BrokerEpochs
from system_under_test.rocketmq.client.controller_client import ControllerClient
from system_under_test.rocketmq.controller.protocol import GroupState
from workloads.systems.java import out_of_memory
from workloads.systems.rocketmq.original_events import logged_events
from workloads.systems.rocketmq.settings import (
    BROKER_PORT,
    CONTROLLER_PORT,
    RocketmqSettings,
    addresses,
    broker_groups,
    controller_names,
    node_of,
)

ASKED_EVERY_S = 0.5
ANSWERS_WITHIN_S = 1.0
MASTER_ID = 0
TOPICS = (
    ("identity",),
    ("role",),
    ("leader", "follower", "candidate"),
    ("elected",),
    ("sync_state_set",),
    ("set_agreed",),
)
"""Events that tell of one thing: where logs tell of it, answers are not needed."""


class OriginalReporting:
    """`Reporting` of the harness."""

    def __init__(self, settings: RocketmqSettings) -> None:
        self._settings = settings
        self._groups = {broker: group.name for group in broker_groups(settings) for broker in group.brokers}

    async def observe(self, host: Any, report: Report) -> None:
        asking = _Asking(self._settings, host, report)
        try:
            async with asyncio.TaskGroup() as tasks:
                for controller in addresses(controller_names(self._settings), CONTROLLER_PORT):
                    tasks.create_task(asking.ask_controller(controller))
                for broker in addresses(list(self._groups), BROKER_PORT):
                    tasks.create_task(asking.ask_broker(broker))
                tasks.create_task(asking.ask_for_groups())
        finally:
            asking.close()

    def events(self, node: str, account: Account) -> Iterable[Event]:
        logged: list[Event] = []
        if account.wall_at_zero_ns is not None:
            zero_ns = account.wall_at_zero_ns
            logged = [
                {"time": line.wall_ns - zero_ns, "event": line.event, **line.fields}
                for line in logged_events(account.logs, self._groups.get(node, ""))
            ]
        return merged(logged, account.observed)

    def doubts(self, account: Account) -> list[str]:
        return out_of_memory(account)


def merged(logged: Iterable[Event], observed: Iterable[Event]) -> list[Event]:
    """By time. Logs are not interleaved with answers about the same thing: a second that is logged as a whole would put
    an older epoch behind a newer one."""
    kept = list(logged)
    names = {event["event"] for event in kept}
    logged_topics = {name for topic in TOPICS if not names.isdisjoint(topic) for name in topic}
    kept += [event for event in observed if event["event"] not in logged_topics]
    return sorted(kept, key=lambda event: event["time"])


@dataclass
class _Asking:
    """What was answered last: changes alone are reported."""

    settings: RocketmqSettings
    host: Any
    report: Report
    last: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    elected: set[tuple[str, int]] = field(default_factory=set)
    """(address of the master, its epoch) of elections that the controllers have answered with."""
    ids: dict[str, int] = field(default_factory=dict)
    """Address of a broker -> its id, as controllers know it: a broker itself says 0 while it is master."""

    def __post_init__(self) -> None:
        controllers = addresses(controller_names(self.settings), CONTROLLER_PORT)
        self.controllers = ControllerClient(self.host, controllers, ANSWERS_WITHIN_S)
        self.admin = AdminClient(self.host, ANSWERS_WITHIN_S)

    def close(self) -> None:
        self.controllers.close()
        self.admin.close()

    async def ask_controller(self, controller: str) -> None:
        while True:
            with suppress(ClientError):
                metadata = await self.controllers.metadata(controller)
                self._changed(node_of(controller), "vote", "leader" if metadata.is_active else "follower", {})
            await self.host.clock.sleep(ASKED_EVERY_S)

    async def ask_for_groups(self) -> None:
        names = [group.name for group in broker_groups(self.settings)]
        while True:
            with suppress(ClientError):
                groups = await self.controllers.sync_state_data(names)
                active = self.controllers.active
                for group in groups.values():
                    if active is not None:
                        self._report_group(node_of(active), group)
            await self.host.clock.sleep(ASKED_EVERY_S)

    def _report_group(self, active: str, group: GroupState) -> None:
        """Release 5.1.0 calls the master 0: its own id is what it was called before, if that is known."""
        info = group.info
        for replica in (*group.in_sync, *group.not_in_sync):
            if replica.broker_id != MASTER_ID:
                self.ids[replica.address] = replica.broker_id
                identity = {"group": group.group, "broker_id": replica.broker_id}
                self._changed(node_of(replica.address), "identity", "identity", identity)
        ids = [self.ids.get(replica.address) for replica in group.in_sync]
        known = sorted(one for one in ids if one is not None)
        members = {"members": known} if len(known) == len(ids) else {}
        agreed = {"group": group.group, "sync_state_set_epoch": info.sync_state_set.epoch, **members}
        self._changed(active, f"set of {group.group}", "set_agreed", agreed)
        if info.master_address is None:
            return
        self.elected.add((info.master_address, info.master_epoch))
        own = {"group": group.group, "epoch": info.sync_state_set.epoch, **members}
        self._changed(node_of(info.master_address), "set", "sync_state_set", own)
        master = self.ids.get(info.master_address)
        if master is not None:
            elected = {"master": master, "master_epoch": info.master_epoch, "in_sync": [], "unclean_allowed": None}
            self._changed(active, f"master of {group.group}", "elected", {"group": group.group, **elected})

    async def ask_broker(self, broker: str) -> None:
        while True:
            with suppress(ClientError):
                is_master = await self.admin.is_master(broker)
                self._report_broker(broker, is_master, await self.admin.epochs(broker))
            await self.host.clock.sleep(ASKED_EVERY_S)

    def _report_broker(self, broker: str, is_master: bool, now: BrokerEpochs) -> None:
        """It takes itself for master also while it starts, and has epochs of others: it is master of one only if it was
        elected under it."""
        node = node_of(broker)
        role = {"group": now.group, "broker_id": self.ids.get(broker), "start_offset": None}
        if not is_master:
            self._changed(node, "role", "role", {**role, "role": "slave", "master_epoch": None})
            return
        newest = now.entries[-1].master_epoch if now.entries else 0
        if (broker, newest) not in self.elected:
            return
        self._changed(node, "role", "role", {**role, "role": "master", "master_epoch": newest})

    def _changed(self, node: str, topic: str, event: str, fields: Mapping[str, Any]) -> None:
        said = {"event": event, **fields}
        if self.last.get((node, topic)) != said:
            self.last[node, topic] = said
            self.report(node, event, fields)
