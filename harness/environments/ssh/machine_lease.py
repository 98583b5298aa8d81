"""Keeps a machine for one run, and gives it back: copied there and run by the machine's own Python, one verb a call.

    python3 keeper.py VERB JSON        prints one line of JSON

Who uses a machine claims it, and lets it hear of itself from then on. Each claim has a watchdog: where nothing was
heard for a minute, it ends the node and heals its network, as `leave` of the agent does. What the node left stays,
so that its logs can be brought home, until the machine is released.

Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

HOME = "/var/lib/stormproof"
"""The same as the agent's, whose file is `agent.py` in it."""
CACHE = "/var/cache/stormproof"
"""Sources of programs, a directory each, by their content. They stay from run to run, until a clean-up."""
STATE = "/dev/shm/stormproof"
CLAIM, HEARD, WATCHDOG = f"{STATE}/claim", f"{STATE}/heard", f"{STATE}/watchdog"
FORGOTTEN_AFTER_S = 60.0
STEP_S = 1.0
LEAVE_TIMEOUT_S = 60.0
WORDS = "the harness was not heard of for %d s: the node was ended and its network healed by the watchdog\n"

Answer = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    verb, given = arguments
    print(json.dumps(VERBS[verb](json.loads(given))), flush=True)
    return 0


def claim(arguments: Answer) -> Answer:
    """Take the machine for a run, unless another one is heard of; what that one left is removed.

    Answers with the other's claim, or none. `claim`: what is remembered, `run` and `owner` among it.
    """
    other = _claimed()
    if other is not None and other["run"] != arguments["claim"]["run"]:
        if _silent_s() < FORGOTTEN_AFTER_S:
            return {"taken_by": other}
        _end_watchdog()
        _leave()
    _clear()
    os.makedirs(STATE, exist_ok=True)
    _write(HEARD, repr(time.monotonic()))
    _write(CLAIM, json.dumps(arguments["claim"]))
    _watch(arguments["claim"]["run"])
    return {"taken_by": None}


def _clear() -> None:
    """Remove whatever another run has left but this file: what its tools were for, this one may not want."""
    for name in os.listdir(HOME):
        if name != "keeper.py":
            shutil.rmtree(f"{HOME}/{name}", ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                os.remove(f"{HOME}/{name}")


def hear(arguments: Answer) -> Answer:
    """The harness lives. Answers whether the machine is still its."""
    claimed = _claimed()
    is_kept = claimed is not None and claimed["run"] == arguments["run"] and not claimed.get("abandoned")
    if is_kept:
        _write(HEARD, repr(time.monotonic()))
    return {"kept": is_kept}


def found(_: Answer) -> Answer:
    """Whose the machine is, for how long nothing was heard of him, and whether sources are kept here."""
    claimed = _claimed()
    return {
        "claim": claimed,
        "silent_s": None if claimed is None else _silent_s(),
        "cache": os.path.isdir(CACHE),
    }


def unpack(arguments: Answer) -> Answer:
    """Keep the sources that come as an archive on standard input, instead of all others; answers where they are."""
    place = f"{CACHE}/{arguments['hash']}"
    shutil.rmtree(CACHE, ignore_errors=True)
    os.makedirs(f"{place}.new")
    with tarfile.open(fileobj=sys.stdin.buffer, mode="r|gz") as archive:
        archive.extractall(f"{place}.new")
    os.rename(f"{place}.new", place)
    return {"place": place}


def has(arguments: Answer) -> Answer:
    """Where these sources are kept, or nowhere."""
    place = f"{CACHE}/{arguments['hash']}"
    return {"place": place if os.path.isdir(place) else None}


def release(arguments: Answer) -> Answer:
    """Give the machine back: nothing of the run stays. With `cache`, no sources either. Another's is left alone."""
    claimed = _claimed()
    if claimed is not None and claimed["run"] != arguments["run"]:
        return {"released": False}
    _end_watchdog()
    _leave()
    shutil.rmtree(HOME, ignore_errors=True)
    shutil.rmtree(STATE, ignore_errors=True)
    if arguments["cache"]:
        shutil.rmtree(CACHE, ignore_errors=True)
    left = [place for place in (HOME, STATE) if os.path.exists(place)]
    if left:
        raise SystemExit(f"{' and '.join(left)} cannot be removed")
    return {"released": True}


def _watch(run: str) -> None:
    """Start the watchdog, which outlives the process that asked for it."""
    started = os.fork()
    if started:
        os.waitpid(started, 0)
        return
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    os.chdir("/")
    watchdog = os.fork()
    if watchdog:
        _write(WATCHDOG, str(watchdog))
        os._exit(0)
    _wait_for_silence(run)


def _end_watchdog() -> None:
    """At once: it would notice by itself, a moment after the machine was given back."""
    try:
        with open(WATCHDOG, encoding="utf-8") as file:
            watchdog = int(file.read())
        with open(f"/proc/{watchdog}/cmdline", encoding="utf-8", errors="replace") as file:
            is_ours = f"{HOME}/keeper.py" in file.read()
    except (OSError, ValueError):
        return
    while is_ours and os.path.exists(f"/proc/{watchdog}"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(watchdog, signal.SIGKILL)
        time.sleep(0.005)


def _wait_for_silence(run: str) -> NoReturn:
    while True:
        claimed = _claimed()
        if claimed is None or claimed["run"] != run:
            os._exit(0)
        if _silent_s() > FORGOTTEN_AFTER_S:
            _write(CLAIM, json.dumps({**claimed, "abandoned": True}))
            _leave()
            with contextlib.suppress(OSError), open(f"{HOME}/log/node.log", "a", encoding="utf-8") as log:
                log.write(WORDS % FORGOTTEN_AFTER_S)
            os._exit(0)
        time.sleep(STEP_S)


def _leave() -> None:
    """By the agent, if it came so far."""
    agent = f"{HOME}/agent.py"
    if os.path.exists(agent):
        leaving = [sys.executable, "-I", "-S", agent, "leave"]
        left = subprocess.run(leaving, capture_output=True, text=True, timeout=LEAVE_TIMEOUT_S, check=False)
        if left.returncode:
            raise SystemExit(f"the node could not be ended: {left.stderr.strip()}")


def _claimed() -> dict[str, Any] | None:
    try:
        with open(CLAIM, encoding="utf-8") as file:
            claimed: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return None
    return claimed


def _silent_s() -> float:
    """Since the harness was heard of; monotonic time is in the file's text, for wall clocks jump."""
    try:
        with open(HEARD, encoding="utf-8") as file:
            return time.monotonic() - float(file.read())
    except (OSError, ValueError):
        return sys.float_info.max


def _write(path: str, text: str) -> None:
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


VERBS: Mapping[str, Callable[[Answer], Answer]] = {
    verb.__name__: verb for verb in (claim, hear, found, unpack, has, release)
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
