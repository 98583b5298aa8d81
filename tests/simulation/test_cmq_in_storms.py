"""CMQ comes through storms, its nodes leave and come back, and what its clients may not see is found."""

from __future__ import annotations

import pytest

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario, SettingValue
from stormproof.search.storm import StormOutcome, blown_and_judged
from stormproof.session import registry
from system_under_test.cmq.deliveries import Deliveries


def outcome_of(
    *schedule: str,
    mutant: str | None = None,
    workload: str = "queue",
    seed: int = 1,
    liveness_s: float = 0.0,
    **settings: SettingValue,
) -> StormOutcome:
    scenario = Scenario(
        system="cmq",
        workload=workload,
        nemesis=() if schedule else ("partition", "kill", "pause", "power"),
        schedule=schedule,
        settings=settings,
        mutant=mutant,
        rate=50,
        time_limit_s=15 + liveness_s,
        liveness_s=liveness_s,
        seed=seed,
    )
    return blown_and_judged(scenario, registry.resolve(scenario))


@pytest.mark.parametrize(
    ("workload", "settings"),
    [
        ("queue", {}),
        ("pop", {"groups": 2}),
        ("queue+pop", {"groups": 1}),
        pytest.param("queue", {"nodes": 5, "groups": 4}, marks=pytest.mark.gate),
        pytest.param("queue", {"file_bytes": 256, "window_entries": 1, "batch_entries": 1}, marks=pytest.mark.gate),
        pytest.param("pop", {"groups": 16, "spread": False, "queues": 8}, marks=pytest.mark.gate),
        pytest.param("pop", {"invisible_ms": 200, "omitted_share": 0.6}, marks=pytest.mark.gate),
        pytest.param("queue", {"invisible_ms": 10_000}, marks=pytest.mark.gate),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(f"{name}={each}" for name, each in value.items()),
)
def test_it_keeps_its_promises(workload: str, settings: dict[str, SettingValue]) -> None:
    outcome = outcome_of(workload=workload, **settings)
    assert outcome.verdict is Verdict.VALID, outcome.words()


def test_a_quorum_serves_while_the_others_are_down() -> None:
    outcome = outcome_of("3 for 5 isolate leader [partition 0]", liveness_s=25.0)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert outcome.results["liveness"].verdict is Verdict.VALID


def test_nodes_leave_every_group_and_join_anew_with_empty_disks() -> None:
    replaced = ("3 for 4 shrink leader [membership 0]", "11 for 4 wipe one of nodes [membership 1]")
    outcome = outcome_of(*replaced, groups=2)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    first, second = outcome.blown.faults.struck
    assert first.evidence is not None and "belongs to none of 2 groups any more" in first.evidence
    for one in (first, second):
        assert one.healing is not None and "was added, and votes in each of 2 groups" in one.healing


EARLY = ("4 for 6 isolate leader [partition 0]", "11 for 2 kill leader [kill 0]")


def test_what_a_new_leader_gives_out_again_is_legal_of_its_own_group_and_at_that_time_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome = outcome_of(*EARLY, workload="pop", groups=2, invisible_ms=3_000)
    assert outcome.verdict is Verdict.VALID and outcome.results["pop"].anomalies["redelivered-early"].legal
    outcome = outcome_of(*EARLY, workload="pop", groups=2, invisible_ms=3_000, strict=True)
    assert set(outcome.anomalies) == {"redelivered-early"}

    def hurried(self: Deliveries, visibility_ns: int) -> None:
        begun(self, visibility_ns // 2)

    begun = Deliveries.__init__
    monkeypatch.setattr(Deliveries, "__init__", hurried)
    outcome = outcome_of(*EARLY, workload="pop", groups=2, invisible_ms=3_000)
    assert set(outcome.anomalies) == {"redelivered-early", "given-while-held"}, "no leader was new"


def test_a_message_that_comes_again_though_it_was_acknowledged_is_found() -> None:
    outcome = outcome_of("3 for 2 kill leader [kill 0]", "6 for 2 kill leader-2 [kill 1]", mutant="ack-local", groups=2)
    assert outcome.verdict is Verdict.INVALID and "duplicated" in outcome.anomalies, outcome.words()
