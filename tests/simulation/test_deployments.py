"""Each deployment comes through storms, in each of which it promises what its row of the table of legal losses says."""

from __future__ import annotations

import pytest

from checkers.api.verdict import Verdict
from harness.errors import UsageError
from harness.record.scenario import Scenario, SettingValue
from stormproof.search.storm import blown_and_judged
from stormproof.session import registry

STORM = ("partition", "kill", "clock", "power")
SEED = 3


def storm(seed: int = SEED, workload: str = "log", **settings: SettingValue) -> Scenario:
    return Scenario(
        system="rocketmq", workload=workload, nemesis=STORM, settings=settings, rate=100, time_limit_s=12, seed=seed
    )


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"deployment": "single"}, marks=pytest.mark.gate),
        {"deployment": "single", "flush": "async"},
        pytest.param({"deployment": "masters"}, marks=pytest.mark.gate),
        {"deployment": "masters", "groups": 3, "flush": "async"},
        pytest.param({"deployment": "async-slaves"}, marks=pytest.mark.gate),
        {"deployment": "async-slaves", "groups": 2, "brokers": 2, "flush": "async"},
        pytest.param({"deployment": "dual-write"}, marks=pytest.mark.gate),
        {"deployment": "dual-write", "groups": 2, "brokers": 2, "flush": "async"},
        pytest.param({"groups": 2}, marks=pytest.mark.gate),
        {"controllers_alone": True, "name_servers": 2},
        {"controllers": 1, "name_servers": 2},
    ],
    ids=lambda settings: " ".join(f"{name}={value}" for name, value in settings.items()),
)
def test_it_keeps_its_promises(settings: dict[str, SettingValue]) -> None:
    outcome = blown_and_judged(storm(**settings), registry.resolve(storm(**settings)))
    assert outcome.verdict is Verdict.VALID, outcome.words()


@pytest.mark.parametrize("deployment", ["masters", "dual-write"])
def test_queues_of_several_groups_are_emptied(deployment: str) -> None:
    scenario = storm(workload="queue", deployment=deployment, groups=2)
    outcome = blown_and_judged(scenario, registry.resolve(scenario))
    assert outcome.verdict is Verdict.VALID, outcome.words()


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, marks=pytest.mark.gate),
        {"groups": 2, "brokers": 2},
        {"deployment": "dual-write", "proxies": 1},
    ],
)
def test_what_is_received_through_proxies_comes_until_it_is_acknowledged(settings: dict[str, SettingValue]) -> None:
    scenario = storm(workload="pop", client="grpc", **settings)
    outcome = blown_and_judged(scenario, registry.resolve(scenario))
    assert outcome.verdict is Verdict.VALID, outcome.words()


def test_proxies_are_refused_for_what_asks_for_queues_by_number() -> None:
    with pytest.raises(UsageError, match="client=grpc goes through proxies, which do not let clients choose queues"):
        registry.resolve(storm(workload="log", client="grpc"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"deployment": "single", "groups": 2}, "deployment=single has one broker, got groups=2"),
        ({"deployment": "single", "brokers": 2}, "deployment=single has one broker in each group, got brokers=2"),
        ({"deployment": "masters", "groups": 1}, "deployment=masters needs at least two groups"),
        ({"deployment": "dual-write", "brokers": 1}, "deployment=dual-write needs a master and a slave"),
        ({"deployment": "dual-write", "all_ack": False}, "all_ack means nothing with deployment=dual-write"),
        ({"deployment": "async-slaves", "controllers": 5}, "controllers means nothing with deployment=async-slaves"),
        ({"deployment": "async-slaves", "learners": 1}, "learners means nothing"),
        ({"deployment": "twins"}, "setting deployment takes one of controller, single, masters"),
    ],
    ids=str,
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, SettingValue], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        registry.resolve(storm(**settings))


@pytest.mark.parametrize("workload", ["register", "bank", "list-append"])
def test_without_controllers_nothing_runs_on_their_store(workload: str) -> None:
    with pytest.raises(UsageError, match="deployment=single has no controllers"):
        registry.resolve(storm(workload=workload, deployment="single"))
