"""Nodes of CMQ leave every group, and a refusal is definite only where certainly nothing was changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness.environments.simulated.environment import SimulatedEnvironment
from harness.errors import OperationError
from harness.program import Program, PythonProgram
from harness.system import NodeSpec
from system_under_test.cmq.wire import Code, Request
from tests.unit.workloads.systems.cmq.nodes_on_hosts import SETTINGS, Cluster, play
from workloads.systems.cmq.adapter import SYSTEM


def playing(body: Callable[[Any, Cluster], Awaitable[None]]) -> None:
    async def story(environment: SimulatedEnvironment, cluster: Cluster) -> None:
        await body(environment.client_host("observer"), cluster)

    play(story)


def test_a_node_leaves_each_group_and_one_that_has_left_some_leaves_the_rest() -> None:
    async def body(host: Any, cluster: Cluster) -> None:
        cluster.members[1].remove("n3")
        assert await SYSTEM.shrink(SETTINGS, host, "n3") == "n3 belongs to none of 3 groups any more"
        assert all(members == {"n1", "n2"} for members in cluster.members.values())
        assert await SYSTEM.shrink(SETTINGS, host, "n3") == "n3 belongs to none of 3 groups any more"

    playing(body)


@pytest.mark.parametrize(
    ("unwilling", "is_definite", "left"), [({1}, True, set()), ({2}, False, {1}), ({3}, False, {1, 2})]
)
def test_a_refusal_is_definite_only_where_nothing_was_changed(
    unwilling: set[int], is_definite: bool, left: set[int]
) -> None:
    async def body(host: Any, cluster: Cluster) -> None:
        cluster.unwilling = unwilling
        with pytest.raises(OperationError) as raised:
            await SYSTEM.shrink(SETTINGS, host, "n3")
        assert raised.value.error.definite is is_definite
        assert {number for number, members in cluster.members.items() if "n3" not in members} == left

    playing(body)


def test_a_removal_that_does_not_fit_now_is_asked_for_again() -> None:
    async def body(host: Any, cluster: Cluster) -> None:
        cluster.unwilling = {1, 2, 3}
        leaving = asyncio.create_task(SYSTEM.shrink(SETTINGS, host, "n3"))
        await host.clock.sleep(0.5)
        cluster.unwilling = set()
        await leaving
        assert not any("n3" in members for members in cluster.members.values())

    playing(body)


def test_that_a_node_has_left_is_believed_of_no_leader_that_the_others_do_not_confirm() -> None:
    async def body(host: Any, cluster: Cluster) -> None:
        cluster.members[1].remove("n3")
        cluster.codes = {Request.PULL: Code.NOT_LEADER}
        with pytest.raises(OperationError) as raised:
            await SYSTEM.shrink(SETTINGS, host, "n3")
        assert not raised.value.error.definite

    playing(body)


def test_a_node_is_added_to_each_group_once_it_was_started_as_one_that_joins() -> None:
    async def body(host: Any, cluster: Cluster) -> None:
        for members in cluster.members.values():
            members.remove("n3")
        started: list[Program] = []

        async def start(program: Program) -> None:
            assert not any("n3" in members for members in cluster.members.values())
            started.append(program)

        node = next(node for node in SYSTEM.nodes(SETTINGS, None) if node.name == "n3")
        assert isinstance(node, NodeSpec)
        words = await SYSTEM.grow(SETTINGS, host, node, start)
        assert words == "n3 was added, and votes in each of 3 groups"
        assert all("n3" in members for members in cluster.members.values())
        (program,) = started
        assert isinstance(program, PythonProgram) and program.config["joins"] is True

    playing(body)
