"""Runs a generator against an imagined system, for tests of generators: no clients, no clock, no waiting.

history = simulate(limit(3, repeat(invoke("read"))), concurrency=2)
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from harness.draw import Draw
from harness.errors import HarnessError
from harness.generator.context import Context
from harness.generator.core import LOG, PENDING, SLEEP, GeneratorLike, as_generator
from harness.generator.timing import SECOND
from harness.operation import NEMESIS, Operation, OperationType
from harness.seed import Seed

Completion = Callable[[Operation, int], Operation]
"""invocation, its number -> completion, with its time."""


def perfect(latency_ns: int = 10) -> Completion:
    """Everything works and takes this long."""

    def complete(operation: Operation, number: int) -> Operation:
        return operation._replace(type="ok", time=operation.time + latency_ns)

    return complete


def imperfect(latency_ns: int = 10) -> Completion:
    """Operations are ok, fail and info in turn."""
    outcomes: tuple[OperationType, ...] = ("ok", "fail", "info")

    def complete(operation: Operation, number: int) -> Operation:
        return operation._replace(type=outcomes[number % 3], time=operation.time + latency_ns)

    return complete


def seeded_latency(seed: Seed, mean_ns: float) -> Completion:
    """Everything works, with exponentially distributed latencies."""
    base = seed.integer()

    def complete(operation: Operation, number: int) -> Operation:
        latency = round(Draw.at(base, number).exponential(mean_ns))
        return operation._replace(type="ok", time=operation.time + latency)

    return complete


def simulate(
    generator: GeneratorLike,
    *,
    completion: Completion | None = None,
    concurrency: int = 2,
    nemesis: bool = True,
    operations: int = 10_000,
) -> list[Operation]:
    """The history that the generator would make, invocations and completions, stopped after so many invocations.

    Completions are `perfect()` by default; the nemesis always completes with `info`.
    Raises HarnessError if the generator waits for something that will never happen.
    """
    complete = completion if completion is not None else perfect()
    context = Context.start(concurrency=concurrency, nemesis=nemesis)
    present = as_generator(generator)
    history: list[Operation] = []
    open_operations: list[tuple[int, int, Operation]] = []
    number = 0

    while True:
        emission = present.op(context) if number < operations else None
        operation = None if emission is None else emission[0]
        if isinstance(operation, Operation) and not (open_operations and open_operations[0][0] <= operation.time):
            assert emission is not None
            present = emission[1]
            context = context.at(max(context.time, operation.time))
            if operation.f == LOG:
                continue
            operation = operation._replace(time=context.time)
            thread = context.thread_of(operation.process)
            if not context.is_free(thread):
                raise HarnessError(f"generator gave {operation} to a process that is not free")
            context = context.busy(thread)
            present = present.update(context, operation)
            if operation.type != "invoke":
                if operation.f != SLEEP or operation.value is None:
                    raise HarnessError(f"generator gave {operation}, which is neither an invocation nor a sleep")
                done = operation._replace(time=operation.time + round(operation.value["seconds"] * SECOND))
            else:
                history.append(operation)
                done = complete(operation, number)
                done = done._replace(type="info") if operation.process == NEMESIS else done
            heapq.heappush(open_operations, (done.time, number, done))
            number += 1
        elif open_operations:
            if emission is not None and operation is PENDING:
                present = emission[1]
            _, _, done = heapq.heappop(open_operations)
            thread = context.thread_of(done.process)
            context = context.at(max(context.time, done.time)).freed(thread)
            if done.f != SLEEP:
                history.append(done)
                context = context.retired(thread) if done.type == "info" else context
            present = present.update(context, done)
        elif operation is PENDING:
            raise HarnessError(f"generator waits although nothing is open, so it would wait for ever: {present}")
        else:
            return [entry._replace(index=index) for index, entry in enumerate(history)]
