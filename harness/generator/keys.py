"""Lifting: a generator about one thing becomes one about many, each operation carrying its key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.generator.combinators import MapOperations
from harness.generator.context import Context, mask_of
from harness.generator.core import PENDING, Concat, Emission, Generator, GeneratorLike, as_generator
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
        groups = self.groups or self._start(context)
        next_key = self.next_key
        soonest: tuple[Operation, int, Generator] | None = None
        pending = False
        for step in range(len(groups)):
            position = (self.turn + step) % len(groups)
            narrowed = context.only(self._mask(position))
            if not narrowed.free & narrowed.threads:
                pending = True
                continue
            emission = None
            while emission is None:
                group = groups[position]
                if group is None:
                    if next_key >= len(self.keys):
                        break
                    key = self.keys[next_key]
                    next_key += 1
                    group = _with_key(key, self.per_key(key))
                    groups = (*groups[:position], group, *groups[position + 1 :])
                emission = group.op(narrowed)
                if emission is None:
                    groups = (*groups[:position], None, *groups[position + 1 :])
            if emission is None:
                continue
            operation, following = emission
            if operation is PENDING:
                pending = True
            elif soonest is None or operation.time < soonest[0].time:
                soonest = operation, position, following
                if operation.time <= context.time:
                    break
        if soonest is None:
            return (PENDING, self._with(next_key, groups, self.turn)) if pending else None
        operation, position, following = soonest
        groups = (*groups[:position], following, *groups[position + 1 :])
        return operation, self._with(next_key, groups, (position + 1) % len(groups))

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
