"""The metadata store's nodes, client and sessions together, on simulated hosts."""

from __future__ import annotations

import asyncio

import pytest

from system_under_test.metadata.access import Conflict, SessionLost, Unavailable, Versioned
from system_under_test.metadata.settling import settled_create
from system_under_test.metadata.store import MalformedCommand
from system_under_test.metadata.tenure import take, try_to_take
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from tests.unit.system_under_test.metadata.metadata_group import ADDRESSES, NODES, Group, play


def test_what_one_client_changes_all_others_read():
    async def story(group: Group) -> None:
        writer, reader = group.client(), group.client(prefer=ADDRESSES[2])
        first = await writer.create("/a/1", "x")
        second = await writer.put("/a/1", "y", first)
        await writer.create("/a/2", "z")
        await writer.create("/b", "")
        assert await reader.get("/a/1") == Versioned("y", second)
        assert await reader.get("/a/3") is None
        assert {key: entry.value for key, entry in (await reader.list("/a/")).items()} == {"/a/1": "y", "/a/2": "z"}
        with pytest.raises(Conflict) as raised:
            await writer.put("/a/1", "w", first)
        assert raised.value.found == second
        with pytest.raises(Conflict):
            await writer.create("/a/1", "w")
        with pytest.raises(Conflict) as raised:
            await writer.delete("/c", 1)
        assert raised.value.found is None
        await writer.delete("/a/1", second)
        assert await reader.get("/a/1") is None
        assert [await client.next_number("n") for client in (writer, reader, writer)] == [1, 2, 3]
        with pytest.raises(SessionLost):
            await writer.create("/e", "", ephemeral=True)
        with pytest.raises(MalformedCommand):
            await writer.create("", "")

    play(story)


def test_what_no_node_understands_is_refused():
    async def story(group: Group) -> None:
        await group.client().create("/a", "")
        remoting = RemotingClient(group.environment.client_host("stranger"))
        leader = f"{group.leader()}:9200"
        for code, fields, body, answered in (
            (61001, {}, b"", ResponseCode.CONTROLLER_INVALID_REQUEST),
            (61003, {"prefix": "/", "since": "-1", "holdMs": "1"}, b"", ResponseCode.CONTROLLER_INVALID_REQUEST),
            (61003, {"prefix": "/", "since": "9" * 19, "holdMs": "1"}, b"", ResponseCode.CONTROLLER_INVALID_REQUEST),
            (61004, {}, b'{"put":[]}', ResponseCode.CONTROLLER_INVALID_REQUEST),
            (61999, {}, b"", ResponseCode.REQUEST_CODE_NOT_SUPPORTED),
        ):
            answer = await remoting.invoke(leader, RemotingCommand.request(code, fields, body), 1.0)
            assert answer.code == answered

    play(story)


def test_a_waiting_request_is_answered_by_the_change_and_by_no_other():
    async def story(group: Group) -> None:
        writer, watcher = group.client(), group.client()
        since = await writer.create("/a/1", "x")
        waiting = asyncio.ensure_future(watcher.wait("/a/", since))
        await writer.create("/b", "x")
        await group.sleep(7)
        assert not waiting.done()
        began_ns = group.environment.timeline.now_ns()
        version = await writer.put("/a/1", "y", since)
        assert await waiting == version
        assert group.environment.timeline.now_ns() - began_ns < 100_000_000
        assert await watcher.wait("/a/", 0) == version

    play(story)


def test_a_waiting_request_outlives_the_leader_and_misses_nothing():
    async def story(group: Group) -> None:
        writer, watcher = group.client(), group.client()
        since = await writer.create("/a", "x")
        waiting = asyncio.ensure_future(watcher.wait("/a", since))
        await group.sleep(0.5)
        await group.isolate(group.leader())
        await group.sleep(2)
        version = await writer.put("/a", "y", since)
        assert await waiting == version

    play(story)


def test_a_session_lasts_as_long_as_its_client_and_not_much_longer():
    async def story(group: Group) -> None:
        owner, watcher = group.client(), group.client()
        await owner.start()
        session = await owner.session_other_than(None)
        version = await owner.create("/e", "x", ephemeral=True)
        await group.sleep(20)
        assert await watcher.get("/e") == Versioned("x", version, session)
        await owner.stop()
        assert await watcher.get("/e") is None

    play(story)


def test_a_killed_owner_is_followed_after_its_sessions_time_out():
    async def story(group: Group) -> None:
        watcher = group.client()
        await group.sleep(5)
        first = (await watcher.list("/owner"))["/owner"]
        await group.environment.kill([first.value])
        killed_ns = group.environment.timeline.now_ns()
        gone = await watcher.wait("/owner", first.version)
        lasted_ns = group.environment.timeline.now_ns() - killed_ns
        assert 1_400_000_000 < lasted_ns < 2_500_000_000
        await group.sleep(0.5)
        second = await watcher.get("/owner")
        assert second is not None and second.version >= gone and second.value != first.value
        await group.environment.boot([first.value])
        await group.sleep(5)
        assert await watcher.get("/owner") == second

    play(story, owners=2)


def test_the_key_of_a_paused_owner_goes_and_comes():
    async def story(group: Group) -> None:
        watcher = group.client()
        await group.sleep(5)
        first = await watcher.get("/owner")
        assert first is not None
        await group.environment.pause(["o1"])
        await watcher.wait("/owner", first.version)
        assert await watcher.get("/owner") is None
        assert group.events("o1", "owned") == []
        await group.environment.resume(["o1"])
        await group.sleep(5)
        second = await watcher.get("/owner")
        assert second is not None and second.session != first.session
        assert [event["version"] for event in group.events("o1", "owns")] == [first.version, second.version]
        assert len(group.events("o1", "owned", "metadata_session_lost")) == 2

    play(story, owners=1)


def test_sessions_begin_anew_with_a_new_leader():
    """Nobody is heard of while nobody leads, which here lasts longer than any session may be silent."""

    async def story(group: Group) -> None:
        owner, watcher = group.client(), group.client()
        await owner.start()
        session = await owner.session_other_than(None)
        await owner.create("/e", "x", ephemeral=True)
        await group.environment.kill(NODES)
        await group.sleep(10)
        await group.environment.boot(NODES)
        entry = await watcher.get("/e")
        assert entry is not None and entry.session == session
        await group.sleep(10)
        assert await watcher.get("/e") == entry
        assert owner.session == session

    play(story)


def test_a_new_leader_ends_the_session_of_an_owner_that_died_with_the_old_one():
    async def story(group: Group) -> None:
        watcher = group.client()
        await group.sleep(5)
        first = await watcher.get("/owner")
        assert first is not None
        await group.environment.kill([group.leader(), "o1"])
        await group.sleep(0.5)
        await watcher.wait("/owner", first.version)
        assert await watcher.get("/owner") is None

    play(story, owners=1)


def test_a_leader_that_was_cut_off_answers_no_reads_and_changes_nothing():
    async def story(group: Group) -> None:
        client = group.client()
        version = await client.create("/a", "x")
        old = group.leader()
        at_old = group.client(prefer=f"{old}:9200", timeout_s=0.1)
        await group.isolate(old)
        with pytest.raises(Unavailable) as raised:
            await at_old.put("/a", "lost", version)
        assert not raised.value.is_definite
        await group.sleep(2)
        assert group.leader() != old
        newer = await client.put("/a", "y", version)
        assert await at_old.get("/a") == Versioned("y", newer)
        await group.environment.heal()
        await group.sleep(2)
        assert await client.get("/a") == Versioned("y", newer)

    play(story)


def test_a_change_that_certainly_did_not_happen_says_so():
    async def story(group: Group) -> None:
        client = group.client(timeout_s=2.0)
        await client.create("/a", "x")
        await group.environment.kill(NODES)
        with pytest.raises(Unavailable):
            await client.create("/b", "x")
        with pytest.raises(Unavailable) as raised:
            await client.create("/c", "x")
        assert raised.value.is_definite

    play(story)


def test_nodes_begin_from_snapshots_and_serve_what_was_there():
    async def story(group: Group) -> None:
        client, owner = group.client(), group.client()
        await owner.start()
        session = await owner.session_other_than(None)
        await owner.create("/e", "x", ephemeral=True)
        version = await client.create("/a", "0")
        await group.environment.kill(["m3"])
        for number in range(1, 60):
            version = await client.put("/a", str(number), version)
        await client.next_number("n")
        await group.environment.power_off(NODES[:2])
        await group.environment.boot(NODES)
        await group.sleep(3)
        for survivors in (NODES[1:], NODES[:1] + NODES[2:]):
            await group.environment.kill(set(NODES) - set(survivors))
            assert await client.get("/a") == Versioned("59", version)
            assert list(await client.list("/")) == ["/a", "/e"]
            await group.environment.boot(NODES)
            await group.sleep(3)
        assert await client.next_number("n") == 2
        entry = await client.get("/e")
        assert entry is not None and entry.session == session
        assert group.environment.reached()["about-to-install-snapshot"] > 0

    play(story, raftSnapshotThreshold=20)


def test_one_has_a_key_and_the_next_one_follows():
    async def story(group: Group) -> None:
        first, second = group.client(), group.client()
        await first.start()
        await second.start()
        await second.session_other_than(None)
        tenure = await take(first, "/lock", "first")
        assert await take(first, "/lock", "first") == tenure
        assert await try_to_take(second, "/lock", "second") is None
        waiting = asyncio.ensure_future(take(second, "/lock", "second"))
        await group.sleep(6)
        assert not waiting.done()
        await first.delete("/lock", tenure.version)
        assert (await waiting).version > tenure.version
        with pytest.raises(Conflict):
            await first.create("/lock", "first", ephemeral=True)

    play(story)


def test_the_same_seed_gives_the_same_trace():
    async def story(group: Group) -> None:
        client = group.client()
        await client.start()
        await take(client, "/a", "x")
        await group.environment.kill([group.leader()])
        await settled_create(client, "/b", "y")
        await client.stop()

    assert play(story, owners=1).digest() == play(story, owners=1).digest()
