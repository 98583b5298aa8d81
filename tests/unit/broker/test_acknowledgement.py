"""When a put may be acknowledged, though what decides that changes while it waits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from system_under_test.remoting.codes import ResponseCode
from system_under_test.rocketmq.broker.acknowledgement import acknowledged
from system_under_test.rocketmq.broker.config import BrokerConfig
from system_under_test.storage.message_store import FlushMode

CONFIG = BrokerConfig(name_servers=(), controllers=("c1:9878",), flush_mode=FlushMode.SYNC, min_in_sync_replicas=2)


class Host:
    def __init__(self) -> None:
        self.points: list[str] = []

    def reached(self, point: str, **values: int) -> None:
        self.points.append(point)


@dataclass
class Mastership:
    in_sync: int

    def enough_in_sync(self) -> bool:
        return self.in_sync >= CONFIG.min_in_sync_replicas

    def slave_available(self) -> bool:
        return True

    def advance(self) -> None:
        pass


@dataclass
class Store:
    """While it flushes the set becomes another."""

    mastership: Mastership
    in_sync_then: int

    async def flush_to(self, offset: int, timeout_s: float) -> None:
        self.mastership.in_sync = self.in_sync_then


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
        replicated: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        replicated.set_result(True)
        answer, _ = await acknowledged(host, store, CONFIG, mastership, 100, replicated)
        return answer, host.points

    answer, points = asyncio.run(put())
    assert (answer, points[-1]) == (code, last)
