"""What a generator may know: the time, which threads are free, and which process each thread plays.

Threads are numbered from 0; the nemesis is thread NEMESIS (-1) and process -1. A thread plays one process at a
time; after `info` it takes the next number, so that a process number means one uninterrupted sequence of operations.
A context is immutable, and cheap to derive: sets of threads are the bits of one integer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.operation import NEMESIS

UNASSIGNED = -2
"""The process of an operation that any free one may carry out."""

ALL_THREADS = -1
NEMESIS_BIT = 1
"""Thread t has bit t + 1."""


def mask_of(threads: Iterable[int]) -> int:
    """The bits of these threads."""
    mask = 0
    for thread in threads:
        mask |= 1 << (thread + 1)
    return mask


class Context(NamedTuple):
    """The world as a generator sees it. Times are nanoseconds since the test began."""

    time: int
    threads: int
    """The threads that the holder of this context may use, as bits."""
    free: int
    """All free threads as bits, also those outside `threads`."""
    idle: tuple[int, ...]
    """All free threads, the one free for the longest time first."""
    processes: tuple[int, ...]
    """thread -> process; the last one is the nemesis, so that processes[NEMESIS] is right, too."""

    @classmethod
    def start(cls, *, concurrency: int, nemesis: bool, first_process: int = 0, time: int = 0) -> Context:
        """All threads free. `first_process` is the process of thread 0, a multiple of the concurrency."""
        idle = tuple(range(concurrency)) + ((NEMESIS,) if nemesis else ())
        mask = mask_of(idle)
        return cls(time, mask, mask, idle, (*range(first_process, first_process + concurrency), NEMESIS))

    @property
    def concurrency(self) -> int:
        """The number of client threads in the whole test."""
        return len(self.processes) - 1

    def thread_of(self, process: int) -> int:
        """The thread that plays this process, now or formerly."""
        return process % (len(self.processes) - 1) if process >= 0 else NEMESIS

    def is_free(self, thread: int) -> bool:
        return bool(self.free & self.threads & (1 << (thread + 1)))

    def all_free(self) -> bool:
        """Whether nobody among the own threads is at work."""
        return self.free & self.threads == self.threads

    def own_threads(self) -> tuple[int, ...]:
        """The threads of this context in ascending order (the nemesis first)."""
        return tuple(t for t in range(NEMESIS, self.concurrency) if self.threads & (1 << (t + 1)))

    def own_idle(self) -> tuple[int, ...]:
        """The free threads of this context, the one free for the longest time first."""
        return tuple(t for t in self.idle if self.threads & (1 << (t + 1)))

    def free_process(self) -> int | None:
        """The process of the own thread that has been free for the longest time."""
        threads = self.threads
        if not self.free & threads:
            return None
        for thread in self.idle:
            if threads & (1 << (thread + 1)):
                return self.processes[thread]
        return None

    def only(self, mask: int) -> Context:
        """The same world for somebody who may use only these of the threads."""
        threads = self.threads & mask
        if threads == self.threads:
            return self
        return Context(self.time, threads, self.free, self.idle, self.processes)

    def at(self, time: int) -> Context:
        return Context(time, self.threads, self.free, self.idle, self.processes)

    def busy(self, thread: int) -> Context:
        """After this thread was given an operation."""
        idle = self.idle
        idle = idle[1:] if idle[0] == thread else tuple(t for t in idle if t != thread)
        return Context(self.time, self.threads, self.free & ~(1 << (thread + 1)), idle, self.processes)

    def freed(self, thread: int) -> Context:
        """After this thread's operation completed."""
        free = self.free | (1 << (thread + 1))
        return Context(self.time, self.threads, free, (*self.idle, thread), self.processes)

    def retired(self, thread: int) -> Context:
        """After this thread's operation ended in `info`: the thread plays a new process. The nemesis stays itself."""
        if thread == NEMESIS:
            return self
        processes = list(self.processes)
        processes[thread] += len(processes) - 1
        return Context(self.time, self.threads, self.free, self.idle, tuple(processes))
