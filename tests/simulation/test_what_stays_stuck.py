"""A storm whose faults do not heal, and a replica that stays stuck in the calm, are never VALID."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from checkers.api.verdict import Verdict
from harness.environments.environment import Effect
from harness.record.scenario import Scenario
from nemesis.nemesis import Nemesis
from nemesis.schedule import Entry
from stormproof.search.storm import StormOutcome, blown_and_judged
from stormproof.session import registry
from system_under_test.rocketmq.broker.ha.following import Following

BY_TIMES = "kill b3 every 4 for 1"


def run_storm(nemesis: str) -> StormOutcome:
    scenario = Scenario(system="rocketmq", workload="log", nemesis=(nemesis,), rate=40, time_limit_s=10, seed=3)
    return blown_and_judged(scenario, registry.resolve(scenario))


def test_the_storms_below_are_valid_where_nothing_is_changed() -> None:
    assert run_storm(BY_TIMES).verdict is Verdict.VALID


@pytest.mark.parametrize("claims", [True, False])
def test_a_nemesis_that_heals_nothing_before_the_end_of_the_storm(
    claims: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stop(self: Nemesis, entry: Entry) -> tuple[Any, Effect]:
        return self.active.get(entry.key), Effect(claims, "nothing was done")

    monkeypatch.setattr(Nemesis, "_stop", stop)
    storm = run_storm(BY_TIMES)
    assert storm.verdict is Verdict.UNKNOWN
    assert "faults were healed by nothing before the end of the storm: kill b3" in storm.words()


def test_a_nemesis_that_heals_nothing_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def undo(self: Nemesis, key: tuple[str, int]) -> Effect:
        del self.active[key]
        return Effect(False, "nothing was done")

    monkeypatch.setattr(Nemesis, "_undo", undo)
    storm = run_storm(BY_TIMES)
    assert storm.verdict is Verdict.UNKNOWN
    assert "faults were not healed: kill b3" in storm.words()


@pytest.mark.parametrize("is_stuck", [True, False])
def test_a_node_whose_disk_is_damaged_for_good_does_not_hide_another_that_is_stuck(
    is_stuck: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow: Callable[[Following], Any] = Following._run

    async def run(self: Following) -> None:
        if not (is_stuck and self._store.unclean_start and self._host.name == "b3"):
            await follow(self)

    monkeypatch.setattr(Following, "_run", run)
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        settings={"min_in_sync_replicas": 1},
        schedule=("2 for 1 cut files of b2 files=1 [files 0]", "5 for 1 kill b3 [kill 0]"),
        rate=40,
        time_limit_s=10,
        seed=12,
    )
    storm = blown_and_judged(scenario, registry.resolve(scenario))
    assert storm.blown.facts.apart == ("b2",)
    assert set(storm.anomalies) == ({"no-progress"} if is_stuck else set())


def test_a_replica_that_never_follows_again_after_a_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    follow: Callable[[Following], Any] = Following._run

    async def run(self: Following) -> None:
        if not self._store.unclean_start:
            await follow(self)

    monkeypatch.setattr(Following, "_run", run)
    storm = run_storm(BY_TIMES)
    assert storm.verdict is Verdict.INVALID
    assert set(storm.anomalies) == {"no-progress"}


def test_no_replica_is_stuck_whose_answers_take_longer_than_clients_wait_in_the_storm() -> None:
    settings = {"brokers": 4, "time_scale": 0.1}
    scenario = Scenario(system="rocketmq", workload="log", settings=settings, rate=20, time_limit_s=5, seed=0)
    storm = blown_and_judged(scenario, registry.resolve(scenario))
    assert storm.blown.regime["latency_ms"] > 100
    assert not storm.anomalies
    assert storm.verdict is Verdict.UNKNOWN, "nothing was answered in the storm"
