"""What DLedger's node programs do together: on simulated hosts, asked by remoting as its public client asks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.environments.impairment import FullDisk
from system_under_test.dledger.client_message import GetRequest, MetadataRequest
from system_under_test.dledger.config import MemberConfig
from system_under_test.dledger.message import MAX_BODY_BYTES, Code, TransferRequest
from system_under_test.node.settings import read_config
from tests.unit.system_under_test.dledger.dledger_group import NAMES, PEERS, Group, play


def test_what_is_appended_is_shown_by_all_members() -> None:
    async def story(group: Group) -> None:
        leader = await group.leader()
        bodies = [b"%d" % number for number in range(200)]
        for body in bodies:
            answer = await group.append(leader, body)
            assert answer.code is Code.SUCCESS
        await group.sleep(2)
        for name in NAMES:
            assert await group.pulled(name) == bodies
        answer = await group.ask(leader, GetRequest(begin=10, max_bytes=1))
        assert [entry.index for entry in answer.entries] == [10]
        follower = next(name for name in NAMES if name != leader)
        assert (await group.ask(follower, GetRequest(begin=0))).code is Code.NOT_LEADER
        assert (await group.append(follower, b"x")).code is Code.NOT_LEADER
        assert (await group.append(leader, b"")).code is Code.REQUEST_WITH_EMPTY_BODYS

    play(story)


@pytest.mark.parametrize("settings", [{"ackDurable": True}, {"isEnableBatchPush": True}, {}], ids=str)
def test_a_group_goes_on_without_its_leader_and_takes_it_back(settings: dict[str, object]) -> None:
    async def story(group: Group) -> None:
        first = await group.leader()
        assert (await group.append(first, b"a", b"b", b"c")).code is Code.SUCCESS
        await group.environment.kill([first])
        second = await group.leader(but=first)
        assert (await group.append(second, b"d")).code is Code.SUCCESS
        await group.environment.boot([first])
        await group.sleep(10)
        for name in NAMES:
            assert await group.pulled(name) == [b"a", b"b", b"c", b"d"]

    play(story, **settings)


def test_what_is_acknowledged_durably_outlasts_the_loss_of_all_power() -> None:
    async def story(group: Group) -> None:
        for round_number in range(5):
            leader = await group.leader()
            assert (await group.append(leader, b"%d" % round_number)).code is Code.SUCCESS
            await group.environment.power_off(list(NAMES))
            await group.environment.boot(list(NAMES))
        await group.sleep(10)
        for name in NAMES:
            assert await group.pulled(name) == [b"0", b"1", b"2", b"3", b"4"]

    play(story, ackDurable=True)


def test_a_leader_without_a_majority_acknowledges_nothing_and_its_entries_go() -> None:
    async def story(group: Group) -> None:
        first = await group.leader()
        assert (await group.append(first, b"kept")).code is Code.SUCCESS
        await group.isolate(first)
        assert (await group.append(first, b"gone")).code in (Code.WAIT_QUORUM_ACK_TIMEOUT, Code.TERM_CHANGED)
        assert b"gone" not in await group.pulled(first)
        second = await group.leader(but=first)
        assert (await group.append(second, b"new")).code is Code.SUCCESS
        await group.environment.heal()
        await group.sleep(15)
        for name in NAMES:
            assert await group.pulled(name) == [b"kept", b"new"]

    play(story)


def test_leadership_is_handed_over_when_asked_for_and_to_who_is_preferred() -> None:
    async def story(group: Group) -> None:
        first = await group.leader()
        to = next(name for name in NAMES if name != first)
        assert (await group.append(first, b"a")).code is Code.SUCCESS
        answer = await group.ask(first, TransferRequest(to))
        assert answer.code is Code.SUCCESS
        assert await group.leader() == to
        assert (await group.append(to, b"b")).code is Code.SUCCESS

    async def preferred(group: Group) -> None:
        await group.leader()
        await group.sleep(15)
        assert await group.leader() == "n2"

    play(story)
    play(preferred, preferredLeaderIds="n2")


@pytest.mark.parametrize("seed", range(5))
def test_candidates_stand_when_their_backoffs_are_over_however_seldom_leaders_beat(seed: int) -> None:
    async def story(group: Group) -> None:
        await group.sleep(2)
        answers = [await group.ask(name, MetadataRequest()) for name in NAMES]
        assert {answer.leader for answer in answers} - {None}

    play(story, seed=seed, heartBeatTimeIntervalMs=20_000, minVoteIntervalMs=50, maxVoteIntervalMs=200)


def test_the_same_seed_gives_the_same_trace() -> None:
    async def story(group: Group) -> None:
        leader = await group.leader()
        await group.append(leader, b"a")
        await group.environment.kill([leader])
        await group.leader(but=leader)

    assert play(story).digest() == play(story).digest()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"selfId": "n9"}, "peers: expected n9, which selfId names, among n0, n1, n2"),
        ({"peers": "n0-a:1;n1-a:1"}, "peers: two members have the address a:1"),
        ({"peers": "n0-a:1;n0-b:1"}, "peers: n0 is there twice"),
        ({"peers": "n0"}, "peers: expected ID-ADDRESS:PORT with semicolons between, got 'n0'"),
        ({"preferredLeaderIds": "n7"}, "preferredLeaderIds: n7 is none of the members n0, n1, n2"),
        ({"minVoteIntervalMs": 2000}, "minVoteIntervalMs: expected at most maxVoteIntervalMs"),
        ({"version": 1, "isEnableBatchPush": True}, "isEnableBatchPush: members of version 1 know no batches"),
        ({"mappedFileSizeForEntryData": 50}, "mappedFileSizeForEntryData: expected at least 57 bytes, got 50"),
        (
            {"diskSpaceRatioToForceClean": 0.4},
            "diskSpaceRatioToForceClean: expected a share of the disk from 0.5 to 1, got 0.4",
        ),
        ({"deleteWhen": "24"}, "deleteWhen: expected hours of the day, 00 to 23, with semicolons between, got '24'"),
        ({"mappedFileSizeForEntryIndex": 50}, "mappedFileSizeForEntryIndex: expected a multiple of 32 bytes, got 50"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("(", "\\(")):
        _all_of(read_config(MemberConfig, {"selfId": "n0", "peers": PEERS, **settings}))


def _all_of(config: MemberConfig) -> Sequence[object]:
    return config.core(), config.times(), config.sizes()


def test_a_body_is_taken_up_to_the_size_of_a_file_and_refused_beyond_it() -> None:
    async def story(group: Group) -> None:
        leader = await group.leader()
        longest = b"x" * (4_096 - 48 - 8)
        assert (await group.append(leader, longest)).code is Code.SUCCESS
        assert (await group.append(leader, longest + b"x")).code is Code.UNEXPECTED_ARGUMENT
        assert (await group.append(leader, b"a", longest + b"x")).code is Code.UNEXPECTED_ARGUMENT
        await group.sleep(2)
        for name in NAMES:
            assert await group.pulled(name) == [longest]

    play(story)


@pytest.mark.gate
def test_a_body_is_taken_up_to_the_size_of_a_frame_and_refused_beyond_it() -> None:
    async def story(group: Group) -> None:
        leader = await group.leader()
        follower = next(name for name in NAMES if name != leader)
        longest = bytes(MAX_BODY_BYTES)
        assert (await group.append(leader, longest)).code is Code.SUCCESS
        assert (await group.append(leader, longest + b"x")).code is Code.UNEXPECTED_ARGUMENT
        await group.append(leader, b"a", b"b")
        await group.sleep(2)
        assert await group.pulled(follower) == [longest, b"a", b"b"]

    play(story, mappedFileSizeForEntryData=1 << 25, isEnableBatchPush=True, maxBatchPushSize=1 << 22)


def test_files_expire_on_all_members_and_one_that_comes_later_begins_with_what_is_left() -> None:
    hours = ";".join(f"{hour:02}" for hour in range(24))

    async def story(group: Group) -> None:
        leader = await group.leader()
        away = next(name for name in NAMES if name != leader)
        await group.environment.kill([away])
        for number in range(30):
            assert (await group.append(leader, b"%01000d" % number)).code is Code.SUCCESS
        await group.sleep(30)
        await group.environment.boot([away])
        await group.sleep(10)
        assert (await group.append(leader, b"last")).code is Code.SUCCESS
        await group.sleep(2)
        for name in NAMES:
            assert [int(body) for body in (await group.pulled(name))[:-1]] == list(range(27, 30))

    play(story, fileReservedHours=0, deleteWhen=hours)


def test_a_full_disk_refuses_appends_and_ends_nobody() -> None:
    async def story(group: Group) -> None:
        leader = await group.leader()
        for number in range(10):
            assert (await group.append(leader, b"%d" % number)).code is Code.SUCCESS
        await group.sleep(5)
        full = FullDisk(room_bytes=10)
        followers = [name for name in NAMES if name != leader]
        await group.environment.impair(followers, full)
        assert (await group.append(leader, b"held by the leader alone")).code is Code.WAIT_QUORUM_ACK_TIMEOUT
        await group.environment.impair([leader], full)
        assert (await group.append(leader, b"refused")).code is Code.DISK_FULL
        await group.sleep(10)
        for node in NAMES:
            assert len(await group.pulled(node)) == 10
        for nodes in (followers, [leader]):
            assert (await group.environment.relieve(nodes, full)).happened
        await group.sleep(10)
        leader = await group.leader()
        assert (await group.append(leader, b"10")).code is Code.SUCCESS
        await group.sleep(2)
        for name in NAMES:
            assert [*map(bytes, await group.pulled(name))] == [
                *(b"%d" % number for number in range(10)),
                b"held by the leader alone",
                b"10",
            ]
        assert group.environment.panics() == {}

    play(story)
