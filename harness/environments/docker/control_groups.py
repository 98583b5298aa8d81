"""Programs in containers, limited in memory and some of their processes in processor time, by control groups of this
machine, on which the engine runs as well.

The engine's own limits of a container would not do: what the harness does inside of it counts as well, and would let
the kernel strike by itself. So a program's processes, as this machine sees them, are put into a group of their own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.environments.docker.container import Container
from harness.environments.docker.engine import speaking
from harness.environments.impairment import ScarceMemory, SlowedProcesses
from harness.environments.remote import control_groups
from harness.environments.remote.machines import Squeezed
from harness.errors import HarnessError

PROC = Path("/proc")
NEEDED: Mapping[str, tuple[str, str]] = {
    ScarceMemory.kind: (control_groups.MEMORY, "leave the nemesis memory out: kill does without"),
    SlowedProcesses.kind: (control_groups.PROCESSOR, "slow down whole nodes instead"),
}
"""Kind of fault -> what it limits, and what can be done without."""


def require_limits(faults: Collection[str]) -> None:
    """Raises HarnessError where this machine lets nobody limit what these faults limit."""
    for kind, (limited, without) in NEEDED.items():
        if kind in faults and (why_not := control_groups.why_not(limited)):
            raise HarnessError(f"{kind} needs root on the machine of the engine: {why_not}; {without}")


class GroupsOfContainers:
    """`run` names the groups that are made."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._groups: set[str] = set()
        self._throttled: set[tuple[str, int]] = set()

    def squeeze(self, container: Container, supervisor: int, left_bytes: int) -> Squeezed:
        """`supervisor`: its number in the container, 0 where nothing runs. Raises HarnessError."""
        if not supervisor:
            return Squeezed(killed=0)
        name = self._name(container)
        self._groups.add(name)
        seen_as = seen_here(container, [supervisor])[supervisor]
        answer = _done(control_groups.squeeze, {"name": name, "supervisor": seen_as, "bytes": left_bytes}, container)
        return Squeezed(names=tuple(answer["names"]), killed=answer["killed"])

    def release(self, container: Container, supervisor: int) -> Squeezed:
        name = self._name(container)
        answer = _done(control_groups.release, {"name": name, "supervisor": _seen(container, supervisor)}, container)
        self._groups.discard(name)
        return Squeezed(killed=answer["killed"])

    def throttle(self, container: Container, number: int, pids: Sequence[int], share: float) -> None:
        name = self._name(container)
        self._throttled.add((name, number))
        seen_as = sorted(seen_here(container, pids).values())
        _done(control_groups.throttle, {"name": name, "number": number, "pids": seen_as, "share": share}, container)

    def unthrottle(self, container: Container, number: int, supervisor: int) -> int:
        """`supervisor`: as in `squeeze`; how many processes were under this limit."""
        name = self._name(container)
        wanted = {"name": name, "number": number, "supervisor": _seen(container, supervisor)}
        answer = _done(control_groups.unthrottle, wanted, container)
        self._throttled.discard((name, number))
        return int(answer["processes"])

    def end(self) -> None:
        """Containers are gone by then. Raises HarnessError."""
        for name in sorted(self._groups):
            _done(control_groups.release, {"name": name}, None)
        self._groups.clear()
        for name, number in sorted(self._throttled):
            _done(control_groups.unthrottle, {"name": name, "number": number}, None)
        self._throttled.clear()

    def _name(self, container: Container) -> str:
        return f"{self._run}-{container.name}"


def forget_groups(is_over: Callable[[str], bool]) -> Iterator[str]:
    """Remove groups that a killed harness left, each empty by now; `is_over` is asked for their names. Yields these."""
    with contextlib.suppress(OSError):
        roots = sorted({control_groups.root(kind) for kind in (control_groups.MEMORY, control_groups.PROCESSOR)})
        for group in [group for root in roots for group in sorted(Path(root).glob("stormproof-????????-*"))]:
            if is_over(group.name):
                with contextlib.suppress(OSError):  # processes of somebody are still in it
                    group.rmdir()
                    yield group.name


def _seen(container: Container, supervisor: int) -> int | None:
    return seen_here(container, [supervisor])[supervisor] if supervisor else None


def seen_here(container: Container, pids: Sequence[int]) -> dict[int, int]:
    """The numbers that processes of a container have on this machine. Raises HarnessError where none is seen."""
    with speaking(f"looking for the processes of {container.name}"):
        container.container.reload()
        first = container.container.attrs["State"]["Pid"]
    with contextlib.suppress(OSError):
        if container.container.id in (PROC / str(first) / "cgroup").read_text(encoding="ascii", errors="replace"):
            space = os.readlink(PROC / str(first) / "ns" / "pid")
            places = [place for place in PROC.iterdir() if place.name.isdigit()]
            inside = {_number_inside(place, space): int(place.name) for place in places}
            if found := {pid: inside[pid] for pid in pids if pid in inside}:
                return found
    raise HarnessError(
        f"this machine does not see the processes {', '.join(map(str, pids))} of {container.name}: limits of memory "
        f"and of single processes need an engine that runs on this machine itself; leave these faults out"
    )


def _number_inside(place: Path, space: str) -> int | None:
    """That a process has in this space of numbers; None where it is in another one."""
    with contextlib.suppress(OSError):
        if os.readlink(place / "ns" / "pid") == space:
            for line in (place / "status").read_text(encoding="ascii", errors="replace").splitlines():
                if line.startswith("NSpid:"):
                    return int(line.split()[-1])
    return None


def _done(
    verb: Callable[[Mapping[str, Any]], Mapping[str, Any]], arguments: Mapping[str, Any], container: Container | None
) -> Mapping[str, Any]:
    try:
        return verb(arguments)
    except (OSError, SystemExit) as error:
        of = f" of {container.name}" if container else ""
        raise HarnessError(f"{verb.__name__}{of} failed: {error}") from error
