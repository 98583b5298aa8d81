"""Lines of a release's logs become the events that our own nodes write."""

from __future__ import annotations

from typing import Any

from workloads.systems.rocketmq.original_events import logged_events
from workloads.systems.rocketmq.original_reporting import merged

AT = "2026-11-27 06:00:01.250 INFO main - "
AT_NS = 1_795_730_401_250_000_000


def read(*lines: str, group: str = "broker-a") -> list[tuple[str, dict[str, Any]]]:
    found = logged_events({"node.log": [AT + line for line in lines]}, group)
    return [(one.event, dict(one.fields)) for one in found]


def test_times_are_those_of_the_eighth_zone_with_or_without_a_fraction() -> None:
    line = " INFO main - [c1] [ChangeRoleToLeader] from term: 2 and currTerm: 2"
    whole, exact = "2026-11-27 06:00:01" + line, "2026-11-27 06:00:01.250" + line
    assert [one.wall_ns for one in logged_events({"a.log": [exact]}, "")] == [AT_NS]
    assert [one.wall_ns for one in logged_events({"a.log": [whole]}, "")] == [AT_NS + 250_000_000]


def test_a_broker_that_becomes_master_says_under_which_epoch_it_writes_from_where() -> None:
    assert read(
        "Register state change to: CREATE_METADATA_FILE_DONE, metadata: BrokerMetadata{clusterName='x', "
        "brokerName='broker-a', brokerId=3, filePath='/a'}",
        "Change ha to master success, newMasterEpoch:4, startOffset:812",
        "Change ha to master success, last role is master, newMasterEpoch:5, startOffset:900",
    ) == [
        ("identity", {"group": "broker-a", "broker_id": 3}),
        ("role", {"group": "broker-a", "role": "master", "master_epoch": 4, "broker_id": 3, "start_offset": 812}),
        ("role", {"group": "broker-a", "role": "master", "master_epoch": 5, "broker_id": 3, "start_offset": 900}),
    ]


def test_a_broker_that_becomes_slave_knows_the_epoch_of_its_master() -> None:
    events = read(
        "Begin to change to slave, brokerName=broker-a, brokerId=1, newMasterBrokerId=3, newMasterAddress=b2:1, "
        "newMasterEpoch=3",
        "Change ha to slave success, newMasterAddress:b2:1, newMasterEpoch:3",
        "Change ha to slave success, master doesn't change, newMasterAddress:b2:1, newMasterEpoch:4",
    )
    assert [(event, fields.get("master_epoch")) for event, fields in events] == [
        ("identity", None),
        ("role", 3),
        ("role", 4),
    ]
    assert {fields["role"] for event, fields in events if event == "role"} == {"slave"}


def test_members_of_a_set_that_are_addresses_are_left_out() -> None:
    assert read("SyncStateSet changed from [1] to [2, 1]", "Sync state set changed from [b1:1] to [b1:1, b2:1]") == [
        ("sync_state_set", {"group": "broker-a", "members": [1, 2]}),
        ("sync_state_set", {"group": "broker-a"}),
    ]


def test_a_log_that_ends_where_it_is_to_be_cut_is_not_cut() -> None:
    needless = "no need to truncate files, truncate offset is 640, max physical offset is 640"
    assert read(needless, "Truncate slave log to 640 success, change to transfer state") == []
    assert read("Truncate slave log to 640 success, change to transfer state", "Truncate commitLog to 320") == [
        ("truncated", {"to": 640}),
        ("truncated", {"to": 320}),
    ]


ELECTS = (
    "Event queue run event electMaster, get the result ControllerResult{events=[ElectMasterEvent{"
    "newMasterElected=true, brokerName='broker-a', newMasterBrokerId=2}], response=ElectMasterResponseHeader{"
    "masterBrokerId=2, masterAddress='b2:1', masterEpoch=7, syncStateSetEpoch=9}}"
)
ALTERS = (
    "Event queue run event alterSyncStateSet, get the result ControllerResult{events=[AlterSyncStateSetEvent{"
    "brokerName='broker-a', newSyncStateSet=[1, 3]}], response=AlterSyncStateSetResponseHeader{newSyncStateSetEpoch=4}}"
)
APPLIES = "Apply 1 events index from 6 to 6 on controller controllers#c1"
ELECTED = {"group": "broker-a", "master": 2, "master_epoch": 7, "in_sync": [], "unclean_allowed": None}


def test_an_election_counts_once_it_is_applied() -> None:
    agreed = {"group": "broker-a", "sync_state_set_epoch": 4, "members": [1, 3]}
    assert read(ELECTS, APPLIES, ALTERS, APPLIES, APPLIES) == [("elected", ELECTED), ("set_agreed", agreed)]


def test_an_election_that_was_only_proposed_never_held() -> None:
    failed = "Failed to append event to DLedger, the response is 1, try cancel the future"
    deposed = "[c1][ChangeRoleToFollower] from term: 5 leaderId: c2 and currTerm: 5"
    assert read(ELECTS, failed, APPLIES) == []
    assert read(ELECTS, deposed, APPLIES) == [("follower", {"term": 5})]


def test_controllers_of_either_raft_say_who_leads_in_which_term() -> None:
    assert read(
        "[c2] [ChangeRoleToCandidate] from term: 2 and currTerm: 1",
        "[c2] [ChangeRoleToLeader] from term: 2 and currTerm: 2",
        "node <controllers/c2:9878> Start Leader, term=3",
        "Start following, ctx=LeaderChangeContext [leaderId=c1:9878, term=4, status=Status[OK]]",
        "elect master, request :ElectMasterRequestHeader{}, result: " + ELECTS.partition("the result ")[2],
    ) == [
        ("candidate", {"term": 1}),
        ("leader", {"term": 2}),
        ("leader", {"term": 3}),
        ("follower", {"term": 4}),
        ("elected", ELECTED),
    ]


def test_what_is_not_understood_is_passed_over() -> None:
    assert read("checkSyncStateSetPeriod=1500", "Elect new master 2 for broker broker-a", "Truncate slave log") == []
    assert logged_events({"a.log": ["java.lang.Error: torn", "2026-11-27 06:00", ""]}, "broker-a") == []


def test_answers_count_for_what_logs_do_not_tell_of() -> None:
    logged = [{"time": 30, "event": "role", "role": "master"}]
    observed = [
        {"time": 10, "event": "role", "role": "slave"},
        {"time": 20, "event": "set_agreed", "members": [1]},
        {"time": 40, "event": "follower"},
    ]
    assert [event["time"] for event in merged(logged, observed)] == [20, 30, 40]
    assert [event["time"] for event in merged([], observed)] == [10, 20, 40]
