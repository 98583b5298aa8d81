"""The Generator protocol, and the plain values that are generators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, Protocol, cast

from harness.draw import Draw
from harness.generator.context import UNASSIGNED, Context
from harness.operation import Operation
from harness.seed import Seed


class Pending(Enum):
    """Nothing can be done before something happens."""

    PENDING = "pending"


PENDING: Final = Pending.PENDING

SLEEP = "sleep"
"""f of an `info` that only occupies its thread, for {"seconds": s}; never in the history."""
LOG = "log"
"""f of an `info` that only shows {"message": m} and needs no thread; never in the history."""

Emission = tuple[Operation | Literal[Pending.PENDING], "Generator"] | None


class Generator(Protocol):
    """An immutable value that says what to do next."""

    def op(self, context: Context) -> Emission:
        """The next operation and what follows it; PENDING and what waits; None when exhausted."""

    def update(self, context: Context, event: Operation) -> Generator:
        """The generator as it is after an invocation or a completion (`context` knows of the event already)."""


class Quiet(Protocol):
    """A generator that can tell when it need not be asked."""

    def quiet_until(self, context: Context) -> int:
        """Before this time `op` gives nothing that is due, whatever is completed; 0 if that is not known.

        That it is exhausted may be noticed as late.
        """


def quiet_until(generator: Generator, context: Context) -> int:
    """Until when nobody needs to ask this generator; 0 if it cannot tell.

    To ask costs far more, and most answers are outdated by the next completion.
    """
    method = getattr(generator, "quiet_until", None)
    return 0 if method is None else cast(int, method(context))


GeneratorLike = Generator | Operation | Sequence["GeneratorLike"] | Callable[[Context], "GeneratorLike"] | None


def invoke(f: str, value: Mapping[str, Any] | None = None, *, key: str | None = None) -> Operation:
    """An operation for whichever process is free, as soon as possible."""
    return Operation(UNASSIGNED, "invoke", f, value, key)


def as_generator(like: GeneratorLike) -> Generator:
    """The generator that a plain value stands for."""
    if like is None:
        return EXHAUSTED
    if isinstance(like, Operation):
        return One(like)
    if isinstance(like, list | tuple):
        return Concat.of(tuple(like))
    if hasattr(like, "op"):
        return cast(Generator, like)
    if callable(like):
        return FromFunction(like)
    raise TypeError(f"expected a generator, an Operation, a sequence, a function of the context or None, got {like!r}")


def assigned(operation: Operation, context: Context) -> Operation | Literal[Pending.PENDING]:
    """The operation with a free process and a time, or PENDING if its process is not free."""
    process, type_, f, value, key, time, _, node, _ = operation
    if process == UNASSIGNED:
        free = context.free_process()
        if free is None:
            return PENDING
        process = free
    else:
        thread = context.thread_of(process)
        if not context.is_free(thread) or context.processes[thread] != process:
            return PENDING
    return Operation(process, type_, f, value, key, time if time >= 0 else context.time, None, node)


class Soonest(NamedTuple):
    """The earliest of several operations, and who had it."""

    operation: Operation
    position: int
    following: Generator


def soonest(context: Context, emissions: Iterable[tuple[int, Emission]]) -> Soonest | Literal[Pending.PENDING] | None:
    """The earliest, or of equally early ones the first; PENDING if somebody waits; None if all are exhausted.

    Lazy: stops at the first operation that is due.
    """
    best: Soonest | Literal[Pending.PENDING] | None = None
    for position, emission in emissions:
        if emission is None:
            continue
        operation, following = emission
        if operation is PENDING:
            best = best or PENDING
        elif not isinstance(best, Soonest) or operation.time < best.operation.time:
            best = Soonest(operation, position, following)
            if operation.time <= context.time:
                break
    return best


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Nothing more."""

    def op(self, context: Context) -> Emission:
        return None

    def update(self, context: Context, event: Operation) -> Generator:
        return self


EXHAUSTED: Final = Exhausted()


@dataclass(frozen=True, slots=True)
class One:
    """One operation, once."""

    operation: Operation

    def op(self, context: Context) -> Emission:
        operation = assigned(self.operation, context)
        return (PENDING, self) if operation is PENDING else (operation, EXHAUSTED)

    def update(self, context: Context, event: Operation) -> Generator:
        return self


@dataclass(frozen=True, slots=True)
class Concat:
    """One after the other. Only the present one hears of events."""

    items: tuple[GeneratorLike, ...]
    position: int
    present: Generator

    @classmethod
    def of(cls, items: tuple[GeneratorLike, ...]) -> Generator:
        return cls(items, 0, as_generator(items[0])) if items else EXHAUSTED

    def op(self, context: Context) -> Emission:
        position, present = self.position, self.present
        while True:
            emission = present.op(context)
            if emission is not None:
                operation, following = emission
                return operation, Concat(self.items, position, following)
            position += 1
            if position >= len(self.items):
                return None
            present = as_generator(self.items[position])

    def update(self, context: Context, event: Operation) -> Generator:
        present = self.present.update(context, event)
        return self if present is self.present else Concat(self.items, self.position, present)


@dataclass(frozen=True, slots=True)
class FromFunction:
    """What the function returns, and when that is exhausted what it returns next, until that is None."""

    function: Callable[[Context], GeneratorLike]
    present: Generator = EXHAUSTED

    def op(self, context: Context) -> Emission:
        emission = self.present.op(context)
        if emission is None:
            like = self.function(context)
            if like is None:
                return None
            # A function that returns only exhausted generators would hold the interpreter for ever.
            emission = as_generator(like).op(context)
            if emission is None:
                return None
            if emission[0] is PENDING:
                # Asked again when something can be done, the function sees the world as it is then.
                return PENDING, self
        operation, following = emission
        return operation, FromFunction(self.function, following)

    def update(self, context: Context, event: Operation) -> Generator:
        present = self.present.update(context, event)
        return self if present is self.present else FromFunction(self.function, present)


@dataclass(frozen=True, slots=True)
class Indexed:
    """The operations that a function gives for 0, 1, 2, …"""

    function: Callable[[int], Operation | None]
    number: int

    def op(self, context: Context) -> Emission:
        if not context.free & context.threads:
            return PENDING, self
        template = self.function(self.number)
        if template is None:
            return None
        operation = assigned(template, context)
        return (PENDING, self) if operation is PENDING else (operation, Indexed(self.function, self.number + 1))

    def update(self, context: Context, event: Operation) -> Generator:
        return self


def indexed(function: Callable[[int], Operation | None]) -> Generator:
    """The operations `function(0)`, `function(1)`, … until one is None; the function must be pure.

    >>> indexed(lambda n: invoke("write", {"value": n}))  # every value once  # doctest: +SKIP
    """
    return Indexed(_asked_again(function), 0)


def drawn(seed: Seed, function: Callable[[Draw, int], Operation | None]) -> Generator:
    """The operations `function(draw, 0)`, `function(draw, 1)`, … with a fresh draw each; pure but for the draw.

    >>> drawn(seed, lambda draw, n: invoke("write", {"value": n}, key=draw.choice(keys)))  # doctest: +SKIP
    """
    base = seed.integer()
    return Indexed(_asked_again(lambda number: function(Draw.at(base, number), number)), 0)


def _asked_again(function: Callable[[int], Operation | None]) -> Callable[[int], Operation | None]:
    """The same function; as an operation is asked for until its time has come, it remembers the last ones."""
    return lru_cache(maxsize=8)(function)
