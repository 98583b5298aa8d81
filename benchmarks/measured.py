"""What a benchmark of a checker reports: seconds, and the memory of all processes that took part."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

INTERVAL_S = 0.2
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Measured:
    """Peak resident memory by kind of process, in MiB: this one, the JVM, each of the workers."""

    seconds: float = 0.0
    peak_mib: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        peaks = ", ".join(f"{name} {mib} MiB" for name, mib in sorted(self.peak_mib.items()))
        return f"{self.seconds:.1f} s; peak memory: {peaks}"


@contextmanager
def measured() -> Iterator[Measured]:
    """Time and memory of what runs inside, sampled."""
    result = Measured()
    done = threading.Event()

    def sample() -> None:
        while not done.wait(INTERVAL_S):
            for name, mib in _memory_mib().items():
                result.peak_mib[name] = max(result.peak_mib.get(name, 0), mib)

    sampler = threading.Thread(target=sample)
    sampler.start()
    start = time.monotonic()
    try:
        yield result
    finally:
        result.seconds = time.monotonic() - start
        done.set()
        sampler.join()


def _memory_mib() -> dict[str, int]:
    """All processes that descend from this one, by kind; of several of a kind the largest, and their sum as `all`."""
    parents: dict[int, int] = {}
    facts: dict[int, tuple[str, int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
            pages = int((entry / "statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        name, rest = stat[stat.index("(") + 1 :].rsplit(")", 1)
        pid = int(entry.name)
        parents[pid] = int(rest.split()[1])
        facts[pid] = (name, pages * PAGE_BYTES >> 20)
    me = os.getpid()
    result: dict[str, int] = {}
    for pid, (name, mib) in facts.items():
        at = pid
        while at not in (me, 0) and at in parents:
            at = parents[at]
        if at == me:
            kind = "driver" if pid == me else "JVM" if name == "java" else "worker"
            result[kind] = max(result.get(kind, 0), mib)
            result["all"] = result.get("all", 0) + mib
    return result
