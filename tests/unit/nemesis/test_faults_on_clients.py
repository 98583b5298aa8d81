"""Clients are cut off and paused, where an environment reaches them; no fault on them counts as one on nodes."""

from __future__ import annotations

import random

import pytest

from checkers.api.verdict import Verdict
from harness.environments.environment import Link
from harness.errors import UsageError
from harness.record.fault_log import FaultLog
from harness.record.scenario import Scenario
from harness.record.steady_spans import steady_spans
from nemesis.cluster import Cluster
from nemesis.fault import Partition
from nemesis.links import between
from nemesis.package import clients
from nemesis.vocabulary import CLIENTS, EVERYBODY, Vocabulary
from stormproof.search.storm import blown_and_judged
from stormproof.session import registry
from tests.unit.nemesis.systems import ROCKETMQ, WORDS

NODES = WORDS.nodes


def scenario(*nemesis: str, environment: str = "simulated") -> Scenario:
    return Scenario(
        system="rocketmq",
        workload="log",
        environment=environment,
        nemesis=nemesis,
        concurrency=4,
        rate=40.0,
        time_limit_s=20.0,
        recovery_s=4.0,
        seed=5,
    )


def test_what_strikes_a_client_strikes_no_node() -> None:
    cut = Partition(between(("client-1",), NODES))
    assert cut.nodes == ("client-1",)
    with_company = Partition((*between(("b1",), ("b2",)), *between(("b1",), ("client-0",))))
    assert with_company.nodes == ("b1", "b2", "client-0")
    assert Partition((Link("b1", "client-2"),)).nodes == ("client-2",)


def test_clients_are_a_group_beside_all_nodes() -> None:
    assert CLIENTS in WORDS.groups
    assert WORDS.groups[EVERYBODY] == ("b1", "b2", "b3", "c1", "c2", "c3")
    with pytest.raises(UsageError, match="'clients' cannot be the name of a node"):
        Vocabulary(groups={EVERYBODY: ("clients",)})


def test_a_client_that_is_cut_off_succeeds_in_nothing_and_the_others_go_on() -> None:
    judged = blown_and_judged(one := scenario("isolate one of clients every 8 for 6"), registry.resolve(one))
    assert judged.verdict is Verdict.VALID, judged.words()
    (window, *_) = judged.blown.faults.struck
    ((client,), aimed_at) = window.nodes, window.aimed_at
    assert aimed_at == (client,)
    thread = int(client.removeprefix("client-"))
    # What was answered before it was cut off may still be on its way for a while.
    during = [
        row
        for row in judged.blown.history.to_pylist()
        if window.start_ns + 2e8 < row["time"] < window.stop_ns and row["type"] == "ok"
    ]
    assert during
    assert thread not in {row["process"] % one.concurrency for row in during}


def test_a_client_that_is_paused_goes_on_where_it_was() -> None:
    judged = blown_and_judged(one := scenario("pause one of clients every 8 for 5"), registry.resolve(one))
    assert judged.verdict is Verdict.VALID, judged.words()
    for window in judged.blown.faults.struck:
        thread = int(window.nodes[0].removeprefix("client-"))
        own = [
            row
            for row in judged.blown.history.to_pylist()
            if row["process"] % one.concurrency == thread and row["type"] == "ok"
        ]
        assert not [row for row in own if window.start_ns + 2e8 < row["time"] < window.stop_ns]
        assert [row for row in own if row["time"] > window.stop_ns]


def test_what_is_owed_to_clients_that_are_struck_is_not_known() -> None:
    judged = blown_and_judged(one := scenario("pause one of clients every 8 for 5"), registry.resolve(one))
    faults: FaultLog = judged.blown.faults
    spans = list(steady_spans(faults.struck, NODES, 0, round(20e9), 1))
    struck = [(window.start_ns, window.stop_ns) for window in faults.struck]
    assert all(span.until_ns <= start or span.from_ns >= stop for span in spans for start, stop in struck)


@pytest.mark.parametrize("sentence", ["kill one of clients every 9 for 1", "skew clocks of clients every 9 for 1"])
def test_what_can_be_done_to_nodes_alone_is_refused_for_clients(sentence: str) -> None:
    one = scenario(sentence)
    with pytest.raises(UsageError, match="clients are no nodes; they are cut off, paused"):
        registry.environment_of(one, registry.resolve(one))


@pytest.mark.parametrize("nemesis", ["clients", "pause one of clients every 9 for 1"])
def test_an_environment_that_does_not_reach_them_refuses_by_name(nemesis: str) -> None:
    one = scenario(nemesis, environment="docker")
    with pytest.raises(UsageError, match="environment 'docker' cannot strike single clients"):
        registry.environment_of(one, registry.resolve(one))


def test_before_a_storm_has_begun_nobody_is_struck() -> None:
    cluster = Cluster(groups=WORDS.groups, roles={"primary": ("b1",)})
    for _, shape in clients(ROCKETMQ).shapes:
        assert shape.strike(cluster, random.Random(0)) is None
