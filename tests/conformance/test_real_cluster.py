"""The same node programs as in the simulator, as processes of this machine: they serve, fail over and stop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.replication import ReplicationChecker
from harness.record.node_events import write_node_events
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.controller_client import ControllerClient
from system_under_test.rocketmq.client.message_client import MessageClient, SendResult
from system_under_test.runtime.real import RealHost

PORTS = (9876, 9878, 9879, 10911, 10912)


class Cluster:
    """Each node has a loopback address of its own, so all use the ports of the default deployment."""

    def __init__(self, root: Path, configs: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
        prefix = f"127.{1 + os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"
        self._ips = {name: f"{prefix}.{index}" for index, name in enumerate(configs, start=1)}
        self.addresses = {f"{name}:{port}": f"{ip}:{port}" for name, ip in self._ips.items() for port in PORTS}
        self._root = root
        self._configs = configs
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def boot(self, name: str) -> None:
        kind, config = self._configs[name]
        file = self._root / f"{name}.json"
        node = {
            "name": name,
            "data": str(self._root / name),
            "config": config,
            "addresses": self.addresses,
            "bind": self._ips[name],
        }
        file.write_text(json.dumps(node))
        program = [sys.executable, "-m", "system_under_test.runtime.real", f"system_under_test.rocketmq.node:{kind}"]
        self.processes[name] = subprocess.Popen([*program, str(file)], stdout=subprocess.DEVNULL)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    broker = {
        "enableControllerMode": True,
        "namesrvAddr": "c1:9876",
        "controllerAddr": "c1:9878",
        "allAckInSyncStateSet": True,
        "slaveReadEnable": True,
        "flushDiskType": "SYNC_FLUSH",
        "topics": {"T": 1},
        "mappedFileSizeCommitLog": 1 << 20,
        "checkSyncStateSetPeriod": 200,
        "syncBrokerMetadataPeriod": 200,
        "brokerHeartbeatInterval": 100,
    }
    controller = {
        "enableControllerInNamesrv": True,
        "controllerPort": 9878,
        "controllerDLegerPeers": "c1-c1:9879",
        "controllerDLegerSelfId": "c1",
        "brokerHeartbeatTimeout": 1000,
        "scanInactiveMasterInterval": 200,
    }
    nodes = Cluster(tmp_path, {"c1": ("nameserver", controller), "b1": ("broker", broker), "b2": ("broker", broker)})
    for name in ("c1", "b1", "b2"):
        nodes.boot(name)
    yield nodes
    for process in nodes.processes.values():
        if process.poll() is None:
            process.kill()
        process.wait(timeout=20)


async def send_until_taken(client: MessageClient, body: bytes) -> SendResult:
    async with asyncio.timeout(30):
        while True:
            try:
                return await client.send("T", 0, body)
            except ClientError:
                await asyncio.sleep(0.1)


async def until_both_have(client: MessageClient, count: int) -> None:
    """Wait until both replicas show so many messages to readers."""
    async with asyncio.timeout(30):
        for address in ("b1:10911", "b2:10911"):
            seen = 0
            while seen < count:
                try:
                    seen = len((await client.pull("T", 0, 0, 100, "G", address)).messages)
                except ClientError:
                    await asyncio.sleep(0.1)


async def until_both_are_in_sync(host: RealHost) -> None:
    """Who is not yet in the set may have all messages, and is not elected all the same."""
    controllers = ControllerClient(host, ["c1:9878"])
    try:
        async with asyncio.timeout(30):
            while True:
                info = await controllers.get_replica_info("broker-a")
                if len(info.sync_state_set.members) == 2:
                    return
                await asyncio.sleep(0.1)
    finally:
        controllers.close()


def test_messages_outlive_the_master_that_took_them(cluster: Cluster, tmp_path: Path) -> None:
    async def use() -> None:
        host = RealHost("client", tmp_path / "client", cluster.addresses)
        client = MessageClient(host, ["c1:9876"])
        try:
            sent = [await send_until_taken(client, b"m%d" % index + bytes(300)) for index in range(20)]
            await until_both_have(client, 20)
            await until_both_are_in_sync(host)
            master = sent[-1].broker.partition(":")[0]
            cluster.processes[master].kill()
            cluster.processes[master].wait(timeout=20)  # until then it holds its ports
            after = await send_until_taken(client, b"after")
            assert after.broker != sent[-1].broker
            bodies = [body for _, body in (await client.pull("T", 0, 0, 100, "G")).messages]
            letters = [body.rstrip(b"\0") for body in bodies if body.startswith(b"m")]
            assert letters == [b"m%d" % index for index in range(20)]
            assert b"after" in bodies
            cluster.boot(master)
            await until_both_have(client, len(bodies))
        finally:
            client.close()
            await host.close()

    asyncio.run(use())
    for process in cluster.processes.values():
        process.send_signal(signal.SIGTERM)
    assert [process.wait(timeout=20) for process in cluster.processes.values()] == [0, 0, 0]
    events = write_node_events(tmp_path, tmp_path / "node-events.parquet")
    result = ReplicationChecker().check(
        CheckRequest(history=tmp_path, run=RunUnderCheck(node_events=events)), InProcessEngine()
    )
    assert result.verdict is Verdict.VALID, result
    counts = result.statistics["events"]
    assert counts["elected"] >= 2
    assert counts["written"] >= 2, "each replica reported the checksum of a piece"
    assert min(counts[name] for name in ("role", "confirmed", "recovered", "identity", "leader")) >= 1
