"""Storms in real time: one after the other, each judged by a process of its own while the next cluster starts.

Storms that are not valid keep their run directories, with the report; those of the others are removed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from checkers.verdict import Verdict
from harness.errors import HarnessError, UsageError
from harness.explore.row import ROWS, Task, failed, untold
from harness.explore.search import Trier
from harness.progress import Progress
from harness.record.run_directory import RunDirectory
from harness.record.run_record import read_run_record
from harness.session import engines
from harness.session import resolve as registry
from harness.session.execute import execute_scenario

JUDGING = (sys.executable, "-m", "stormproof", "check", "--json", "--engine", engines.IN_PROCESS)
MOST_FAILURES = 3
"""In a row: what keeps so many storms from being carried out will keep the next one as well."""


@contextmanager
def trying(runs: Path, progress: Progress) -> Iterator[Trier]:
    """While inside: rounds are carried out in this thread, and judged beside it. Runs lie in `runs/<number>/`.

    The trier raises HarnessError where several storms in a row could not be carried out.
    """
    with ThreadPoolExecutor(1) as beside:
        storms = _Storms(runs, progress)
        try:
            yield lambda tasks: storms.tried(tasks, beside)
        finally:
            storms.end_judging()


def runs_of(runs: Path, number: int) -> list[RunDirectory]:
    """The kept run of that storm, if there is one."""
    return [RunDirectory(file.parent) for file in sorted((runs / f"{number:05}").glob("*/*/scenario.json"))]


def again(runs: Path, number: int) -> str | None:
    """The command that blows the storm again: with the same faults, which meet the nodes at other moments."""
    kept = runs_of(runs, number)
    return read_run_record(kept[0].path).replay if kept else None


@dataclass
class _Storms:
    runs: Path
    progress: Progress
    judging: list[subprocess.Popen[str]] = field(default_factory=list)
    failures: int = 0

    def tried(self, tasks: list[Task], beside: ThreadPoolExecutor) -> Future[pa.Table]:
        judgements = [self._carried_out(task) for task in tasks]
        return beside.submit(lambda: pa.Table.from_pylist([judge() for judge in judgements], schema=ROWS))

    def end_judging(self) -> None:
        for process in self.judging:
            if process.poll() is None:
                process.terminate()
                process.wait()

    def _carried_out(self, task: Task) -> Callable[[], dict[str, Any]]:
        """How it is judged."""
        base = self.runs / f"{task.number:05}"
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir(parents=True)
        began = time.process_time()
        try:
            parts = registry.resolve(task.scenario)
            kind = registry.environment_of(task.scenario, parts)
            executed = execute_scenario(task.scenario, parts, kind, runs=base, progress=self.progress)
        except (HarnessError, UsageError) as error:
            return self._failed(task, error)
        if executed.failure is not None and not executed.complete:
            return self._failed(task, executed.failure)
        self.failures = 0
        return self.judged_beside(task, executed.directory, time.process_time() - began)

    def judged_beside(self, task: Task, directory: RunDirectory, processor_s: float) -> Callable[[], dict[str, Any]]:
        """Begins to judge, and returns how the row is waited for."""
        process = subprocess.Popen(
            [*JUDGING, str(directory.path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.judging.append(process)
        return lambda: _judged(task, directory, process, processor_s)

    def _failed(self, task: Task, error: HarnessError | UsageError) -> Callable[[], dict[str, Any]]:
        self.failures += 1
        if self.failures == MOST_FAILURES:
            raise HarnessError(f"{MOST_FAILURES} storms in a row could not be carried out; the last one: {error}")
        return lambda: task.to_row() | failed(error, 0.0)


def _judged(task: Task, directory: RunDirectory, process: subprocess.Popen[str], processor_s: float) -> dict[str, Any]:
    """A row of ROWS, without points and features, which only the simulator tells."""
    said, errors = process.communicate()
    try:
        outcome = json.loads(said)
        verdict, anomalies, reasons = Verdict(outcome["verdict"]), outcome["anomalies"], outcome["reasons"]
    except (ValueError, LookupError, TypeError):
        return task.to_row() | failed(HarnessError(errors.strip() or "its judgement was ended"), processor_s)
    if verdict is Verdict.VALID:
        shutil.rmtree(directory.path.parent.parent)
    found = (f"{name} × {count}" for name, count in sorted(anomalies.items()))
    known = {"verdict": verdict.value, "anomalies": sorted(anomalies), "words": "; ".join((*found, *reasons))}
    return task.to_row() | untold(processor_s) | known
