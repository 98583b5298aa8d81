"""The disks of a run's containers: a volume of ours a node, mounted on this machine and bound into its container.

Only where a run may bring faults of disks; they go with the run, and with this process.
"""

from __future__ import annotations

import threading
from pathlib import Path

from harness.environments.docker.container import ContainerShell, Disk
from harness.environments.fuse.mounted import WITHOUT, MountedVolume, require_mountable
from harness.environments.remote import agent
from harness.environments.remote.impaired_disks import OF_DISKS
from harness.errors import HarnessError
from harness.lifetime import scratch
from harness.membership import KINDS as MEMBERSHIP
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec

DISK_FAULTS = MEMBERSHIP.union(("power",), (one.kind for one in OF_DISKS))
MOUNTS = "/proc/self/mounts"


class Disks:
    def __init__(self, seed: Seed) -> None:
        """Raises HarnessError where nothing can be mounted."""
        require_mountable()
        self._seed = seed
        self._folder: Path | None = None
        self._lock = threading.Lock()
        self._mounted: dict[str, MountedVolume] = {}

    def mount(self, spec: NodeSpec) -> Disk:
        """For several nodes at once."""
        with self._lock:
            if self._folder is None:
                self._folder = scratch.for_the_process()
        volume = MountedVolume(spec.name, self._folder, self._seed)
        self._mounted[spec.name] = volume
        seen_at = agent.DISK if isinstance(spec.program, PythonProgram) else agent.NODE
        return Disk(place=volume.place, seen_at=seen_at)

    def of(self, node: str) -> MountedVolume:
        return self._mounted[node]

    def end(self) -> None:
        """Idempotent. Containers are gone by then."""
        for volume in self._mounted.values():
            volume.end()
        if self._folder is not None:
            scratch.remove(self._folder)


def require_seen(disk: Disk, shell: ContainerShell) -> None:
    """Raises HarnessError where a container does not see what was mounted here."""
    mounts = shell.run(["cat", MOUNTS]).output.decode(errors="replace")
    if f" {disk.seen_at} fuse.stormproof " not in mounts:
        raise HarnessError(
            f"the container of {shell.name} does not see the disk that this machine has mounted: power and faults of "
            f"disks need an engine that runs on this machine itself; {WITHOUT}"
        )
