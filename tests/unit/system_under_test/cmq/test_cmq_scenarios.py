"""Cases with outcomes that are known before, from the description of CMQ; 1 and 2 are Raft's own, and stand in
`test_raft_transcripts.py` and here as what nodes say to each other.

Source: the description of CMQ, its figures and its list of failures.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from harness.environments.environment import Effect
from harness.environments.impairment import FullDisk
from harness.environments.simulated.environment import SimulatedEnvironment
from system_under_test.cmq import wire
from system_under_test.cmq.wire import Code
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed
from tests.unit.system_under_test.cmq.cmq_cluster import NODES, PORT, Cluster, play, spec

Verb = Callable[[SimulatedEnvironment], Callable[[list[str]], Coroutine[Any, Any, Effect]]]
KILL: Verb = operator.attrgetter("kill")
POWER_OFF: Verb = operator.attrgetter("power_off")


def terms(cluster: Cluster, node: str) -> set[int]:
    return {event["term"] for event in cluster.events(node, "term")}


def others(*nodes: str) -> tuple[str, ...]:
    return tuple(node for node in NODES if node not in nodes)


async def load(cluster: Cluster, stop: asyncio.Event, produced: list[int]) -> None:
    """Messages one after the other, which say their number."""
    while not stop.is_set():
        number = await cluster.produce("q", b"m" * 20)
        produced.append(number)
        await cluster.sleep(0.02)


def test_scenario_4_a_node_is_added_under_load_and_removed_and_terms_stay():
    """It catches up under load, votes, is removed, and its elections are refused."""

    async def story(cluster: Cluster) -> None:
        await cluster.create("q")
        leader = await cluster.leader()
        stop, produced = asyncio.Event(), list[int]()
        producing = cluster.environment.client_host("producer").spawn(load(cluster, stop, produced), "load")
        await cluster.until(lambda: len(produced) > 40)
        await cluster.done(wire.add(1, "n4", f"n4:{PORT}"))
        (status,) = wire.decode_status((await cluster.ask(leader, wire.status())).body)
        assert sorted(status["members"]) == ["n1", "n2", "n3", "n4"]
        before = len(produced)
        await cluster.until(lambda: len(produced) > before + 20)
        settled = {node: terms(cluster, node) for node in NODES}
        await cluster.done(wire.remove(1, "n4"))
        await cluster.sleep(5.0)
        assert {node: terms(cluster, node) for node in NODES} == settled, "the removed node's elections are refused"
        assert await cluster.leader() == leader
        stop.set()
        await producing
        assert sorted(await cluster.all_messages("q")) == produced

    play(story, others=(spec("n4", joins=True),), snapshotEntries=30)


@pytest.mark.parametrize("verb", [KILL, POWER_OFF], ids=["kill", "power"])
@pytest.mark.parametrize(
    "point",
    ["snapshot-copied", "message-files-synced", "about-to-write-snapshot", "snapshot-persisted", "snapshot-named"],
)
def test_scenario_5_a_node_that_ends_while_it_publishes_a_snapshot_has_the_same_state_after_a_restart(
    point: str, verb: Verb
):
    """Acknowledgements go on while the bitmap is copied, and written."""

    async def story(cluster: Cluster) -> None:
        await cluster.create("q")
        leader = await cluster.leader()
        node = others(leader)[0]
        struck = cluster.strike(node, point, verb(cluster.environment))
        for number in range(60):
            await cluster.produce("q", b"%d" % number, b"x" * 40)
            if number % 3 == 0:
                await cluster.ack("q", number)
        assert struck == [node]
        await cluster.environment.boot([node])
        await cluster.environment.kill([leader])
        left = await cluster.all_messages("q", among=others(leader))
        assert sorted(left) == [number for number in range(120) if number % 3 or number >= 60]
        await cluster.environment.kill([others(leader, node)[0]])
        await cluster.environment.boot([leader])
        assert await cluster.all_messages("q", among=(leader, node)) == left
        digests: dict[int, set[int]] = {}
        for each in NODES:
            for event in cluster.events(each, "state", "snapshot", "restored"):
                digests.setdefault(event["index"], set()).add(event["digest"])
        assert all(len(same) == 1 for same in digests.values()), "equal index, equal state"

    play(story, snapshotEntries=15, digestEntries=5)


def test_scenario_6_a_leader_that_dies_before_its_confirmation_leaves_the_message_and_a_retry_doubles_it():
    async def story(cluster: Cluster) -> None:
        await cluster.create("q")
        leader = await cluster.leader()
        cluster.strike(leader, "applied-not-confirmed", cluster.environment.kill)
        with pytest.raises((ConnectionClosed, TimeoutError)):
            await cluster.ask(leader, wire.produce("q", [b"paid"]))
        await cluster.produce("q", b"paid", among=others(leader))
        assert await cluster.all_messages("q", among=others(leader)) == {0: b"paid", 1: b"paid"}

    play(story)


def test_scenario_6_what_was_acknowledged_is_not_delivered_again_after_all_have_restarted():
    async def story(cluster: Cluster) -> None:
        await cluster.create("q")
        await cluster.produce("q", b"a", b"b", b"c")
        await cluster.pull("q")
        await cluster.ack("q", 1)
        await cluster.environment.power_off(list(NODES))
        await cluster.environment.boot(list(NODES))
        assert await cluster.all_messages("q") == {0: b"a", 2: b"c"}

    play(story)


@pytest.mark.parametrize("before", [True, False], ids=["asked before the ack", "asked after the ack"])
def test_scenario_7_a_leader_that_is_cut_off_gives_nothing_out(before: bool):
    async def story(cluster: Cluster) -> None:
        await cluster.create("q")
        await cluster.produce("q", b"m")
        old = await cluster.leader()
        await cluster.isolate(old)
        asking = cluster.environment.client_host("consumer")
        answers: list[wire.Pulled | int] = []

        async def pull() -> None:
            answer = await cluster.ask(old, wire.pull("q", 1, 0), 20.0)
            answers.append(wire.decode_pulled(answer.body) if answer.code == Code.SUCCESS else answer.code)

        pulling = asking.spawn(pull(), "pull") if before else None
        assert (await cluster.pull("q", among=others(old))).messages == ((0, b"m"),)
        assert await cluster.ack("q", 0, among=others(old)) == (True,)
        pulling = pulling or asking.spawn(pull(), "pull")
        await cluster.sleep(2.0)
        await cluster.environment.heal()
        await pulling
        assert answers in ([Code.NOT_LEADER], [Code.OUTCOME_UNKNOWN])

    play(story)


def test_a_follower_behind_the_compacted_log_gets_the_snapshot_and_its_files():
    async def story(cluster: Cluster) -> None:
        await cluster.create("q")
        leader = await cluster.leader()
        late = others(leader)[0]
        await cluster.environment.kill([late])
        for number in range(60):
            await cluster.produce("q", b"%d" % number, b"x" * 40)
            if number % 3 == 0:
                await cluster.ack("q", number)
        await cluster.environment.boot([late])
        await cluster.until(lambda: bool(cluster.events(late, "restored")))
        await cluster.produce("q", b"last")
        await cluster.sleep(1.0)
        await cluster.environment.kill([others(late)[0] if others(late)[0] != leader else others(late)[1]])
        await cluster.environment.pause([leader])
        await cluster.environment.boot([others(late, leader)[0]])
        left = await cluster.all_messages("q", among=others(leader))
        assert sorted(left) == [*(number for number in range(120) if number % 3 or number >= 60), 120]

    play(story, snapshotEntries=15, logKeptBytes=0)


@pytest.mark.parametrize("room_bytes", [0, 300, 700, 1_100, 1_500, 2_300])
@pytest.mark.parametrize("full_percent", [95, 100])
def test_sixteen_messages_that_a_full_disk_cuts_short_come_once_or_were_never_taken(full_percent: int, room_bytes: int):
    """Room is left for a part of the log's entries, or of what is written to the message files."""

    async def story(cluster: Cluster) -> None:
        environment = cluster.environment
        await cluster.create("q")
        leader = await cluster.leader()
        full = FullDisk(room_bytes=room_bytes)
        await environment.impair(list(NODES), full)
        outcomes = []
        for request in range(6):
            bodies = [b"%d" % (16 * request + number) for number in range(16)]
            try:
                outcomes.append((await cluster.ask(leader, wire.produce("q", bodies), 2.0)).code)
            except (ConnectFailed, ConnectionClosed, TimeoutError):
                outcomes.append(Code.OUTCOME_UNKNOWN)
        await environment.relieve(list(NODES), full)
        await environment.boot(list(NODES))
        found = sorted(int(body) for body in (await cluster.all_messages("q")).values())
        requests = sorted({number // 16 for number in found})
        assert found == [number for request in requests for number in range(16 * request, 16 * request + 16)]
        by_outcome = {code: {at for at, each in enumerate(outcomes) if each == code} for code in set(outcomes)}
        assert by_outcome.get(Code.SUCCESS, set()) <= set(requests)
        assert not by_outcome.get(Code.DISK_FULL, set()) & set(requests)
        assert by_outcome.keys() & {Code.DISK_FULL, Code.OUTCOME_UNKNOWN}

    play(story, fullPercent=full_percent, panics=None)


@pytest.mark.parametrize("what", ["record", "message file"])
def test_a_node_whose_snapshot_is_harmed_ends_and_says_which_file_and_what_to_do(what: str):
    """That its disk is not what it was is a panic of the node's, and no failure of the disk."""

    async def story(cluster: Cluster) -> None:
        environment = cluster.environment
        await cluster.create("q")
        for number in range(40):
            await cluster.produce("q", b"%d" % number)
        node = others(await cluster.leader())[0]
        await cluster.until(lambda: bool(cluster.events(node, "snapshot")))
        await environment.kill([node])
        disk = environment.disk_of(node)
        wanted = "cmq/1/snapshot" if what == "record" else "cmq/1/files-"
        path = next(path for path, _ in disk.files() if path.startswith(wanted))
        disk.cut_short(path, 20)
        await environment.boot([node])
        await cluster.sleep(1.0)
        (words,) = environment.panics().values()
        assert path in words
        assert "remove this node from its group" in words

    play(story, snapshotEntries=10, panics=None)
