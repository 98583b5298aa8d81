"""Brokers above a group of DLedger: upgraded under batch push, and with DLedger's own bugs planted beneath them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkers.api.verdict import Verdict
from harness.errors import UsageError
from harness.program import Program, PythonProgram
from harness.record.scenario import Scenario, SettingValue
from stormproof.search.storm import StormOutcome, blown_and_judged
from stormproof.session import registry
from system_under_test.node.settings import read_config
from system_under_test.rocketmq.broker.config import BrokerConfig
from workloads.systems.dledger.adapter import SYSTEM as DLEDGER
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.settings import RocketmqSettings

UPGRADED: dict[str, SettingValue] = {"deployment": "dledger", "begins_as_version": 4, "batch_push": True}


def storm(*schedule: str, mutant: str | None = None, **settings: SettingValue) -> StormOutcome:
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        mutant=mutant,
        settings={"deployment": "dledger", "time_scale": 0.1, **settings},
        schedule=schedule,
        rate=50,
        time_limit_s=12,
        recovery_s=4,
        seed=5,
    )
    return blown_and_judged(scenario, registry.resolve(scenario))


def config_of(program: Program | None) -> BrokerConfig:
    assert isinstance(program, PythonProgram)
    return read_config(BrokerConfig, program.config)


def test_older_brokers_know_no_batches_and_become_brokers_that_do() -> None:
    settings = RocketmqSettings(deployment="dledger", begins_as_version=4, batch_push=True)
    for node in SYSTEM.nodes(settings, None):
        if "brokers" in node.groups:
            older, newer = (config_of(one).member_config().core() for one in (node.program, node.upgraded))
            assert not older.understands_batches and not older.batch_bytes
            assert newer.understands_batches and newer.batch_bytes


def test_upgraded_one_after_the_other_under_load_they_lose_nothing() -> None:
    found = storm(
        "2 for 0.1 upgrade b2 [upgrade 0]",
        "4 for 0.1 upgrade b1 [upgrade 1]",
        "6 for 0.1 upgrade b3 [upgrade 2]",
        begins_as_version=4,
        batch_push=True,
    )
    assert found.verdict is Verdict.VALID, found.words()
    assert sum("upgrade" in fault.kinds for fault in found.blown.faults.struck) == 3


def test_bugs_of_dledger_can_be_planted_where_there_is_one() -> None:
    scenario = Scenario(system="rocketmq", workload="log", mutant="minority-commit", settings={"deployment": "dledger"})
    registry.resolve(scenario)
    for node in SYSTEM.nodes(RocketmqSettings(deployment="dledger"), "minority-commit"):
        assert isinstance(node.program, PythonProgram) and node.program.config["mutant"] == "minority-commit"
    registry.resolve(replace(scenario, mutant="flush-lie"))
    with pytest.raises(UsageError, match="minority-commit"):
        registry.resolve(replace(scenario, settings={}))


def test_no_bug_of_a_broker_has_the_name_of_one_of_dledger() -> None:
    assert SYSTEM.mutants.keys().isdisjoint(DLEDGER.mutants)


@pytest.mark.parametrize("mutant", [None, "minority-commit"])
def test_a_bug_that_is_planted_beneath_brokers_is_found_out(mutant: str | None) -> None:
    found = storm("4 for 5 isolate primary [cut 0]", mutant=mutant)
    assert found.verdict is (Verdict.INVALID if mutant else Verdict.VALID), found.words()
