"""Combinators that say when: spacing, pauses, limits in time. Seconds outside, nanoseconds inside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from harness.draw import Draw
from harness.generator.context import UNASSIGNED, Context
from harness.generator.core import (
    EXHAUSTED,
    LOG,
    PENDING,
    SLEEP,
    Emission,
    Generator,
    GeneratorLike,
    One,
    as_generator,
    quiet_until,
)
from harness.operation import NEMESIS, Operation
from harness.seed import Seed

SECOND = 1_000_000_000


def sleep(seconds: float) -> Generator:
    """Occupy one thread for this long: nemesis([sleep(10), invoke("start-partition")])."""
    return One(Operation(UNASSIGNED, "info", SLEEP, {"seconds": seconds}))


@dataclass(frozen=True, slots=True)
class Log:
    message: str

    def op(self, context: Context) -> Emission:
        return Operation(NEMESIS, "info", LOG, {"message": self.message}, None, context.time), EXHAUSTED

    def update(self, context: Context, event: Operation) -> Generator:
        return self


def log(message: str) -> Generator:
    """Show a message when this point is reached; needs no thread and leaves no trace in the history."""
    return Log(message)


@dataclass(frozen=True, slots=True)
class TimeLimit:
    length: int
    end: int
    """Negative before the first operation."""
    generator: Generator

    def op(self, context: Context) -> Emission:
        if 0 <= self.end <= context.time:
            return None
        emission = self.generator.op(context)
        if emission is None:
            return None
        operation, following = emission
        if operation is PENDING:
            return PENDING, TimeLimit(self.length, self.end, following)
        end = self.end if self.end >= 0 else operation.time + self.length
        return None if operation.time >= end else (operation, TimeLimit(self.length, end, following))

    def quiet_until(self, context: Context) -> int:
        until = quiet_until(self.generator, context)
        return until if until < self.end else 0

    def update(self, context: Context, event: Operation) -> Generator:
        generator = self.generator.update(context, event)
        return self if generator is self.generator else TimeLimit(self.length, self.end, generator)


def time_limit(seconds: float, generator: GeneratorLike) -> Generator:
    """No more operations later than this long after its first one. Operations that are open then are not cut off."""
    return TimeLimit(round(seconds * SECOND), -1, as_generator(generator))


@dataclass(frozen=True, slots=True)
class Stagger:
    interval: int
    base: int
    number: int
    due: int
    """Negative before the first operation."""
    generator: Generator

    def op(self, context: Context) -> Emission:
        emission = self.generator.op(context)
        if emission is None:
            return None
        operation, following = emission
        if operation is PENDING:
            return PENDING, Stagger(self.interval, self.base, self.number, self.due, following)
        if operation.time < self.due:
            operation = operation._replace(time=self.due)
        due = operation.time + _gap(self.base, self.number, self.interval)
        return operation, Stagger(self.interval, self.base, self.number + 1, due, following)

    def quiet_until(self, context: Context) -> int:
        return max(0, self.due)

    def update(self, context: Context, event: Operation) -> Generator:
        generator = self.generator.update(context, event)
        if generator is self.generator:
            return self
        return Stagger(self.interval, self.base, self.number, self.due, generator)


@lru_cache(maxsize=8)
def _gap(base: int, number: int, interval: int) -> int:
    """Remembered, as it is asked for again until the operation's time has come."""
    return int(Draw.at(base, number).uniform(0.0, 2.0 * interval))


def stagger(interval_s: float, generator: GeneratorLike, *, seed: Seed) -> Generator:
    """Operations at random intervals, from nothing to twice `interval_s`, over all threads together.

    A rate of r operations a second is stagger(1 / r, …). When the threads cannot keep up, nothing is caught up later.
    """
    return Stagger(round(interval_s * SECOND), seed.integer(), 0, -1, as_generator(generator))


@dataclass(frozen=True, slots=True)
class Delay:
    interval: int
    due: int
    generator: Generator

    def op(self, context: Context) -> Emission:
        emission = self.generator.op(context)
        if emission is None:
            return None
        operation, following = emission
        if operation is PENDING:
            return PENDING, Delay(self.interval, self.due, following)
        if operation.time < self.due:
            operation = operation._replace(time=self.due)
        return operation, Delay(self.interval, operation.time + self.interval, following)

    def update(self, context: Context, event: Operation) -> Generator:
        generator = self.generator.update(context, event)
        return self if generator is self.generator else Delay(self.interval, self.due, generator)


def delay(interval_s: float, generator: GeneratorLike) -> Generator:
    """Exactly this long between operations (longer where no thread is free)."""
    return Delay(round(interval_s * SECOND), -1, as_generator(generator))
