"""Storms in real time: each is a command of its own, and the next cluster starts while the last one is in its calm.

Storms that are not valid keep their run directories, with the report; those of the others are removed.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from checkers.api.verdict import Verdict
from harness.errors import HarnessError, UsageError
from harness.lifetime.supervised import Guarded
from harness.progress import Moment, Progress
from harness.record.run_directory import RunDirectory
from harness.record.run_record import read_run_record
from harness.run import CALM
from nemesis.schedule_file import schedule_text
from stormproof.search.search import Trier
from stormproof.search.trial import ROWS, Task, failed, untold
from stormproof.session import engines, registry
from stormproof.session.execute import entries_of
from stormproof.session.outcome import replay_line

PROGRAM = (sys.executable, "-m")
OPTIONS = ("--engine", engines.IN_PROCESS, "--json", "--progress")
MOST_FAILURES = 3
"""How many storms in a row may fail to run before the search ends: the next one would fail, too."""
TIDIED_WITHIN_S = 120.0
"""How long a storm that is cut off may take to remove its nodes."""
LOOKED_EVERY_S = 0.2


@contextmanager
def trying(runs: Path, progress: Progress) -> Iterator[Trier]:
    """While inside: a trier that returns when its storms are in their calm. Runs lie in `runs/<number>/`.

    It raises HarnessError where several storms in a row could not be carried out.
    """
    with ThreadPoolExecutor(1) as beside:
        storms = _Storms(runs, progress)
        try:
            yield lambda tasks: storms.tried(tasks, beside)
        finally:
            storms.end()


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
    under_way: list[_UnderWay] = field(default_factory=list)
    failures: int = 0

    def tried(self, tasks: list[Task], beside: ThreadPoolExecutor) -> Future[pa.Table]:
        judgements = [self._blown(task) for task in tasks]
        return beside.submit(lambda: pa.Table.from_pylist([judge() for judge in judgements], schema=ROWS))

    def end(self) -> None:
        for storm in self.under_way:
            storm.guarded.end()

    def _blown(self, task: Task) -> Callable[[], dict[str, Any]]:
        """Returns when its calm has begun, or it has ended before; what is returned waits for its verdict."""
        base = self.runs / f"{task.number:05}"
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir(parents=True)
        try:
            storm = _UnderWay(task, base, [*PROGRAM, *_command(task, base)])
        except (HarnessError, UsageError) as error:
            return self._failed(task, error)
        self._let_go_of_ended()
        self.under_way.append(storm)
        storm.wait_for_calm(self.progress)
        if registry.environment(task.scenario.environment).takes_inventory:
            storm.guarded.process.wait()  # its machines are there once
        if storm.has_ended and storm.verdict() is None:
            return self._failed(task, storm.failure())
        self.failures = 0
        return storm.row

    def _let_go_of_ended(self) -> None:
        """Closes the pipes that ended storms hold to their guards."""
        for storm in [storm for storm in self.under_way if storm.has_ended]:
            storm.guarded.end()
            self.under_way.remove(storm)

    def _failed(self, task: Task, error: HarnessError | UsageError) -> Callable[[], dict[str, Any]]:
        self.failures += 1
        if self.failures == MOST_FAILURES:
            raise HarnessError(f"{MOST_FAILURES} storms in a row could not be carried out; the last one: {error}")
        return lambda: task.to_row() | failed(error, 0.0)


def _command(task: Task, base: Path) -> list[str]:
    """The words of the command line that carries out the storm. Raises UsageError, HarnessError."""
    scenario = task.scenario
    parts = registry.resolve(scenario)
    registry.environment_of(scenario, parts)
    if scenario.schedule:
        directory = RunDirectory(base)
        directory.write_text(directory.schedule, schedule_text(entries_of(scenario, parts), f"storm {task.number}"))
    return [*shlex.split(replay_line(scenario, base)), *OPTIONS, "--runs", str(base)]


class _UnderWay:
    """A storm that is blown, or has been."""

    def __init__(self, task: Task, base: Path, command: Sequence[str]) -> None:
        self._task = task
        self._base = base
        self._words, self._report = base / "words.txt", base / "said.json"
        with self._words.open("wb") as words, self._report.open("wb") as said:
            self.guarded = Guarded(command, stdout=said, stderr=words, grace_s=TIDIED_WITHIN_S, terminate=True)

    @property
    def has_ended(self) -> bool:
        return self.guarded.process.poll() is not None

    def wait_for_calm(self, progress: Progress) -> None:
        """Reports what it says until then."""
        with self._words.open(encoding="utf-8", errors="replace") as words:
            line = ""
            while True:
                has_ended = self.has_ended
                line += words.readline()
                if line.endswith("\n"):
                    _, _, news = line.strip().partition(" s  ")
                    progress(Moment(news or line.strip()))
                    if news == CALM:
                        return
                    line = ""
                elif has_ended:
                    return
                else:
                    time.sleep(LOOKED_EVERY_S)

    def verdict(self) -> dict[str, Any] | None:
        """What it printed of its verdict; None where it came to none."""
        try:
            outcome = json.loads(self._report.read_bytes())
            Verdict(outcome["verdict"])
            return {name: outcome[name] for name in ("verdict", "anomalies", "reasons")}
        except (ValueError, LookupError, TypeError):
            return None

    def failure(self) -> HarnessError:
        lines = self._words.read_text("utf-8", errors="replace").splitlines()
        return HarnessError(lines[-1].removeprefix("stormproof: ") if lines else "it was ended")

    def row(self) -> dict[str, Any]:
        """A row of ROWS, without points and features, which only the simulator tells; waits for its end."""
        self.guarded.process.wait()
        outcome = self.verdict()
        if outcome is None:
            return self._task.to_row() | failed(self.failure(), 0.0)
        anomalies = outcome["anomalies"]
        if outcome["verdict"] == Verdict.VALID.value:
            shutil.rmtree(self._base)
        found = (f"{name} × {count}" for name, count in sorted(anomalies.items()))
        known = {
            "verdict": outcome["verdict"],
            "anomalies": sorted(anomalies),
            "words": "; ".join((*found, *outcome["reasons"])),
        }
        return self._task.to_row() | untold(0.0) | known
