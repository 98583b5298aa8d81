"""What a benchmark of a checker reports: seconds, and the memory and processor time of all processes that took part."""

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
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass
class Measured:
    """Peak resident memory by kind of process, in MiB: this one, the JVM, each of the workers."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    """Of all cores, which says more than the clock where a machine is shared."""
    peak_mib: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        peaks = ", ".join(f"{name} {mib} MiB" for name, mib in sorted(self.peak_mib.items()))
        return f"{self.seconds:.1f} s, {self.cpu_s:.0f} s of processor time; peak memory: {peaks}"


@contextmanager
def measured() -> Iterator[Measured]:
    """Time and memory of what runs inside, sampled."""
    result = Measured()
    done = threading.Event()
    before = {process.pid: process.cpu_s for process in _family()}
    used: dict[int, float] = {}

    def sample() -> None:
        while True:
            family = _family()
            for name, mib in _memory_mib(family).items():
                result.peak_mib[name] = max(result.peak_mib.get(name, 0), mib)
            used.update({process.pid: process.cpu_s - before.get(process.pid, 0.0) for process in family})
            if done.wait(INTERVAL_S):
                return

    sampler = threading.Thread(target=sample)
    sampler.start()
    start = time.monotonic()
    try:
        yield result
    finally:
        result.seconds = time.monotonic() - start
        done.set()
        sampler.join()
        result.cpu_s = sum(used.values())


@dataclass(frozen=True)
class Process:
    """One process of this benchmark."""

    pid: int
    kind: str
    mib: int
    cpu_s: float


def _family() -> list[Process]:
    """This process and all that descend from it."""
    parents: dict[int, int] = {}
    found: dict[int, Process] = {}
    me = os.getpid()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue
        name, rest = stat[stat.index("(") + 1 :].rsplit(")", 1)
        facts = rest.split()
        pid = int(entry.name)
        parents[pid] = int(facts[1])
        kind = "driver" if pid == me else "JVM" if name == "java" else "worker"
        found[pid] = Process(
            pid, kind, int(facts[21]) * PAGE_BYTES >> 20, (int(facts[11]) + int(facts[12])) / TICKS_A_SECOND
        )
    return [process for pid, process in found.items() if _descends(pid, me, parents)]


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid != ancestor and pid in parents:
        pid = parents[pid]
    return pid == ancestor


def _memory_mib(family: list[Process]) -> dict[str, int]:
    """By kind of process the largest one, and the sum of all as `all`."""
    result: dict[str, int] = {"all": sum(process.mib for process in family)}
    for process in family:
        result[process.kind] = max(result.get(process.kind, 0), process.mib)
    return result
