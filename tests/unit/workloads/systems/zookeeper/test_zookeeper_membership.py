"""How a server of ZooKeeper leaves the ensemble and comes back: what the others are asked, and what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import NewConfigNoQuorumError

from harness.errors import CONNECTION_LOST, OperationError
from harness.program import Command
from workloads.systems.zookeeper import membership, session
from workloads.systems.zookeeper.adapter import SYSTEM, ZookeeperSettings
from workloads.systems.zookeeper.nodes import CONFIG_FILE, dynamic_server

DYNAMIC = ZookeeperSettings(reconfig=True)


class Ensemble:
    """Whom it was asked of, for which change; `answers` has what fails, by server."""

    def __init__(self, answers: Mapping[str, Exception] | None = None) -> None:
        self.asked: list[tuple[str, str | None, str | None]] = []
        self.answers = dict(answers or {})

    def session(self, node: str, address: str, *, lasts_s: float) -> Any:
        async def opened() -> None:
            if isinstance(self.answers.get(node), OperationError) and node == "z1":
                raise self.answers[node]

        async def ask(request: Callable[[Any], Any]) -> None:
            def reconfig_async(joining: str | None, leaving: str | None, new: None, version: int) -> None:
                assert (new, version) == (None, -1)
                self.asked.append((node, joining, leaving))

            request(SimpleNamespace(reconfig_async=reconfig_async))
            if node in self.answers:
                raise self.answers[node]

        return SimpleNamespace(open=opened, ask=ask, close=lambda: asyncio.sleep(0))


HOST: Any = SimpleNamespace(
    network=SimpleNamespace(reached_at=lambda address: address),
    clock=SimpleNamespace(sleep=lambda seconds: asyncio.sleep(0)),
)


@pytest.fixture
def ensemble(monkeypatch: pytest.MonkeyPatch) -> Ensemble:
    made = Ensemble()
    monkeypatch.setattr(session, "Session", made.session)
    return made


def test_the_others_are_asked_to_do_without_a_server_until_one_can_be_reached(ensemble: Ensemble) -> None:
    ensemble.answers = {"z1": OperationError(CONNECTION_LOST)}
    assert asyncio.run(membership.let_go(HOST, "z3")) == "z3 was taken out, by z2"
    assert ensemble.asked == [("z2", None, "3")]


def test_a_change_without_enough_servers_is_refused_for_certain_and_one_that_is_not_answered_is_not(
    ensemble: Ensemble,
) -> None:
    ensemble.answers = {"z2": NewConfigNoQuorumError()}
    with pytest.raises(OperationError, match="NewConfigNoQuorumError") as refused:
        asyncio.run(membership.let_go(HOST, "z1"))
    assert refused.value.error.definite
    ensemble.answers = {"z2": OperationError(CONNECTION_LOST)}
    with pytest.raises(OperationError) as lost:
        asyncio.run(membership.let_go(HOST, "z1"))
    assert not lost.value.error.definite


def test_who_comes_back_follows_without_a_vote_before_it_is_let_in(ensemble: Ensemble) -> None:
    modes = iter(["", "observer", "observer", "follower"])

    async def mode() -> str:
        return next(modes)

    assert asyncio.run(membership.let_in(HOST, "z2", mode)) == "z2 was let in, and has a vote, by z1"
    assert ensemble.asked == [("z1", "server.2=z2:2888:3888:participant;2181", None)]


def test_only_an_ensemble_that_may_change_is_elastic_and_who_joins_has_no_vote_yet() -> None:
    assert SYSTEM.cluster(ZookeeperSettings()).elastic == ()
    assert SYSTEM.cluster(DYNAMIC).elastic == ("servers",)
    program = dynamic_server("z2", force_sync=True, joins=True).program
    assert isinstance(program, Command)
    assert "server.2=z2:2888:3888:observer;2181" in program.files[CONFIG_FILE]
    assert program.files[CONFIG_FILE].count("participant") == 2
    founding = dynamic_server("z2", force_sync=True).program
    assert isinstance(founding, Command)
    assert founding.files[CONFIG_FILE].count("participant") == 3
