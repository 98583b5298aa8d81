"""What contradicts what in a RocketMQ cluster, as it happens: each rule kept, and each broken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.invariants import Breaches
from harness.watch import BOOTED, ENDED, RESUMED
from workloads.systems.rocketmq.invariants import RocketmqInvariants
from workloads.systems.rocketmq.meanings import MEANINGS
from workloads.systems.rocketmq.settings import RocketmqSettings

SECOND_NS = 1_000_000_000


class Cluster:
    """b1 is master and broker 1, b2 is broker 2, b3 is broker 3; all are in the set, and hold 1,000 bytes."""

    def __init__(self, settings: RocketmqSettings | None = None) -> None:
        self.now_ns = 0
        self.breaches = Breaches(lambda: self.now_ns, MEANINGS)
        self.invariants = RocketmqInvariants(settings or RocketmqSettings(), self.breaches)
        self.index = 0
        for number, node in enumerate(("b1", "b2", "b3"), 1):
            self.saw(node, BOOTED)
            self.saw(node, "recovered", start=0, epoch=None, epoch_start=None, end=0)
            self.saw(node, "identity", broker_id=number)
        self.agrees(1, 1, [1])
        self.saw("b1", "sync_state_set", members=[1, 2, 3])
        self.agrees(1, 1, [1, 2, 3])
        self.writes(1_000, "b1", "b2", "b3")
        assert self.names() == []

    def saw(self, node: str, event: str, **fields: object) -> None:
        self.invariants.saw(node, event, fields)

    def observe(self, node: str, point: str, **values: int) -> None:
        self.invariants.observe(node, point, values)

    def agrees(self, master: int | None, master_epoch: int, members: list[int]) -> None:
        self.index += 1
        for controller in ("c1", "c2"):
            self.saw(
                controller, "set_agreed", index=self.index, master=master, master_epoch=master_epoch, members=members
            )

    def writes(self, end: int, master: str, *nodes: str) -> None:
        """And acknowledges."""
        self.appends(end, master, *nodes)
        self.observe(master, "put-confirmed", end=end, in_sync=3)

    def appends(self, end: int, master: str, *nodes: str, in_sync: int = 3) -> None:
        self.observe(master, "put-appended", end=end, in_sync=in_sync)
        for node in nodes:
            if node != master:
                self.observe(node, "batch-appended", end=end)

    def names(self) -> list[str]:
        return [breach.name for breach in self.breaches.kept()]


def test_what_all_of_the_set_hold_may_be_acknowledged() -> None:
    cluster = Cluster()
    cluster.writes(2_000, "b1", "b2", "b3")
    cluster.agrees(1, 1, [1, 2])
    cluster.writes(3_000, "b1", "b2")
    assert cluster.names() == []


def test_an_acknowledgement_that_a_member_does_not_hold_is_told_with_who_lacks_what() -> None:
    cluster = Cluster()
    cluster.now_ns = 7 * SECOND_NS
    cluster.writes(2_000, "b1", "b2")
    (breach,) = cluster.breaches.kept()
    assert (breach.name, breach.nodes, breach.time_ns) == ("unheld-ack", ("b1", "b3"), 7 * SECOND_NS)
    assert "b3" in breach.because
    assert "2000" in breach.because
    assert "1000" in breach.because


def test_who_joins_the_set_must_hold_all_that_was_acknowledged() -> None:
    cluster = Cluster()
    cluster.agrees(1, 1, [1, 2])
    cluster.writes(2_000, "b1", "b2")
    cluster.observe("b3", "batch-appended", end=1_900)
    cluster.agrees(1, 1, [1, 2, 3])
    assert cluster.names() == ["unheld-ack"]


def test_who_is_elected_must_hold_it_too_and_the_rest_is_told_once() -> None:
    cluster = Cluster()
    cluster.agrees(1, 1, [1, 2])
    cluster.writes(2_000, "b1", "b2")
    cluster.agrees(3, 2, [3])
    assert cluster.names() == ["unheld-ack"]
    cluster.writes(1_500, "b3", "b3")
    assert cluster.names() == ["unheld-ack"]


def test_an_older_state_of_the_set_that_another_controller_applies_later_is_no_change() -> None:
    cluster = Cluster()
    cluster.agrees(1, 1, [1, 2])
    cluster.writes(2_000, "b1", "b2")
    cluster.saw("c3", "set_agreed", index=2, master=1, master_epoch=1, members=[1, 2, 3])
    cluster.writes(3_000, "b1", "b2")
    assert cluster.names() == []


@pytest.mark.parametrize(
    "settings", [RocketmqSettings(all_ack=False, in_sync_replicas=2), RocketmqSettings(unclean_election=True)]
)
def test_where_not_all_must_hold_it_nothing_is_asked_of_the_set(settings: RocketmqSettings) -> None:
    cluster = Cluster(settings)
    cluster.writes(2_000, "b1", "b2")
    assert cluster.names() == []


def test_what_a_loss_of_power_took_may_be_lacked_until_it_is_there_again() -> None:
    cluster = Cluster()
    cluster.saw("b3", ENDED, how="power lost")
    cluster.saw("b3", BOOTED)
    cluster.saw("b3", "recovered", start=0, epoch=None, epoch_start=None, end=500)
    cluster.agrees(1, 1, [1, 2])
    cluster.agrees(1, 1, [1, 2, 3])
    assert cluster.names() == []
    cluster.observe("b3", "batch-appended", end=1_000)
    cluster.writes(2_000, "b1", "b2")
    assert cluster.names() == ["unheld-ack"]


def test_what_was_cut_is_held_no_more() -> None:
    cluster = Cluster()
    cluster.saw("b2", "truncated", to=900, from_=1_000)
    cluster.writes(2_000, "b1", "b3")
    assert cluster.names() == ["unheld-ack"]


def test_a_master_that_starts_again_has_what_it_answered_to_be_safe() -> None:
    cluster = Cluster()
    cluster.appends(1_200, "b1")
    cluster.saw("b1", "recovered", start=0, epoch=None, epoch_start=None, end=1_000)
    assert cluster.names() == []
    cluster.saw("b1", "recovered", start=0, epoch=None, epoch_start=None, end=999)
    assert cluster.names() == ["not-durable"]


def test_a_master_that_does_not_flush_vouches_for_nothing() -> None:
    cluster = Cluster(RocketmqSettings(flush="async"))
    cluster.saw("b1", "recovered", start=0, epoch=None, epoch_start=None, end=500)
    assert cluster.names() == []


def test_a_cut_takes_back_what_was_vouched_for() -> None:
    cluster = Cluster()
    cluster.saw("b1", "truncated", to=800, from_=1_000)
    cluster.saw("b1", "recovered", start=0, epoch=None, epoch_start=None, end=800)
    assert cluster.names() == []


def test_fewer_in_sync_than_demanded_take_no_write() -> None:
    cluster = Cluster()
    cluster.appends(1_100, "b1", in_sync=2)
    assert cluster.names() == []
    cluster.appends(1_200, "b1", in_sync=1)
    assert cluster.names() == ["too-few-in-sync"]


def test_fewer_in_sync_than_demanded_acknowledge_nothing() -> None:
    cluster = Cluster()
    cluster.appends(1_100, "b1", "b2", "b3")
    cluster.observe("b1", "put-confirmed", end=1_100, in_sync=1)
    assert cluster.names() == ["too-few-in-sync"]


def test_a_log_that_was_emptied_and_begins_later_has_no_epochs() -> None:
    cluster = Cluster()
    cluster.observe("b2", "epoch-learnt", epoch=2, start=500)
    cluster.saw("b2", "truncated", to=900, from_=1_000)
    cluster.saw("b2", "recovered", start=900, epoch=None, epoch_start=None, end=900)
    assert cluster.names() == []
    cluster.observe("b2", "epoch-learnt", epoch=2, start=500)
    cluster.saw("b2", "recovered", start=800, epoch=None, epoch_start=None, end=900)
    assert cluster.names() == ["wrong-epochs"]


def test_files_are_kept_for_as_long_as_is_promised() -> None:
    cluster = Cluster(RocketmqSettings(retention_s=10.0, time_scale=1.0))
    for second in range(1, 30):
        cluster.now_ns = second * SECOND_NS
        cluster.appends(1_000 + 100 * second, "b1", "b2")
    cluster.saw("b1", "deleted", to=2_900, from_=0, forced=False)
    assert cluster.names() == []
    cluster.saw("b2", "deleted", to=3_000, from_=0, forced=False)
    assert cluster.names() == ["deleted-early"]
    cluster.saw("b1", "deleted", to=3_500, from_=2_900, forced=True)
    assert cluster.names() == ["deleted-early"]


def test_what_fills_a_file_behind_its_last_message_does_not_make_it_younger() -> None:
    cluster = Cluster(RocketmqSettings(retention_s=10.0, time_scale=1.0))
    for second, end in ((1, 4_000), (20, 4_300)):
        cluster.now_ns = second * SECOND_NS
        cluster.appends(end, "b1", "b2")
    cluster.saw("b1", "deleted", to=4_096, from_=0, forced=False)
    assert cluster.names() == []
    cluster.saw("b2", "deleted", to=4_300, from_=0, forced=False)
    assert cluster.names() == ["deleted-early"]


def test_an_epoch_may_begin_where_its_first_files_were_deleted() -> None:
    cluster = Cluster()
    cluster.observe("b1", "epoch-persisted", epoch=2, start=500)
    cluster.saw("b1", "deleted", to=900, from_=0, forced=False)
    cluster.observe("b2", "epoch-learnt", epoch=2, start=900)
    assert cluster.names() == []
    cluster.observe("b3", "epoch-learnt", epoch=2, start=800)
    assert cluster.names() == ["diverging-epochs"]


def test_a_laggard_must_be_proposed_to_leave() -> None:
    cluster = Cluster()
    for second in range(1, 60):
        cluster.now_ns = second * SECOND_NS
        cluster.appends(1_000 + second, "b1", "b2")
    assert set(cluster.names()) == {"laggard-in-sync"}
    assert {breach.nodes for breach in cluster.breaches.kept()} == {("b1", "b3")}


@pytest.mark.parametrize("excuse", ["caught up", "proposed", "away", "no controller answers"])
def test_who_catches_up_or_is_about_to_leave_is_no_laggard(excuse: str) -> None:
    cluster = Cluster()
    for second in range(1, 60):
        cluster.now_ns = second * SECOND_NS
        cluster.appends(1_000 + second, "b1", "b2", *(["b3"] if excuse == "caught up" and second % 5 == 0 else []))
        if excuse == "proposed" and second == 3:
            cluster.saw("b1", "alter", proposed=[1, 2])
        if excuse == "away":
            cluster.saw("b1", RESUMED)
        if excuse == "no controller answers" and second == 3:
            cluster.saw("b1", "alter_failed", wanted=[1, 2], definite=True, reason="not-leader")
            cluster.saw("b1", "alter", proposed=None)
    assert cluster.names() == []


def test_who_has_proposed_again_knows_what_holds() -> None:
    cluster = Cluster()
    cluster.saw("b1", "alter_failed", wanted=[1, 2], definite=True, reason="not-leader")
    cluster.saw("b1", "alter", proposed=[1, 2, 3])
    cluster.saw("b1", "alter", proposed=None)
    for second in range(1, 60):
        cluster.now_ns = second * SECOND_NS
        cluster.appends(1_000 + second, "b1", "b2")
    assert set(cluster.names()) == {"laggard-in-sync"}


def test_a_laggard_must_leave_also_where_the_controllers_refuse_whatever_is_proposed() -> None:
    cluster = Cluster()
    for second in range(1, 60):
        cluster.now_ns = second * SECOND_NS
        cluster.appends(1_000 + second, "b1", "b2")
        cluster.saw("b1", "alter", proposed=[1, 2, 4])
        cluster.saw("b1", "alter_failed", wanted=[1, 2, 4], definite=True, refused=True, reason="4 is not alive")
        cluster.saw("b1", "alter", proposed=None)
    assert set(cluster.names()) == {"laggard-in-sync"}


def test_what_counts_as_confirmed_is_held() -> None:
    cluster = Cluster()
    cluster.observe("b2", "batch-received", end=1_000, confirmed=1_000, until=1_100)
    cluster.observe("b2", "became-master", end=1_000, confirmed=1_000, epoch=2, noted=2)
    assert cluster.names() == []
    cluster.observe("b2", "became-master", end=1_000, confirmed=1_001, epoch=2, noted=2)
    assert cluster.names() == ["beyond-log"]


def test_an_epoch_begins_at_one_place() -> None:
    cluster = Cluster()
    cluster.observe("b1", "epoch-persisted", epoch=3, start=1_000)
    cluster.observe("b2", "epoch-learnt", epoch=3, start=1_000)
    assert cluster.names() == []
    cluster.observe("b3", "epoch-learnt", epoch=3, start=900)
    assert cluster.names() == ["diverging-epochs"]


@pytest.mark.parametrize("point", ["recovered", "truncated"])
def test_epochs_queues_and_offsets_are_cut_with_the_log(point: str) -> None:
    cluster = Cluster()
    cluster.observe("b2", point, end=1_000, begun=1_000, queued=1_000, passing=0)
    assert cluster.names() == []
    cluster.observe("b2", point, end=1_000, begun=1_001, queued=1_001, passing=2)
    assert cluster.names() == ["wrong-epochs", "beyond-log", "passing-offset"]


def test_a_follower_begins_with_whole_messages() -> None:
    cluster = Cluster()
    cluster.observe("b2", "handshake-sent", end=1_000, whole=1_000)
    assert cluster.names() == []
    cluster.observe("b2", "handshake-sent", end=1_000, whole=990)
    assert cluster.names() == ["torn-log"]


def test_a_master_has_noted_its_epoch() -> None:
    cluster = Cluster()
    cluster.observe("b2", "became-master", end=1_000, confirmed=1_000, epoch=3, noted=3)
    assert cluster.names() == []
    cluster.observe("b2", "became-master", end=1_000, confirmed=1_000, epoch=4, noted=3)
    assert cluster.names() == ["wrong-epochs"]


RECOVERED = {
    "as it was": ({"end": 1_000, "epoch": 3, "epoch_start": 900}, []),
    "without the epoch and its bytes": ({"end": 900, "epoch": 2, "epoch_start": 500}, []),
    "without the epoch, with its bytes": ({"end": 950, "epoch": 2, "epoch_start": 500}, ["wrong-epochs"]),
    "without any epoch, with bytes": ({"end": 950, "epoch": None, "epoch_start": None}, ["wrong-epochs"]),
}


@pytest.mark.parametrize("how", RECOVERED)
def test_what_a_broker_has_noted_of_epochs_fits_its_log_when_it_starts_again(how: str) -> None:
    cluster = Cluster(RocketmqSettings(flush="async"))
    cluster.observe("b2", "epoch-learnt", epoch=3, start=900)
    fields, names = RECOVERED[how]
    cluster.saw("b2", "recovered", start=0, **fields)
    assert cluster.names() == names


def test_an_epoch_that_was_cut_off_is_not_missed() -> None:
    cluster = Cluster()
    cluster.observe("b2", "epoch-learnt", epoch=3, start=900)
    cluster.saw("b2", "truncated", to=900, from_=1_000)
    cluster.saw("b2", "recovered", start=0, end=950, epoch=2, epoch_start=500)
    assert cluster.names() == []


def test_controllers_apply_one_command_at_one_place() -> None:
    cluster = Cluster()
    cluster.observe("c1", "about-to-apply", index=9, term=4)
    cluster.observe("c2", "about-to-apply", index=9, term=4)
    assert cluster.names() == []
    cluster.observe("c3", "about-to-apply", index=9, term=5)
    assert cluster.names() == ["diverging-commands"]


def test_an_identity_belongs_to_one_living_broker() -> None:
    cluster = Cluster()
    cluster.saw("b2", ENDED, how="killed")
    cluster.saw("b3", "identity", broker_id=2)
    assert cluster.names() == []
    cluster.saw("b2", BOOTED)
    cluster.saw("b2", "identity", broker_id=2)
    assert cluster.names() == ["shared-identity"]


def test_a_learner_is_never_elected() -> None:
    cluster = Cluster(replace(RocketmqSettings(), learners=1, unclean_election=True))
    cluster.agrees(2, 2, [2])
    assert cluster.names() == []
    cluster.agrees(3, 3, [3])
    assert cluster.names() == ["learner-elected"]


@pytest.mark.parametrize(("living", "allowed", "broken"), [([], True, False), ([1], True, True), ([1], False, False)])
def test_an_outsider_is_elected_only_where_no_member_lives(living: list[int], allowed: bool, broken: bool) -> None:
    cluster = Cluster(RocketmqSettings(unclean_election=True))
    fields = {"in_sync": [1, 2], "in_sync_alive": living, "unclean_allowed": allowed, "max_offset": 1_000}
    cluster.saw("c1", "elected", master=3, **fields)
    assert cluster.names() == ["needlessly-unclean"] * broken


@pytest.mark.parametrize(
    ("ends_at", "ranked", "has_registered", "broken"),
    [(600, 1_000, True, True), (600, 1_000, False, False), (600, 600, True, False), (1_000, 1_000, True, False)],
)
def test_who_is_elected_is_ranked_by_no_more_than_it_told(
    ends_at: int, ranked: int, has_registered: bool, broken: bool
) -> None:
    cluster = Cluster()
    cluster.saw("b2", "recovered", start=0, epoch=None, epoch_start=None, end=ends_at)
    if has_registered:
        cluster.observe("b2", "registered-with-controller", end=ends_at)
    fields = {"in_sync": [1, 2, 3], "in_sync_alive": [2, 3], "unclean_allowed": False, "max_offset": ranked}
    cluster.saw("c1", "elected", master=2, **fields)
    assert cluster.names() == ["overrated-candidate"] * broken


def test_who_counts_as_dead_does_not_join() -> None:
    cluster = Cluster()
    cluster.observe("c1", "alter-decided", dead=0, stale=0)
    assert cluster.names() == []
    cluster.observe("c1", "alter-decided", dead=1, stale=0)
    assert cluster.names() == ["dead-newcomer"]


def test_who_knew_an_older_set_does_not_change_it() -> None:
    cluster = Cluster()
    cluster.observe("c1", "alter-decided", dead=0, stale=1)
    assert cluster.names() == ["stale-change"]


def test_who_has_just_said_that_it_holds_everything_stays_in_the_set() -> None:
    cluster = Cluster()
    cluster.observe("b1", "shrink-begins", whole=0)
    assert cluster.names() == []
    cluster.observe("b1", "shrink-begins", whole=1)
    assert cluster.names() == ["needless-shrink"]


@pytest.mark.parametrize(("applied", "broken"), [(2, False), (3, False), (1, True)])
def test_an_answer_rests_on_all_that_was_applied_before_it_was_asked_for(applied: int, broken: bool) -> None:
    cluster = Cluster()
    cluster.observe("c2", "about-to-apply", index=2, term=1)
    cluster.observe("c1", "request-taken-up", serial=1)
    cluster.observe("c2", "about-to-apply", index=3, term=1)
    cluster.observe("c1", "request-decided", serial=1, applied=applied)
    assert cluster.names() == ["stale-answer"] * broken


def test_requests_of_a_process_that_has_ended_are_not_those_of_the_next() -> None:
    cluster = Cluster()
    cluster.observe("c1", "about-to-apply", index=2, term=1)
    cluster.observe("c1", "request-taken-up", serial=1)
    cluster.saw("c1", ENDED, how="killed")
    cluster.saw("c1", BOOTED)
    cluster.observe("c1", "request-decided", serial=1, applied=0)
    assert cluster.names() == []


@pytest.mark.parametrize(("ends_at", "broken"), [(900, False), (999, False), (1_000, True)])
def test_what_was_cut_durably_stays_cut(ends_at: int, broken: bool) -> None:
    cluster = Cluster()
    cluster.saw("b2", "truncated", to=900, from_=1_000)
    cluster.observe("b2", "truncated", end=900, begun=900, queued=0, passing=0)
    cluster.saw("b2", ENDED, how="killed")
    cluster.saw("b2", BOOTED)
    cluster.saw("b2", "recovered", start=0, epoch=None, epoch_start=None, end=ends_at)
    assert cluster.names() == ["returned-tail"] * broken


def test_a_cut_that_was_under_way_may_not_have_been_made() -> None:
    cluster = Cluster()
    cluster.saw("b2", "truncated", to=900, from_=1_000)
    cluster.saw("b2", "recovered", start=0, epoch=None, epoch_start=None, end=1_000)
    assert cluster.names() == []


def test_what_was_written_again_after_a_cut_may_reach_as_far_as_before() -> None:
    cluster = Cluster()
    cluster.saw("b2", "truncated", to=900, from_=1_000)
    cluster.observe("b2", "truncated", end=900, begun=900, queued=0, passing=0)
    cluster.observe("b2", "batch-appended", end=1_000)
    cluster.saw("b2", "recovered", start=0, epoch=None, epoch_start=None, end=1_000)
    assert cluster.names() == []


ROUTES = {
    "to a newer one": ([("b1", 1), ("b2", 2)], []),
    "to none and to an older one": ([("b2", 2), (None, None), ("b1", 1)], []),
    "back": ([("b1", 1), ("b2", 2), ("b1", 1)], ["stale-route"]),
    "to two of one version": ([("b1", 1), ("b2", 1)], ["stale-route"]),
}


@pytest.mark.parametrize("way", ROUTES)
def test_routes_lead_to_newer_masters_only(way: str) -> None:
    cluster = Cluster()
    steps, names = ROUTES[way]
    for master, version in steps:
        cluster.saw("c1", "route", group="g", master=None if master is None else f"{master}:10911", version=version)
    assert cluster.names() == names


def test_a_name_server_that_starts_again_has_led_nobody() -> None:
    cluster = Cluster()
    cluster.saw("c1", "route", group="g", master="b2:10911", version=2)
    cluster.saw("c1", BOOTED)
    cluster.saw("c1", "route", group="g", master="b1:10911", version=1)
    assert cluster.names() == []


def test_what_is_being_written_counts_for_a_candidate() -> None:
    cluster = Cluster()
    cluster.observe("b2", "registered-with-controller", end=1_000)
    cluster.observe("b2", "batch-received", end=1_000, confirmed=1_000, until=1_200)
    fields = {"in_sync": [1, 2, 3], "in_sync_alive": [2, 3], "unclean_allowed": False}
    cluster.saw("c1", "elected", master=2, max_offset=1_200, **fields)
    assert cluster.names() == []
    cluster.saw("c1", "elected", master=2, max_offset=1_201, **fields)
    assert cluster.names() == ["overrated-candidate"]
