"""Generators side by side: each sees its own threads, processes and operations, and nothing of the others."""

from __future__ import annotations

import pytest

from harness.generator import Context, Emission, Generator, invoke, limit, repeat, simulate
from harness.generator.strands import Strand, inward, outward, shares, side_by_side
from harness.operation import Operation


class Seen:
    """Notes what it is told of."""

    def __init__(self) -> None:
        self.worlds: list[tuple[int, tuple[int, ...]]] = []
        self.events: list[Operation] = []

    def generator(self) -> Generator:
        return Noting(self, limit(6, repeat(invoke("ask", {"number": 1}))))


class Noting:
    def __init__(self, seen: Seen, generator: Generator) -> None:
        self.seen, self.generator = seen, generator

    def op(self, context: Context) -> Emission:
        self.seen.worlds.append((context.concurrency, context.processes))
        emission = self.generator.op(context)
        return None if emission is None else (emission[0], Noting(self.seen, emission[1]))

    def update(self, context: Context, event: Operation) -> Generator:
        self.seen.events.append(event)
        return Noting(self.seen, self.generator.update(context, event))


@pytest.mark.parametrize(
    ("concurrency", "strands", "sizes"), [(6, 2, [3, 3]), (7, 3, [3, 2, 2]), (28, 7, [4] * 7), (5, 5, [1] * 5)]
)
def test_threads_are_shared_out_without_a_rest(concurrency: int, strands: int, sizes: list[int]) -> None:
    found = shares(concurrency, strands)
    assert [len(threads) for threads in found] == sizes
    assert [thread for threads in found for thread in threads] == list(range(concurrency))


def test_each_strand_lives_in_a_world_of_its_own() -> None:
    left, right = Seen(), Seen()
    together = side_by_side(Strand("left", 0, 2, left.generator()), Strand("right", 2, 3, right.generator()))
    retired = simulate(together, concurrency=5, completion=lambda o, _: o._replace(type="info", time=o.time + 5))
    assert {operation.f for operation in retired} == {"left/ask", "right/ask"}
    assert {concurrency for concurrency, _ in left.worlds} == {2}
    assert {concurrency for concurrency, _ in right.worlds} == {3}
    assert right.worlds[0][1] == (0, 1, 2, -1)
    for seen, count in ((left, 2), (right, 3)):
        assert {event.f for event in seen.events} == {"ask"}
        assert all(event.value == {"number": 1} for event in seen.events)
        # A thread that plays a new process is still the same thread.
        assert {event.process % count for event in seen.events} == set(range(count))
        assert max(event.process for event in seen.events) >= count


def test_processes_of_the_whole_stay_on_the_threads_of_their_strand() -> None:
    seen = Seen()
    history = simulate(side_by_side(Strand("right", 2, 3, seen.generator())), concurrency=5)
    assert {operation.process % 5 for operation in history} <= {2, 3, 4}


def test_what_goes_out_comes_in_again() -> None:
    operation = invoke("send", {"message": 1}, key="storm/0")
    assert outward("log", operation) == operation._replace(f="log/send", value={"log": {"message": 1}})
    assert inward("log", outward("log", operation)) == operation
    assert inward("log", outward("log", invoke("read"))) == invoke("read")
