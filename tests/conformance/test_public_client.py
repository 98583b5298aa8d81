"""The public client, unmodified, with nodes as processes of this machine: what it is asked happens, and it leaves
nothing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from harness.errors import CONNECT_FAILED, OperationError, UsageError
from harness.generator import invoke
from harness.operation import Operation
from system_under_test.runtime.real import RealHost
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.clients.public import process as public
from workloads.systems.rocketmq.clients.public.pop import PopByPublicClient
from workloads.systems.rocketmq.settings import RocketmqSettings

SETTINGS = RocketmqSettings(deployment="single", client="grpc", name_servers=1, proxies=1)


@pytest.fixture
def addresses(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """Where nodes are reached that are processes, each with a loopback address of its own."""
    nodes = SYSTEM.nodes(SETTINGS, None)
    prefix = f"127.{1 + os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"
    ips = {node.name: f"{prefix}.{index}" for index, node in enumerate(nodes, start=101)}
    found = {f"{name}:{port}": f"{ip}:{port}" for name, ip in ips.items() for port in (9876, 10911, 10912, 8081)}
    processes = []
    for node in nodes:
        config = tmp_path / f"{node.name}.json"
        settings = {"name": node.name, "data": str(tmp_path / node.name), "config": node.program.config}
        config.write_text(json.dumps({**settings, "addresses": found, "bind": ips[node.name]}))
        program = [sys.executable, "-m", "system_under_test.runtime.real", node.program.main, str(config)]
        processes.append(subprocess.Popen(program, stdout=subprocess.DEVNULL))
    yield found
    for process in processes:
        process.kill()
        process.wait()


def _pop(f: str, message: int | None = None, invisible_ms: int | None = None) -> Operation:
    return invoke(f, {"message": message, "invisible_ms": invisible_ms, "deliveries": None}, key="storm/0")


async def _received(client: PopByPublicClient, *, invisible_ms: int) -> list[dict[str, int]]:
    """What comes, once something does."""
    while True:
        popped = await client.invoke(_pop("pop", invisible_ms=invisible_ms))
        assert popped.type == "ok" and popped.value is not None
        if popped.value["deliveries"]:
            return list(popped.value["deliveries"])


def test_the_public_client_does_what_it_is_asked_and_leaves_nothing(
    addresses: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    async def use() -> None:
        host = RealHost("client-0", tmp_path / "clients" / "client-0", addresses)
        await SYSTEM.ready(SETTINGS, host, "pop")
        client = SYSTEM.client("pop", SETTINGS, host, 0)
        assert isinstance(client, PopByPublicClient)
        await client.open()
        for number in (7, 8):
            assert (await client.invoke(_pop("send", number))).node == "p1"
        first = await _received(client, invisible_ms=400)
        given = sorted(
            one["message"] for one in (first if len(first) == 2 else first + await _received(client, invisible_ms=400))
        )
        assert given == [7, 8]
        assert (await client.invoke(_pop("ack", 7))).type == "ok"
        # What is not acknowledged comes again, the other one does not.
        assert await _received(client, invisible_ms=60_000) == [{"message": 8, "times": 1}]
        with pytest.raises(OperationError, match="not-held"):
            await client.invoke(_pop("ack", 7))
        assert (await client.invoke(_pop("change", 8, 500))).type == "ok"
        assert await _received(client, invisible_ms=60_000) == [{"message": 8, "times": 2}]
        await client.close()
        await host.close()

    asyncio.run(use())
    assert _children() == []
    assert not (tmp_path / "home").exists()
    assert (tmp_path / "clients" / "public-client" / "logs" / "rocketmq_python" / "rocketmq_client.log").exists()


def test_where_no_proxy_answers_nothing_was_sent(tmp_path: Path) -> None:
    async def use() -> None:
        host = RealHost("client-0", tmp_path / "clients" / "client-0", {"p1:8081": "127.0.0.1:9"})
        client = PopByPublicClient(host, SETTINGS, 0)
        with pytest.raises(OperationError) as refused:
            await client.open()
        assert refused.value.error is CONNECT_FAILED and refused.value.node == "p1"
        await client.close()
        await host.close()

    asyncio.run(use())
    assert _children() == []


def test_a_process_that_dies_is_told_and_another_one_takes_its_place(tmp_path: Path) -> None:
    async def use() -> None:
        host = RealHost("client-0", tmp_path / "clients" / "client-0", {"p1:8081": "127.0.0.1:9"})
        client = PopByPublicClient(host, SETTINGS, 0)
        await client.close()  # answered, so the process runs
        asking = asyncio.create_task(client.open())
        await asyncio.sleep(0)
        for child in _children():
            os.kill(child, 9)
        with pytest.raises(OperationError):
            await asking
        await client.close()
        await host.close()

    asyncio.run(use())
    assert _children() == []


def test_without_the_extra_a_run_is_refused_in_one_line_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public, "PACKAGE", "rocketmq-python-client-that-is-not-there")
    SYSTEM.require_clients(SETTINGS, "simulated")
    with pytest.raises(UsageError, match=r"pip install 'stormproof\[grpc-client\]'"):
        SYSTEM.require_clients(SETTINGS, "docker")


def _children() -> list[int]:
    """Processes of the public client that this one started and that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command, status = (entry / "cmdline").read_bytes(), (entry / "stat").read_text()
        except (OSError, ValueError):
            continue
        if str(public.PROGRAM).encode() in command and int(status.rpartition(")")[2].split()[1]) == os.getpid():
            found.append(int(entry.name))
    return found
