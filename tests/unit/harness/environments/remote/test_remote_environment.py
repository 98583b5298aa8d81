"""What fails first is what is told: an end that meets half-made nodes adds no error of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.environments.remote.environment import RemoteEnvironment
from harness.environments.remote.machines import Home, NodeMachine
from harness.environments.remote.shell import Finished
from harness.errors import HarnessError
from harness.program import Command, Installed
from harness.system import NodeSpec

SPEC = NodeSpec(name="n1", program=Command(argv=("true",), image=Installed()), ports=(), groups=())


class FullShell:
    """`Shell` of a machine that takes no files, and has none."""

    def run(self, argv: Sequence[str]) -> Finished:
        return Finished(exit_code=0, output=b'{"before": "gone", "after": "gone"}', errors=b"")

    def put(self, files: Mapping[str, bytes]) -> None:
        raise HarnessError("n1 has no space left for its agent")

    def fetch(self, path: str) -> bytes:
        return b""


class FullMachines:
    """`Machines`, each of which is full."""

    name, kind, own_faults = "full", "full machines", frozenset[str]()

    def __init__(self) -> None:
        self.released = False

    def take(self, nodes: Sequence[NodeSpec], home: Home) -> Mapping[str, str]:
        return {spec.name: "10.0.0.1" for spec in nodes}

    def open(self, spec: NodeSpec) -> NodeMachine:
        return NodeMachine(shell=FullShell())

    def clock_ahead_ns(self, node: str, monotonic_ns: int) -> int:
        return 0

    def release(self) -> None:
        self.released = True


def test_a_machine_that_takes_no_agent_is_the_error_and_what_ends_it_adds_none(tmp_path: Path) -> None:
    machines: Any = FullMachines()

    async def start_and_stop() -> None:
        environment = RemoteEnvironment(machines, client_hosts=lambda *_: None)
        with pytest.raises(HarnessError, match=r"^n1 has no space left for its agent$"):
            await environment.start([SPEC], tmp_path)
        await environment.stop()

    asyncio.run(start_and_stop())
    assert machines.released
