"""Turning the wheel of timers over a store, one turn at a time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.rocketmq.broker.delayed.timer_messages import TimerSettings, timed
from system_under_test.rocketmq.broker.delayed.timer_service import READ_COUNT, Turning
from system_under_test.storage.message import Message
from system_under_test.storage.message_store import MessageStore
from system_under_test.storage.new_message import NewMessage
from system_under_test.storage.timer_log import TimerLog
from system_under_test.storage.timer_wheel import TimerWheel
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.storage.storage_machine import Machine, async_config

SETTINGS = TimerSettings(precision_ms=10, window_slots=100, slots=800)
CROWD = 3 * READ_COUNT


class Delivered:
    """`Deliveries` that notes what comes out, at once."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def attempt(self, mastership: object, waited: Message, due: NewMessage) -> int:
        self.bodies.append(due.body)
        return waited.physical_offset


class Stage:
    def __init__(self, loop: VirtualTimeLoop) -> None:
        self.loop = loop
        self.machine = Machine(loop, 1, async_config(100_000))
        self.delivered = Delivered()
        self.store: MessageStore

    async def begin(self) -> None:
        self.store = await self.machine.boot()
        self.take_over()

    def take_over(self) -> None:
        """As a new master."""
        host: Any = self.machine.same_host()
        wheel = TimerWheel(
            TimerLog(host.disk, "timerlog", 10_000),
            precision_ms=SETTINGS.precision_ms,
            slots=SETTINGS.slots,
            window_slots=SETTINGS.window_slots,
        )
        mastership: Any = SimpleNamespace(ended=False)
        deliveries: Any = self.delivered
        self.turning = Turning(host, self.store, deliveries, mastership, wheel, SETTINGS.precision_ms)

    @property
    def now_ms(self) -> int:
        return self.machine.clock.wall_ns() // 1_000_000

    def send(self, body: str, at_ms: int, **properties: str) -> None:
        message = NewMessage(
            topic="T", queue_id=0, body=body.encode(), properties={"TIMER_DELIVER_MS": str(at_ms), **properties}
        )
        put = self.store.put_all([timed(message, SETTINGS, self.now_ms)])[-1]
        self.store.advance_confirm_offset(put.end_offset)

    async def turn_for(self, seconds: float) -> None:
        until_ns = self.loop.now_ns + seconds * 1e9
        while self.loop.now_ns < until_ns:
            wait_s = await self.turning.turn()
            await self.machine.clock.sleep(0.001 if wait_s is None else min(wait_s, 0.01))


def test_what_takes_a_timer_back_counts_however_much_the_wheel_is_behind() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        stage = Stage(loop)
        await stage.begin()
        at_ms = stage.now_ms + 100
        stage.send("unwanted", at_ms, UNIQ_KEY="id")
        stage.send("wanted", at_ms, UNIQ_KEY="other")
        await stage.turn_for(0.05)
        for number in range(CROWD):
            stage.send(str(number), at_ms + 500)
        stage.send("", at_ms, TIMER_DEL_UNIQKEY="id")
        await stage.machine.clock.sleep(0.1)
        await stage.turn_for(0.1)
        assert stage.delivered.bodies == [b"wanted"]
        await stage.turn_for(1)
        assert len(stage.delivered.bodies) == 1 + CROWD

    simulate(body)


def test_what_comes_without_end_delays_nothing_for_long() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        stage = Stage(loop)
        await stage.begin()
        stage.send("due", stage.now_ms + 20)
        for _ in range(20):
            for _ in range(READ_COUNT - 1):
                stage.send("later", stage.now_ms + 900)
            await stage.turning.turn()
            await stage.machine.clock.sleep(0.005)
        assert stage.delivered.bodies == [b"due"]

    simulate(body)


def test_a_new_master_reads_of_what_was_taken_back_before_anything_comes_out() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        stage = Stage(loop)
        await stage.begin()
        at_ms = stage.now_ms + 100
        stage.send("unwanted", at_ms, UNIQ_KEY="id")
        for number in range(CROWD):
            stage.send(str(number), at_ms + 500)
        stage.send("", at_ms, TIMER_DEL_UNIQKEY="id")
        await stage.machine.clock.sleep(0.2)
        stage.take_over()
        await stage.turn_for(1)
        assert b"unwanted" not in stage.delivered.bodies
        assert len(stage.delivered.bodies) == CROWD

    simulate(body)


def test_what_rolls_so_late_that_it_is_due_is_taken_back_by_what_is_due_with_it() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        stage = Stage(loop)
        await stage.begin()
        at_ms = stage.now_ms + 1_300
        for letter in ("unwanted", "wanted"):
            stage.send(letter, at_ms, UNIQ_KEY=letter)
        await stage.turn_for(0.4)
        stage.send("", at_ms, TIMER_DEL_UNIQKEY="unwanted")
        await stage.turn_for(0.02)
        await stage.machine.clock.sleep(2)
        await stage.turn_for(0.1)
        assert stage.delivered.bodies == [b"wanted"]

    simulate(body)
