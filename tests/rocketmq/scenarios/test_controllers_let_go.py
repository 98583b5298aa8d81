"""How the harness takes controllers out and lets them in again: what it may believe, and of whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.environments.impairment import LostDisk
from harness.errors import OperationError
from harness.program import Program, PythonProgram
from tests.rocketmq.scenarios.controller_cluster import ControllerCluster, controller, play
from workloads.systems.rocketmq.controller_membership import let_go, let_in
from workloads.systems.rocketmq.settings import RocketmqSettings

SETTINGS = RocketmqSettings()


async def taken_out(cluster: ControllerCluster, name: str) -> str:
    """Asks until somebody leads."""
    for _ in range(100):
        try:
            return await let_go(SETTINGS, cluster.env.client_host("observer"), name)
        except OperationError:
            await cluster.pass_s(0.2)
    raise AssertionError("nobody leads")


def test_a_controller_is_taken_out_once_and_comes_back_empty_as_one_who_joins() -> None:
    async def story(cluster: ControllerCluster) -> None:
        started: list[Program] = []

        async def start(program: Program) -> None:
            started.append(program)
            await cluster.env.replace_program("c2", program)
            await cluster.env.relieve(["c2"], LostDisk())

        assert (await taken_out(cluster, "c2")).startswith("c2 was removed, by ")
        assert (await taken_out(cluster, "c2")).startswith("c2 was no controller any more, by ")
        assert (await cluster.env.impair(["c2"], LostDisk())).happened
        planted = replace(controller("c2"), program=_with(controller("c2").program, raftSnapshotThreshold=33))
        words = await let_in(SETTINGS, cluster.env.client_host("observer"), planted, start)
        assert words.startswith("c2 was added, and votes, by ")
        (program,) = started
        assert isinstance(program, PythonProgram)
        assert (program.config["controllerJoinsGroup"], program.config["raftSnapshotThreshold"]) == (True, 33)
        assert (await taken_out(cluster, "c1")).startswith("c1 was removed, by "), "c2 counts again"

    play(story)


def test_a_controller_that_comes_back_to_its_old_place_is_sent_heartbeats_again() -> None:
    async def story(cluster: ControllerCluster) -> None:
        b1, _, _ = await cluster.three()
        assert (await taken_out(cluster, "c2")).startswith("c2 was removed")
        await cluster.pass_s(2.5)
        assert sorted(b1.client.controllers) == ["c1:9878", "c3:9878"]
        await cluster.env.impair(["c2"], LostDisk())

        async def start(program: Program) -> None:
            await cluster.env.replace_program("c2", program)
            await cluster.env.relieve(["c2"], LostDisk())

        await let_in(SETTINGS, cluster.env.client_host("observer"), controller("c2"), start)
        await cluster.pass_s(2.5)
        assert sorted(b1.client.controllers) == ["c1:9878", "c2:9878", "c3:9878"]
        await cluster.env.power_off(["c1", "c3"])
        await cluster.env.boot(["c1", "c3"])
        await b1.insist(lambda: b1.client.transfer_leadership("c2"))
        await cluster.pass_s(20)
        assert (await b1.info()).master_id == 1, "who leads now has heard it all the time"

    play(story)


def _with(program: Program, **config: object) -> PythonProgram:
    assert isinstance(program, PythonProgram)
    return replace(program, config={**program.config, **config})


def test_a_leader_that_is_cut_off_is_not_believed() -> None:
    async def story(cluster: ControllerCluster) -> None:
        words = await taken_out(cluster, "c3")
        leader = words.rpartition(" ")[2].partition(":")[0]
        (other,) = {"c1", "c2"} - {leader}
        await cluster.cut_between([(leader, other)])
        with pytest.raises(OperationError):
            await let_go(SETTINGS, cluster.env.client_host("observer"), "c3")

    play(story)


def test_the_last_but_one_is_not_let_go_while_the_other_is_away() -> None:
    async def story(cluster: ControllerCluster) -> None:
        words = await taken_out(cluster, "c3")
        leader = words.rpartition(" ")[2].partition(":")[0]
        (other,) = {"c1", "c2"} - {leader}
        await cluster.env.kill([other])
        with pytest.raises(OperationError):
            await let_go(SETTINGS, cluster.env.client_host("observer"), leader)

    play(story)
