"""Raft groups whose logs have names report them entry by entry, and the checker of nodes compares them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import CheckerResult, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.replication import ReplicationChecker
from harness.record.node_events import TableOfReports, node_events_table
from system_under_test.raft.transport import PeerTransport
from tests.unit.harness.environments.simulated.lending import LENT
from tests.unit.system_under_test.raft.raft_cluster import NAMES, PORT, Member, RaftCluster, play

LOGS = ("left", "right")


async def start(cluster: RaftCluster, name: str) -> list[Member]:
    transport = PeerTransport(LENT[name], node=name, address=f"{name}:{PORT}", silence_s=2.0)
    joined = [
        await cluster.join(name, transport, group=number, directory=log, log=log) for number, log in enumerate(LOGS)
    ]
    await transport.start(PORT)
    return joined


async def boot(cluster: RaftCluster, name: str) -> list[Member]:
    await cluster.env.boot([name])
    await cluster.env.timeline.sleep(0)
    return await start(cluster, name)


def reported(snapshot_threshold: int) -> dict[str, list[dict[str, Any]]]:
    """By three nodes with two logs each, of which one loses what only it had written."""
    events: dict[str, list[dict[str, Any]]] = {}

    async def leader(cluster: RaftCluster, members: dict[str, list[Member]], group: int) -> str:
        await cluster.until(lambda: any(joined[group].node.is_active for joined in members.values()))
        return next(name for name, joined in members.items() if joined[group].node.is_active)

    async def story(cluster: RaftCluster) -> None:
        members = {name: await start(cluster, name) for name in NAMES}
        for group in (0, 1):
            leading = await leader(cluster, members, group)
            for number in range(3):
                await members[leading][group].node.propose(b"%d of %d" % (number, group))
        leading = await leader(cluster, members, 0)
        others = [name for name in NAMES if name != leading]
        await cluster.env.kill(others)
        members[leading][0].node.propose(b"nobody else has it")
        await cluster.env.timeline.sleep(0.1)
        await cluster.env.kill([leading])
        members = {name: await boot(cluster, name) for name in others}
        await members[await leader(cluster, members, 0)][0].node.propose(b"instead of it")
        (back, _) = await boot(cluster, leading)
        await cluster.until(lambda: back.applied[-1:] == [b"instead of it"])
        events.update({node: [json.loads(line) for line in lines] for node, lines in cluster.env.events().items()})

    play(story, snapshot_threshold=snapshot_threshold)
    return events


def checked(events: dict[str, list[dict[str, Any]]]) -> CheckerResult:
    run = RunUnderCheck(node_events=node_events_table(events, {}))
    return ReplicationChecker().check(CheckRequest(history=run.node_events, run=run), InProcessEngine())


def test_what_healthy_groups_report_contradicts_nothing() -> None:
    events = reported(snapshot_threshold=1_000)
    result = checked(events)
    assert result.verdict is Verdict.VALID, result
    reports = TableOfReports(node_events_table(events, {}))
    for event, logs in (("written", LOGS), ("leader", LOGS), ("raft_committed", LOGS), ("truncated", ("left",))):
        assert {row["group"] for rows in reports.of(event).values() for row in rows} == {*logs}, event


def test_an_entry_that_is_another_one_at_one_node_is_found_with_the_name_of_its_log() -> None:
    events = reported(snapshot_threshold=1_000)
    entry = next(event for event in events["b"] if event["event"] == "written" and event["log"] == "right")
    entry["checksum"] += 1
    (summary,) = checked(events).anomalies.values()
    (anomaly,) = summary.examples
    assert anomaly.name == "diverging-logs"
    assert anomaly.because.startswith("entries 0 to 1 of right, confirmed at both, are not the same at b and c: ")


def test_snapshots_that_take_the_place_of_entries_contradict_nothing() -> None:
    events = reported(snapshot_threshold=2)
    result = checked(events)
    assert result.verdict is Verdict.VALID, result
    assert result.statistics["events"]["deleted"] > 5


@pytest.mark.parametrize("reports_entries", [True, False])
def test_entries_are_left_out_of_reports_where_they_cost_too_much(reports_entries: bool) -> None:
    events: list[dict[str, Any]] = []

    async def story(cluster: RaftCluster) -> None:
        leader = await cluster.start("a")
        await cluster.until(lambda: leader.node.is_active)
        await leader.node.propose(b"x")
        events.extend(json.loads(line) for line in cluster.env.events()["a"])

    play(story, members={"a": f"a:{PORT}"}, log="left", reports_entries=reports_entries)
    names = {event["event"] for event in events}
    assert {"leader", "voted_in", "raft_committed"} <= names
    assert ({"log", "recovered", "written", "confirmed"} <= names) == reports_entries
    assert names.isdisjoint({"log", "recovered", "written", "confirmed"}) != reports_entries
    assert all(event["group"] == "left" for event in events if event["event"] in ("leader", "raft_committed"))


@pytest.mark.parametrize("group", [0, 3])
def test_points_of_a_numbered_group_say_which_one(group: int) -> None:
    async def story(cluster: RaftCluster) -> None:
        leader = await cluster.start("a")
        leader.host.reached = lambda point, **values: reached.append((point, values.get("group", 0)))
        await cluster.until(lambda: leader.node.is_active)
        await leader.node.propose(b"x")

    reached: list[tuple[str, int]] = []
    play(story, members={"a": f"a:{PORT}"}, group=group)
    assert {"about-to-persist-vote", "became-leader", "noop-committed", "about-to-apply"} <= {at for at, _ in reached}
    assert {number for _, number in reached} == {group}


def test_a_log_is_durable_as_far_as_it_was_there_when_the_fsync_began_and_was_not_cut_since() -> None:
    durable: list[int] = []

    async def story(cluster: RaftCluster) -> None:
        leader = await cluster.start("a")
        await cluster.until(lambda: leader.node.is_active)
        noted = leader.host.reached
        leader.host.reached = lambda point, **values: (
            noted(point, **values),
            durable.append(values["durable"]) if point == "appended-before-answer" else None,
        )
        first = leader.node.propose(b"x")
        await cluster.env.timeline.sleep(0.005)
        second = leader.node.propose(b"y")
        await first
        await second

    play(story, members={"a": f"a:{PORT}"}, fsync_ms=10.0)
    assert durable == [2, 3]


def test_who_votes_and_who_was_promised_a_vote_is_reported() -> None:
    events: dict[str, list[dict[str, Any]]] = {}

    async def story(cluster: RaftCluster) -> None:
        members = [await cluster.start(name) for name in NAMES]
        leader = await cluster.leader()
        other = next(member for member in members if member is not leader)
        await leader.node.transfer_leadership(other.host.name)
        await cluster.until(lambda: other.node.is_active)
        events.update({node: [json.loads(line) for line in lines] for node, lines in cluster.env.events().items()})

    play(story, log="left")
    of = {node: {event["event"]: event for event in reported} for node, reported in events.items()}
    assert all(of[node]["membership"]["voters"] == [*NAMES] for node in NAMES)
    assert sum("pre_vote" in of[node] for node in NAMES) >= 1
    (handed,) = (of[node]["hands_over"] for node in NAMES if "hands_over" in of[node])
    assert of[handed["successor"]]["leader"]["term"] == handed["term"] + 1
