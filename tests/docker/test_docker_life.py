"""However a run in containers ends, its logs are copied to the run directory and nothing of it stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from probe_cluster import MakeCluster, leftovers, probe, run_id

from harness.environments.docker import cleanup, container, engine, network
from harness.environments.docker import leftovers as remover
from harness.environments.leftover import Leftover
from harness.errors import HarnessError
from harness.lifetime import scratch
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed

pytestmark = pytest.mark.docker

HARNESS = Path(__file__).parent / "killed_harness.py"
ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0


def events(logs: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (logs / name / "events.jsonl").read_text().splitlines()]


def until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_logs_come_home_on_the_harness_clock_and_nothing_stays(make_cluster: MakeCluster, tmp_path: Path) -> None:
    cluster = make_cluster()
    timeline = cluster.environment.timeline
    cluster.do(cluster.environment.start([probe("p1")], tmp_path))
    cluster.do(cluster.until_serving("p1"))
    assert len(cluster.leftovers()) == 2
    served_ns = timeline.now_ns()
    cluster.do(cluster.environment.stop())
    assert cluster.leftovers() == []
    seen = {event["event"]: event["time"] for event in events(tmp_path, "p1")}
    assert 0 < seen["started"] <= seen["serving"] < served_ns < seen["stopping"] < timeline.now_ns()
    assert '"event": "serving"' in (tmp_path / "p1" / "node.log").read_text()
    cluster.do(cluster.environment.stop())


def test_a_program_that_dies_of_itself_is_a_panic_with_its_last_words(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster = make_cluster()
    cluster.do(cluster.environment.start([probe("p1"), probe("p2", "broken")], tmp_path))

    def breaks() -> bool:
        """A connection that is made before it listens is closed as well: then it was not asked."""
        with contextlib.suppress(ConnectionClosed, ConnectFailed):
            cluster.ask("p2", "break")
        return bool(cluster.environment.panics())

    until(breaks)
    assert cluster.do(cluster.environment.kill(["p2"])).happened is False
    panics = cluster.environment.panics()
    assert list(panics) == ["p2"]
    assert panics["p2"].startswith("exit code 70") and "RuntimeError: a planted panic" in panics["p2"]
    cluster.do(cluster.environment.stop())
    assert [event["event"] for event in events(tmp_path, "p2")] == ["started", "about to break", "panic"]


@contextlib.contextmanager
def harness_process(image: str, logs: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    run = run_id()
    command = [sys.executable, str(HARNESS), image, run, str(logs)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            yield process, run
        finally:
            process.kill()


def test_ctrl_c_leaves_nothing_and_copies_the_logs(probe_image: str, tmp_path: Path) -> None:
    with engine() as client, harness_process(probe_image, tmp_path) as (process, run):
        assert process.stdout is not None and process.stdout.readline() == "started\n"
        assert len(leftovers(client, run)) == 2
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) != 0
        assert leftovers(client, run) == []
    assert events(tmp_path, "p1")[0]["event"] == "started"


def test_after_a_killed_harness_cleanup_removes_all_of_it_and_spares_the_living(
    probe_image: str, tmp_path: Path
) -> None:
    (tmp_path / "dead").mkdir()
    with (
        engine() as client,
        harness_process(probe_image, tmp_path / "dead") as (dead, dead_run),
        harness_process(probe_image, tmp_path / "alive") as (alive, alive_run),
    ):
        for process in (dead, alive):
            assert process.stdout is not None and process.stdout.readline() == "started\n"
        dead.kill()
        dead.wait(PATIENCE_S)
        assert len(leftovers(client, dead_run)) == 2
        cleaned = cleanup()
        dead_ones = {
            Leftover(kind="container", name=f"{dead_run}-p1"),
            Leftover(kind="network", name=dead_run),
        }
        assert dead_ones <= set(cleaned.removed)
        assert not any(alive_run in one.name for one in cleaned.removed)
        assert {one for one in cleaned.spared if alive_run in one.name} == {
            Leftover(kind="container", name=f"{alive_run}-p1"),
            Leftover(kind="network", name=alive_run),
        }
        assert str(tmp_path / "dead" / "p1") in cleaned.brought_home
        seen = {event["event"]: event["time"] for event in events(tmp_path / "dead", "p1")}
        assert 0 < seen["started"] <= seen["serving"] < PATIENCE_S * 1e9, "on the clock of the harness that was killed"
        assert leftovers(client, dead_run) == []
        assert len(leftovers(client, alive_run)) == 2
        assert not [path for path in scratch.orphans() if f"+{dead.pid}+" in path.name]
        alive.send_signal(signal.SIGINT)
        alive.wait(PATIENCE_S)
        assert leftovers(client, alive_run) == []


def test_a_start_that_is_cancelled_half_way_leaves_nothing(make_cluster: MakeCluster, tmp_path: Path) -> None:
    cluster = make_cluster()

    async def cancelled() -> None:
        start = asyncio.ensure_future(cluster.environment.start([probe(f"p{i}") for i in range(4)], tmp_path))
        await asyncio.to_thread(until, lambda: bool(cluster.leftovers()))
        start.cancel()
        await asyncio.wait([start])
        assert start.cancelled()
        await cluster.environment.stop()

    cluster.do(cancelled())
    assert cluster.leftovers() == []


def test_a_start_that_fails_leaves_nothing(make_cluster: MakeCluster, tmp_path: Path) -> None:
    cluster = make_cluster()
    cluster.machines._image_of = lambda node: "stormproof-node:no-such-image"
    with pytest.raises(HarnessError, match=r"starting container p1 failed: .*No such image"):
        cluster.do(cluster.environment.start([probe("p1")], tmp_path))
    cluster.do(cluster.environment.stop())
    assert cluster.leftovers() == []


def test_a_port_taken_meanwhile_is_reported_and_another_is_tried(
    make_cluster: MakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = make_cluster()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        offers = iter([[taken.getsockname()[1]]])
        monkeypatch.setattr(container, "free_ports", lambda count: next(offers, None) or network.free_ports(count))
        cluster.do(cluster.environment.start([probe("p1")], tmp_path))
    assert "port in use" in capsys.readouterr().out
    cluster.do(cluster.until_serving("p1"))
    cluster.do(cluster.environment.stop())


def test_ports_that_stay_taken_are_one_clear_error(
    make_cluster: MakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make_cluster()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(container, "free_ports", lambda count: [taken.getsockname()[1]])
        monkeypatch.setattr(container, "PORT_TRIES", 2)
        with pytest.raises(HarnessError, match="port in use"):
            cluster.do(cluster.environment.start([probe("p1")], tmp_path))
    cluster.do(cluster.environment.stop())
    assert cluster.leftovers() == []


def test_removing_what_is_gone_already_is_no_error(make_cluster: MakeCluster, tmp_path: Path) -> None:
    cluster = make_cluster()
    cluster.do(cluster.environment.start([probe("p1")], tmp_path))
    remover.remove_run(cluster.client, cluster.run)
    assert remover.remove_run(cluster.client, cluster.run) == []
    with pytest.raises(HarnessError, match="Docker"):
        cluster.do(cluster.environment.kill(["p1"]))
    with pytest.raises(HarnessError, match="Docker"):
        cluster.do(cluster.environment.stop())
    cluster.do(cluster.environment.stop())


def test_subnets_in_use_are_passed_over() -> None:
    with engine() as client:
        labels = {"stormproof.run": run_id()}
        made = [network.make_network(client, run_id(), labels, ["p1"]) for _ in range(2)]
        try:
            assert made[0][1] != made[1][1]
        finally:
            for one, _ in made:
                with contextlib.suppress(docker.errors.NotFound):
                    one.remove()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_after_signal_the_teardown_goes_on_to_its_end(
    number: signal.Signals, probe_image: str, tmp_path: Path
) -> None:
    with engine() as client, harness_process(probe_image, tmp_path) as (process, run):
        assert process.stdout is not None and process.stdout.readline() == "started\n"
        while process.poll() is None:
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        assert leftovers(client, run) == []
    assert [event["event"] for event in events(tmp_path, "p1")][-1] == "stopped", "it was let down gently"


def test_what_cannot_be_removed_is_named(
    make_cluster: MakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make_cluster()
    cluster.do(cluster.environment.start([probe("p1")], tmp_path))
    run = cluster.run
    with monkeypatch.context() as patched:
        patched.setattr(docker.models.networks.Network, "remove", refused)
        with pytest.raises(HarnessError, match=rf"network {run} could not be removed: .*has active endpoints"):
            remover.remove_run(cluster.client, run)
    assert leftovers(cluster.client, run) == [run], "what could be removed, is"
    assert [one.name for one in remover.remove_run(cluster.client, run)] == [run]
    with pytest.raises(HarnessError, match="Docker"):
        cluster.do(cluster.environment.stop())


def refused(network: Any) -> None:
    raise docker.errors.APIError("", explanation=f"{network.name} has active endpoints")
