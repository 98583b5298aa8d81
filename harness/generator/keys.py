"""Lifting: a generator about one thing becomes one about many, each operation carrying its key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.generator.combinators import MapOperations
from harness.generator.context import Context, mask_of
from harness.generator.core import (
    EXHAUSTED,
    PENDING,
    Concat,
    Emission,
    Generator,
    GeneratorLike,
    as_generator,
    soonest,
)
from harness.operation import Operation


def _with_key(key: str, generator: GeneratorLike) -> Generator:
    return MapOperations(lambda operation: operation._replace(key=key), as_generator(generator))


def sequential_keys(keys: Sequence[str], per_key: Callable[[str], GeneratorLike]) -> Generator:
    """All of the first key's operations, then all of the next one's.

    >>> sequential_keys(["r0", "r1"], lambda key: limit(100, mix([...], seed=seed.child(key))))  # doctest: +SKIP
    """
    return Concat.of(tuple(_with_key(key, per_key(key)) for key in keys))


@dataclass(frozen=True, slots=True)
class ConcurrentKeys:
    threads_per_key: int
    keys: Sequence[str]
    per_key: Callable[[str], GeneratorLike]
    next_key: int
    groups: tuple[Generator | None, ...]
    """What each group of threads does; None: has no key yet. Empty before the first operation."""
    turn: int = 0

    def op(self, context: Context) -> Emission:
        groups = list(self.groups or self._start(context))
        keys = iter(range(self.next_key, len(self.keys)))
        taken = self.next_key

        def ask(position: int) -> Emission:
            """The group's operation, after taking as many further keys as it needs to have one."""
            nonlocal taken
            narrowed = context.only(self._mask(position))
            if not narrowed.free & narrowed.threads:
                return PENDING, EXHAUSTED
            while True:
                group = groups[position]
                emission = None if group is None else group.op(narrowed)
                if emission is not None:
                    return emission
                groups[position] = None
                number = next(keys, None)
                if number is None:
                    return None
                taken = number + 1
                groups[position] = _with_key(self.keys[number], self.per_key(self.keys[number]))

        count = len(groups)
        first = soonest(context, ((p, ask(p)) for p in (*range(self.turn, count), *range(self.turn))))
        if first is None:
            return None
        if first is PENDING:
            return PENDING, self._with(taken, tuple(groups), self.turn)
        groups[first.position] = first.following
        return first.operation, self._with(taken, tuple(groups), (first.position + 1) % count)

    def update(self, context: Context, event: Operation) -> Generator:
        position = context.thread_of(event.process) // self.threads_per_key
        if event.process < 0 or position >= len(self.groups):
            return self
        group = self.groups[position]
        if group is None:
            return self
        after = group.update(context.only(self._mask(position)), event)
        if after is group:
            return self
        return self._with(self.next_key, (*self.groups[:position], after, *self.groups[position + 1 :]), self.turn)

    def _start(self, context: Context) -> tuple[Generator | None, ...]:
        if context.concurrency % self.threads_per_key:
            raise ValueError(
                f"concurrency {context.concurrency} cannot be cut into groups of {self.threads_per_key} threads; "
                "make it a multiple"
            )
        return (None,) * (context.concurrency // self.threads_per_key)

    def _mask(self, position: int) -> int:
        first = position * self.threads_per_key
        return mask_of(range(first, first + self.threads_per_key))

    def _with(self, next_key: int, groups: tuple[Generator | None, ...], turn: int) -> Generator:
        return ConcurrentKeys(self.threads_per_key, self.keys, self.per_key, next_key, groups, turn)


def concurrent_keys(threads_per_key: int, keys: Sequence[str], per_key: Callable[[str], GeneratorLike]) -> Generator:
    """Groups of so many client threads, each at work on one key until it is exhausted, then on the next one left.

    Raises ValueError when first asked with a concurrency that is not a multiple.

    >>> concurrent_keys(2, keys, lambda key: limit(100, reads_and_writes(seed.child(key))))  # doctest: +SKIP
    """
    return ConcurrentKeys(threads_per_key, keys, per_key, 0, ())
