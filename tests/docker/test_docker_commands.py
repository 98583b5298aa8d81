"""Faults strike commands as they strike Python programs: any number of processes, in an image of their own."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from probe_cluster import ASK, Cluster, leftovers, run_id

from harness.environments.docker import docker_environment, engine, node_images
from harness.environments.environment import Link
from harness.errors import HarnessError
from harness.program import Command, Dockerfile, Listening, Succeeding
from harness.system import NodeSpec
from system_under_test.runtime.real import RealHost
from tests.between import Between

pytestmark = pytest.mark.docker

FOLDER = Path(__file__).parent / "counting_command"
SERVER = """
import json, os, socket, socketserver, time

class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        asked = self.rfile.readline().decode().strip()
        if asked == "time":
            answer = time.time()
        elif asked == "words":
            answer = [os.environ["GREETING"], open("/etc/words").read(), os.getpid()]
        else:
            try:
                socket.create_connection((asked, 7000), 2).close()
                answer = "reached"
            except OSError as error:
                answer = type(error).__name__
        self.wfile.write(json.dumps(answer).encode() + b"\\n")

socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("0.0.0.0", 7000), Answer).serve_forever()
"""


def command(name: str, *argv: str, ready: Any) -> NodeSpec:
    program = Command(
        argv=argv,
        image=Dockerfile(FOLDER),
        files={"/srv/server.py": SERVER, "/etc/words": "${name} at ${address}, beside ${c2.address}; $${plain}"},
        environment={"GREETING": "hello from ${name}"},
        ready=ready,
    )
    return NodeSpec(name=name, groups=("commands",), program=program, ports=(ASK,))


C1 = command("c1", "sh", "-c", "setsid python3 /srv/server.py & exit 0", ready=Listening(ASK))
"""A daemon: its parent is gone, and its session is its own."""
C2 = command(
    "c2", "env", "-u", "LD_PRELOAD", "python3", "/srv/server.py", ready=Succeeding(("test", "-e", "/etc/words"))
)
"""As a static program does, it never loads libfaketime."""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with engine() as client:
        images = node_images(client, [C1, C2], base=None, say=print)
        environment = docker_environment(
            client, image_of=images.__getitem__, client_hosts=RealHost, run=run_id(), say=print
        )
        cluster = Cluster(environment, client)
        try:
            cluster.do(environment.start([C1, C2], tmp_path_factory.mktemp("nodes")))
            yield cluster
        finally:
            cluster.do(environment.stop())
            assert leftovers(client, cluster.run) == []
            cluster.close()


def ask(cluster: Cluster, node: str, question: str) -> Any:
    """The answer; None where there is none within a second."""

    async def asked() -> Any:
        host = cluster.environment.client_host("asker")
        async with asyncio.timeout(4.0):
            connection = await host.network.connect(f"{node}:{ASK}", 1.0)
            connection.write(question.encode() + b"\n")
            line = bytearray()
            while not line.endswith(b"\n"):
                line += await connection.read_exactly(1)
            connection.close()
            return json.loads(line)

    try:
        return cluster.do(asked())
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing came back
        print(node, repr(error))
        return None


def until_answered(cluster: Cluster, node: str, question: str) -> Any:
    deadline = time.monotonic() + 20
    while (answer := ask(cluster, node, question)) is None:
        assert time.monotonic() < deadline, f"{node} never answered"
    return answer


def clock_error_s(cluster: Cluster, node: str) -> Between:
    asked_s = time.time()
    read_s = until_answered(cluster, node, "time")
    return Between(read_s - time.time(), read_s - asked_s)


def test_names_are_filled_into_files_and_variables(commands: Cluster) -> None:
    greeting, words, _ = until_answered(commands, "c1", "words")
    addresses = commands.environment._addresses
    assert greeting == "hello from c1"
    assert words == f"c1 at {addresses['c1']}, beside {addresses['c2']}; ${{plain}}"


def test_a_daemon_is_killed_and_paused_with_its_command(commands: Cluster) -> None:
    environment = commands.environment
    _, _, first = until_answered(commands, "c1", "words")
    assert commands.do(environment.pause(["c1"])).evidence == "paused: c1 (running → paused)"
    assert ask(commands, "c1", "time") is None
    assert commands.do(environment.resume(["c1"])).happened
    assert until_answered(commands, "c1", "words")[2] == first
    assert commands.do(environment.kill(["c1"])).evidence == "killed: c1 (running → gone)"
    assert ask(commands, "c1", "time") is None
    assert not commands.do(environment.kill(["c1"])).happened
    assert commands.do(environment.boot(["c1"])).happened
    assert until_answered(commands, "c1", "words")[2] != first
    assert environment.panics() == {}, "a command whose daemon lives has not ended"


def test_a_cut_stops_packets_between_commands(commands: Cluster) -> None:
    until_answered(commands, "c1", "time")
    assert until_answered(commands, "c2", "c1") == "reached"
    assert commands.do(commands.environment.cut([Link("c2", "c1")])).happened
    assert ask(commands, "c2", "c1") == "TimeoutError"
    assert ask(commands, "c1", "time") is not None, "clients are outside of partitions"
    assert commands.do(commands.environment.heal()).happened
    assert until_answered(commands, "c2", "c1") == "reached"


def test_a_clock_is_wrong_only_where_the_command_reads_it(commands: Cluster) -> None:
    environment = commands.environment
    assert commands.do(environment.set_clock("c1", offset_s=500.0, rate=1.0)).happened
    assert clock_error_s(commands, "c1").may_be(500.0, 1.0)
    assert commands.do(environment.set_clock("c1", offset_s=0.0, rate=1.0)).happened
    assert clock_error_s(commands, "c1").may_be(0.0, 1.0)
    unreached = commands.do(environment.set_clock("c2", offset_s=500.0, rate=1.0))
    assert not unreached.happened
    assert "c2 reads the true time" in unreached.evidence and "has not loaded libfaketime" in unreached.evidence
    assert clock_error_s(commands, "c2").may_be(0.0, 1.0)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("no-such-program",), "no-such-program cannot be started: No such file or directory"),
        (("sh", "-c", "echo last words; exit 3"), "c2 ended before it was ready: exit code 3 | last words"),
    ],
)
def test_a_command_that_cannot_serve_is_named_with_its_last_words(
    argv: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    spec = command("c2", *argv, ready=Listening(ASK))
    with engine() as client:
        images = node_images(client, [spec], base=None, say=print)
        environment = docker_environment(
            client, image_of=images.__getitem__, client_hosts=RealHost, run=run_id(), say=print
        )
        cluster = Cluster(environment, client)
        with pytest.raises(HarnessError) as raised:
            cluster.do(environment.start([spec], tmp_path))
        assert words in str(raised.value)
        cluster.do(environment.stop())
        assert cluster.leftovers() == []
        cluster.close()
