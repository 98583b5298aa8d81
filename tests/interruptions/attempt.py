"""One interruption: a command with an environment of its own, signals at a moment, and what must hold afterwards.

Processes are found by a variable that the command alone was given, containers by the process that made them, temporary
directories in a directory that is the command's own: whatever else this machine does, is not seen.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from harness.errors import UsageError
from stormproof.cli.exit_code import exit_code_of
from stormproof.session.engines import HERE
from stormproof.session.judge import check_run
from tests.interruptions.leftovers import containers_of, marked, temporary

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "STORMPROOF_INTERRUPTED"
LONGEST_S = 300.0
"""Of a command, or its ending."""
PIPE_S = 20.0
"""After the command has ended: until the readers of its output are through, and its processes are gone."""
LOOKED_EACH_S = 0.005
TOO_LATE_S = 15.0
"""A signal that is ignored because the command is just leaving: it has left by then."""
INTERRUPTED = 255


class World(Enum):
    SIMULATED = "simulated"
    SPARK = "spark"
    DOCKER = "docker"
    SSH = "ssh"


ELSEWHERE = (World.DOCKER, World.SSH)


@dataclass(frozen=True, kw_only=True)
class Attempt:
    world: World
    name: str
    """Of the command."""
    signals: tuple[signal.Signals, ...]
    delay_s: float
    """From when the command hears signals, or what is waited for is so, to the first of them."""
    gap_s: float = 0.0
    """From the first to the second."""

    @property
    def kills(self) -> bool:
        return signal.SIGKILL in self.signals

    def __str__(self) -> str:
        names = "+".join(number.name for number in self.signals)
        second = f", the second {self.gap_s:.3f} s later" if len(self.signals) > 1 else ""
        return f"{self.world.value} {self.name} {names} after {self.delay_s:.3f} s{second}"


@dataclass(kw_only=True)
class Result:
    attempt: Attempt
    code: int
    too_late: bool = False
    """It had ended before the signal could have an effect."""
    checked: tuple[int, ...] = ()
    """Exit code of `check` for each run directory; 254 where nothing had begun."""
    problems: list[str] = field(default_factory=list)
    output: str = ""


def containers_left(pid: int) -> list[str]:
    """Of a command in Docker, by its process."""
    return [f"{name} in Docker" for name in containers_of(pid)]


@contextmanager
def signals_are_heard() -> Iterator[None]:
    """Commands inherit that signals are ignored, as those of a shell's background job are."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def carry_out(
    attempt: Attempt,
    place: Path,
    arguments: Callable[[Path], list[str]],
    *,
    begun: Callable[[], bool] = lambda: True,
    cleaning: Sequence[str] = ("cleanup",),
    left_elsewhere: Callable[[int], list[str]] = containers_left,
) -> Result:
    """Interrupt a command in `place`, an empty directory; `arguments(place)` are the command's, and the attempt's delay
    counts from when `begun()` is so. `cleaning` is typed after a command that was killed; `left_elsewhere` tells what
    is left of the process with that number outside of this machine's processes and directories."""
    (place / "tmp").mkdir()
    environment = {**os.environ, TOKEN: str(place), "TMPDIR": str(place / "tmp")}
    process = subprocess.Popen(
        [sys.executable, "-m", "stormproof.cli.main", *arguments(place)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
    )
    lines: list[str] = []
    reading = threading.Thread(target=lambda: lines.extend(process.communicate()), daemon=True)
    reading.start()
    try:
        sent_at = _interrupt(process, attempt, begun)
        code = process.wait(LONGEST_S)
        ended_after_s = time.monotonic() - sent_at
    finally:
        process.kill()
    result = Result(attempt=attempt, code=code)
    reading.join(PIPE_S)
    if reading.is_alive():
        result.problems.append(f"its output is still held open, by {marked(TOKEN, str(place))}")
    result.output = "\n".join(lines)
    _judge_ending(result, ended_after_s)
    _judge_leftovers(result, place, environment, cleaning)
    if attempt.world in ELSEWHERE and (left := left_elsewhere(process.pid)):
        result.problems.append(f"there are left: {left}")
    result.checked = tuple(_checked(directory, result) for directory in _run_directories(place))
    return result


def duration_s(place: Path, arguments: Callable[[Path], list[str]]) -> float:
    """How long the command goes on, once it handles signals, if it is not interrupted."""
    (place / "tmp").mkdir()
    command = [sys.executable, "-m", "stormproof.cli.main", *arguments(place)]
    environment = {**os.environ, "TMPDIR": str(place / "tmp")}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    ) as process:
        _until_it_hears(process)
        begun = time.monotonic()
        _, error = process.communicate(timeout=LONGEST_S)
    if process.returncode not in (0, 1, 2):
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {error}")
    return time.monotonic() - begun


def _interrupt(process: subprocess.Popen[str], attempt: Attempt, begun: Callable[[], bool]) -> float:
    """Returns when the first signal was sent, or the process had ended."""
    _until_it_hears(process)
    deadline = time.monotonic() + LONGEST_S
    while not begun() and process.poll() is None and time.monotonic() < deadline:
        _wait(process, LOOKED_EACH_S)
    _wait(process, attempt.delay_s)
    sent_at = time.monotonic()
    for place, number in enumerate(attempt.signals):
        if place:
            _wait(process, attempt.gap_s)
        process.send_signal(number)
    return sent_at


def _wait(process: subprocess.Popen[str], seconds: float) -> None:
    """So long, or until it has ended."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _until_it_hears(process: subprocess.Popen[str]) -> None:
    """Until its handlers are installed: before that a signal does to it what it does to any Python that starts."""
    bit = 1 << (signal.SIGTERM - 1)
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            return
        caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")), "0")
        if int(caught, 16) & bit:
            return
        time.sleep(0.002)


def _judge_ending(result: Result, ended_after_s: float) -> None:
    attempt, code = result.attempt, result.code
    if "Traceback" in result.output or "Exception ignored" in result.output:
        result.problems.append("it printed a traceback")
    if code in (0, 1, 2) and "interrupted" not in result.output:
        result.too_late = True
        if ended_after_s > TOO_LATE_S:
            result.problems.append(f"the signal was lost: it went on for {ended_after_s:.0f} s")
    elif code == INTERRUPTED and (not attempt.kills or len(attempt.signals) > 1):
        if not any(line.startswith("stormproof: interrupted by SIG") for line in result.output.splitlines()):
            result.problems.append("it did not say that it was interrupted")
    elif not (attempt.kills and code == -signal.SIGKILL):
        result.problems.append(f"it ended with {code}")


def _judge_leftovers(result: Result, place: Path, environment: Mapping[str, str], cleaning: Sequence[str]) -> None:
    deadline = time.monotonic() + PIPE_S
    while (left := marked(TOKEN, str(place))) and time.monotonic() < deadline:
        time.sleep(0.01)
    if left:
        result.problems.append(f"processes are left: {left}")
    if result.code == -signal.SIGKILL:
        command = [sys.executable, "-m", "stormproof.cli.main", *cleaning]
        cleaned = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
        if cleaned.returncode:
            result.problems.append(f"cleanup ended with {cleaned.returncode}: {cleaned.stdout}{cleaned.stderr}")
    if directories := temporary(place / "tmp"):
        result.problems.append(f"temporary directories are left: {directories}")
    if unfinished := [path.name for path in place.rglob(".*.unfinished")]:
        result.problems.append(f"unfinished files are left: {unfinished}")


def _run_directories(place: Path) -> list[Path]:
    return sorted({nodes.parent for nodes in (place / "runs").glob("*/*/nodes")})


def _checked(directory: Path, result: Result) -> int:
    """The exit code of `check` of this directory."""
    begun = (directory / "scenario.json").exists()
    try:
        outcome = check_run(directory, options=HERE)
    except UsageError as error:
        if begun:
            result.problems.append(f"{directory} cannot be checked: {error}")
        return 254
    if "crashed" in outcome.words() or "panic" in outcome.words():
        result.problems.append(f"an interrupt was taken for a failure: {outcome.words()}")
    return exit_code_of(outcome.verdict)
