"""Lets a node's program have only so much more memory: a control group limits it, and the OOM killer does the rest.

    python3 memory.py VERB JSON        prints one line of JSON

Only the program is in the group, not its supervisor, nor what the harness does beside it. What a process holds already
stays charged to where it was: the limit counts what is taken from now on. There is no swap for it.

Machines run it themselves; processes of containers are put into groups by the machine of the engine. Standard library
only.
"""

from __future__ import annotations

import contextlib
import errno
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
NO_GROUP = "so no control group can limit a program's memory"

Answer = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    verb, given = arguments
    print(json.dumps(VERBS[verb](json.loads(given))), flush=True)
    return 0


def is_unified() -> bool:
    """Whether this is version 2 of control groups."""
    return os.path.exists(f"{CGROUPS}/cgroup.controllers")


def root() -> str:
    """Where groups are made."""
    return CGROUPS if is_unified() else f"{CGROUPS}/memory"


def why_not() -> str:
    """Why memory cannot be limited here; empty where it can."""
    place = root()
    if is_unified() and "memory" not in _read(f"{place}/cgroup.controllers").split():
        return f"{place} has no limits of memory, {NO_GROUP}"
    return "" if os.access(place, os.W_OK) else f"{place} cannot be written, {NO_GROUP}"


def squeeze(arguments: Answer) -> Answer:
    """Put all beneath the process `supervisor` into the group `name`, which gets no more than so many `bytes`.

    Answers what these processes are called, and as `release` does. Without a name, the group is that of this machine.
    Raises SystemExit where this machine lets nobody.
    """
    if problem := why_not():
        raise SystemExit(problem)
    group, supervisor = _group(arguments), int(arguments["supervisor"])
    if supervisor <= 1:
        raise SystemExit(f"beneath process {supervisor} is the whole machine, whose memory is not limited")
    if is_unified():
        _write(f"{CGROUPS}/cgroup.subtree_control", "+memory")
    os.makedirs(group, exist_ok=True)
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
    group = _group(arguments)
    if not os.path.isdir(group):
        return {"killed": 0}
    count, deadline = _count(group), time.monotonic() + PATIENCE_S
    _limit(group, None)
    back = _group_of(arguments.get("supervisor"))
    while not _removed(group):
        if time.monotonic() > deadline:
            raise SystemExit(f"{group} cannot be removed: processes are still in it")
        for pid in map(int, _read(f"{group}/cgroup.procs").split()):
            _move(pid, back)
        time.sleep(0.005)
    return {"killed": count}


def _group(arguments: Answer) -> str:
    return f"{root()}/{arguments.get('name') or f'stormproof-memory-{socket.gethostname()}'}"


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


def _move(pid: int, group: str) -> None:
    try:
        _write(f"{group}/cgroup.procs", str(pid))
    except OSError as error:
        if error.errno != errno.ESRCH:  # it has ended meanwhile
            raise


def _group_of(pid: int | None) -> str:
    """The group in which a process is; the root where there is none of this number."""
    with contextlib.suppress(OSError):
        for line in _read(f"/proc/{pid}/cgroup").splitlines():
            _, kinds, place = line.split(":", 2)
            if kinds == "" if is_unified() else "memory" in kinds.split(","):
                return f"{root()}{place}".rstrip("/")
    return root()


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


VERBS: Mapping[str, Callable[[Answer], Answer]] = {verb.__name__: verb for verb in (squeeze, release)}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
