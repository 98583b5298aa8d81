"""How histories are checked; on which engine: this process as long as it is faster and has the memory, else Spark.

The figures were measured by `benchmarks/engines.py` (see docs/lab/figures-spark.md): on one machine Spark runs the same
kernels on the same cores, and its start and its shuffles cost seconds. What it has is disk: it holds a part of a
history at a time, where this process holds all rows that are grouped, so what is judged decides by its memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from checkers.api.verdict import Vacuous
from checkers.search_budget import USUAL, Effort
from checkers.spark.java import adopt_java, find_java, require_java
from harness.compiled import store
from harness.errors import UsageError
from harness.nearest import unknown
from harness.progress import Progress, Remark, unwatched
from harness.record.scenario import Scenario

if TYPE_CHECKING:
    from checkers.api.plan import Engine

AUTO, SPARK, IN_PROCESS = "auto", "spark", "inprocess"
ENGINES = (AUTO, SPARK, IN_PROCESS)
LOCAL_MASTER = "local[*]"

SPARK_PAYS_FROM = 20_000_000
"""Rows. Up to here this process was never slower, whatever was judged; beyond it nothing was measured."""

BYTES_A_ROW: Mapping[str, int] = {"log": 200, "list-append": 500, "rw-register": 700, "register": 150}
"""What this process holds of a history, beside BASE_BYTES, by workload or model."""
OTHERWISE_BYTES = 600
BASE_BYTES = 400 * 2**20
SHARE_OF_MEMORY = 0.5
"""The share of the memory that is free now that this process may take."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """How histories are checked, whatever they are checked for."""

    engine: str = AUTO
    master: str | None = None
    """Spark's, where one was named."""
    vacuous: Vacuous = Vacuous.UNKNOWN
    effort: Effort = USUAL


BY_DEFAULT = CheckOptions()
HERE = CheckOptions(engine=IN_PROCESS)


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """An engine, and why it."""

    name: str
    master: str
    because: str

    def words(self) -> str:
        return f"{'on Spark' if self.name == SPARK else 'in-process'}: {self.because}"


def require_engine(engine: str, master: str | None) -> None:
    """Before any work: what was asked for is possible. Raises UsageError, HarnessError without a Java for Spark."""
    if engine not in ENGINES:
        raise UsageError(unknown("engine", engine, ENGINES))
    if engine == IN_PROCESS and master is not None:
        raise UsageError(
            f"--engine {IN_PROCESS} checks in this process, --master {master} on Spark: leave one of them out"
        )
    if engine == SPARK or master is not None:
        require_java()


def choose(
    engine: str, master: str | None, *, rows: int, subject: str, free_bytes: int | None = None, estimated: bool = False
) -> Chosen:
    """The engine for a history of so many rows, judged as one of a workload or model of this name.

    `free_bytes` is the memory that is free, as the machine reports unless given. Without a Java, what Spark would only
    do faster is done in this process. Raises HarnessError where it has no memory for it either.
    """
    require_engine(engine, master)
    about = "about " if estimated else ""
    if engine != AUTO or master is not None:
        asked = f"--master {master}" if master is not None else f"--engine {engine}"
        name = SPARK if master is not None else engine
        return Chosen(name=name, master=master or LOCAL_MASTER, because=f"{about}{rows:,} rows, chosen by {asked}")
    needed = BASE_BYTES + rows * BYTES_A_ROW.get(subject, OTHERWISE_BYTES)
    free = free_memory_bytes() if free_bytes is None else free_bytes
    fits = free is None or needed <= SHARE_OF_MEMORY * free
    because = f"{about}{rows:,} rows, Spark is not faster below {SPARK_PAYS_FROM:,}"
    if fits and rows < SPARK_PAYS_FROM:
        return Chosen(name=IN_PROCESS, master=LOCAL_MASTER, because=because)
    because = f"{about}{rows:,} rows, Spark may be faster from {SPARK_PAYS_FROM:,} on"
    if not fits:
        because = f"{about}{rows:,} rows would take {_gib(needed)} here, more than half of the {_gib(free or 0)} free"
    adopt_java()
    if find_java() is None:
        if not fits:
            require_java()
        return Chosen(name=IN_PROCESS, master=LOCAL_MASTER, because=f"{because}, but there is no Java for it")
    return Chosen(name=SPARK, master=LOCAL_MASTER, because=because)


def rows_of_storm(scenario: Scenario) -> int:
    """How many rows a storm will record at most, about: an invocation and a completion for each operation."""
    seconds = scenario.time_limit_s + scenario.recovery_s
    return int(2 * scenario.rate * seconds)


def make_engine(chosen: Chosen, progress: Progress = unwatched) -> Engine:
    """Raises JavaMissing, SparkFailed."""
    if chosen.name == IN_PROCESS:
        from checkers.in_process.engine import InProcessEngine

        return InProcessEngine()
    if not store.kept():
        ahead = "once on this machine; make setup does so ahead"
        progress(Remark(f"Spark's workers compile the kernels that they need ({ahead})"))
    from checkers.spark.engine import SparkEngine
    from checkers.spark.session import spark_session

    return SparkEngine(spark_session(chosen.master))


def free_memory_bytes(root: Path = Path("/")) -> int | None:
    """The free memory of this machine, or of the control group that this process is confined to; None if neither can be
    read."""
    known = []
    available = re.search(r"MemAvailable:\s+(\d+) kB", _text(root / "proc/meminfo"))
    if available:
        known.append(int(available[1]) * 1024)
    group = root / "sys/fs/cgroup"
    limit, used = (_text(group / f"memory.{name}").strip() for name in ("max", "current"))
    if limit.isdigit() and used.isdigit():
        cached = re.search(r"^inactive_file (\d+)$", _text(group / "memory.stat"), re.MULTILINE)
        known.append(max(int(limit) - int(used) + (int(cached[1]) if cached else 0), 0))
    return min(known, default=None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
