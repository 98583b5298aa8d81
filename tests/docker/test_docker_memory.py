"""Where memory is scarce the kernel kills what takes more, of that node's program alone, and nobody has panicked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from probe_cluster import Cluster

from harness.environments.docker.leftovers import cleanup
from harness.environments.impairment import ScarceMemory
from harness.environments.remote import control_groups

pytestmark = pytest.mark.docker

SCARCE = ScarceMemory(left_mb=8)
MOST_CONNECTIONS = 100
"""Whoever is killed is heard no more before its port is closed: on a busy machine that takes a while."""


def groups_of(cluster: Cluster) -> list[str]:
    return sorted(path.name for path in Path(control_groups.root()).glob(f"{cluster.run}-*"))


def test_a_program_that_takes_more_memory_than_is_left_is_killed_and_booted_in_the_end(probes: Cluster) -> None:
    environment = probes.environment
    effect = probes.do(environment.impair(["p1"], SCARCE))
    assert effect.happened
    assert effect.evidence == "p1: no more than 8 MB for what python3 takes from now on"
    assert groups_of(probes) == [f"{probes.run}-p1"]
    assert probes.ask("p1", "take", mb=2) and probes.ask("p2", "take", mb=64)
    with pytest.raises(Exception, match="ended"):
        probes.ask("p1", "take", mb=64)
    answers = (probes.ask("p2", "reach", to=["p1"]) for _ in range(MOST_CONNECTIONS))
    assert {"p1": "ConnectionRefusedError"} in answers
    assert environment.panics() == {}
    relieved = probes.do(environment.relieve(["p1"], SCARCE))
    assert relieved.happened and "p1: the kernel killed 1 processes, booted" in relieved.evidence
    probes.do(probes.until_serving("p1"))
    assert groups_of(probes) == []
    assert probes.ask("p1", "take", mb=64), "memory is scarce after the end of it"


def test_of_several_limits_the_lowest_counts_until_each_is_taken_away(probes: Cluster) -> None:
    environment, looser = probes.environment, ScarceMemory(left_mb=100)
    pid = probes.ask("p3", "time")["pid"]
    for one in (looser, SCARCE):
        assert probes.do(environment.impair(["p3"], one)).happened
    assert probes.do(environment.relieve(["p3"], SCARCE)).happened
    assert probes.ask("p3", "take", mb=30)
    assert "killed 0 processes" in probes.do(environment.relieve(["p3"], looser)).evidence
    assert probes.ask("p3", "time")["pid"] == pid


def test_a_clean_up_removes_the_groups_that_a_killed_harness_left_and_spares_those_of_the_living(
    probes: Cluster,
) -> None:
    root = Path(control_groups.root())
    dead, living = root / "stormproof-00000000-p1", root / f"{probes.run}-p1"
    dead.mkdir()
    probes.do(probes.environment.impair(["p1"], SCARCE))
    assert "control group stormproof-00000000-p1" in map(str, cleanup().removed)
    assert not dead.exists() and os.path.isdir(living)
    probes.do(probes.environment.relieve(["p1"], SCARCE))
