"""Who plays which role among nodes of Apache RocketMQ, asked of all that may know it at once.

A follower goes on to name a leader that was killed until it misses its heartbeats, and a leader that cannot reach the
others takes itself for one as long. So a node that answers that it leads is believed before one that is only named, and
among several the one that most others name. Where no controller knows a master, the brokers themselves are asked, and
then NameServers. What is not found is asked for again, within a bound.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, TypeVar

from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.admin_client import AdminClient, BrokerEpochs
from system_under_test.rocketmq.client.controller_client import ControllerClient
from system_under_test.rocketmq.controller.protocol import GroupState
from workloads.systems.rocketmq.settings import (
    BROKER_PORT,
    CONTROLLER_PORT,
    NAMESERVER_PORT,
    BrokerGroup,
    RocketmqSettings,
    addresses,
    broker_groups,
    controller_names,
    name_server_names,
    node_of,
)
from workloads.systems.rocketmq.watch import QUORUM_OF_THREE

T = TypeVar("T")

ANSWERS_WITHIN_S = 0.8
"""A paused node takes a connection, and never answers."""
FOUND_WITHIN_S = 3.0
"""Shorter than the caller waits, who would get nothing otherwise."""
ASKED_EVERY_S = 0.2
MASTER_ID = 0


async def original_roles(settings: RocketmqSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
    """Once every role is found, or the bound is reached; then those that were found."""
    controllers = ControllerClient(
        host, addresses(controller_names(settings), CONTROLLER_PORT), timeout_s=ANSWERS_WITHIN_S
    )
    admin = AdminClient(host, ANSWERS_WITHIN_S)
    deadline_ns = host.clock.monotonic_ns() + int((FOUND_WITHIN_S - ANSWERS_WITHIN_S) * 1e9)
    active, groups, masters = None, dict[str, GroupState](), dict[str, str]()
    try:
        while True:
            active = await active_controller(controllers) or active
            if active is not None:
                groups = await _groups(controllers, settings, active) or groups
            masters |= {name: group.info.master_address for name, group in groups.items() if group.info.master_address}
            for group in broker_groups(settings):
                if group.name not in masters and (master := await _master(admin, group)) is not None:
                    masters[group.name] = master
            is_found = active is not None and len(masters) == len(broker_groups(settings))
            if is_found or host.clock.monotonic_ns() > deadline_ns:
                break
            await host.clock.sleep(ASKED_EVERY_S)
        if not masters:
            masters = await _routed_masters(admin, settings)
    finally:
        controllers.close()
        admin.close()
    return _roles(settings, active, groups, masters)


def _roles(
    settings: RocketmqSettings, active: str | None, groups: Mapping[str, GroupState], masters: Mapping[str, str]
) -> Mapping[str, tuple[str, ...]]:
    roles: dict[str, tuple[str, ...]] = {}
    spare: list[str] = []
    if active is not None:
        roles["active-controller"] = (node_of(active),)
        spare += [node_of(active)] if settings.controllers >= QUORUM_OF_THREE else []
    if masters:
        roles["primary"] = tuple(node_of(masters[name]) for name in sorted(masters))
    for name in sorted(groups):
        if groups[name].info.master_address:
            spare += dispensable_broker(settings, groups[name])
    return {**roles, "dispensable": tuple(spare)} if spare else roles


def dispensable_broker(settings: RocketmqSettings, group: GroupState) -> tuple[str, ...]:
    """A broker without which the group must go on: the master, where another member of the SyncStateSet lives."""
    if settings.lasting_voters - 1 < settings.needed_replicas:
        return ()
    heirs = [replica for replica in group.in_sync if replica.is_alive and replica.broker_id != group.info.master_id]
    if heirs and group.info.master_address:
        return (node_of(group.info.master_address),)
    return tuple(node_of(replica.address) for replica in group.not_in_sync[:1])


async def active_controller(controllers: ControllerClient) -> str | None:
    """Its address; of one that is only named, nothing is known."""
    asked = controllers.controllers
    answers = await asyncio.gather(*(_answer(controllers.metadata(controller)) for controller in asked))
    claims = [one for one, answer in zip(asked, answers, strict=True) if answer is not None and answer.is_active]
    named = Counter(answer.leader_address for answer in answers if answer is not None)
    return max(claims, key=lambda one: named[one], default=None)


async def _groups(controllers: ControllerClient, settings: RocketmqSettings, active: str) -> dict[str, GroupState]:
    controllers.active = active
    names = [group.name for group in broker_groups(settings)]
    return await _answer(controllers.sync_state_data(names)) or {}


async def _master(admin: AdminClient, group: BrokerGroup) -> str | None:
    """Of those that take themselves for it, the one with the newest epoch."""
    brokers = addresses(list(group.brokers), BROKER_PORT)
    parts = await asyncio.gather(*(_answer(admin.is_master(broker)) for broker in brokers))
    epochs = await asyncio.gather(*(_answer(admin.epochs(broker)) for broker in brokers))
    return newest_master(zip(brokers, parts, epochs, strict=True))


def newest_master(answers: Iterable[tuple[str, bool | None, BrokerEpochs | None]]) -> str | None:
    masters = {
        broker: epochs.entries[-1].master_epoch
        for broker, is_master, epochs in answers
        if is_master and epochs is not None and epochs.entries
    }
    return max(masters, key=lambda broker: masters[broker], default=None)


async def _routed_masters(admin: AdminClient, settings: RocketmqSettings) -> dict[str, str]:
    name_servers = addresses(name_server_names(settings), NAMESERVER_PORT)
    answers = await asyncio.gather(*(_answer(admin.broker_groups(name_server)) for name_server in name_servers))
    known = {group.name for group in broker_groups(settings)}
    return {
        group.name: group.brokers[MASTER_ID]
        for answer in answers
        for group in answer or ()
        if group.name in known and MASTER_ID in group.brokers
    }


async def _answer(request: Awaitable[T]) -> T | None:
    try:
        return await request
    except ClientError:
        return None
