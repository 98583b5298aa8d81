"""Processes of a node are struck by their names, and no others; a node that ends because of it has not panicked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from probe_cluster import Cluster

from harness.environments.impairment import KilledProcesses, PausedProcesses, SlowedProcesses
from harness.environments.remote import control_groups

pytestmark = pytest.mark.docker

SLEEP = ["sleep", "600"]


@pytest.fixture(autouse=True)
def leaves_nodes_as_they_were(probes: Cluster) -> Iterator[None]:
    yield
    probes.do(probes.environment.kill(["p1"]))
    probes.do(probes.environment.boot(["p1"]))
    probes.do(probes.until_serving("p1"))
    assert probes.environment.panics() == {}


def test_a_paused_process_stands_still_while_the_rest_of_its_node_goes_on(probes: Cluster) -> None:
    environment, paused = probes.environment, PausedProcesses(name="sl*p")
    pid = probes.ask("p1", "keep", argv=SLEEP, times=1)
    effect = probes.do(environment.impair(["p1"], paused))
    assert effect.happened and effect.evidence == f"p1: paused {pid} (sleep)"
    assert probes.ask("p1", "children") == ["T"], "it was not paused, or the node was"
    assert probes.do(environment.impair(["p1"], PausedProcesses(name="*600"))).happened, "the command line fits as well"
    assert probes.do(environment.relieve(["p1"], paused)).happened
    assert probes.ask("p1", "children") == ["T"], "the end of one fault healed another"
    relieved = probes.do(environment.relieve(["p1"], PausedProcesses(name="*600")))
    assert relieved.happened and f"{pid} (sleep)" in relieved.evidence
    assert probes.ask("p1", "children") == ["S"]


ATTEMPTS = 60
BUSY = ["sh", "-c", "while :; do :; done"]


def used_share(probes: Cluster, seconds: float) -> float:
    """How much of a processor the busy child of p1 gets for so long."""
    from_s, before = time.monotonic(), probes.ask("p1", "used")
    time.sleep(seconds)
    used = probes.ask("p1", "used") - before
    return float(used / (time.monotonic() - from_s))


def gets_a_processor(probes: Cluster) -> bool:
    """Whether the busy child gets more than one that is slow ever does, once other work of this machine leaves it so
    much."""
    return any(used_share(probes, 0.5) > 0.15 for _ in range(ATTEMPTS))


def test_a_slow_process_gets_a_part_of_a_processor_and_the_rest_of_its_node_what_there_is(probes: Cluster) -> None:
    environment, slow = probes.environment, SlowedProcesses(name="sh", stretch=20)
    pid = probes.ask("p1", "keep", argv=BUSY, times=1)
    assert gets_a_processor(probes)
    effect = probes.do(environment.impair(["p1", "p2"], slow))
    assert effect.happened and effect.evidence == (
        f"p1: no more than 5.0% of a processor for {pid} (sh), p2: no process is called 'sh'; there run: python3"
    )
    assert used_share(probes, 2.0) < 0.1
    root = Path(control_groups.root(control_groups.PROCESSOR))
    assert [path.name for path in root.glob(f"{probes.run}-*")] == [f"{probes.run}-p1-1"]
    (limited,) = (root / f"{probes.run}-p1-1" / "cgroup.procs").read_text().split()
    assert Path(f"/proc/{limited}/comm").read_text() == "sh\n", "the rest of the node is limited as well"
    assert "p1: 1 processes go on" in probes.do(environment.relieve(["p1", "p2"], slow)).evidence
    assert gets_a_processor(probes), "it is slow after the end of it"
    assert not list(root.glob(f"{probes.run}-*"))


def test_a_killed_process_that_its_node_starts_again_leaves_the_node_alone(probes: Cluster) -> None:
    environment, killed = probes.environment, KilledProcesses(name="sleep")
    pid = probes.ask("p1", "keep", argv=SLEEP, times=2)
    program = probes.ask("p1", "time")["pid"]
    effect = probes.do(environment.impair(["p1"], killed))
    assert effect.happened and effect.evidence == f"p1: killed {pid} (sleep)"
    assert probes.ask("p1", "children") == ["gone", "S"]
    relieved = probes.do(environment.relieve(["p1"], killed))
    assert relieved.happened and "p1: has it again" in relieved.evidence
    assert probes.ask("p1", "time")["pid"] == program, "the node was started again"


def test_a_node_that_lacks_what_was_killed_is_started_again_in_the_end(probes: Cluster) -> None:
    environment, killed = probes.environment, KilledProcesses(name="sleep")
    probes.ask("p1", "keep", argv=SLEEP, times=1)
    program = probes.ask("p1", "time")["pid"]
    assert probes.do(environment.impair(["p1", "p2"], killed)).happened
    assert probes.ask("p1", "children") == ["gone"]
    assert "p1: booted" in probes.do(environment.relieve(["p1", "p2"], killed)).evidence
    probes.do(probes.until_serving("p1"))
    assert probes.ask("p1", "time")["pid"] != program


def test_a_node_whose_whole_program_is_called_so_is_down_until_the_end(probes: Cluster) -> None:
    environment, killed = probes.environment, KilledProcesses(name="*probe:main*")
    assert probes.do(environment.impair(["p1"], killed)).happened
    assert probes.ask("p2", "reach", to=["p1"]) == {"p1": "ConnectionRefusedError"}
    assert probes.environment.panics() == {}
    assert "p1: booted" in probes.do(environment.relieve(["p1"], killed)).evidence
    probes.do(probes.until_serving("p1"))


def test_where_no_process_is_called_so_it_is_said_which_ones_run(probes: Cluster) -> None:
    environment, killed = probes.environment, KilledProcesses(name="etcd")
    effect = probes.do(environment.impair(["p1"], killed))
    assert not effect.happened
    assert effect.evidence == "p1: no process is called 'etcd'; there run: python3"
    assert not probes.do(environment.relieve(["p1"], killed)).happened
