"""A volume as the harness uses it: mounted by a process of its own, which ends with this one.

Everything blocks, and raises HarnessError.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.environments.disk.disk_faults import DiskImpairment
from harness.environments.fuse.kernel import DEVICE
from harness.environments.impairment import BitRot, Corruption
from harness.environments.remote.machines import Lost
from harness.errors import HarnessError
from harness.lifetime.supervised import Guarded
from harness.seed import Seed

UNMOUNTED_WITHIN_S = 5.0
ANSWER_TIMEOUT_S = 120.0
WITHOUT = "partition, kill, pause and clock do without, and so does --environment simulated"


def require_mountable() -> None:
    """Raises HarnessError where this machine mounts no file system of ours."""
    if not sys.platform.startswith("linux"):
        raise HarnessError(f"power and faults of disks need Linux, whose FUSE they use; {WITHOUT}")
    if not Path(DEVICE).exists():
        raise HarnessError(
            f"power and faults of disks need {DEVICE}: load the kernel's module fuse (modprobe fuse), "
            f"or give this container --device {DEVICE}; {WITHOUT}"
        )
    if os.geteuid() != 0:
        raise HarnessError(f"power and faults of disks need root, who may mount file systems; {WITHOUT}")


class MountedVolume:
    """`NodeDisk`. `place` is where this machine sees it."""

    def __init__(self, name: str, folder: Path, seed: Seed) -> None:
        """`folder`: where the mount point is made. Raises HarnessError."""
        self.name = name
        self.place = folder / name
        self._control = folder / f"{name}.control"
        self._seed = seed.child("disk", name)
        self._losses = 0
        self.place.mkdir()
        words = [str(self.place), str(self._control), str(self._seed.child("faults").integer())]
        self._process = Guarded(
            [sys.executable, "-m", "harness.environments.fuse.process", *words],
            stdout=subprocess.PIPE,
            grace_s=UNMOUNTED_WITHIN_S,
        )
        stream = self._process.process.stdout
        assert stream is not None
        said = stream.readline().decode(errors="replace").strip()
        if said != "mounted":
            self._process.end()
            raise HarnessError(
                f"the disk of {name} cannot be mounted: {said or 'its process ended at once'}; "
                f"power and faults of disks need a process that may mount (CAP_SYS_ADMIN); {WITHOUT}"
            )

    def lose_power(self) -> Lost:
        """Nobody may be using it."""
        self._losses += 1
        answer = self._ask("lose_power", draw=self._seed.child("power", str(self._losses)).integer())
        return Lost(bytes=answer["bytes"], names=answer["names"])

    def impair(self, impairment: DiskImpairment) -> None:
        self._ask("impair", kind=impairment.kind, amounts=asdict(impairment))

    def relieve(self, impairment: DiskImpairment) -> str:
        """Which calls it let fail, in words."""
        return str(self._ask("relieve", kind=impairment.kind, amounts=asdict(impairment))["words"])

    def rot(self, how: BitRot | Corruption, spared: Sequence[str]) -> str:
        """Which bits were flipped; nothing where there are none."""
        return str(self._ask("rot", how=asdict(how), spared=list(spared))["words"])

    def cut_short(self, files: int, draw: int, spared: Sequence[str]) -> str:
        return str(self._ask("cut_short", files=files, draw=draw, spared=list(spared))["words"])

    def copy(self, name: str) -> int:
        """Keep a copy of everything; of how many files and folders."""
        return int(self._ask("copy", name=name)["files"])

    def put_back(self, name: str, spared: Sequence[str]) -> str:
        """The copy of this name takes the place of everything; without one, nothing does."""
        answer = self._ask("put_back", name=name, spared=list(spared))
        return f"{answer['after']} bytes in the place of {answer['before']}"

    def end(self) -> None:
        """Unmount it, and end its process."""
        self._process.end()

    def _ask(self, verb: str, **rest: Any) -> Any:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(ANSWER_TIMEOUT_S)
                connection.connect(str(self._control))
                with connection.makefile("rwb") as stream:
                    stream.write(json.dumps({"verb": verb, **rest}).encode() + b"\n")
                    stream.flush()
                    answer = json.loads(stream.readline())
        except (OSError, ValueError) as error:
            raise HarnessError(f"the disk of {self.name} does not answer: {error}") from error
        if "error" in answer:
            raise HarnessError(f"the disk of {self.name} failed: {answer['error']}")
        return answer
