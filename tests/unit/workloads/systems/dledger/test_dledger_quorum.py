"""When DLedger's healthy members have to serve by themselves, and when those that are not damaged do."""

from __future__ import annotations

import pytest

from checkers.api.verdict import Verdict
from harness.abilities import Quorate, Separable
from harness.environments.simulated.environment import SimulatedEnvironment
from harness.program import PythonProgram
from harness.record.node_reports import NoReports
from harness.record.scenario import Scenario
from harness.record.steady_spans import SteadySpan
from harness.system import NodeSpec
from stormproof.search.storm import blown_and_judged
from stormproof.session import registry
from system_under_test.dledger.message import Code
from tests.unit.workloads.systems.dledger.members_on_hosts import play
from workloads.systems.dledger.adapter import STARTS_WITHIN_S, SYSTEM
from workloads.systems.dledger.client import PATIENCE_S
from workloads.systems.dledger.quorum import serves_within_s
from workloads.systems.dledger.settings import DledgerSettings

THREE, FIVE = DledgerSettings(), DledgerSettings(members=5)
MAIN = "tests.unit.workloads.systems.dledger.members_on_hosts:answering"


def span(of: DledgerSettings, down: str = "", **reached: str) -> SteadySpan:
    """All are healthy but those that are down, and those of which it is said whom they reach."""
    return SteadySpan(
        from_ns=0,
        until_ns=1,
        healthy=frozenset(of.names) - set(down.split()) - reached.keys(),
        down=frozenset(down.split()),
        reached={node: frozenset(others.split()) for node, others in reached.items()},
    )


@pytest.mark.parametrize(
    ("settings", "steady", "has_to"),
    [
        (THREE, span(THREE), True),
        (THREE, span(THREE, "n2"), True),
        (THREE, span(THREE, "n1 n2"), False),
        (THREE, span(THREE, n1=""), True),
        (THREE, span(THREE, n1="n3"), False),
        (FIVE, span(FIVE, "n1", n2=""), True),
        (FIVE, span(FIVE, "n1", n2="n5"), False),
        (FIVE, span(FIVE, "n1 n2", n3=""), False),
    ],
    ids=[
        "all",
        "one is down",
        "two are down",
        "one is cut off",
        "one is not heard by all",
        "of five one is down and one cut off",
        "of five one is down and one heard by one",
        "of five two are left",
    ],
)
def test_a_majority_has_to_serve_that_no_other_member_disturbs(
    settings: DledgerSettings, steady: SteadySpan, has_to: bool
) -> None:
    assert SYSTEM.must_serve(settings, "log", steady, NoReports()) is has_to


def test_the_bound_scales_with_beats_and_grows_with_members_that_may_be_asked_in_vain() -> None:
    usual, slow = (serves_within_s(DledgerSettings(time_scale=scale)) for scale in (0.25, 2.0))
    assert slow - usual == pytest.approx(1.75 * 20)
    assert serves_within_s(FIVE) - serves_within_s(THREE) == PATIENCE_S
    public = SYSTEM.cluster(DledgerSettings(release="0.3.1")).serves_within_s
    assert public == serves_within_s(THREE) + STARTS_WITHIN_S


def serves_without(damaged: str, **leaders: str | None) -> bool | None:
    """Whether the group serves without these, as members take the others for leaders; None: it was not known in 20 s.
    Members of which nothing is said do not run."""
    nodes = [
        NodeSpec(name=name, groups=(), program=PythonProgram(main=MAIN, config={"code": Code.SUCCESS, "leader": whom}))
        for name, whom in leaders.items()
    ]
    found: list[bool | None] = []

    async def story(environment: SimulatedEnvironment) -> None:
        host = environment.client_host("client")
        asked = SYSTEM.serves_without(THREE, host, "log", frozenset(damaged.split()))
        try:
            found.append(await environment.timeline.within(20.0, asked))
        except TimeoutError:
            found.append(None)

    play(nodes, story)
    return found[0]


@pytest.mark.parametrize(
    ("damaged", "leaders", "serves"),
    [
        ("n3", {"n1": "n1", "n2": "n1"}, True),
        ("n3", {"n1": "n1", "n2": "n1", "n3": None}, True),
        ("n3", {"n1": "n3", "n2": "n3", "n3": "n3"}, False),
        ("n2 n3", {"n1": "n1"}, False),
        ("n3", {"n1": "n1", "n2": "n2"}, None),
        ("n3", {"n1": "n1", "n2": None}, None),
        ("n3", {"n1": None, "n2": None}, None),
        ("n3", {"n1": "n1"}, None),
    ],
    ids=[
        "the damaged one is down",
        "the damaged one stands alone",
        "the damaged one leads",
        "too few are left",
        "two lead",
        "one stands",
        "nobody leads",
        "one does not answer",
    ],
)
def test_the_others_serve_once_they_follow_one_of_themselves(
    damaged: str, leaders: dict[str, str | None], serves: bool | None
) -> None:
    assert serves_without(damaged, **leaders) is serves


def test_the_adapter_has_both_abilities() -> None:
    assert isinstance(SYSTEM, Quorate) and isinstance(SYSTEM, Separable)


def test_the_rest_serves_while_the_leader_is_cut_off() -> None:
    scenario = Scenario(
        system="dledger",
        workload="log",
        schedule=("3 for 20 isolate leader [cut 0]",),
        rate=20,
        time_limit_s=23,
        seed=4,
    )
    storm = blown_and_judged(scenario, registry.resolve(scenario))
    assert storm.verdict is Verdict.VALID, storm.words()
    progress = storm.results["progress"].statistics
    assert progress["demanded_s"] == pytest.approx(20, abs=1)
    assert 1 < progress["longest_without_success_s"]["send"] < serves_within_s(THREE) / 2
