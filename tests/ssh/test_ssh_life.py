"""Machines are given back as they were found, however a run ends; what is done on them is done as it was meant."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.environments.environment import Link
from harness.environments.remote import agent, capture
from harness.environments.remote.environment import RemoteEnvironment
from harness.environments.remote.machines import Home
from harness.environments.ssh import machine_lease
from harness.environments.ssh.inventory import SSH_PORT, parse_inventory
from harness.environments.ssh.machines import SshMachines
from harness.errors import HarnessError
from stormproof.cli.main import run
from system_under_test.runtime.real import RealHost
from tests.conformance.beacon import PORT
from tests.conformance.promises import answered, nodes
from tests.conformance.promises import until as until_answered
from tests.ssh.machines import Machine, Rack

pytestmark = [pytest.mark.docker, pytest.mark.gate]

ROOT = Path(__file__).resolve().parents[2]
HARNESS = Path(__file__).parent / "lone_harness.py"
PATIENCE_S = 120.0
FOR_A, FOR_B = 'node = "a"', 'groups = ["all"]'


def until(seen: Callable[[], bool], words: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not seen():
        assert time.monotonic() < deadline, words
        time.sleep(0.05)


def left_on(machine: Machine) -> str:
    """What of a run is on a machine: its processes, chains of packets, files, and names of nodes. Sources stay."""
    return machine.sees(
        "sh",
        "-c",
        "ps -eo args | grep -E '^[^ ]*python3' ; iptables -S | grep STORM; ls -A /dev/shm; "
        "ls -d /var/lib/stormproof 2>/dev/null; grep -w b /etc/hosts",
    )


@pytest.fixture(autouse=True)
def leaves_nothing(machines: Rack) -> Iterator[None]:
    yield
    for machine in machines.machines.values():
        assert left_on(machine) == "", machine.name


class Cluster:
    """Beacons a and b on machines, driven from plain test functions."""

    def __init__(self, inventory: str, logs: Path, remarks: list[str], *, real_clocks: bool) -> None:
        machines = SshMachines(
            parse_inventory(inventory, "hosts.toml"), faults=frozenset(), say=remarks.append, real_clocks=real_clocks
        )
        self.environment = RemoteEnvironment(machines, client_hosts=RealHost, captures=True)
        self.machines = machines
        self._logs = logs
        self._loop = asyncio.new_event_loop()

    def do(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(coroutine)

    def start(self) -> None:
        self.do(self.environment.start(nodes(), self._logs))
        for node in ("a", "b"):
            self.do(answered(self.environment, node))


@contextlib.contextmanager
def cluster(
    inventory: str, logs: Path, remarks: list[str] | None = None, *, real_clocks: bool = False
) -> Iterator[Cluster]:
    made = Cluster(inventory, logs, [] if remarks is None else remarks, real_clocks=real_clocks)
    try:
        yield made
    finally:
        made.do(made.environment.stop())
        made._loop.close()


@pytest.mark.parametrize("user", ["root", "storm"])
def test_logs_come_home_on_the_harness_clock_and_sources_alone_stay(user: str, machines: Rack, tmp_path: Path) -> None:
    inventory, said = machines.inventory({"m1": FOR_A, "m2": FOR_B}, user=user), list[str]()
    with cluster(inventory, tmp_path, said) as run_:
        run_.start()
        served_ns = run_.environment.timeline.now_ns()
        assert "STORMGATE" in left_on(machines.machines["m1"])
    for node in ("a", "b"):
        lines = (tmp_path / node / "events.jsonl").read_text().splitlines()
        events = {event["event"]: event["time"] for event in map(json.loads, lines)}
        assert 0 < events["started"] < served_ns < events["stopping"] < run_.environment.timeline.now_ns()
        with (tmp_path / node / "packets.pcap").open("rb") as file:
            packets = list(capture.records(file))
        ports = {port for _, _, data in packets for port in capture.ports_of(data)}
        assert PORT in ports and SSH_PORT not in ports, "packets of the harness's own way to a machine are left out"
        assert 0 < packets[0][0] < packets[-1][0] < run_.environment.timeline.now_ns()
    again = list[str]()
    with cluster(inventory, tmp_path, again) as run_:
        run_.start()
    assert not any("sources" in line for line in again), "the same sources were brought twice"


def test_a_machine_is_used_by_one_run_at_a_time(machines: Rack, tmp_path: Path) -> None:
    inventory = machines.inventory({"m1": FOR_A, "m2": FOR_B})
    with cluster(inventory, tmp_path / "first") as first:
        first.start()
        with (
            pytest.raises(HarnessError, match=r"m[12] \(root@.*\) is used by another run, as node [ab] of stormproof-"),
            cluster(inventory, tmp_path / "second") as second,
        ):
            second.start()
        assert first.do(answered(first.environment, "a", "w")), "the second run left the first one alone"


def test_a_cut_never_closes_the_way_to_a_machine(machines: Rack, tmp_path: Path) -> None:
    """b is reached through the machine of a, and a is cut off from it."""
    inventory = machines.inventory({"m1": FOR_A, "m2": f'{FOR_B}\njump = "m1"'})
    with cluster(inventory, tmp_path) as run_:
        run_.start()
        both = [Link("a", "b"), Link("b", "a")]
        assert run_.do(run_.environment.cut(both)).happened
        assert run_.do(answered(run_.environment, "a", ">")) is False, "the cut cuts nothing"
        assert run_.do(run_.environment.pause(["b"])).happened, "b is reached no more"
        assert run_.do(run_.environment.resume(["b"])).happened
        run_.machines._connections._clients.pop("m2").close()
        assert not run_.do(run_.environment.resume(["b"])).happened, "b is reached no more by new connections"
        healed = run_.do(run_.environment.heal())
        assert healed.happened and "packets had been dropped" in healed.evidence
        run_.do(until_answered(run_.environment, "a", ">", True, "a link that was healed stays cut"))


def test_host_keys_are_verified(machines: Rack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    pinned = machines.inventory({"m1": FOR_A, "m2": FOR_B})
    keys = [machines.machines[name].host_key for name in ("m1", "m2")]
    unpinned = "\n".join(line for line in pinned.splitlines() if "host_key" not in line)
    swapped = pinned.replace(keys[0], keys[1])
    for inventory, words in (
        (unpinned, r"shows a host key that is not known, SHA256:.*; verify it, then pin it as hosts\.m1\.host_key in"),
        (swapped, r"shows another host key than the one that is known: expected SHA256:.*, got SHA256:.*"),
    ):
        with cluster(inventory, tmp_path / "logs") as run_:
            run_.machines.take(nodes(), Home(logs=tmp_path, start_ns=0))
            with pytest.raises(HarnessError, match=rf"m1 \(root@.*\) {words}"):
                run_.machines.shells["a"].run(["true"])
    (tmp_path / ".ssh").mkdir()
    known = [f"{machine.address} {machine.host_key}\n" for machine in machines.machines.values()]
    (tmp_path / ".ssh" / "known_hosts").write_text("".join(known))
    with cluster(unpinned, tmp_path / "logs") as run_:
        run_.machines.take(nodes(), Home(logs=tmp_path, start_ns=0))
        assert run_.machines.shells["a"].run(["true"]).exit_code == 0


def test_who_is_not_let_in_is_told_so(machines: Rack, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(stranger)], check=True)
    inventory = machines.inventory({"m1": FOR_A, "m2": FOR_B}).replace(str(machines.key), str(stranger))
    with (
        pytest.raises(HarnessError, match=rf"m[12] \(root@.*\) does not let root in with the key {stranger}: "),
        cluster(inventory, tmp_path / "logs") as run_,
    ):
        run_.start()


@contextlib.contextmanager
def harness_process(inventory: Path, logs: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(HARNESS), str(inventory), str(logs)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'conformance'}"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            assert any(line == "started\n" for line in process.stdout), "it never started"
            yield process
        finally:
            process.kill()


@pytest.fixture
def inventory_file(machines: Rack, tmp_path: Path) -> Path:
    file = tmp_path / "hosts.toml"
    file.write_text(machines.inventory({"m1": FOR_A, "m2": FOR_B}, user="storm"))
    return file


def give_a_clock_to_be_given_back(machine: Machine) -> None:
    """What would give the real clock back is taken by a stand-in: all machines here have one clock, which is ours."""
    noting = 'open("/run/asked", "w").write(" ".join(sys.argv[1:]))'
    machine.sees("sh", "-c", f"echo 'import sys; {noting}; print(\"{{}}\")' >{agent.REAL_CLOCK}; rm -f /run/asked")


def clock_given_back(machine: Machine) -> bool:
    return machine.sees("cat", "/run/asked") == "give_back {}"


def test_machines_that_share_a_kernel_with_the_harness_keep_their_clocks(machines: Rack, tmp_path: Path) -> None:
    inventory = machines.inventory({"m1": FOR_A, "m2": FOR_B}, more="real_clock = true")
    with (
        pytest.raises(
            HarnessError, match=r"m[12] .* and .* run on one kernel, which has one clock: --real-clock needs"
        ),
        cluster(inventory, tmp_path, real_clocks=True) as run_,
    ):
        run_.start()


def test_ctrl_c_leaves_nothing_and_brings_the_logs(inventory_file: Path, tmp_path: Path) -> None:
    with harness_process(inventory_file, tmp_path) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) != 0
    assert '"event": "started"' in (tmp_path / "a" / "events.jsonl").read_text()


def test_after_a_killed_harness_cleanup_gives_its_machines_back_and_spares_those_of_the_living(
    inventory_file: Path, machines: Rack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    with harness_process(inventory_file, logs) as process:
        assert run(["cleanup", "--inventory", str(inventory_file)]) == 0
        assert "spared    node a of stormproof-" in capsys.readouterr().out
        give_a_clock_to_be_given_back(machines.machines["m1"])
        process.kill()
        process.wait(PATIENCE_S)
        assert "beacon:main" in left_on(machines.machines["m1"]), "nothing was left that could be cleaned up"
        assert run(["cleanup", "--inventory", str(inventory_file), "--json"]) == 0
    assert clock_given_back(machines.machines["m1"])
    cleaned = json.loads(capsys.readouterr().out)
    assert {one["kind"] for one in cleaned["removed"]} >= {"node", "sources"}
    assert cleaned["brought_home"] == [{"directory": str(logs / node)} for node in ("a", "b")]
    assert '"event": "started"' in (logs / "a" / "events.jsonl").read_text()
    assert machines.machines["m1"].sees("ls", "-A", "/var/cache/stormproof").startswith("ls: cannot access")


def test_a_watchdog_ends_its_node_and_heals_its_network_when_nobody_is_heard_of(
    inventory_file: Path, machines: Rack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = [machines.machines[name] for name in ("m1", "m2")]

    def is_healed() -> bool:
        return not any("beacon:main" in left_on(one) or "STORM" in left_on(one) for one in two)

    logs = tmp_path / "logs"
    logs.mkdir()
    with harness_process(inventory_file, logs) as process:
        assert not is_healed()
        give_a_clock_to_be_given_back(two[0])
        process.kill()
        process.wait(PATIENCE_S)
        for one in two:
            one.sees("sh", "-c", f"echo 0 >{machine_lease.HEARD}")  # on its clock, when it was switched on
        until(is_healed, "the watchdogs leave their nodes alone")
        assert clock_given_back(two[0])
    assert run(["cleanup", "--inventory", str(inventory_file)]) == 0
    assert "was not heard of for 60 s" in (logs / "a" / "node.log").read_text()


def test_a_harness_that_was_forgotten_says_nothing_about_the_system(
    inventory_file: Path, machines: Rack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.environments.ssh.machines.HEARD_EVERY_S", 0.2)
    with cluster(inventory_file.read_text(), tmp_path) as run_:
        run_.start()
        machines.machines["m1"].sees("rm", machine_lease.CLAIM)
        until(lambda: bool(run_.machines._lost), "it never heard that its machine is given up")
        with pytest.raises(HarnessError, match=r"the machine m1 .* was given up, and its node a ended"):
            run_.environment.panics()
