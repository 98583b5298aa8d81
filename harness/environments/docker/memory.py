"""The memory of programs in containers, limited by control groups of this machine, on which the engine runs as well.

The engine's own limit of a container would not do: what the harness does inside of it counts as well, and would let the
kernel strike by itself. So a program's processes, as this machine sees them, are put into a group of their own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.environments.docker.container import Container
from harness.environments.docker.engine import speaking
from harness.environments.remote import memory
from harness.environments.remote.machines import Squeezed
from harness.errors import HarnessError

PROC = Path("/proc")
WITHOUT = "leave the nemesis memory out: kill does without"


def require_limits() -> None:
    """Raises HarnessError where this machine lets nobody limit memory."""
    if why_not := memory.why_not():
        raise HarnessError(f"faults of memory need root on the machine of the engine: {why_not}; {WITHOUT}")


class MemoryOfContainers:
    """`run` names the groups that are made."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._groups: set[str] = set()

    def squeeze(self, container: Container, supervisor: int, left_bytes: int) -> Squeezed:
        """`supervisor`: its number in the container, 0 where nothing runs. Raises HarnessError."""
        if not supervisor:
            return Squeezed(killed=0)
        name = self._name(container)
        self._groups.add(name)
        seen_as = seen_here(container, supervisor)
        answer = _done(memory.squeeze, {"name": name, "supervisor": seen_as, "bytes": left_bytes}, container)
        return Squeezed(names=tuple(answer["names"]), killed=answer["killed"])

    def release(self, container: Container, supervisor: int) -> Squeezed:
        name = self._name(container)
        seen_as = seen_here(container, supervisor) if supervisor else None
        answer = _done(memory.release, {"name": name, "supervisor": seen_as}, container)
        self._groups.discard(name)
        return Squeezed(killed=answer["killed"])

    def end(self) -> None:
        """Containers are gone by then. Raises HarnessError."""
        for name in sorted(self._groups):
            _done(memory.release, {"name": name}, None)
        self._groups.clear()

    def _name(self, container: Container) -> str:
        return f"{self._run}-{container.name}"


def forget_groups(is_over: Callable[[str], bool]) -> Iterator[str]:
    """Remove groups that a killed harness left, each empty by now; `is_over` is asked for their names. Yields these."""
    with contextlib.suppress(OSError):
        for group in sorted(Path(memory.root()).glob("stormproof-????????-*")):
            if is_over(group.name):
                with contextlib.suppress(OSError):  # processes of somebody are still in it
                    group.rmdir()
                    yield group.name


def seen_here(container: Container, pid: int) -> int:
    """The number that a process of a container has on this machine. Raises HarnessError where it is not seen."""
    with speaking(f"looking for the processes of {container.name}"):
        container.container.reload()
        first = container.container.attrs["State"]["Pid"]
    with contextlib.suppress(OSError):
        if container.container.id in (PROC / str(first) / "cgroup").read_text(encoding="ascii", errors="replace"):
            space = os.readlink(PROC / str(first) / "ns" / "pid")
            for place in PROC.iterdir():
                if place.name.isdigit() and _number_inside(place, space) == pid:
                    return int(place.name)
    raise HarnessError(
        f"this machine does not see process {pid} of {container.name}: faults of memory need an engine that runs on "
        f"this machine itself; {WITHOUT}"
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
        raise HarnessError(f"{verb.__name__} of the memory{of} failed: {error}") from error
