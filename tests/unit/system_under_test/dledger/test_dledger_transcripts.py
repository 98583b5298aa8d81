"""What a leader and a follower of DLedger say to each other, from given logs, line by line."""

from __future__ import annotations

import random
from typing import Any

import pytest

from system_under_test.dledger.core import Member
from system_under_test.dledger.dispatcher import Phase
from system_under_test.dledger.entry import NOTHING
from system_under_test.dledger.event import Append, HardState, Persisted, Receive, Tick
from system_under_test.dledger.message import (
    MAX_BODY_BYTES,
    Answer,
    Code,
    HeartbeatRequest,
    Push,
    PushAnswer,
    PushRequest,
    TakeRequest,
)
from system_under_test.dledger.quorum import Quorum
from system_under_test.dledger.state import GroupConfig, Role
from tests.unit.system_under_test.dledger.dledger_cluster import ListLog
from tests.unit.system_under_test.dledger.dledger_stage import (
    SECOND,
    Stage,
    entry,
    log,
    member,
    state_of,
    won,
    written,
)


def test_a_majority_has_what_the_middle_mark_says() -> None:
    members = "a", "b", "c", "d", "e"
    quorum = Quorum(state_of("a", "0-3:1", 1, members))
    quorum.begin()
    for name, mark in zip(members, (1, 1, 2, 3, 3), strict=True):
        quorum.has(name, mark)
    assert quorum.reached() == 2


def test_a_peer_with_the_same_log_is_told_what_is_committed() -> None:
    assert Stage("0-5:1", "0-5:1", committed=5).run() == [
        "COMPARE 5: SUCCESS, F has 0-5:1",
        "COMMIT 5: SUCCESS, F has 0-5:1",
    ]


def test_what_is_behind_the_leaders_end_is_cut() -> None:
    stage = Stage("0-5:1", "0-5:1 6-8:1*", committed=5, term=2)
    assert stage.run()[:2] == ["COMPARE 5: SUCCESS, F has 0-5:1 6-8:1*", "TRUNCATE 5: SUCCESS, F has 0-5:1"]
    assert stage.quorum.marks["F"] == 5


def test_what_differs_is_sought_from_behind_and_written_anew() -> None:
    assert Stage("0-3:1 4-5:3", "0-3:1 4-6:2", committed=5).run() == [
        "COMPARE 5: INCONSISTENT_STATE, F has 0-3:1 4-6:2",
        "COMPARE 4: INCONSISTENT_STATE, F has 0-3:1 4-6:2",
        "COMPARE 3: SUCCESS, F has 0-3:1 4-6:2",
        "TRUNCATE 3: SUCCESS, F has 0-3:1",
        "APPEND 4: SUCCESS, F has 0-3:1 4-4:3",
        "APPEND 5: SUCCESS, F has 0-3:1 4-5:3",
        "COMMIT 5: SUCCESS, F has 0-3:1 4-5:3",
    ]


@pytest.mark.parametrize(
    ("leader", "follower", "compared", "truncated"),
    [
        ("100-200:1", "0-50:1", [200], 100),
        ("0-50:2", "60-90:1", [50], 0),
        ("0-9:1", "", [9], 0),
        ("0-200:2", "150-180:1", [200, *range(180, 148, -1)], 0),
        ("0-2:3", "0-1:2", [2, 1, 0], 0),
        ("100-103:2", "98-102:1", [103, 102, 101, 100], 100),
    ],
)
def test_where_nothing_is_shared_the_log_begins_anew_with_the_leaders_first_entry(
    leader: str, follower: str, compared: list[int], truncated: int
) -> None:
    stage = Stage(leader, follower)
    lines = [line.split(",")[0] for line in stage.run()]
    assert lines[: len(compared) + 1] == [
        *(f"COMPARE {index}: INCONSISTENT_STATE" for index in compared),
        f"TRUNCATE {truncated}: SUCCESS",
    ]
    assert not any(line.startswith(("COMPARE", "TRUNCATE")) for line in lines[len(compared) + 1 :])
    assert written(stage.follower.log) == leader


def test_a_new_term_begins_with_a_comparison_at_the_end() -> None:
    stage = Stage("0-5:1", "0-5:1")
    stage.run()
    assert stage.dispatcher.phase is Phase.APPEND
    stage.dispatcher.connected()
    (sent,) = stage.sends()
    assert isinstance(sent.request, PushRequest)
    assert (sent.request.kind, sent.request.entries[0].index) == (Push.COMPARE, 5)


def test_who_leads_again_knows_nothing_of_its_peers_and_compares_at_its_end() -> None:
    own = member("0-4:1")
    for term in (2, 5):
        own.step(Receive(1, HeartbeatRequest("b", term - 1)), own.state.now_ns)
        effects = won(own)
        pushes = [sent.request for sent in effects.requests if isinstance(sent.request, PushRequest)]
        assert [(push.kind, push.term, push.entries[0].index) for push in pushes] == [
            (Push.COMPARE, own.state.term, own.state.log.end)
        ] * 2
        assert own.quorum.marks == {"a": own.state.log.end, "b": NOTHING, "c": NOTHING}


def test_who_follows_pushes_nothing() -> None:
    own = member("0-4:1")
    won(own)
    own.step(Receive(9, HeartbeatRequest("b", own.state.term + 1)), own.state.now_ns)
    assert own.dispatchers == {}


def test_a_gap_is_refused_and_compared_again() -> None:
    stage = Stage("0-7:1", "0-5:1")
    stage.handler.obey(PushRequest("L", 1, Push.COMPARE, (entry(5, 1),)))
    answer = stage.obeys(PushRequest("L", 1, Push.APPEND, (entry(7, 1),)))
    assert answer.code is Code.INCONSISTENT_STATE
    assert stage.run()[-3:-1] == ["APPEND 6: SUCCESS, F has 0-6:1", "APPEND 7: SUCCESS, F has 0-7:1"]


def test_a_follower_takes_no_more_for_committed_than_was_verified() -> None:
    stage = Stage("0-9:1", "0-3:1", committed=9)
    stage.obeys(PushRequest("L", 1, Push.COMMIT, committed=9))
    assert stage.follower.committed == NOTHING
    stage.obeys(PushRequest("L", 1, Push.COMPARE, (entry(3, 1),), committed=9))
    stage.obeys(PushRequest("L", 1, Push.COMMIT, committed=9))
    assert stage.follower.committed == 3


def test_what_is_pending_when_the_term_changes_may_or_may_not_stay() -> None:
    own = member("0-4:1")
    won(own)
    own.step(Append(7, (b"x",)), SECOND)
    own.step(Append(8, (b"y", b"z")), SECOND)
    effects = own.step(Receive(9, HeartbeatRequest("b", own.state.term + 1)), SECOND)
    assert [(one.token, one.code) for one in effects.appended] == [(7, Code.TERM_CHANGED), (8, Code.TERM_CHANGED)]
    assert own.state.role is Role.CANDIDATE and own.quorum.marks == {}


def test_what_a_restart_finds_behind_the_committed_index_is_not_committed() -> None:
    own = Member(GroupConfig(node="a", members=("a", "b", "c")), log("0-10:1"), HardState(1), committed=7)
    assert own.state.committed == 7


def test_a_leader_begins_its_term_with_an_entry_of_its_own() -> None:
    own = member("0-4:1")
    won(own)
    assert own.state.log.end == 5
    first = own.state.log.entry(5)
    assert first is not None and (first.term, first.body) == (own.state.term, b"")


def test_a_leader_that_cannot_write_its_first_entry_stands_back() -> None:
    own = member("0-4:1")
    assert isinstance(own.state.log, ListLog)
    own.state.log.room = 0
    won(own)
    assert own.state.role is Role.CANDIDATE
    assert own.deadline_ns >= own.state.now_ns + own.state.config.silence_ns


def test_a_full_disk_is_said_before_anything_is_written() -> None:
    own = member("0-4:1")
    won(own)
    assert isinstance(own.state.log, ListLog)
    own.state.log.room = 1
    effects = own.step(Append(7, (b"x", b"y")), own.state.now_ns)
    assert [(one.token, one.code) for one in effects.appended] == [(7, Code.DISK_FULL)]
    assert own.state.log.end == 5


def test_a_follower_whose_disk_is_full_goes_on_once_there_is_room() -> None:
    stage = Stage("0-3:1", "0-1:1")
    assert isinstance(stage.follower.log, ListLog)
    stage.follower.log.room = 1
    for sent in (*stage.sends(), *stage.sends()):
        assert isinstance(sent.request, PushRequest)
        stage.dispatcher.take(sent.number, stage.obeys(sent.request))
    for _ in range(4):
        for sent in stage.sends():
            assert isinstance(sent.request, PushRequest)
            stage.dispatcher.take(sent.number, stage.obeys(sent.request))
    assert stage.transcript == [
        "COMPARE 3: INCONSISTENT_STATE, F has 0-1:1",
        "COMPARE 1: SUCCESS, F has 0-1:1",
        "APPEND 2: SUCCESS, F has 0-2:1",
        "APPEND 3: DISK_FULL, F has 0-2:1",
    ]
    assert stage.quorum.marks["F"] == 2
    stage.follower.log.room = None
    stage.transcript.clear()
    assert stage.run() == [
        "COMPARE 3: INCONSISTENT_STATE, F has 0-2:1",
        "COMPARE 2: SUCCESS, F has 0-2:1",
        "APPEND 3: SUCCESS, F has 0-3:1",
        "COMMIT -1: SUCCESS, F has 0-3:1",
    ]


def leader_with(marks: dict[str, int], **options: Any) -> Member:
    """Of a log of 2,000 entries, and for whom `c` is preferred."""
    own = member("0-1999:1", preferred=("c",), **options)
    won(own)
    for sent_to, mark in marks.items():
        own.quorum.has(sent_to, mark)
    own.election._heard_from = {peer: 10 * SECOND for peer in ("b", "c")}
    return own


@pytest.mark.parametrize(("behind", "is_handed_over"), [(0, True), (999, True), (1_000, False)])
def test_who_is_preferred_gets_the_lead_if_it_is_less_than_a_thousand_behind(behind: int, is_handed_over: bool) -> None:
    own = leader_with({"b": 2_000, "c": 2_000 - behind})
    effects = own.step(Tick(SECOND), own.state.now_ns + SECOND)
    asked = [(sent.peer, sent.request) for sent in effects.requests if isinstance(sent.request, TakeRequest)]
    assert asked == ([("c", TakeRequest("a", own.state.term, 2_000))] if is_handed_over else [])
    refused = own.step(Append(7, (b"x",)), own.state.now_ns).appended
    assert [one.code for one in refused] == ([Code.LEADER_TRANSFERRING] if is_handed_over else [])


def test_where_the_one_that_is_preferred_does_not_catch_up_in_time_the_leader_takes_appends_again() -> None:
    """The link is cut while it is 500 behind: it never stands, and is followed by nobody."""
    own = leader_with({"b": 2_000, "c": 1_500})
    own.step(Tick(SECOND), own.state.now_ns + SECOND)
    assert own.transfer.to == "c"
    config = GroupConfig(node="c", members=("a", "b", "c"), preferred=("c",))
    far = Member(config, log("0-1500:1"), HardState(own.state.term, "a"), now_ns=SECOND)
    far.step(Receive(1, HeartbeatRequest("a", own.state.term)), SECOND)
    far.step(Receive(2, TakeRequest("a", own.state.term, 2_000)), SECOND)
    effects = far.step(Tick(SECOND), 2 * SECOND)
    assert [(token, answer.code) for token, answer in effects.answers if isinstance(answer, Answer)] == [
        (2, Code.TAKE_LEADERSHIP_FAILED)
    ]
    assert far.state.role is Role.FOLLOWER and far.state.leader == "a"
    own.step(Tick(SECOND), own.state.now_ns + SECOND)
    assert own.transfer.to is None and own.state.role is Role.LEADER
    assert not own.step(Append(7, (b"x",)), own.state.now_ns).appended


def test_a_durable_acknowledgement_of_the_leader_waits_for_its_disk() -> None:
    own = member("0-4:1", ack_durable=True)
    effects = won(own)
    assert own.quorum.marks["a"] == 4
    own.step(Persisted(effects.sequence), SECOND)
    assert own.quorum.marks["a"] == 5


LATE = PushRequest("L", 1, Push.TRUNCATE, (entry(5, 1),))


def test_a_late_truncate_of_the_same_term_takes_nothing_away() -> None:
    """It waited in a connection that was replaced, and meanwhile the same leader has pushed on."""
    stage = Stage("0-8:1", "0-8:1", committed=8)
    stage.run()
    assert stage.obeys(LATE).code is Code.INCONSISTENT_STATE
    assert written(log("0-8:1")) == "0-8:1" and stage.follower.log.end == 8
    assert stage.follower.committed == 8


def test_a_late_truncate_takes_no_entry_of_an_older_term_away_that_the_leader_has_verified() -> None:
    stage = Stage("0-8:1", "0-8:1", term=2, committed=8)
    stage.run()
    late = PushRequest("L", 2, Push.TRUNCATE, (entry(5, 1),))
    assert stage.obeys(late).code is Code.INCONSISTENT_STATE
    assert written(log("0-8:1")) == "0-8:1" and stage.follower.log.end == 8
    assert stage.follower.committed == 8


def test_entries_of_older_terms_that_the_leader_has_not_are_cut() -> None:
    stage = Stage("0-5:1", "0-8:1", term=2)
    assert stage.run()[1] == "TRUNCATE 5: SUCCESS, F has 0-5:1"


def test_who_lost_its_disk_while_nobody_writes_is_noticed_by_a_commit() -> None:
    stage = Stage("0-5:1", "0-5:1", committed=5)
    stage.run()
    stage.follower.log = log("")
    stage.handler.verified = NOTHING
    stage.transcript.clear()
    assert stage.run()[0] == "COMMIT 5: SUCCESS, F has nothing"
    stage.transcript.clear()
    assert stage.run()[-1] == "COMMIT 5: SUCCESS, F has 0-5:1"


def test_a_member_that_refuses_a_batch_gets_single_entries_until_its_connection_is_new() -> None:
    stage = Stage("0-5:1", "0-2:1", batch_bytes=1_000, understands_batches=False)
    lines = [line.split(",")[0] for line in stage.run()]
    assert lines[2:7] == [
        "APPEND 3..5: UNEXPECTED_ARGUMENT",
        "COMPARE 5: INCONSISTENT_STATE",
        "COMPARE 2: SUCCESS",
        "APPEND 3: SUCCESS",
        "APPEND 4: SUCCESS",
    ]
    stage.dispatcher.connected()
    stage.leader.log.append_own(1, (b"a", b"b"))
    stage.follower.config = stage.leader.config
    stage.transcript.clear()
    assert "APPEND 6..7: SUCCESS" in [line.split(",")[0] for line in stage.run()]


@pytest.mark.parametrize(("by_term", "compares"), [(False, 10_001), (True, 15)])
def test_by_whole_terms_what_differs_is_found_with_fewer_requests(by_term: bool, compares: int) -> None:
    stage = Stage("0-99:1 100-10099:3", "0-99:1 100-10099:2", compare_by_term=by_term)
    found = 0
    (sent,) = stage.sends()
    while isinstance(sent.request, PushRequest) and sent.request.kind is Push.COMPARE:
        found += 1
        code, own = stage.handler.obey(sent.request), stage.follower.log
        stage.dispatcher.take(sent.number, PushAnswer(code, stage.follower.term, own.begin, own.end))
        (sent,) = stage.leader.effects.requests[1:] or stage.sends()
    assert found == compares
    assert isinstance(sent.request, PushRequest)
    assert (sent.request.kind, sent.request.entries[0].index) == (Push.TRUNCATE, 99)


@pytest.mark.parametrize("seed", range(60))
def test_logs_are_repaired_alike_by_whole_terms_and_one_by_one(seed: int) -> None:
    draw = random.Random(seed)

    def behind(end: int, term: int) -> str:
        """Entries of some more terms, each two above the one before."""
        found = []
        for _ in range(draw.randrange(5)):
            last = end + draw.randrange(12)
            found.append(f"{end}-{last}:{term}")
            end, term = last + 1, term + 2
        return " ".join(found)

    same = "0-5:1 6-6:2 7-15:3"
    logs = [f"{same} {behind(16, 5)}", f"{same} {behind(16, 4)}"]
    cuts = []
    for by_term in (False, True):
        stage = Stage(logs[0], logs[1], term=99, compare_by_term=by_term)
        cuts.append([line for line in stage.run() if line.startswith("TRUNCATE")])
        assert written(stage.follower.log) == written(stage.leader.log)  # type: ignore[arg-type]
    assert cuts[0] == cuts[1], "the same is kept"


def test_what_comes_while_a_batch_is_under_way_makes_the_next_one() -> None:
    stage = Stage("0-5:1", "0-5:1", batch_bytes=1_000)
    stage.run()
    own = stage.leader.log
    own.append_own(1, (b"a",))
    first = stage.sends()
    for body in (b"b", b"c"):
        own.append_own(1, (body,))
        assert stage.sends() == []
    stage.transcript.clear()
    for sent in first:
        assert isinstance(sent.request, PushRequest)
        stage.dispatcher.take(sent.number, stage.obeys(sent.request))
    assert [line.split(",")[0] for line in stage.run()][:2] == ["APPEND 6: SUCCESS", "APPEND 7..8: SUCCESS"]
    own.append_own(1, (b"d",))
    assert len(stage.sends()) == 1
    own.append_own(1, (bytes(1_000),))
    assert len(stage.sends()) == 1, "a full one waits for nothing"


def test_a_push_has_no_more_than_fits_into_a_frame() -> None:
    stage = Stage("0-5:1", "0-5:1", batch_bytes=12 * 1024 * 1024)
    stage.run()

    for size, pushes in ((5 * 1024 * 1024, ["6..7", "8"]), (MAX_BODY_BYTES, ["9", "10", "11"])):
        stage.leader.log.append_own(1, [bytes(size)] * 3)
        stage.transcript.clear()
        assert [line.split(":")[0] for line in stage.run()][:-1] == [f"APPEND {push}" for push in pushes]


def test_a_batch_that_does_not_fit_is_refused_whole() -> None:
    stage = Stage("0-5:1", "0-2:1", batch_bytes=1_000)
    assert isinstance(stage.follower.log, ListLog)
    stage.follower.log.room = 2
    stage.handler.obey(PushRequest("L", 1, Push.COMPARE, (entry(2, 1),)))
    batch = PushRequest("L", 1, Push.APPEND, (entry(3, 1), entry(4, 1), entry(5, 1)), is_batch=True)
    assert stage.obeys(batch).code is Code.DISK_FULL
    assert stage.follower.log.end == 2
