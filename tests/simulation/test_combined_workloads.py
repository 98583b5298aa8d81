"""Several workloads at once: each is judged by its own checkers, and what one of them shows is found beside others."""

from __future__ import annotations

from dataclasses import replace

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario, SettingValue
from stormproof.search.storm import blown_and_judged
from stormproof.session import registry


def storm(workload: str, **settings: SettingValue) -> Scenario:
    return Scenario(
        system="rocketmq",
        workload=workload,
        nemesis=("isolate primary every 12 for 7",),
        settings=settings,
        concurrency=3 * len(workload.split("+")),
        rate=30.0 * len(workload.split("+")),
        time_limit_s=16,
        seed=1,
    )


def test_all_of_them_keep_their_promises_at_once() -> None:
    scenario = storm("log+queue+consumption+pop+delayed+transactional+register")
    outcome = blown_and_judged(scenario, registry.resolve(scenario))
    assert outcome.verdict is Verdict.VALID, outcome.words()


def test_a_planted_bug_is_found_by_the_checker_of_the_workload_that_shows_it() -> None:
    scenario = replace(storm("register+log"), mutant="dispatch-to-max")
    outcome = blown_and_judged(scenario, registry.resolve(scenario))
    assert outcome.verdict is Verdict.INVALID
    found = {name for name, result in outcome.results.items() if result.verdict is Verdict.INVALID}
    assert "log/log" in found and "register/linearizable" not in found
    assert all(name.startswith("log/") for name in outcome.results["log/log"].anomalies)
