"""The metadata store is linearizable in storms of its nodes, and these expose a leader that reads without asking.

A register is a key. Its writes are a read and a change of what was read: a compare-and-set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.linearizable.checker import Linearizable
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.program import PythonProgram
from harness.record.history import history_schema
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.metadata.access import Conflict, Unavailable
from system_under_test.metadata.client import MetadataClient
from system_under_test.metadata.config import MetadataConfig
from system_under_test.metadata.node import MetadataNode
from system_under_test.metadata.parts import MetadataParts
from system_under_test.metadata.settling import settled_put
from system_under_test.node.assembly import Assembly
from system_under_test.node.settings import read_config
from system_under_test.raft.driver import RaftNode
from system_under_test.runtime.host import Host
from tests.simulation.controller_storm import mend, nemesis
from tests.unit.system_under_test.metadata.metadata_group import ADDRESSES, NODES, SETTINGS
from workloads.register import OBJECT, VALUE_TYPE

KEYS = ("r0", "r1", "r2")
SECONDS = 30
KINDS = ("partition", "pause", "kill", "power")


async def at_once(raft: RaftNode) -> None:
    """Reads what is here, whoever leads."""


async def node_that_reads_at_once(host: Host, config: Mapping[str, Any]) -> None:
    node = Assembly(host, config, ModuleType("no planted bugs"))
    service = MetadataNode(host, read_config(MetadataConfig, node.config), MetadataParts(read_barrier=at_once))
    await node.run([service])


@dataclass
class Storm:
    rows: list[dict[str, Any]] = field(default_factory=list)
    faults: int = 0
    panics: dict[str, str] = field(default_factory=dict)
    trace: str = ""

    def note(self, now_ns: int, process: int, kind: str, f: str, key: str, value: Any, expected: Any = None) -> None:
        fields = {"value": value, "expected": expected}
        row = {"index": len(self.rows), "time": now_ns, "process": process, "type": kind, "f": f, "key": key}
        self.rows.append({**row, "value": fields})

    def verdict(self, path: Path) -> Verdict:
        pq.write_table(pa.Table.from_pylist(self.rows, schema=history_schema(VALUE_TYPE)), path)
        return Linearizable(OBJECT).check(CheckRequest(history=path), InProcessEngine()).verdict

    def completed(self, f: str) -> int:
        return sum(row["f"] == f and row["type"] == "ok" for row in self.rows)


@dataclass
class Process:
    """One client; after an operation whose outcome is open it goes on as another process."""

    env: SimulatedEnvironment
    storm: Storm
    number: int
    client: MetadataClient
    writes: int = 0

    def note(self, kind: str, f: str, key: str, value: Any, expected: Any = None) -> None:
        self.storm.note(self.env.timeline.now_ns(), self.number, kind, f, key, value, expected)
        if kind == "info":
            self.number += 100

    async def read(self, key: str) -> tuple[int, int] | None:
        """Value and version; None where nobody answered, or nothing is there."""
        self.note("invoke", "read", key, None)
        try:
            found = await self.client.get(key)
        except Unavailable:
            self.note("fail", "read", key, None)
            return None
        self.note("ok", "read", key, None if found is None else int(found.value))
        return None if found is None else (int(found.value), found.version)

    async def change(self, key: str, is_settled: bool) -> None:
        read = await self.read(key)
        if read is None:
            return
        expected, version = read
        self.writes += 1
        value = self.writes * 100_000 + self.number
        self.note("invoke", "cas", key, value, expected)
        try:
            if is_settled:
                await settled_put(self.client, key, str(value), version)
            else:
                await self.client.put(key, str(value), version)
        except Unavailable as error:
            self.note("fail" if error.is_definite else "info", "cas", key, value, expected)
        except Conflict:
            # One that was settled may have been there in between.
            self.note("info" if is_settled else "fail", "cas", key, value, expected)
        else:
            self.note("ok", "cas", key, value, expected)


def blow(root: int, logs: Path, program: str = "tests.unit.system_under_test.metadata.metadata_group:node") -> Storm:
    seed, storm, trace = Seed(root), Storm(), Trace()
    peers = ";".join(f"{name}-{address}" for name, address in zip(NODES, ADDRESSES, strict=True))

    def spec(name: str) -> NodeSpec:
        config = {"metadataPeers": peers, "metadataSelfId": name, **SETTINGS, "raftSnapshotThreshold": 50}
        return NodeSpec(name=name, groups=("metadata",), program=PythonProgram(main=program, config=config))

    async def use(env: SimulatedEnvironment, number: int) -> None:
        draw = seed.child("client", str(number)).stream()
        host = env.client_host(f"client-{number}")
        client = MetadataClient(host, ADDRESSES, timeout_s=2.0, answer_timeout_s=1.0, prefer=ADDRESSES[number % 3])
        process = Process(env, storm, number, client)
        while env.timeline.now_ns() < SECONDS * 1_000_000_000:
            await env.timeline.sleep(draw.uniform(0.02, 0.3))
            key = draw.choice(KEYS)
            if draw.random() < 0.5:
                await process.read(key)
            else:
                await process.change(key, is_settled=draw.random() < 0.5)

    async def main(env: SimulatedEnvironment) -> None:
        await env.start([spec(name) for name in NODES], logs)
        first = MetadataClient(env.client_host("first"), ADDRESSES, timeout_s=30.0)
        for number, key in enumerate(KEYS):
            storm.note(env.timeline.now_ns(), 900, "invoke", "write", key, -number - 1)
            await first.create(key, str(-number - 1))
            storm.note(env.timeline.now_ns(), 900, "ok", "write", key, -number - 1)
        async with asyncio.TaskGroup() as group:
            draw = seed.child("nemesis").stream()
            striking = group.create_task(nemesis(env, storm, KINDS, 4.0, draw, NODES))
            async with asyncio.TaskGroup() as clients:
                for number in range(6):
                    clients.create_task(use(env, number))
            striking.cancel()
        await mend(env, NODES)
        await env.timeline.sleep(10.0)
        last = Process(env, storm, 901, first)
        for key in KEYS:
            assert await last.read(key) is not None
        storm.panics = dict(env.panics())
        await env.stop()

    run_simulation(main, seed, trace)
    storm.trace = trace.digest()
    return storm


@pytest.mark.parametrize("root", range(6))
def test_registers_are_linearizable_in_a_storm_of_all_nodes(root: int, tmp_path: Path):
    storm = blow(root, tmp_path)
    assert storm.panics == {}
    assert storm.verdict(tmp_path / "history.parquet") is Verdict.VALID
    assert storm.faults > 3
    assert storm.completed("cas") > 10
    assert storm.completed("read") > 40


def test_the_storms_expose_a_leader_that_reads_without_asking(tmp_path: Path):
    verdicts = []
    for root in range(20):
        verdicts.append(blow(root, tmp_path, f"{__name__}:node_that_reads_at_once").verdict(tmp_path / "h.parquet"))
        if verdicts[-1] is Verdict.INVALID:
            return
    raise AssertionError(f"no storm of {len(verdicts)} shows it")
