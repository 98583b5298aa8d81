"""Combinators that say who: which threads run what, and who waits for whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.generator.context import NEMESIS_BIT, Context, mask_of
from harness.generator.core import (
    PENDING,
    Concat,
    Emission,
    Generator,
    GeneratorLike,
    Soonest,
    as_generator,
    quiet_until,
    soonest,
)
from harness.operation import Operation

CLIENTS = ~NEMESIS_BIT


@dataclass(frozen=True, slots=True)
class OnThreads:
    mask: int
    generator: Generator

    def op(self, context: Context) -> Emission:
        emission = self.generator.op(context.only(self.mask))
        return None if emission is None else (emission[0], OnThreads(self.mask, emission[1]))

    def quiet_until(self, context: Context) -> int:
        return quiet_until(self.generator, context)

    def update(self, context: Context, event: Operation) -> Generator:
        if not self.mask & (1 << (context.thread_of(event.process) + 1)):
            return self
        generator = self.generator.update(context.only(self.mask), event)
        return self if generator is self.generator else OnThreads(self.mask, generator)


def on_threads(threads: Iterable[int], generator: GeneratorLike) -> Generator:
    """Only on these threads, and hearing only of their events: on_threads(range(3), g)."""
    return OnThreads(mask_of(threads), as_generator(generator))


def clients(generator: GeneratorLike) -> Generator:
    """On all threads but the nemesis."""
    return OnThreads(CLIENTS, as_generator(generator))


def nemesis(generator: GeneratorLike) -> Generator:
    """On the thread of the nemesis alone."""
    return OnThreads(NEMESIS_BIT, as_generator(generator))


@dataclass(frozen=True, slots=True)
class EachOwner:
    """One copy of a generator for every owner (thread or process)."""

    fresh: Generator
    owner: Callable[[Context, int], int]
    """context, thread -> owner."""
    copies: tuple[tuple[int, Generator], ...]
    """(owner, its copy), by thread, the nemesis last; owners change where processes do."""

    def op(self, context: Context) -> Emission:
        copies = self.copies or tuple((self.owner(context, t), self.fresh) for t in (*range(context.concurrency), -1))
        first = soonest(
            context,
            (
                (thread, self._copy(copies, context, thread).op(context.only(1 << (thread + 1))))
                for thread in context.own_idle()
            ),
        )
        if isinstance(first, Soonest):
            return first.operation, self._with(copies, context, first.position, first.following)
        # A thread at work may have more to do afterwards.
        return None if first is None and context.all_free() else (PENDING, self)

    def update(self, context: Context, event: Operation) -> Generator:
        thread = context.thread_of(event.process)
        if not self.copies or not context.threads & (1 << (thread + 1)):
            return self
        copy = self._copy(self.copies, context, thread)
        after = copy.update(context.only(1 << (thread + 1)), event)
        return self if after is copy else self._with(self.copies, context, thread, after)

    def _copy(self, copies: tuple[tuple[int, Generator], ...], context: Context, thread: int) -> Generator:
        owner, copy = copies[thread]
        return copy if owner == self.owner(context, thread) else self.fresh

    def _with(
        self, copies: tuple[tuple[int, Generator], ...], context: Context, thread: int, copy: Generator
    ) -> Generator:
        changed = list(copies)
        changed[thread] = (self.owner(context, thread), copy)
        return EachOwner(self.fresh, self.owner, tuple(changed))


def _thread(context: Context, thread: int) -> int:
    return thread


def _process(context: Context, thread: int) -> int:
    return context.processes[thread]


def each_thread(generator: GeneratorLike) -> Generator:
    """A copy for every thread, each of which sees only its own thread: clients(each_thread(invoke("final-read")))."""
    return EachOwner(as_generator(generator), _thread, ())


def each_process(generator: GeneratorLike) -> Generator:
    """A copy for every process: a thread starts anew after an `info`."""
    return EachOwner(as_generator(generator), _process, ())


@dataclass(frozen=True, slots=True)
class Synchronize:
    generator: Generator

    def op(self, context: Context) -> Emission:
        return self.generator.op(context) if context.all_free() else (PENDING, self)

    def update(self, context: Context, event: Operation) -> Generator:
        generator = self.generator.update(context, event)
        return self if generator is self.generator else Synchronize(generator)


def synchronize(generator: GeneratorLike) -> Generator:
    """Waits until all own threads are free, then is that generator."""
    return Synchronize(as_generator(generator))


def phases(*generators: GeneratorLike) -> Generator:
    """One after the other, each only once all operations of those before are complete."""
    return Concat.of(tuple(synchronize(generator) for generator in generators))


def then(first: GeneratorLike, second: GeneratorLike) -> Generator:
    """The first one, and once all its operations are complete the second one."""
    return Concat.of((first, synchronize(second)))
