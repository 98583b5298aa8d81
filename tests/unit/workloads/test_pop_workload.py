"""What the pop workload asks of consumers, who do with what they were given what they mean to, and drain to the end."""

from __future__ import annotations

from collections import Counter
from typing import Any

from harness.generator import Generator, limit, simulate
from harness.operation import Operation
from harness.seed import Seed
from workloads.pop import Drain, PopSettings, generator

MS = 1_000_000


class Queue:
    """Gives out what was sent, two at a time, and after that nothing."""

    def __init__(self, left: int = 0) -> None:
        self.left = list(range(-left, 0))

    def __call__(self, operation: Operation, number: int) -> Operation:
        value: dict[str, Any] = dict(operation.value or {})
        if operation.f == "send":
            self.left.append(value["message"])
        elif operation.f in ("pop", "drain"):
            given, self.left = self.left[:2], self.left[2:]
            value["deliveries"] = [{"message": message, "times": 0} for message in given]
        elif operation.f == "dead-letters":
            value["deliveries"] = []
        return operation._replace(type="ok", value=value, time=operation.time + MS)


def history_of(asked: Generator, queue: Queue, count: int = 10_000) -> list[Operation]:
    return [event for event in simulate(limit(count, asked), completion=queue, concurrency=3) if event.type == "ok"]


def test_a_process_acknowledges_what_it_was_given_but_for_some_and_changes_the_time_of_some() -> None:
    settings = PopSettings(omitted_share=0.25, changed_share=0.5)
    history = history_of(generator(settings, Seed(1), 3), Queue(), 3_000)
    given = {(e.process, d["message"]) for e in history if e.f == "pop" and e.value for d in e.value["deliveries"]}
    acked, changed = (
        {(e.process, e.value["message"]) for e in history if e.f == f and e.value} for f in ("ack", "change")
    )
    assert acked | changed <= given
    assert 0.55 < len(acked) / len(given) < 0.8
    assert 0.3 < len(changed) / len(given) < 0.45
    times = Counter(e.value["invisible_ms"] for e in history if e.f == "change" and e.value)
    assert set(times) == {500, 2_000, 3_000}
    sent = [e.value["message"] for e in history if e.f == "send" and e.value]
    assert len(sent) == len(set(sent))
    assert {e.key for e in history if e.f == "send"} == {f"storm/{queue}" for queue in range(4)}


def test_the_end_takes_all_and_asks_for_more_only_after_it_was_quiet_for_long_enough() -> None:
    history = history_of(Drain(PopSettings()), Queue(left=50))
    given = [d["message"] for event in history if event.f == "pop" and event.value for d in event.value["deliveries"]]
    assert len(given) > 30
    assert sorted(given) == sorted(event.value["message"] for event in history if event.f == "ack" and event.value)
    assert [event.f for event in history[-2:]] == ["drain", "dead-letters"]
    last = max(event.time for event in history if event.f == "ack")
    assert history[-2].time - last >= (3_000 + 5_000) * MS
    assert sum(event.f == "drain" for event in history) == 1


def test_the_end_gives_up_where_messages_never_end() -> None:
    class Endless(Queue):
        def __call__(self, operation: Operation, number: int) -> Operation:
            self.left = [1, 2]
            return super().__call__(operation, number)

    history = history_of(Drain(PopSettings()), Endless())
    assert len(history) < 10_000
    assert {event.f for event in history} == {"pop", "ack"}
    assert 170e9 < history[-1].time < 190e9
