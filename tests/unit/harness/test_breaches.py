"""What is reported as broken is kept up to a bound, and only under names whose meaning the system declares."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from harness.abilities import invariants_of
from harness.errors import HarnessError
from harness.invariants import MOST_OF_A_NAME, Breaches
from harness.record.scenario import Scenario
from harness.watch import BOOTED
from stormproof.search.storm import blow
from stormproof.session import registry
from workloads.systems.rocketmq.invariants import RocketmqInvariants


def test_of_one_name_so_many_are_kept() -> None:
    breaches = Breaches(lambda: 5, ("unheld-ack", "not-durable"))
    for number in range(MOST_OF_A_NAME + 10):
        breaches.says("unheld-ack", ("b1",), f"number {number}")
    breaches.says("not-durable", ("b2",), "the other")
    assert len(breaches.kept()) == MOST_OF_A_NAME + 1
    assert breaches.kept()[-1].name == "not-durable"


def test_a_name_without_a_meaning_ends_the_run_and_not_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def saw(self: RocketmqInvariants, node: str, event: str, fields: Mapping[str, object]) -> None:
        if event == BOOTED:
            self._first._says("unheld-acks", (node,), "it is there")

    monkeypatch.setattr(RocketmqInvariants, "saw", saw)
    scenario = Scenario(system="rocketmq", workload="log", environment="simulated", time_limit_s=1, seed=1)
    facts = blow(scenario, registry.resolve(scenario)).facts
    (reason,) = facts.reasons
    assert reason.startswith(
        "the harness failed: unknown invariant 'unheld-acks'; did you mean unheld-ack? Known are: unheld-ack, not-"
    )
    assert reason.endswith("; a system declares them with meanings")
    assert not facts.panics
    assert not facts.breaches


def test_who_declares_invariants_has_to_bring_them() -> None:
    system = SimpleNamespace(name="shelf")
    assert invariants_of(system, None, Breaches(lambda: 0, ())) is None  # type: ignore[arg-type]
    with pytest.raises(HarnessError, match=r"^shelf declares invariants, so it needs the method invariants$"):
        invariants_of(system, None, Breaches(lambda: 0, ("whole-shelf",)))  # type: ignore[arg-type]
