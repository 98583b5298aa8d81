"""Lets a node's program have only so much more memory, or some of its processes only a part of a processor: control
groups limit them.

    python3 control_groups.py VERB JSON        prints one line of JSON

Only what is struck is in the group, not its supervisor, nor what the harness does beside it. What a process holds of
memory already stays charged to where it was: the limit counts what is taken from now on, without swap, and the OOM
killer does the rest. In version 2 of control groups a process is in one group, so that of both limits the later counts.

Machines run it themselves; processes of containers are put into groups by the machine of the engine. Standard library
only.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

CGROUPS = "/sys/fs/cgroup"
PATIENCE_S = 10.0
ROUNDS = 100
MEMORY, PROCESSOR = "memory", "cpu"
"""What is limited, as kernels call it."""
PERIOD_US, LEAST_QUOTA_US = 20_000, 1_000
"""Short, so that what is slow stutters as little as it can."""

Answer = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    verb, given = arguments
    print(json.dumps(VERBS[verb](json.loads(given))), flush=True)
    return 0


def is_unified() -> bool:
    """Whether this is version 2 of control groups."""
    return os.path.exists(f"{CGROUPS}/cgroup.controllers")


def root(kind: str = MEMORY) -> str:
    """Where groups are made."""
    return CGROUPS if is_unified() else f"{CGROUPS}/{kind}"


def why_not(kind: str = MEMORY) -> str:
    """Why that cannot be limited here; empty where it can."""
    place, no_group = root(kind), "so no control group limits it"
    if is_unified() and kind not in _read(f"{place}/cgroup.controllers").split():
        return f"{place} has no limits of {kind}, {no_group}"
    return "" if os.access(place, os.W_OK) else f"{place} cannot be written, {no_group}"


def squeeze(arguments: Answer) -> Answer:
    """Put all beneath the process `supervisor` into the group `name`, which gets no more than so many `bytes`.

    Answers what these processes are called, and as `release` does. Without a name, the group is that of this machine.
    Raises SystemExit where this machine lets nobody.
    """
    if problem := why_not():
        raise SystemExit(problem)
    group, supervisor = _group(arguments, MEMORY), int(arguments["supervisor"])
    if supervisor <= 1:
        raise SystemExit(f"beneath process {supervisor} is the whole machine, whose memory is not limited")
    _make(group, MEMORY)
    _limit(group, int(arguments["bytes"]))
    moved: set[int] = set()
    for _ in range(ROUNDS):  # what is forked while others are being moved is found in the next round
        left = _beneath(supervisor) - moved
        if not left:
            return {"names": sorted(set(map(_name, moved)) - {""}), "killed": _count(group)}
        for pid in left:
            _move(pid, group)
        moved |= left
    raise SystemExit(f"the program starts processes faster than they can be put into {group}")


def release(arguments: Answer) -> Answer:
    """Put what is in the group where the process `supervisor` is, if there is one, and remove the group; answers how
    many processes of it the kernel has killed for want of memory."""
    group = _group(arguments, MEMORY)
    if not os.path.isdir(group):
        return {"killed": 0}
    count = _count(group)
    _limit(group, None)
    _dissolve(group, _group_of(arguments.get("supervisor"), MEMORY))
    return {"killed": count}


def throttle(arguments: Answer) -> Answer:
    """Put the processes `pids` into the group `name` of this `number`, which gets no more than such a `share` of one
    processor, with all that they start from now on; answers which ones were still there. Without a name, the group is
    one of this machine. Raises SystemExit where this machine lets nobody."""
    if problem := why_not(PROCESSOR):
        raise SystemExit(problem)
    group, quota_us = _group(arguments, PROCESSOR), max(LEAST_QUOTA_US, round(arguments["share"] * PERIOD_US))
    _make(group, PROCESSOR)
    if is_unified():
        _write(f"{group}/cpu.max", f"{quota_us} {PERIOD_US}")
    else:
        _write(f"{group}/cpu.cfs_period_us", str(PERIOD_US))
        _write(f"{group}/cpu.cfs_quota_us", str(quota_us))
    return {"pids": [pid for pid in arguments["pids"] if _move(pid, group)]}


def unthrottle(arguments: Answer) -> Answer:
    """Put what is in the group where the process `supervisor` is, if there is one, and remove the group; answers how
    many processes went on in it. Without a number, all such groups are meant."""
    back, left = _group_of(arguments.get("supervisor"), PROCESSOR), 0
    one = _group(arguments, PROCESSOR)
    for group in [one] if "number" in arguments else sorted(glob.glob(f"{glob.escape(one)}-*")):
        if os.path.isdir(group):
            left += _dissolve(group, back)
    return {"processes": left}


def _group(arguments: Answer, kind: str) -> str:
    number = f"-{arguments['number']}" if "number" in arguments else ""
    return f"{root(kind)}/{arguments.get('name') or f'stormproof-{kind}-{socket.gethostname()}'}{number}"


def _make(group: str, kind: str) -> None:
    if is_unified():
        _write(f"{CGROUPS}/cgroup.subtree_control", f"+{kind}")
    os.makedirs(group, exist_ok=True)


def _dissolve(group: str, back: str) -> int:
    """Move all that is in a group back, and remove it; how many processes that were."""
    deadline, moved = time.monotonic() + PATIENCE_S, 0
    while not _removed(group):
        if time.monotonic() > deadline:
            raise SystemExit(f"{group} cannot be removed: processes are still in it")
        for pid in map(int, _read(f"{group}/cgroup.procs").split()):
            moved += _move(pid, back)
        time.sleep(0.005)
    return moved


def _limit(group: str, bytes_: int | None) -> None:
    """No more than so much, without swap; None: as much as there is. Where more is held already, no more than that."""
    if is_unified():
        for name in ("memory.swap.max", "memory.max"):
            if os.path.exists(f"{group}/{name}"):
                _write(f"{group}/{name}", "max" if bytes_ is None else "0" if "swap" in name else str(bytes_))
        return
    names = [f"{group}/{name}" for name in ("memory.memsw.limit_in_bytes", "memory.limit_in_bytes")]
    names = [name for name in names if os.path.exists(name)]
    if bytes_ is not None:
        # Above the old limit first, for the limit with swap is never below the one without.
        for name in names:
            _write(name, "-1")
        names.reverse()
    for name in names:
        try:
            _write(name, str(-1 if bytes_ is None else bytes_))
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            _write(name, _read(f"{group}/memory.usage_in_bytes").strip())


def _count(group: str) -> int:
    text = _read(f"{group}/{'memory.events' if is_unified() else 'memory.oom_control'}")
    return next((int(value) for name, value in map(str.split, text.splitlines()) if name == "oom_kill"), 0)


def _beneath(supervisor: int) -> set[int]:
    """All processes beneath this one."""
    parents: dict[int, int] = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            parents[int(pid)] = int(_read(f"/proc/{pid}/stat").rpartition(")")[2].split()[1])
    found: set[int] = set()
    newly = {supervisor}
    while newly:
        newly = {pid for pid, parent in parents.items() if parent in newly}
        found |= newly
    return found


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return _read(f"/proc/{pid}/comm").rstrip("\n")
    return ""


def _move(pid: int, group: str) -> bool:
    """Whether it was there."""
    try:
        _write(f"{group}/cgroup.procs", str(pid))
    except OSError as error:
        if error.errno != errno.ESRCH:  # it has ended meanwhile
            raise
        return False
    return True


def _group_of(pid: int | None, kind: str) -> str:
    """The group in which a process is; the root where there is none of this number."""
    with contextlib.suppress(OSError):
        for line in _read(f"/proc/{pid}/cgroup").splitlines():
            _, kinds, place = line.split(":", 2)
            if kinds == "" if is_unified() else kind in kinds.split(","):
                return f"{root(kind)}{place}".rstrip("/")
    return root(kind)


def _removed(group: str) -> bool:
    try:
        os.rmdir(group)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


VERBS: Mapping[str, Callable[[Answer], Answer]] = {
    verb.__name__: verb for verb in (squeeze, release, throttle, unthrottle)
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
