"""RocketMQ's own brokers above a group of DLedger: what they are given, what they log, and who leads."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.environments.simulated.environment import SimulatedEnvironment
from harness.errors import OUTCOME_UNKNOWN, SERVICE_NOT_AVAILABLE, ErrorCode, OperationError, UsageError
from harness.generator import invoke
from harness.operation import Operation
from harness.program import Command, PythonProgram
from harness.record.node_reports import NoReports
from harness.record.steady_spans import SteadySpan
from harness.reporting import Account
from harness.system import NodeSpec
from system_under_test.dledger.message import Code
from tests.unit.workloads.systems.dledger.members_on_hosts import play
from workloads.systems.rocketmq.adapter import ORIGINALS_ELECT_S, SYSTEM
from workloads.systems.rocketmq.clients.appended_first import AppendedFirst
from workloads.systems.rocketmq.errors import IN_SYNC_REPLICAS_NOT_ENOUGH
from workloads.systems.rocketmq.original_members import OriginalMembers
from workloads.systems.rocketmq.settings import RocketmqSettings

OURS = RocketmqSettings(deployment="dledger")
PUBLIC = RocketmqSettings(deployment="dledger", release="5.4.0", preferred=2, batch_push=True)
TWO_GROUPS = RocketmqSettings(deployment="dledger", release="5.4.0", groups=2)
AT_NS = 1_795_759_200_000_000_000
"""2026-11-27 14:00:00 as RocketMQ's logs date it, second 0 of the run."""
HANDLED = "INFO DLegerRoleChangeHandler_1 - Finish handling broker role change"
LOGGED = (
    "2026-11-27 14:00:01.250 INFO StateMaintainer - [b4] [ChangeRoleToCandidate] from term: 2 and currTerm: 1",
    f"2026-11-27 14:00:01.300 {HANDLED} succ=true term=2 role=CANDIDATE currStoreRole=SLAVE cost=0",
    "2026-11-27 14:00:01.500 INFO StateMaintainer - [b4] [ChangeRoleToLeader] from term: 2 and currTerm: 2",
    f"2026-11-27 14:00:01.750 {HANDLED} succ=true term=2 role=LEADER currStoreRole=SYNC_MASTER cost=29",
    "2026-11-27 14:00:02.000 INFO NettyServerPublicExecutor_2 - [b4][ChangeRoleToFollower] from term: 3 leaderId: b5 "
    "and currTerm: 3",
    f"2026-11-27 14:00:02.250 {HANDLED} succ=true term=3 role=FOLLOWER currStoreRole=SLAVE cost=4",
    f"2026-11-27 14:00:02.500 {HANDLED} succ=false term=4 role=LEADER currStoreRole=SLAVE cost=4",
)


def events(node: str, wall_at_zero_ns: int | None = AT_NS) -> list[dict[str, Any]]:
    account = Account(observed=(), logs={"broker.log": LOGGED}, console=(), wall_at_zero_ns=wall_at_zero_ns)
    return [dict(event) for event in OriginalMembers(TWO_GROUPS).events(node, account)]


def test_parts_in_each_term_and_roles_once_they_are_acted_are_read_from_logs() -> None:
    group = {"group": "broker-b"}
    acts = {**group, "event": "role", "broker_id": None, "start_offset": None}
    assert events("b4") == [
        {"time": 1_250_000_000, "event": "candidate", "term": 1, **group},
        {"time": 1_500_000_000, "event": "leader", "term": 2, **group},
        {"time": 1_750_000_000, "role": "master", "master_epoch": 2, **acts},
        {"time": 2_000_000_000, "event": "follower", "term": 3, **group},
        {"time": 2_250_000_000, "role": "slave", "master_epoch": 3, **acts},
    ]
    assert isinstance(SYSTEM.reporting(TWO_GROUPS), OriginalMembers)
    assert SYSTEM.reporting(OURS) is None


def test_nothing_is_read_of_other_nodes_or_of_what_a_wrong_clock_dated() -> None:
    assert events("n1") == []
    assert events("b4", wall_at_zero_ns=None) == []


def lines(node: str) -> dict[str, str]:
    (program,) = (spec.program for spec in SYSTEM.nodes(PUBLIC, None) if spec.name == node)
    assert isinstance(program, Command)
    (text,) = (text for path, text in program.files.items() if path.endswith(".conf"))
    return dict(line.split("=", 1) for line in text.splitlines())


def test_brokers_are_given_their_group_by_the_names_that_they_document() -> None:
    given = lines("b3")
    assert given["enableDLegerCommitLog"] == "true" and given["enableBatchPush"] == "true"
    assert (given["dLegerGroup"], given["dLegerSelfId"], given["preferredLeaderId"]) == ("broker-a", "b3", "b2")
    assert given["dLegerPeers"] == "b1-b1:20911;b2-b2:20911;b3-b3:20911"
    assert "enableControllerMode" not in given and "brokerId" not in given


def test_brokers_beside_them_are_ours_with_the_librarys_times() -> None:
    mixed = RocketmqSettings(deployment="dledger", release="5.4.0", groups=2, originals=1, time_scale=0.1)
    ours = {node.name: node.program for node in SYSTEM.nodes(mixed, None) if isinstance(node.program, PythonProgram)}
    assert set(ours) == {"n1", "n2", "n3", "b2", "b3", "b5", "b6"}
    assert ours["b2"].config["heartBeatTimeIntervalMs"] == 2_000
    assert SYSTEM.nodes(OURS, None)[-1].program.config["heartBeatTimeIntervalMs"] == 600  # type: ignore[union-attr]
    assert not any(isinstance(node.program, PythonProgram) for node in SYSTEM.nodes(PUBLIC, None))


def test_nothing_is_planted_in_them_and_they_know_no_durable_acknowledgement() -> None:
    with pytest.raises(UsageError, match="nothing is planted"):
        SYSTEM.nodes(PUBLIC, "flush-lie")
    with pytest.raises(UsageError, match="ack_durable is no setting of a RocketMQ that Apache publishes"):
        RocketmqSettings(deployment="dledger", release="5.4.0", ack_durable=True)


class Refusing:
    """`Client` whose operations fail."""

    def __init__(self, error: ErrorCode) -> None:
        self.error = error

    async def open(self) -> None:
        raise AssertionError

    close = open

    async def invoke(self, operation: Operation) -> Operation:
        raise OperationError(self.error, "in words", node="b2")


def test_what_they_refuse_for_want_of_replicas_they_have_appended_already() -> None:
    for given, found in (
        (IN_SYNC_REPLICAS_NOT_ENOUGH, OUTCOME_UNKNOWN),
        (SERVICE_NOT_AVAILABLE, SERVICE_NOT_AVAILABLE),
    ):
        with pytest.raises(OperationError, match="in words") as raised:
            asyncio.run(AppendedFirst(Refusing(given)).invoke(invoke("send", {})))
        assert raised.value.error is found and raised.value.node == "b2"
    made = []

    async def story(environment: SimulatedEnvironment) -> None:
        for settings in (PUBLIC, OURS, RocketmqSettings(release="5.4.0")):
            made.append(SYSTEM.client("log", settings, environment.client_host("client"), 0))

    play([], story)
    assert [isinstance(client, AppendedFirst) for client in made] == [True, False, False]


def test_they_have_longer_to_elect_whatever_the_time_scale() -> None:
    ours, theirs = SYSTEM.cluster(OURS), SYSTEM.cluster(PUBLIC)
    for bound in ("recovers_within_s", "progresses_within_s", "serves_within_s"):
        assert getattr(theirs, bound) == getattr(ours, bound) + ORIGINALS_ELECT_S
    controlled = SYSTEM.cluster(RocketmqSettings(release="5.4.0"))
    assert controlled.serves_within_s == SYSTEM.cluster(RocketmqSettings()).serves_within_s


def test_a_majority_of_them_has_to_serve_whatever_they_report() -> None:
    for healthy, has_to in (("b1 b3", True), ("b1", False)):
        span = SteadySpan(
            from_ns=0, until_ns=1, healthy=frozenset((*healthy.split(), "n1", "n2", "n3")), down=frozenset(), reached={}
        )
        assert SYSTEM.must_serve(PUBLIC, "log", span, NoReports()) is has_to


def test_the_master_is_the_member_that_says_of_itself_that_it_leads() -> None:
    main = "tests.unit.workloads.systems.dledger.members_on_hosts:answering"
    program = PythonProgram(main=main, config={"code": Code.SUCCESS, "leader": "b3"})
    nodes = [NodeSpec(name=name, groups=(), program=program) for name in ("b2", "b3")]
    found = []

    async def story(environment: SimulatedEnvironment) -> None:
        found.append(await SYSTEM.roles(PUBLIC, environment.client_host("client")))

    play(nodes, story)
    assert found == [{"primary": ("b3",), "dispensable": ("b3",), "preferred": ("b2",)}]
