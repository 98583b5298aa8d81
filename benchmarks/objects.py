"""How long it takes to decide one object without repeated values: queues, stacks, registers.

    python benchmarks/objects.py [--object fifo-queue] [--operations 1000000] [--clients 16] [--indefinite 0.01]
                                 [--taking 0.5] [--planted] [--check]

The history is made up, and the same for the same seed: an atomic object and clients that are always busy, each
operation taking effect at a random moment between its begin and its end. Operations of unknown outcome took effect at
some moment behind their begin, or (half of them) never; their client goes on under another process number. So the
history is linearizable, unless one answer is planted that cannot be. An operation is two rows: invocation and
completion.

Without --check the decider alone is measured, on arrays; with it the whole check, from Parquet, in one process.
"""

from __future__ import annotations

import argparse
import heapq
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from log_check import ROW_GROUP_ROWS, TYPES, names_column
from measured import measured

from checkers.api.plan import CheckRequest
from checkers.in_process.engine import InProcessEngine
from checkers.kernels.columns import NONE, Bool, Int8, Int64
from checkers.linearizable.checker import Linearizable
from checkers.linearizable.deciders.spans import Ordered, Spans
from checkers.linearizable.objects import MODELS
from checkers.linearizable.values import NEVER
from harness.compiled import compiled
from harness.record.history import history_schema

VALUE = pa.struct([pa.field("value", pa.int64()), pa.field("expected", pa.int64())])
SCHEMA = history_schema(VALUE)
OK, INFO = 1, 3

SHORTEST = 1e-3
"""Long enough for one moment between two operations of a client to be another number than both."""
LATE = 5.0
"""An indefinite operation takes effect so many mean durations behind its begin, on average."""
APART = 10
"""Planted answers belong to moments at least so many operations a client apart."""


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Operations by their begin: when they happened, in history indices, and in which order they took effect."""

    client: Int64
    process: Int64
    start: Int64
    end: Int64
    """Of the completion's row, also where that says that the outcome is unknown."""
    definite: Bool
    effects: Int64
    """Positions of the operations that took effect, in order."""

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, kw_only=True)
class Story:
    """What happened to one object."""

    timeline: Timeline
    functions: tuple[str, ...]
    f: Int8
    argument: Int64
    result: Int64
    """As it was returned; NONE where it is unknown."""

    def spans(self) -> Spans:
        when = self.timeline
        return Spans(
            start=when.start,
            end=np.where(when.definite, when.end, NEVER),
            f=self.f,
            argument=self.argument,
            result=self.result,
        )

    def table(self, key: str = "k") -> pa.Table:
        """All rows of the history; bounded by memory, which a million operations do not trouble."""
        when = self.timeline
        rows = 2 * len(when)
        order = np.argsort(np.concatenate((when.start, when.end)), kind="stable")

        def column(invoked: npt.NDArray[np.generic], completed: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
            return np.concatenate((invoked, completed))[order]

        types = column(np.zeros(len(when), np.int64), np.where(when.definite, OK, INFO))
        value = column(self.argument, np.where(when.definite, self.result, self.argument))
        index = np.arange(rows)
        columns = {
            "index": pa.array(index),
            "time": pa.array(index * 1_000),
            "process": pa.array(column(when.process, when.process), pa.int32()),
            "type": names_column(types, TYPES),
            "f": names_column(column(self.f, self.f).astype(np.int64), self.functions),
            "key": pa.array([key] * rows, pa.string()),
            "value": pa.StructArray.from_arrays(
                [pa.array(value, mask=value == NONE), pa.nulls(rows, pa.int64())], fields=list(VALUE)
            ),
            "error": pa.nulls(rows, pa.string()),
            "node": pa.nulls(rows, pa.string()),
        }
        return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def timeline(operations: int, clients: int, indefinite: float, random: np.random.Generator) -> Timeline:
    """Clients that begin the next operation as soon as one has ended."""
    rounds = -(-operations // clients)
    duration = SHORTEST + random.exponential(1.0, (rounds, clients))
    ends = np.cumsum(duration, axis=0) + random.random(clients) * 1e-9
    begins = ends - duration * (1 - 1e-6)
    definite = random.random((rounds, clients)) >= indefinite
    happened = definite | (random.random((rounds, clients)) < 0.5)
    share = np.where(definite, duration * random.random((rounds, clients)), random.exponential(LATE, (rounds, clients)))
    moment = begins + share * (1 - 1e-6)
    died = (~definite).astype(np.int64)
    client = np.broadcast_to(np.arange(clients), (rounds, clients))
    process = client + clients * (np.cumsum(died, axis=0) - died)

    order = np.argsort(begins.ravel(), kind="stable")[:operations]
    begun, ended = begins.ravel()[order], ends.ravel()[order]
    ranks = np.empty(2 * operations, dtype=np.int64)
    ranks[np.argsort(np.concatenate((begun, ended)), kind="stable")] = np.arange(2 * operations)
    took_effect = np.flatnonzero(happened.ravel()[order])
    return Timeline(
        client=client.ravel()[order],
        process=process.ravel()[order],
        start=ranks[:operations],
        end=ranks[operations:],
        definite=definite.ravel()[order],
        effects=took_effect[np.argsort(moment.ravel()[order][took_effect], kind="stable")],
    )


# Objects: (f, argument) of the operations in the order in which they took effect -> what each returned.


@compiled
def fifo_queue(f: Int8, argument: Int64) -> Int64:
    result, queue = argument.copy(), np.empty_like(argument)
    head = tail = 0
    for i in range(len(f)):
        if f[i] == 0:
            queue[tail] = argument[i]
            tail += 1
        elif head < tail:
            result[i] = queue[head]
            head += 1
    return result


@compiled
def stack(f: Int8, argument: Int64) -> Int64:
    result, elements = argument.copy(), np.empty_like(argument)
    height = 0
    for i in range(len(f)):
        if f[i] == 0:
            elements[height] = argument[i]
            height += 1
        elif height > 0:
            height -= 1
            result[i] = elements[height]
    return result


@compiled
def unordered_queue(f: Int8, argument: Int64) -> Int64:
    """Gives any element, by a fixed rule that looks random."""
    result, elements = argument.copy(), np.empty_like(argument)
    size = 0
    for i in range(len(f)):
        if f[i] == 0:
            elements[size] = argument[i]
            size += 1
        elif size > 0:
            at = (i * 7_919) % size
            result[i] = elements[at]
            size -= 1
            elements[at] = elements[size]
    return result


@compiled
def priority_queue(f: Int8, argument: Int64) -> Int64:
    result = argument.copy()
    elements = [np.int64(0)]
    elements.pop()
    for i in range(len(f)):
        if f[i] == 0:
            heapq.heappush(elements, argument[i])
        elif len(elements) > 0:
            result[i] = heapq.heappop(elements)
    return result


@compiled
def register(f: Int8, argument: Int64) -> Int64:
    result = argument.copy()
    value = np.int64(NONE)
    for i in range(len(f)):
        if f[i] == 0:
            result[i] = value
        else:
            value = argument[i]
    return result


# Wrong answers: a story and the number of the function that asks -> all results, one or two of them wrong.


def answers_exchanged(story: Story, taking: int) -> Int64:
    """Two takers far apart got each other's values: late in the history, the later value went out first."""
    first, second = _far_apart(story, taking)
    result = story.result.copy()
    result[[first, second]] = result[[second, first]]
    return result


def answered_empty(story: Story, taking: int) -> Int64:
    """A take found nothing, though what it took had been there long before it began."""
    when, result = story.timeline, story.result.copy()
    put = np.flatnonzero(story.f != taking)
    ended = dict(zip(story.argument[put].tolist(), np.where(when.definite, when.end, NEVER)[put].tolist(), strict=True))
    takers = _takers(story, taking)
    for number in takers[len(takers) * 9 // 10 :].tolist():
        if ended[int(result[number])] < when.start[number]:
            result[number] = NONE
            return result
    raise ValueError("no value stayed long enough")


def answered_again(story: Story, taking: int) -> Int64:
    """A read returned what had been there long before."""
    first, second = _far_apart(story, taking)
    result = story.result.copy()
    result[second] = result[first]
    return result


def _takers(story: Story, taking: int) -> Int64:
    """Definite ones that returned a value, as they took effect."""
    effects = story.timeline.effects
    returned = (story.f == taking) & story.timeline.definite & (story.result != NONE)
    return effects[returned[effects]]


def _far_apart(story: Story, taking: int) -> tuple[int, int]:
    takers = _takers(story, taking)
    clients = int(story.timeline.client.max()) + 1
    at = len(takers) * 9 // 10
    return int(takers[at - APART * clients]), int(takers[at])


@dataclass(frozen=True, kw_only=True)
class Atomic:
    """An object, how it runs, and how its answers are spoilt."""

    functions: tuple[str, ...]
    run: Callable[[Int8, Int64], Int64]
    asking: int
    """The function that has no argument: it asks."""
    plant: Callable[[Story, int], Int64]


OBJECTS: Mapping[str, Atomic] = {
    "fifo-queue": Atomic(functions=("enqueue", "dequeue"), run=fifo_queue, asking=1, plant=answers_exchanged),
    "unordered-queue": Atomic(functions=("enqueue", "dequeue"), run=unordered_queue, asking=1, plant=answered_empty),
    "priority-queue": Atomic(functions=("enqueue", "dequeue"), run=priority_queue, asking=1, plant=answered_empty),
    "stack": Atomic(functions=("push", "pop"), run=stack, asking=1, plant=answered_empty),
    "register": Atomic(functions=("read", "write"), run=register, asking=0, plant=answered_again),
}


def story(
    name: str, *, operations: int, clients: int, indefinite: float = 0.0, taking: float = 0.5, seed: int = 1
) -> Story:
    """A linearizable one; `taking` is the share of operations that ask. No value is given twice."""
    random = np.random.default_rng(seed)
    atomic = OBJECTS[name]
    when = timeline(operations, clients, indefinite, random)
    f = np.where(random.random(operations) < taking, atomic.asking, 1 - atomic.asking).astype(np.int8)
    argument = np.where(f == atomic.asking, NONE, random.permutation(operations))
    result = np.full(operations, NONE, dtype=np.int64)
    result[when.effects] = atomic.run(f[when.effects], argument[when.effects])
    result[~when.definite] = NONE
    return Story(timeline=when, functions=atomic.functions, f=f, argument=argument, result=result)


def planted(name: str, history: Story) -> Story:
    """The same with answers that cannot be."""
    return replace(history, result=OBJECTS[name].plant(history, OBJECTS[name].asking))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--object", choices=sorted(OBJECTS), nargs="+", default=sorted(OBJECTS))
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, nargs="+", default=[16])
    parser.add_argument("--indefinite", type=float, nargs="+", default=[0.0, 0.01, 0.05])
    parser.add_argument("--taking", type=float, default=0.5, help="the share of operations that ask")
    parser.add_argument("--planted", action="store_true", help="spoil an answer")
    parser.add_argument("--check", action="store_true", help="the whole check, from Parquet")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for name in arguments.object:
        for clients in arguments.clients:
            for indefinite in arguments.indefinite:
                history = story(
                    name,
                    operations=arguments.operations,
                    clients=clients,
                    indefinite=indefinite,
                    taking=arguments.taking,
                    seed=arguments.seed,
                )
                history = planted(name, history) if arguments.planted else history
                if arguments.check:
                    figures = checked(name, history.table())
                else:
                    figures = decided(name, history.spans(), story(name, operations=100, clients=4).spans())
                print(f"{name}, {clients} clients, {indefinite:.0%} indefinite: {figures}", flush=True)


def decided(model: str, spans: Spans, warm: Spans) -> str:
    """What the decider says of the spans, and how long that takes once it has judged `warm`, which loads what numba has
    compiled."""
    decided = MODELS[model].decided
    assert decided is not None, f"{model} is always searched"
    decider = decided.by
    decider.decide(warm, ())
    begun = time.process_time()
    outcome = decider.decide(spans, ())
    line = f"{type(outcome).__name__}, {time.process_time() - begun:.2f} s of processor time"
    if not isinstance(outcome, Ordered):
        return f"{line}, {outcome.because}"
    begun = time.process_time()
    decider.order(spans, ())
    return f"{line}, an order {time.process_time() - begun:.2f} s more"


def checked(model: str, history: pa.Table) -> str:
    """The whole check, from Parquet."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "history.parquet"
        pq.write_table(history, path, compression="zstd", row_group_size=ROW_GROUP_ROWS)
        with measured() as whole:
            result = Linearizable(MODELS[model]).check(CheckRequest(history=path), InProcessEngine())
    return f"{result.verdict.value} {dict(result.statistics)}: {whole}"


if __name__ == "__main__":
    main()
