"""Sets a machine's real clock, where its inventory allows that, and sets it right again; run by its own Python.

    python3 real_clock.py VERB JSON        prints one line of JSON

What the true time is, is kept as its distance from the time since the machine was switched on (CLOCK_BOOTTIME), which
nobody can set. It is noted before the clock is set for the first time, and forgotten when the clock was given back, so
that a harness that was killed leaves enough to clean up.

Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

STATE = "/dev/shm/stormproof/real-clock.json"
"""Lies in memory: after a restart of the machine its clock is right again, and nothing else is."""
MOVER = "/dev/shm/stormproof/real-clock-mover"
CAP_SYS_TIME = 25
KEEPERS = ("chronyd", "ntpd", "openntpd", "systemd-timesyn", "ptp4l", "phc2sys", "ntpdate")
"""Programs that would set the clock right again, as the kernel shortens their names."""
DRIFT_STEP_S = 0.01
PATIENCE_S = 10.0
SECOND_NS = 1_000_000_000

Answer = Mapping[str, Any]


class Clock(Protocol):
    """What is read and set."""

    def wall_ns(self) -> int: ...

    def boot_ns(self) -> int: ...

    def set_wall_ns(self, wall_ns: int) -> None:
        """Raises OSError."""


class KernelClock:
    """The machine's own."""

    def wall_ns(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_REALTIME)

    def boot_ns(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def set_wall_ns(self, wall_ns: int) -> None:
        time.clock_settime_ns(time.CLOCK_REALTIME, wall_ns)


CLOCK: Clock = KernelClock()


def main(arguments: Sequence[str]) -> int:
    verb, given = arguments
    print(json.dumps(VERBS[verb](json.loads(given))), flush=True)
    return 0


def check(_: Answer) -> Answer:
    """Which kernel this is, whose clock would be set, and why it cannot be; nothing is set."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        kernel = file.read().strip()
    return {"kernel": kernel, "why_not": _why_not()}


def _why_not() -> str:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        capabilities = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff:"))
    if not capabilities >> CAP_SYS_TIME & 1:
        return "lets nobody set its clock (CAP_SYS_TIME)"
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            if (name := file.read().strip()) in KEEPERS:
                return f"runs {name}, which would set its clock right again: stop it for the run"
    return ""


def set_clock(arguments: Answer) -> Answer:
    """An offset from the true time, and a rate from now on, beside the strobes that there are; what was wrong before
    and is after, in seconds."""
    state = _state()
    before_s = _error_s(state)
    changed = {"offset_s": float(arguments["offset_s"]), "rate": float(arguments["rate"])}
    state = {**state, **changed, "since_ns": CLOCK.boot_ns()}
    _move(state)
    return {"before_s": before_s, "after_s": _error_s(state), "unreached": []}


def strobe(arguments: Answer) -> Answer:
    """Let the clock flip by each of these offsets, and by no others, beside what else is wrong with it."""
    _move({**_state(), "strobes": arguments["strobes"]})
    return {"unreached": []}


def give_back(_: Answer) -> Answer:
    """The true time, and nothing that moves it; whether it was wrong."""
    _end_mover()
    if not os.path.exists(STATE):
        return {"was_set": False}
    state = _state()
    _set(state["ahead_ns"] + CLOCK.boot_ns())
    os.remove(STATE)
    return {"was_set": True}


def _state() -> dict[str, Any]:
    """What is wrong with the clock now; nothing, and the true time as it is now, where it was not set yet."""
    try:
        with open(STATE, encoding="utf-8") as file:
            state: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        now_ns = CLOCK.boot_ns()
        ahead_ns = CLOCK.wall_ns() - now_ns
        return {"ahead_ns": ahead_ns, "offset_s": 0.0, "rate": 1.0, "since_ns": now_ns, "strobes": []}
    return state


def _error_s(state: Answer) -> float:
    """How far the clock is from the true time."""
    return round((CLOCK.wall_ns() - CLOCK.boot_ns() - int(state["ahead_ns"])) / SECOND_NS, 6)


def _move(state: Answer) -> None:
    """Set the clock, by a process that goes on doing so where it does not stay as it is."""
    _end_mover()
    _write(STATE, json.dumps(state))
    _set(_wrong_ns(state, CLOCK.boot_ns()))
    if state["rate"] != 1.0 or state["strobes"]:
        command = [sys.executable, "-I", "-S", __file__, "move", "{}"]
        quiet = subprocess.DEVNULL
        started = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        _write(MOVER, f"{started.pid} {_started(started.pid)}")


def _set(wall_ns: int) -> None:
    try:
        CLOCK.set_wall_ns(wall_ns)
    except OSError as error:
        raise SystemExit(f"the machine's clock cannot be set: {error.strerror}") from None


def move(_: Answer) -> NoReturn:
    """Set the clock again and again, until killed."""
    state = _state()
    while True:
        _set(_wrong_ns(state, CLOCK.boot_ns()))
        time.sleep(_until_next_s(state, CLOCK.boot_ns()))


def _until_next_s(state: Answer, boot_ns: int) -> float:
    """How long the clock goes as it should by itself."""
    periods_s = [float(one["period_ms"]) / 1e3 for one in state["strobes"]]
    next_s = [period_s - boot_ns / SECOND_NS % period_s for period_s in periods_s]
    if state["rate"] != 1.0:
        next_s.append(DRIFT_STEP_S)
    return min(next_s)


def _wrong_ns(state: Answer, boot_ns: int) -> int:
    """What the clock is to show. Strobes of one period flip at the same moments, whenever they began."""
    boot_s = boot_ns / SECOND_NS
    flips_s = [one["offset_ms"] / 1e3 for one in state["strobes"] if int(boot_s / (one["period_ms"] / 1e3)) % 2]
    drifted_s = (boot_ns - state["since_ns"]) / SECOND_NS * (state["rate"] - 1.0)
    wrong_ns = round((state["offset_s"] + drifted_s + sum(flips_s)) * SECOND_NS)
    return int(boot_ns + state["ahead_ns"] + wrong_ns)


def _end_mover() -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (mover := _mover()) is not None:
        if time.monotonic() > deadline:
            raise SystemExit(f"process {mover}, which moves the clock, does not end")
        with contextlib.suppress(ProcessLookupError):
            os.kill(mover, signal.SIGKILL)
        time.sleep(0.005)


def _mover() -> int | None:
    try:
        with open(MOVER, encoding="ascii") as file:
            pid, started = file.read().split()
    except (OSError, ValueError):
        return None
    return int(pid) if _started(int(pid)) == started else None


def _started(pid: int) -> str:
    """When it began; empty where there is none, or only its zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


VERBS: Mapping[str, Callable[[Answer], Answer]] = {
    verb.__name__: verb for verb in (check, set_clock, strobe, give_back, move)
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
