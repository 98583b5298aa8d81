"""Generators that do not know of each other, side by side: each has threads of its own, and a world of its own.

Of a world with threads 4 to 6 its generator sees threads 0 to 2, which play processes 0, 1, 2 first, and only what
happens on them. Its operations are told apart by their strand: `send` of strand `log` is `log/send`, and its value
stands in the member `log` of the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from harness.generator.combinators import any_of
from harness.generator.context import NEMESIS_BIT, Context
from harness.generator.core import PENDING, Emission, Generator, quiet_until
from harness.operation import NEMESIS, Operation


def outward(strand: str, operation: Operation) -> Operation:
    """An operation of a strand as one of all strands together."""
    value = None if operation.value is None else {strand: operation.value}
    return operation._replace(f=f"{strand}/{operation.f}", value=value)


def inward(strand: str, operation: Operation) -> Operation:
    """The opposite of `outward`."""
    value = None if operation.value is None else operation.value[strand]
    return operation._replace(f=operation.f.removeprefix(f"{strand}/"), value=value)


@dataclass(frozen=True, slots=True)
class Strand:
    """One generator on the threads from `first` on, `count` of them."""

    name: str
    first: int
    count: int
    generator: Generator

    def op(self, context: Context) -> Emission:
        emission = self.generator.op(self._world(context))
        if emission is None:
            return None
        operation, following = emission
        after = Strand(self.name, self.first, self.count, following)
        if operation is PENDING:
            return PENDING, after
        return outward(self.name, operation._replace(process=self._outer(operation.process, context))), after

    def quiet_until(self, context: Context) -> int:
        return quiet_until(self.generator, self._world(context))

    def update(self, context: Context, event: Operation) -> Generator:
        if event.process < 0 or not self.first <= context.thread_of(event.process) < self.first + self.count:
            return self
        own = inward(self.name, event)._replace(process=self._inner(event.process, context))
        generator = self.generator.update(self._world(context), own)
        return self if generator is self.generator else Strand(self.name, self.first, self.count, generator)

    def _world(self, context: Context) -> Context:
        mine = ((1 << (self.count + 1)) - 1) & ~NEMESIS_BIT
        last = self.first + self.count
        return Context(
            time=context.time,
            threads=(context.threads >> self.first) & mine,
            free=(context.free >> self.first) & mine,
            idle=tuple(thread - self.first for thread in context.idle if self.first <= thread < last),
            processes=(*(self._inner(one, context) for one in context.processes[self.first : last]), NEMESIS),
        )

    def _inner(self, process: int, context: Context) -> int:
        life, thread = divmod(process, context.concurrency)
        return life * self.count + thread - self.first

    def _outer(self, process: int, context: Context) -> int:
        life, thread = divmod(process, self.count)
        return life * context.concurrency + thread + self.first


def shares(concurrency: int, strands: int) -> tuple[range, ...]:
    """The threads of each strand: as many for each as for the others, one more for the first where some are left."""
    each, more = divmod(concurrency, strands)
    firsts = [number * each + min(number, more) for number in range(strands + 1)]
    return tuple(range(first, last) for first, last in pairwise(firsts))


def side_by_side(*strands: Strand) -> Generator:
    """All of them at once; of those equally soon each has its turn."""
    return any_of(*strands)
