"""The wheel of timers against its definition: messages of which each comes out once it is due, and not before."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.storage.timer_log import UNIT, TimerLog
from system_under_test.storage.timer_wheel import TimerCheckpoint, TimerWheel
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.storage.storage_machine import Machine, sync_config

PRECISION_MS, WINDOW, SLOTS = 10, 5, 40


@dataclass
class Topic:
    """What waits, as (number, when it is due, the queue offset that it was written in place of), and what came out."""

    waiting: list[tuple[int, int, int | None]] = field(default_factory=list)
    out: list[tuple[int, int]] = field(default_factory=list)


class Turned:
    """A wheel over a topic; `restart` makes it anew from a checkpoint."""

    def __init__(self, topic: Topic, log: TimerLog, at_once: int) -> None:
        """`at_once`: so many messages are delivered together."""
        self.topic = topic
        self.log = log
        self.at_once = at_once
        self.checkpoint = TimerCheckpoint()
        self.restart(0)

    def restart(self, now_ms: int) -> None:
        self.resumed_from, self.past_end = self.checkpoint, len(self.topic.waiting)
        self.wheel = TimerWheel(self.log, precision_ms=PRECISION_MS, slots=SLOTS, window_slots=WINDOW)
        self.wheel.begin(self.resumed_from, now_ms)
        self.take_in(now_ms)

    def take_in(self, now_ms: int) -> None:
        wheel = self.wheel
        while wheel.next_queue_offset < len(self.topic.waiting):
            offset = wheel.next_queue_offset
            _, due_ms, origin = self.topic.waiting[offset]
            if self.resumed_from.is_done(offset, due_ms):
                wheel.passed_over(offset)
            else:
                wheel.add(due_ms, 0, 0, offset, now_ms, origin if offset < self.past_end else None)

    def turn(self, now_ms: int) -> None:
        self.take_in(now_ms)
        while slots := self.wheel.due(now_ms, self.at_once):
            for unit in (unit for slot in slots for unit in slot.units):
                number, due_ms, _ = self.topic.waiting[unit.queue_offset]
                if unit.rolls:
                    self.topic.waiting.append((number, due_ms, unit.queue_offset))
                else:
                    self.topic.out.append((number, now_ms))
            for slot in slots:
                self.wheel.done(slot)
            self.take_in(now_ms)
        self.wheel.turn(now_ms)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(-60, 400)),
        st.tuples(st.just("pass"), st.integers(1, 60)),
        st.tuples(st.just("back"), st.integers(1, 60)),
        st.tuples(st.just("note"), st.just(0)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=60,
)


@given(STEPS, st.sampled_from([1, 2, 1000]))
def test_every_message_comes_out_once_it_is_due_however_often_the_wheel_is_made_anew(steps, at_once):
    async def body(loop: VirtualTimeLoop) -> None:
        topic = Topic()
        log = TimerLog(Machine(loop, 1, sync_config()).host().disk, "timerlog", 4 * UNIT.size)
        turned = Turned(topic, log, at_once)
        now_ms, dues, is_anew = 1_000, [], False
        for what, amount in steps:
            if what == "send":
                dues.append(now_ms + amount)
                topic.waiting.append((len(dues) - 1, (now_ms + amount - 1) // PRECISION_MS * PRECISION_MS, None))
            elif what == "pass":
                now_ms += amount
                turned.turn(now_ms)
            elif what == "back":
                now_ms -= amount
                turned.turn(now_ms)
            elif what == "note":
                turned.checkpoint = turned.wheel.checkpoint()
            else:
                is_anew = True
                turned.restart(now_ms)
        for _ in range(100):
            now_ms += PRECISION_MS
            turned.turn(now_ms)
        assert all(out_ms >= dues[number] for number, out_ms in topic.out), "none is early"
        assert {number for number, _ in topic.out} == set(range(len(dues))), "none is lost"
        assert is_anew or len(topic.out) == len(dues), "none comes twice"
        assert turned.wheel.checkpoint().floor == len(topic.waiting)
        assert log.files <= 1, "files in which nothing waits are gone"

    simulate(body)
