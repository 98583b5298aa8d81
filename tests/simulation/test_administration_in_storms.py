"""Administrators act while a storm blows: what they change is changed, and nothing that was promised is broken."""

from __future__ import annotations

import pytest

from checkers.api.verdict import Verdict
from harness.administration import ADMINISTER
from harness.record.scenario import Scenario
from stormproof.search.storm import blown_and_judged
from stormproof.session import registry

ACTS = {
    "more-queues": "storm: 32 queues instead of 16",
    "more-retry-queues": ": 8 queues for retries",
    "remade-groups": " deleted",
    "passing-topic": "passing made, and 20 messages sent to it",
}


@pytest.mark.parametrize(
    ("act", "workload"),
    [
        ("passing-topic", "consumption"),
        *(pytest.param(act, "consumption", marks=pytest.mark.gate) for act in ACTS if act != "passing-topic"),
        *(pytest.param(act, "pop", marks=pytest.mark.gate) for act in ACTS),
    ],
)
def test_an_act_is_done_again_and_again_and_breaks_no_promise(act: str, workload: str) -> None:
    scenario = Scenario(
        system="rocketmq",
        workload=workload,
        nemesis=(f"administer {act} every 4 for 1", "isolate primary every 11 for 3"),
        settings={"popping": True} if workload == "consumption" else {},
        rate=20.0,
        time_limit_s=20.0,
        recovery_s=4.0,
        seed=3,
    )
    judged = blown_and_judged(scenario, registry.resolve(scenario))
    assert judged.verdict is Verdict.VALID, judged.words()
    done = [window.evidence for window in judged.blown.faults.struck if window.kind == ADMINISTER]
    assert any(words.endswith(ACTS[act]) for words in done), done
    assert judged.blown.faults.unhealed == ()
