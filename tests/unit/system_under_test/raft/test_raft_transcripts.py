"""Raft's own examples as transcripts: figures 7 and 8 of the paper, and what the rules around them say."""

from __future__ import annotations

from dataclasses import replace

from system_under_test.raft.core import Raft, Role
from system_under_test.raft.event import ChangeMembership, Persisted, Propose, Read, Receive, Tick, Transfer
from system_under_test.raft.membership import AddLearner, Membership, Remove
from system_under_test.raft.message import (
    Append,
    AppendAccepted,
    AppendRefused,
    Entry,
    HardState,
    SnapshotChunk,
    TimeoutNow,
    VoteReply,
    VoteRequest,
)
from system_under_test.raft.snapshot import NOTHING, encode
from tests.unit.system_under_test.raft.raft_stage import SECOND, TIMING, Stage, entries

FIGURE_7 = {
    "L": "1114455666",
    "a": "111445566",
    "b": "1114",
    "c": "11144556666",
    "d": "111445566677",
    "e": "1114444",
    "f": "11122233333",
}


def test_figure_7_a_new_leader_mends_followers_a_to_f_that_are_short_or_in_conflict():
    stage = Stage(FIGURE_7, terms={"L": 7, "d": 7})
    stage.elect("L", "a", "b", "e", "f")
    assert stage.nodes["L"].term == 8
    stage.transcript.clear()
    stage.deliver()
    for _ in range(3):
        stage.beat("L")
        stage.deliver()
    assert set(stage.logs().values()) == {"11144556668"}
    writes = [line for line in stage.transcript if "writes" in line]
    assert writes == [
        "c writes 11..11: 11144556668",
        "d writes 11..11: 11144556668",
        "a writes 10..11: 11144556668",
        "b writes 5..11: 11144556668",
        "e writes 6..11: 11144556668",
        "f writes 4..11: 11144556668",
    ]
    refusals = [line for line in stage.transcript if "does not fit" in line]
    assert refusals == [
        "a→L does not fit at 10; try 9 (term 6)",
        "b→L does not fit at 10; try 4 (term 4)",
        "e→L does not fit at 10; try 7 (term 4)",
        "f→L does not fit at 10; try 9 (term 3)",
    ]


def test_figure_7_followers_c_and_d_agree_and_keep_their_tail_until_the_new_entry_comes():
    for name, tail in {"c": "11144556666", "d": "111445566677"}.items():
        stage = Stage(FIGURE_7, terms={"L": 7, "d": 7})
        stage.step(name, Receive(Append("L", name, 8, 1, 10, 6, 0, ())))
        assert stage.logs()[name] == tail, "a heartbeat that fits at 10 cuts nothing"
        stage.step(name, Receive(Append("L", name, 8, 1, 10, 6, 0, (Entry(11, 8, b""),))))
        assert stage.logs()[name] == "11144556668"
        assert stage.nodes[name].leader == "L"


def test_the_term_rules_a_greater_term_is_taken_and_the_vote_forgotten_and_a_lesser_one_is_answered_with_the_own():
    """Whatever the message, and whatever the node is."""
    for asked, answer in (
        (Append("s2", "s1", 5, 1, 9, 4, 0, ()), AppendRefused),
        (VoteRequest("s2", "s1", 5, 0, 0), VoteReply),
        (AppendAccepted("s2", "s1", 5, 1, 0), None),
        (VoteReply("s2", "s1", 5, False), None),
    ):
        for role in (Role.FOLLOWER, Role.CANDIDATE, Role.LEADER):
            raft = alone("s1", ["s1", "s2", "s3"], log="1")
            if role is Role.FOLLOWER:
                raft.term, raft.vote = 3, "s3"
            else:
                raft.term = 2
                raft._become_candidate(0)
                raft._votes |= {"s2"} if role is Role.LEADER else set()
                raft._count_votes(0)
            assert (raft.role, raft.term, raft.vote is None) == (role, 3, False)
            late = replace(asked, term=2)
            answers = [(type(message), message.term) for message in raft.step(Receive(late), 0).messages]
            assert (raft.role, raft.term, raft.vote is None) == (role, 3, False), "a lesser term changes nothing"
            assert answers == ([(answer, 3)] if answer else [])
            effects = raft.step(Receive(asked), 0)
            assert (raft.role, raft.term, raft.vote) == (Role.FOLLOWER, 5, None)
            assert effects.hard_state == HardState(5, None)


def test_figure_8_an_entry_of_an_older_term_is_not_committed_by_counting():
    # (a) s1 leads term 2 and reaches s2 only. (b) s5 leads term 3 and reaches no other.
    stage = Stage({"s1": "12", "s2": "12", "s3": "1", "s4": "1", "s5": "13"}, terms={"s1": 3, "s3": 3, "s4": 3})
    # (c) s1 leads again, term 4, and brings the 2 to s3; its own 4 gets no further than itself.
    stage.elect("s1", "s2", "s3", "s4")
    assert stage.nodes["s1"].term == 4
    leader = stage.nodes["s1"]
    stage.wire = []
    stage.step("s3", Receive(Append("s1", "s3", 4, 1, 1, 1, 0, (Entry(2, 2, b"x"),))))
    stage.between("s1", "s3")
    stage.step("s1", Receive(AppendAccepted("s2", "s1", 4, 1, 2)))
    assert stage.logs()["s3"].startswith("12")
    assert leader.commit == 0, "the 2 is on s1, s2 and s3, and yet not committed"
    # (d) so s5 may lead with its 3 (term 5) and overwrite the 2 everywhere.
    stage = Stage(
        {"s1": "124", "s2": "12", "s3": "12", "s4": "1", "s5": "13"}, terms={"s2": 4, "s3": 4, "s4": 4, "s5": 4}
    )
    stage.elect("s5", "s2", "s3", "s4")
    stage.deliver()
    stage.beat("s5")
    stage.deliver()
    assert set(stage.logs().values()) == {"135"}
    # (e) but had s1's 4 reached s3 before it failed, both would be committed and s5 could not win.
    stage = Stage({"s1": "124", "s2": "124", "s3": "124", "s4": "1", "s5": "13"}, terms={"s4": 4, "s5": 4})
    stage.elect("s5", "s2", "s3", "s4")
    assert stage.nodes["s5"].role is not Role.LEADER


def test_a_leader_counts_itself_only_when_its_disk_has_the_entry():
    raft = alone("s1", ["s1"])
    effects = raft.step(Tick(SECOND), 2 * SECOND)
    assert raft.role is Role.LEADER
    assert raft.commit == 0
    raft.step(Persisted(effects.sequence), 2 * SECOND)
    assert raft.commit == 1
    written = raft.step(Propose((b"x",)), 2 * SECOND)
    assert not written.committed
    assert raft.step(Persisted(written.sequence), 2 * SECOND).committed == [Entry(2, 1, b"x")]


def test_what_was_cut_before_it_was_durable_is_not_taken_for_durable_later():
    raft = alone("s1", ["s1", "s2", "s3"], log="1")
    first = raft.step(Receive(Append("s2", "s1", 2, 1, 1, 1, 0, (Entry(2, 2, b""), Entry(3, 2, b"")))), 0)
    raft.step(Receive(Append("s3", "s1", 3, 1, 1, 1, 0, (Entry(2, 3, b""),))), 0)
    raft.step(Persisted(first.sequence), 0)
    assert raft.durable_index == 1


def test_a_late_append_that_ends_earlier_cuts_nothing():
    stage = Stage({"s1": "11", "s2": "1122", "s3": ""})
    stage.step("s2", Receive(Append("s1", "s2", 2, 1, 2, 1, 0, (Entry(3, 2, b"x"),))))
    assert stage.logs()["s2"] == "1122"


def test_a_follower_commits_only_what_the_append_has_verified():
    raft = alone("s1", ["s1", "s2", "s3"], log="1111")
    raft.step(Receive(Append("s2", "s1", 2, 1, 2, 1, 4, ())), 0)
    assert raft.commit == 2


def test_a_vote_is_given_once_a_term_and_not_to_a_shorter_log():
    stage = Stage({"s1": "11", "s2": "1", "s3": "11"})
    stage.step("s1", Receive(VoteRequest("s2", "s1", 2, 1, 1)))
    assert (stage.nodes["s1"].term, stage.nodes["s1"].vote) == (2, None), "a shorter log: the term, not the vote"
    stage.step("s1", Receive(VoteRequest("s3", "s1", 2, 2, 1)))
    stage.step("s1", Receive(VoteRequest("s2", "s1", 2, 9, 1)))
    assert stage.nodes["s1"].vote == "s3"


def test_a_node_that_has_a_leader_ignores_candidates_and_terms_stay():
    stage = Stage({"s1": "1", "s2": "1", "s3": "1"})
    stage.elect("s1", "s2", "s3")
    stage.deliver()
    for _ in range(30):
        stage.beat("s1")
        stage.between("s1", "s2")
    stage.transcript.clear()
    stage.step("s3", Tick(SECOND))
    stage.between("s2", "s3")
    assert stage.transcript == ["s3→s2 PreVoteRequest for term 3", "s2→s3 no"]
    assert [raft.term for raft in stage.nodes.values()] == [2, 2, 2]


def test_a_leader_that_no_majority_answers_steps_down_and_its_reads_are_lost():
    stage = Stage({"s1": "1", "s2": "1", "s3": "1"})
    stage.elect("s1", "s2", "s3")
    stage.deliver()
    leader = stage.nodes["s1"]
    assert leader.is_active
    asked = leader.step(Read((7,)), stage.now_ns)
    assert not asked.reads, "no peer has confirmed yet"
    for _ in range(25):
        stage.now_ns += SECOND // 10
        lost = leader.step(Tick(SECOND), stage.now_ns).lost_reads
        if lost:
            break
    assert lost == [7]
    assert leader.role is Role.FOLLOWER
    assert leader.term == 2, "stepping down needs no new term"


def test_a_read_waits_for_the_own_no_op_and_then_for_a_majority():
    stage = Stage({"s1": "1", "s2": "1", "s3": "1"})
    stage.elect("s1", "s2", "s3")
    leader = stage.nodes["s1"]
    assert not leader.step(Read((1,)), stage.now_ns).reads
    appends, stage.wire = stage.wire, []
    for append in appends:
        stage.step(append.recipient, Receive(append))
    acks, stage.wire = stage.wire, []
    served = [token for ack in acks for token in leader.step(Receive(ack), stage.now_ns).reads]
    assert leader.is_active
    assert not served, "these acknowledge the no-op; the read asks anew"


class InPieces(Raft):
    chunk_bytes = 40


def with_snapshot() -> Stage:
    """s1 leads and has taken a snapshot up to 4; s3 was not there."""
    stage = Stage({"s1": "111", "s2": "111", "s3": ""}, core=InPieces)
    stage.elect("s1", "s2")
    stage.between("s1", "s2")
    assert stage.nodes["s1"].commit == 4
    stage.compact("s1")
    stage.propose("s1")
    stage.between("s1", "s2")
    stage.transcript.clear()
    return stage


def test_a_follower_whose_next_entries_are_gone_gets_the_snapshot_and_what_is_behind_it():
    stage = with_snapshot()
    stage.beat("s1")
    stage.between("s1", "s3")
    stage.beat("s1")
    stage.between("s1", "s3")
    assert stage.transcript == [
        "s1→s3 after 4 (term 2): nothing",
        "s1→s3 snapshot up to 4: bytes 0..40 of 105",
        "s3→s1 does not fit at 4; try 0 (term 0)",
        "s3→s1 has 40 bytes of the snapshot up to 4",
        "s1→s3 snapshot up to 4: bytes 40..80 of 105",
        "s3→s1 has 80 bytes of the snapshot up to 4",
        "s1→s3 snapshot up to 4: bytes 80..105 of 105",
        "s3 keeps a snapshot up to 4: ",
        "s3→s1 equal up to 4",
        "s1→s3 after 4 (term 2): 2",
        "s3 writes 5..5: 2",
        "s3→s1 equal up to 5",
        "s1→s3 after 5 (term 2): nothing",
        "s3→s1 equal up to 5",
    ]


def test_chunks_that_are_lost_or_come_again_or_late_harm_nothing():
    stage = with_snapshot()
    stage.beat("s1")
    chunks: list[SnapshotChunk] = []
    while stage.nodes["s3"].commit < 4:
        for message in list(stage.wire):
            if isinstance(message, SnapshotChunk):
                chunks.append(message)
                stage.wire.remove(message)
                if len(chunks) % 2:
                    continue  # lost
                for again in reversed(chunks):
                    stage.step("s3", Receive(again))
        stage.between("s1", "s3")
        stage.beat("s1")
    kept = stage.nodes["s3"].log.snapshot
    assert kept == stage.nodes["s1"].log.snapshot
    for late in chunks:
        assert stage.nodes["s3"].step(Receive(late), stage.now_ns).snapshot is None
    assert stage.nodes["s3"].log.snapshot == kept


def test_a_log_that_goes_on_behind_the_snapshot_keeps_that_and_one_in_conflict_is_gone():
    stage = with_snapshot()
    snapshot = encode(stage.nodes["s1"].log.snapshot)
    chunk = SnapshotChunk("s1", "s2", 9, 1, 4, len(snapshot), 0, snapshot)
    for log, behind in {"11125": "5", "11145": "", "11": ""}.items():
        follower = alone("s2", ["s1", "s2", "s3"], log=log)
        effects = follower.step(Receive(chunk), 0)
        assert "".join(str(entry.term) for entry in follower.log.entries) == behind
        assert effects.restored == effects.snapshot == follower.log.snapshot
        assert follower.commit == 4
        assert effects.messages == [AppendAccepted("s2", "s1", 9, 1, 4)]


def test_a_leader_hands_over_once_the_other_one_has_caught_up_and_nobody_is_asked_for_pre_votes():
    stage = Stage({"s1": "1", "s2": "1", "s3": "1"})
    stage.elect("s1", "s2", "s3")
    stage.between("s1", "s3")
    stage.transcript.clear()
    stage.step("s1", Transfer("s2"))
    assert not stage.wire, "s2 lacks the no-op"
    stage.beat("s1")
    stage.deliver()
    assert stage.transcript[4:13] == [
        "s2→s1 equal up to 2",
        "s3→s1 equal up to 2",
        "s1→s2 TimeoutNow for term 2",
        "s2 candidate of term 3",
        "s2→s1 VoteRequest for term 3",
        "s1 follower of term 3",
        "s2→s3 VoteRequest for term 3",
        "s1→s2 yes",
        "s2 leader of term 3",
    ]


def test_a_leader_that_nobody_takes_over_from_leads_on_after_an_election_timeout():
    stage = Stage({"s1": "1", "s2": "1", "s3": "1"})
    stage.elect("s1", "s2", "s3")
    stage.between("s1", "s3")
    stage.step("s1", Transfer("s2"))
    leader = stage.nodes["s1"]
    for _ in range(9):
        stage.beat("s1")
        stage.between("s1", "s3")
        assert leader.transferee == "s2"
    stage.beat("s1")
    assert leader.transferee is None
    stage.propose("s1")
    stage.between("s1", "s3")
    assert leader.commit == 3


def test_whoever_is_told_to_stand_by_a_leader_of_the_past_does_not():
    stage = Stage({"s1": "1", "s2": "1", "s3": "1"})
    stage.elect("s1", "s2", "s3")
    stage.deliver()
    for sender, term in (("s1", 1), ("s3", 2)):
        stage.step("s2", Receive(TimeoutNow(sender, "s2", term)))
        assert stage.nodes["s2"].role is Role.FOLLOWER


def test_a_leader_changes_no_members_before_its_no_op_is_committed_and_then_one_after_the_other():
    stage = Stage({"s1": "1", "s2": "1", "s3": "1"})
    stage.elect("s1", "s2", "s3")
    leader = stage.nodes["s1"]
    assert "not yet" in str(leader.refusal_of(AddLearner("s4", "")))
    stage.deliver()
    assert leader.refusal_of(AddLearner("s4", "")) is None
    stage.step("s1", ChangeMembership(AddLearner("s4", "")))
    assert "not committed" in str(leader.refusal_of(Remove("s3")))
    stage.between("s1", "s2", "s3")
    assert leader.refusal_of(Remove("s3")) is None
    assert "s4" in leader.membership.learners


def test_a_change_of_members_that_is_cut_from_the_log_is_undone():
    stage = Stage({"s1": "1", "s2": "1", "s3": "1"})
    stage.elect("s1", "s2", "s3")
    stage.deliver()
    stage.step("s1", ChangeMembership(Remove("s3")))
    assert "s3" not in stage.nodes["s1"].membership.voters
    stage.wire.clear()
    stage.elect("s2", "s3")
    stage.deliver()
    for _ in range(2):
        stage.beat("s2")
        stage.deliver()
    assert set(stage.logs().values()) == {"123"}
    assert all("s3" in raft.membership.voters for raft in stage.nodes.values())


def test_a_voter_whose_removal_only_it_has_leads_until_that_is_committed():
    stage = Stage({"s1": "1", "s2": "1"})
    stage.elect("s1", "s2")
    stage.deliver()
    stage.step("s1", ChangeMembership(Remove("s1")))
    stage.wire.clear()
    for _ in range(30):
        stage.beat("s1")  # to nobody, so it steps down
    stage.wire.clear()
    assert stage.nodes["s1"].role is not Role.LEADER
    stage.elect("s2", "s1")
    assert stage.nodes["s2"].role is not Role.LEADER, "its log lacks the removal"
    stage.elect("s1", "s2")
    assert stage.nodes["s1"].role is Role.LEADER
    stage.transcript.clear()
    stage.deliver()
    assert stage.nodes["s1"].role is Role.FOLLOWER
    assert [*stage.nodes["s2"].membership.voters] == ["s2"]
    stage.stand("s2")
    assert stage.nodes["s2"].role is Role.LEADER


def alone(node: str, members: list[str], log: str = "") -> Raft:
    return Raft(
        node=node,
        membership=Membership(voters=dict.fromkeys(members, "")),
        timing=TIMING,
        hard_state=HardState(int(log[-1]) if log else 0, None),
        snapshot=NOTHING,
        entries=entries(log),
        now_ns=0,
        election_timeout_ns=SECOND,
    )
