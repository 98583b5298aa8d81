"""Combinators that choose, change, repeat and limit operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.draw import Draw
from harness.generator.context import ALL_THREADS, Context, mask_of
from harness.generator.core import (
    LOG,
    PENDING,
    Concat,
    Emission,
    Generator,
    GeneratorLike,
    as_generator,
    quiet_until,
    soonest,
)
from harness.operation import Operation
from harness.seed import Seed


def concat(*generators: GeneratorLike) -> Generator:
    """One after the other: concat(a, b) is the list [a, b]. Does not wait for a's operations to complete."""
    return Concat.of(generators)


@dataclass(frozen=True, slots=True)
class MapOperations:
    function: Callable[[Operation], Operation]
    generator: Generator

    def op(self, context: Context) -> Emission:
        emission = self.generator.op(context)
        if emission is None:
            return None
        operation, following = emission
        changed = PENDING if operation is PENDING else self.function(operation)
        return changed, MapOperations(self.function, following)

    def update(self, context: Context, event: Operation) -> Generator:
        generator = self.generator.update(context, event)
        return self if generator is self.generator else MapOperations(self.function, generator)


def map_operations(function: Callable[[Operation], Operation], generator: GeneratorLike) -> Generator:
    """Every operation changed by a pure function, which must leave the process alone."""
    return MapOperations(function, as_generator(generator))


def f_map(names: Mapping[str, str], generator: GeneratorLike) -> Generator:
    """Operations under other names: f_map({"start": "start-partition"}, g). Names not in the mapping stay.

    Composes nemeses whose operations have the same names.
    """
    names = dict(names)
    return map_operations(lambda operation: operation._replace(f=names.get(operation.f, operation.f)), generator)


@dataclass(frozen=True, slots=True)
class FilterOperations:
    predicate: Callable[[Operation], bool]
    generator: Generator

    def op(self, context: Context) -> Emission:
        generator = self.generator
        while True:
            emission = generator.op(context)
            if emission is None:
                return None
            operation, generator = emission
            if operation is PENDING or self.predicate(operation):
                return operation, FilterOperations(self.predicate, generator)

    def update(self, context: Context, event: Operation) -> Generator:
        generator = self.generator.update(context, event)
        return self if generator is self.generator else FilterOperations(self.predicate, generator)


def filter_operations(predicate: Callable[[Operation], bool], generator: GeneratorLike) -> Generator:
    """Only the operations for which the predicate holds, which must be some of an endless generator."""
    return FilterOperations(predicate, as_generator(generator))


@dataclass(frozen=True, slots=True)
class Picked:
    numbers: frozenset[int]
    last: int
    number: int
    """The number of the next operation."""
    generator: Generator

    def op(self, context: Context) -> Emission:
        generator, number = self.generator, self.number
        while number <= self.last:
            emission = generator.op(context)
            if emission is None:
                return None
            operation, generator = emission
            if operation is PENDING:
                return PENDING, Picked(self.numbers, self.last, number, generator)
            number += 1
            if number - 1 in self.numbers:
                return operation, Picked(self.numbers, self.last, number, generator)
        return None

    def update(self, context: Context, event: Operation) -> Generator:
        generator = self.generator.update(context, event)
        if generator is self.generator:
            return self
        return Picked(self.numbers, self.last, self.number, generator)


def picked(numbers: frozenset[int], generator: GeneratorLike) -> Generator:
    """Only the operations with these numbers, counted from 0, at the times at which they come among all of them."""
    return Picked(numbers, max(numbers, default=-1), 0, as_generator(generator))


@dataclass(frozen=True, slots=True)
class OnUpdate:
    function: Callable[[Generator, Context, Operation], GeneratorLike]
    generator: Generator

    def op(self, context: Context) -> Emission:
        emission = self.generator.op(context)
        return None if emission is None else (emission[0], OnUpdate(self.function, emission[1]))

    def update(self, context: Context, event: Operation) -> Generator:
        generator = as_generator(self.function(self.generator, context, event))
        return self if generator is self.generator else OnUpdate(self.function, generator)


def on_update(
    function: Callable[[Generator, Context, Operation], GeneratorLike], generator: GeneratorLike
) -> Generator:
    """Let `function(generator, context, event)` say what the generator becomes after each event.

    >>> on_update(lambda g, c, e: confirm(e) if e.type == "ok" else g, writes)  # doctest: +SKIP
    """
    return OnUpdate(function, as_generator(generator))


@dataclass(frozen=True, slots=True)
class Choice:
    """Several generators, each for the threads of its mask."""

    masks: tuple[int, ...]
    generators: tuple[Generator, ...]
    turn: int = 0
    """Who has the first say among those that are equally soon."""

    def op(self, context: Context) -> Emission:
        count = len(self.masks)
        first = soonest(
            context,
            (
                (position, self.generators[position].op(context.only(self.masks[position])))
                for position in (*range(self.turn, count), *range(self.turn))
            ),
        )
        if first is None:
            return None
        if first is PENDING:
            return PENDING, self
        generators = replaced(self.generators, first.position, first.following)
        return first.operation, Choice(self.masks, generators, (first.position + 1) % count)

    def quiet_until(self, context: Context) -> int:
        return min([quiet_until(generator, context) for generator in self.generators])

    def update(self, context: Context, event: Operation) -> Generator:
        bit = 1 << (context.thread_of(event.process) + 1)
        generators = self.generators
        for position, mask in enumerate(self.masks):
            if mask & bit:
                changed = self.generators[position].update(context.only(mask), event)
                generators = replaced(generators, position, changed)
        return self if generators is self.generators else Choice(self.masks, generators, self.turn)


def any_of(*generators: GeneratorLike) -> Generator:
    """Whichever can go soonest; those equally soon take turns. Exhausted when all are."""
    return Choice((ALL_THREADS,) * len(generators), tuple(as_generator(g) for g in generators))


def reserve(*shares: tuple[int, GeneratorLike], default: GeneratorLike) -> Generator:
    """The first threads for one thing, the next for another, the rest for the default.

    reserve((5, writes), (10, cas), default=reads): threads 0 to 4 write, 5 to 14 compare and set, all others read.
    Keeps rare or slow operations from being crowded out.
    """
    masks, first = [], 0
    for count, _ in shares:
        masks.append(mask_of(range(first, first + count)))
        first += count
    rest = ALL_THREADS & ~mask_of(range(first))
    return Choice((*masks, rest), tuple(as_generator(g) for g in (*(g for _, g in shares), default)))


@dataclass(frozen=True, slots=True)
class Mix:
    generators: tuple[Generator, ...]
    weights: tuple[float, ...]
    base: int
    number: int

    def op(self, context: Context) -> Emission:
        generators, weights = self.generators, self.weights
        while generators:
            position = Draw.at(self.base, self.number).weighted(weights)
            emission = generators[position].op(context)
            if emission is not None:
                operation, following = emission
                number = self.number if operation is PENDING else self.number + 1
                return operation, Mix(replaced(generators, position, following), weights, self.base, number)
            generators = generators[:position] + generators[position + 1 :]
            weights = weights[:position] + weights[position + 1 :]
        return None

    def update(self, context: Context, event: Operation) -> Generator:
        generators = updated(self.generators, context, event)
        return self if generators is self.generators else Mix(generators, self.weights, self.base, self.number)


def mix(generators: Sequence[GeneratorLike], *, seed: Seed, weights: Sequence[float] | None = None) -> Generator:
    """Each operation from one of them, drawn at random by weight (evenly without). Exhausted when all are."""
    chosen = tuple(float(weight) for weight in weights) if weights is not None else (1.0,) * len(generators)
    if len(chosen) != len(generators) or not all(weight > 0 for weight in chosen):
        raise ValueError(f"expected {len(generators)} weights above 0, got {chosen}")
    return Mix(tuple(as_generator(g) for g in generators), chosen, seed.integer(), 0)


@dataclass(frozen=True, slots=True)
class Limit:
    remaining: int
    generator: Generator

    def op(self, context: Context) -> Emission:
        if self.remaining <= 0:
            return None
        emission = self.generator.op(context)
        if emission is None:
            return None
        operation, following = emission
        return operation, Limit(self.remaining - (operation is not PENDING), following)

    def update(self, context: Context, event: Operation) -> Generator:
        generator = self.generator.update(context, event)
        return self if generator is self.generator else Limit(self.remaining, generator)


def limit(operations: int, generator: GeneratorLike) -> Generator:
    """At most so many operations."""
    return Limit(operations, as_generator(generator))


def once(generator: GeneratorLike) -> Generator:
    """At most one operation."""
    return limit(1, generator)


@dataclass(frozen=True, slots=True)
class Repeat:
    remaining: int
    """Negative: for ever."""
    generator: Generator

    def op(self, context: Context) -> Emission:
        if self.remaining == 0:
            return None
        emission = self.generator.op(context)
        if emission is None:
            return None
        operation = emission[0]
        if operation is PENDING or self.remaining < 0:
            return operation, self
        return operation, Repeat(self.remaining - 1, self.generator)

    def update(self, context: Context, event: Operation) -> Generator:
        generator = self.generator.update(context, event)
        return self if generator is self.generator else Repeat(self.remaining, generator)


def repeat(generator: GeneratorLike, times: int | None = None) -> Generator:
    """The first operation of the generator again and again (its state never moves on): repeat(invoke("read"))."""
    return Repeat(-1 if times is None else times, as_generator(generator))


@dataclass(frozen=True, slots=True)
class Cycle:
    remaining: int
    """Rounds left, this one included. Negative: for ever."""
    fresh: Generator
    present: Generator

    def op(self, context: Context) -> Emission:
        if self.remaining == 0:
            return None
        remaining, emission = self.remaining, self.present.op(context)
        if emission is None:
            remaining -= 1
            # A fresh round without any operation would go round for ever.
            emission = self.fresh.op(context) if remaining else None
            if emission is None:
                return None
        return emission[0], Cycle(remaining, self.fresh, emission[1])

    def update(self, context: Context, event: Operation) -> Generator:
        present = self.present.update(context, event)
        return self if present is self.present else Cycle(self.remaining, self.fresh, present)


def cycle(generator: GeneratorLike, times: int | None = None) -> Generator:
    """The whole generator again and again, each time as it was at first."""
    fresh = as_generator(generator)
    return Cycle(-1 if times is None else times, fresh, fresh)


@dataclass(frozen=True, slots=True)
class ProcessLimit:
    limit: int
    seen: frozenset[int]
    processes: tuple[int, ...]
    """The processes at the last look: nothing is to be done while they stay the same."""
    generator: Generator

    def op(self, context: Context) -> Emission:
        emission = self.generator.op(context)
        if emission is None:
            return None
        operation, following = emission
        seen = self.seen
        if context.processes is not self.processes:
            seen = seen | {context.processes[thread] for thread in context.own_threads()}
            if len(seen) > self.limit:
                return None
        return operation, ProcessLimit(self.limit, seen, context.processes, following)

    def update(self, context: Context, event: Operation) -> Generator:
        generator = self.generator.update(context, event)
        if generator is self.generator:
            return self
        return ProcessLimit(self.limit, self.seen, self.processes, generator)


def process_limit(processes: int, generator: GeneratorLike) -> Generator:
    """Goes on until the threads have played more than so many processes: bounds what a checker must keep open."""
    return ProcessLimit(processes, frozenset(), (), as_generator(generator))


@dataclass(frozen=True, slots=True)
class ConcurrencyLimit:
    limit: int
    open: frozenset[int]
    generator: Generator

    def op(self, context: Context) -> Emission:
        if len(self.open) >= self.limit:
            return PENDING, self
        emission = self.generator.op(context)
        if emission is None:
            return None
        operation, following = emission
        opened = self.open if operation is PENDING or operation.f == LOG else self.open | {operation.process}
        return operation, ConcurrencyLimit(self.limit, opened, following)

    def update(self, context: Context, event: Operation) -> Generator:
        generator = self.generator.update(context, event)
        opened = self.open
        if event.process in opened and context.free & (1 << (context.thread_of(event.process) + 1)):
            opened = opened - {event.process}
        elif generator is self.generator:
            return self
        return ConcurrencyLimit(self.limit, opened, generator)


def concurrency_limit(operations: int, generator: GeneratorLike) -> Generator:
    """At most so many of its operations open at once."""
    return ConcurrencyLimit(operations, frozenset(), as_generator(generator))


@dataclass(frozen=True, slots=True)
class UntilOk:
    open: frozenset[int]
    generator: Generator

    def op(self, context: Context) -> Emission:
        emission = self.generator.op(context)
        if emission is None:
            return None
        operation, following = emission
        opened = self.open if operation is PENDING else self.open | {operation.process}
        return operation, UntilOk(opened, following)

    def update(self, context: Context, event: Operation) -> Generator:
        generator = self.generator.update(context, event)
        if event.process in self.open and event.type != "invoke":
            return as_generator(None) if event.type == "ok" else UntilOk(self.open - {event.process}, generator)
        return self if generator is self.generator else UntilOk(self.open, generator)


def until_ok(generator: GeneratorLike) -> Generator:
    """Goes on until one of its operations is ok: until_ok(repeat(invoke("final-read")))."""
    return UntilOk(frozenset(), as_generator(generator))


@dataclass(frozen=True, slots=True)
class FlipFlop:
    generators: tuple[Generator, ...]
    turn: int

    def op(self, context: Context) -> Emission:
        emission = self.generators[self.turn].op(context)
        if emission is None:
            return None
        operation, following = emission
        turn = self.turn if operation is PENDING else (self.turn + 1) % len(self.generators)
        return operation, FlipFlop(replaced(self.generators, self.turn, following), turn)

    def update(self, context: Context, event: Operation) -> Generator:
        generators = updated(self.generators, context, event)
        return self if generators is self.generators else FlipFlop(generators, self.turn)


def flip_flop(*generators: GeneratorLike) -> Generator:
    """One operation of each in turn, until the one whose turn it is has no more."""
    return FlipFlop(tuple(as_generator(g) for g in generators), 0)


def replaced(generators: tuple[Generator, ...], position: int, generator: Generator) -> tuple[Generator, ...]:
    """The same generators but for one."""
    if generators[position] is generator:
        return generators
    return (*generators[:position], generator, *generators[position + 1 :])


def updated(generators: tuple[Generator, ...], context: Context, event: Operation) -> tuple[Generator, ...]:
    """All of them after an event; the very same tuple if that changed none."""
    after = generators
    for position, generator in enumerate(generators):
        changed = generator.update(context, event)
        if changed is not generator:
            after = replaced(after, position, changed)
    return after
