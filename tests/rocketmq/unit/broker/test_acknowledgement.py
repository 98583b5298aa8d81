"""When a put may be acknowledged, though what decides that changes while it waits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from system_under_test.remoting.codes import ResponseCode
from system_under_test.rocketmq.broker.acknowledgement import acknowledged
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.rocketmq.broker.putting import Pending, Puts
from system_under_test.storage.message_store import FlushMode
from system_under_test.storage.store_results import PutResult

CONFIG = BrokerConfig(name_servers=(), controllers=("c1:9878",), flush_mode=FlushMode.SYNC, min_in_sync_replicas=2)


class Host:
    def __init__(self) -> None:
        self.points: list[str] = []
        self.clock = self

    def monotonic_ns(self) -> int:
        return 0

    def reached(self, point: str, **values: int) -> None:
        self.points.append(point)


@dataclass
class Mastership:
    in_sync: int
    waits: list[int] = field(default_factory=list)
    grows: bool = True

    def enough_in_sync(self) -> bool:
        return self.in_sync >= CONFIG.min_in_sync_replicas

    def slave_available(self) -> bool:
        return True

    def advance(self) -> None:
        pass

    def replicated(self, end_offset: int) -> asyncio.Future[bool]:
        """The set grows, or the role is lost."""
        self.waits.append(end_offset)
        self.in_sync += 1
        return done(self.grows)


@dataclass
class Store:
    """While it flushes the set becomes another."""

    mastership: Mastership
    in_sync_then: int
    max_offset: int = 170

    async def flush_to(self, offset: int, timeout_s: float) -> None:
        self.mastership.in_sync = self.in_sync_then


def done(value: bool) -> asyncio.Future[bool]:
    future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future


@pytest.mark.parametrize(
    ("in_sync_then", "code", "last"),
    [
        (3, ResponseCode.SUCCESS, "put-confirmed"),
        (2, ResponseCode.SUCCESS, "put-confirmed"),
        (1, ResponseCode.FLUSH_SLAVE_TIMEOUT, "put-unconfirmed"),
    ],
)
def test_a_put_that_was_replicated_early_is_left_open_where_too_few_are_in_sync_once_it_is_durable(
    in_sync_then: int, code: ResponseCode, last: str
) -> None:
    async def put() -> tuple[ResponseCode, list[str]]:
        host: Any = Host()
        mastership: Any = Mastership(3)
        store: Any = Store(mastership, in_sync_then)
        answer, _ = await acknowledged(host, store, CONFIG, mastership, 100, done(True))
        return answer, host.points

    answer, points = asyncio.run(put())
    assert (answer, points[-1]) == (code, last)


@pytest.mark.parametrize(
    ("in_sync_then", "grows", "is_confirmed", "waits"),
    [(2, True, True, []), (1, True, True, [170]), (0, True, True, [170, 170]), (1, False, False, [170])],
)
def test_what_the_master_itself_puts_is_confirmed_only_while_enough_are_in_sync(
    in_sync_then: int, grows: bool, is_confirmed: bool, waits: list[int]
) -> None:
    async def put() -> tuple[bool, list[int]]:
        host: Any = Host()
        mastership: Any = Mastership(3, grows=grows)
        store: Any = Store(mastership, in_sync_then)
        pending = Pending(
            mastership,
            (PutResult(offset=50, end_offset=100, queue_offset=0, size=50, store_timestamp_ms=0),),
            done(True),
        )
        return await Puts(host, store, CONFIG).confirmed(pending), mastership.waits

    assert asyncio.run(put()) == (is_confirmed, waits)
