"""Adapters of systems that keep queues: how their requests end, and what each configuration may lose."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aio_pika.exceptions import AMQPConnectionError, DeliveryError, PublishError
from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from harness.errors import OperationError, UsageError
from harness.record.fault_log import FaultWindow
from harness.record.node_reports import NoReports
from harness.system import System
from workloads.queue import QueueSettings
from workloads.systems.nats.adapter import OF_LOGS, NatsSettings
from workloads.systems.nats.adapter import SYSTEM as NATS
from workloads.systems.nats.errors import NOT_AVAILABLE, Refused, code_of
from workloads.systems.rabbitmq.adapter import SYSTEM as RABBITMQ
from workloads.systems.rabbitmq.adapter import RabbitmqSettings
from workloads.systems.rabbitmq.connection import answered
from workloads.systems.rabbitmq.queues import Kind
from workloads.systems.zookeeper.adapter import SYSTEM as ZOOKEEPER
from workloads.systems.zookeeper.adapter import ZookeeperSettings


def window(kind: str) -> FaultWindow:
    return FaultWindow(kind=kind, start_ns=0, stop_ns=1)


@pytest.mark.parametrize(
    ("system", "settings", "kind", "workload", "legal"),
    [
        (RABBITMQ, RabbitmqSettings(), "partition", "queue", ()),
        (RABBITMQ, RabbitmqSettings(kind=Kind.MIRRORED), "partition", "queue", ("lost",)),
        (RABBITMQ, RabbitmqSettings(kind=Kind.MIRRORED, strict=True), "partition", "queue", ()),
        (RABBITMQ, RabbitmqSettings(kind=Kind.CLASSIC), "kill", "queue", ("lost",)),
        (RABBITMQ, RabbitmqSettings(kind=Kind.CLASSIC), "clock", "queue", ()),
        (RABBITMQ, RabbitmqSettings(), "pause", "lock", ("nonlinearizable",)),
        (RABBITMQ, RabbitmqSettings(), "clock", "lock", ()),
        (RABBITMQ, RabbitmqSettings(strict=True), "pause", "lock", ()),
        (NATS, NatsSettings(), "kill", "queue", ()),
        (NATS, NatsSettings(), "kill", "log", ()),
        (NATS, NatsSettings(), "power", "log", OF_LOGS),
        (NATS, NatsSettings(), "power", "queue", ("lost",)),
        (NATS, NatsSettings(strict=True), "power", "queue", ()),
        (ZOOKEEPER, ZookeeperSettings(), "partition", "register", ("nonlinearizable",)),
        (ZOOKEEPER, ZookeeperSettings(sync=True), "partition", "register", ()),
        (ZOOKEEPER, ZookeeperSettings(sync=True), "power", "queue", ()),
        (ZOOKEEPER, ZookeeperSettings(sync=True, force_sync=False), "power", "queue", ("lost",)),
        (ZOOKEEPER, ZookeeperSettings(strict=True, force_sync=False), "power", "queue", ()),
    ],
)
def test_what_may_be_lost_follows_from_the_settings_and_from_what_struck(
    system: System, settings: Any, kind: str, workload: str, legal: tuple[str, ...]
) -> None:
    loss = system.legal_loss(settings, (window(kind),), NoReports())
    assert loss.in_workloads.get(workload, ()) == legal
    assert bool(loss.reason) == bool(loss.in_workloads)


RETURNED = DeliveredMessage(
    delivery=Basic.Return(),
    header=ContentHeader(),
    body=b"",
    channel=None,  # type: ignore[arg-type]
)


async def raising(error: BaseException) -> None:
    raise error


async def never_answering() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("asked", "code", "definite"),
    [
        (lambda: raising(PublishError(RETURNED, Basic.Return())), "service-not-available", True),
        (lambda: raising(DeliveryError(None, None)), "outcome-unknown", False),
        (lambda: raising(AMQPConnectionError("gone")), "connection-lost", False),
        (lambda: raising(ConnectionResetError()), "connection-lost", False),
        (lambda: raising(asyncio.CancelledError()), "connection-lost", False),
        (never_answering, "client-timeout", False),
    ],
    ids=["returned", "not confirmed", "connection", "reset", "dropped by the library", "silence"],
)
def test_a_publish_failed_for_certain_only_where_it_came_back(asked: Any, code: str, definite: bool) -> None:
    with pytest.raises(OperationError) as failed:
        asyncio.run(answered(asked(), 0.05))
    assert (failed.value.error.code, failed.value.error.definite) == (code, definite)


@pytest.mark.parametrize(("number", "definite"), [(NOT_AVAILABLE, True), (10077, False), (0, False)])
def test_jetstream_refuses_for_certain_only_by_numbers_that_say_so(number: int, definite: bool) -> None:
    assert code_of(Refused(number, "")).definite is definite


@pytest.mark.parametrize(("system", "settings"), [(NATS, NatsSettings()), (RABBITMQ, RabbitmqSettings())])
def test_queues_that_are_not_made_are_refused(system: Any, settings: Any) -> None:
    system.require_fitting(settings, QueueSettings(queues=4))
    with pytest.raises(UsageError, match=r"setting queues on .* takes at most 4, got 5"):
        system.require_fitting(settings, QueueSettings(queues=5))


def test_a_stream_has_no_more_replicas_than_there_are_servers() -> None:
    with pytest.raises(UsageError, match=r"replicas takes at most the number of servers \(3\), got 5"):
        NatsSettings(replicas=5)
