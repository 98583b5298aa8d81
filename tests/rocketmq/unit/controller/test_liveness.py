"""Which replicas are alive: by heartbeats and channels, and by incarnation."""

from __future__ import annotations

import dataclasses

import pytest

from system_under_test.rocketmq.controller.heartbeat import LivenessTable, pulse_text, seen_pulse
from system_under_test.rocketmq.controller.protocol import BrokerReport, MalformedRequest

SECOND = 1_000_000_000
FIRST_LIFE = BrokerReport(cluster="c", group="g", broker_id=1, address="b1:10911", incarnation="1st", max_offset=1000)
SECOND_LIFE = dataclasses.replace(FIRST_LIFE, incarnation="2nd", max_offset=900)
OTHER = dataclasses.replace(FIRST_LIFE, broker_id=2, address="b2:10911", incarnation="other")


class Channel:
    pass


def table() -> LivenessTable:
    return LivenessTable(timeout_ns=10 * SECOND, started_ns=0)


def heard(
    table: LivenessTable, report: BrokerReport, *, registered: str, channel: Channel, at_s: int = 0, pulse: int = 0
):
    return table.record(report, registered=registered, channel=channel, seen_pulse=pulse, now_ns=at_s * SECOND)


def test_silence_for_ten_seconds_is_death_and_a_heartbeat_is_life_again():
    liveness, channel = table(), Channel()
    heard(liveness, FIRST_LIFE, registered="1st", channel=channel)
    liveness.expire(10 * SECOND)
    assert liveness.living("g", 1, "1st") == FIRST_LIFE
    liveness.expire(10 * SECOND + 1)
    assert liveness.living("g", 1, "1st") is None
    heard(liveness, FIRST_LIFE, registered="1st", channel=channel, at_s=11)
    assert liveness.living("g", 1, "1st") == FIRST_LIFE


def test_a_closed_channel_is_death_at_once_unless_it_is_an_old_one():
    liveness, old, new = table(), Channel(), Channel()
    heard(liveness, FIRST_LIFE, registered="1st", channel=old)
    heard(liveness, FIRST_LIFE, registered="1st", channel=new)
    assert not liveness.closed(old)
    assert liveness.living("g", 1, "1st") is not None
    assert liveness.closed(new)
    assert liveness.living("g", 1, "1st") is None


def test_a_former_life_counts_for_nothing_and_its_late_bytes_do_not_bury_the_present_one():
    liveness = table()
    heard(liveness, FIRST_LIFE, registered="1st", channel=Channel())
    assert liveness.living("g", 1, "2nd") is None, "registered anew, and has not said anything yet"
    heard(liveness, SECOND_LIFE, registered="2nd", channel=Channel())
    heard(liveness, FIRST_LIFE, registered="2nd", channel=Channel())
    assert liveness.living("g", 1, "2nd") == SECOND_LIFE


def test_a_report_is_made_since_a_birth_only_if_it_brings_back_a_pulse_that_went_out_after_it():
    liveness, channel = table(), Channel()
    before = heard(liveness, OTHER, registered="other", channel=channel)
    heard(liveness, SECOND_LIFE, registered="2nd", channel=Channel())
    after = heard(liveness, OTHER, registered="other", channel=channel, pulse=before)
    assert not liveness.has_reported_since_birth("g", 2, 1), "this one may have been under way for long"
    heard(liveness, OTHER, registered="other", channel=channel, pulse=after)
    assert liveness.has_reported_since_birth("g", 2, 1)


def may_judge(liveness: LivenessTable, at_ns: int, broker_id: int = 1, incarnation: str = "1st") -> bool:
    liveness.expire(at_ns)
    return liveness.may_judge("g", broker_id, incarnation)


def test_a_controller_that_has_only_just_started_does_not_take_silence_for_death():
    liveness = table()
    assert not may_judge(liveness, 10 * SECOND)
    assert may_judge(liveness, 10 * SECOND + 1)
    liveness = table()
    heard(liveness, OTHER, registered="other", channel=Channel())
    assert may_judge(liveness, SECOND, 2, "other"), "it was heard of: whether it lives is known"


def test_whoever_has_just_registered_elsewhere_is_not_taken_for_dead_by_what_its_former_life_said():
    liveness, channel = table(), Channel()
    heard(liveness, FIRST_LIFE, registered="1st", channel=channel)
    liveness.closed(channel)
    assert may_judge(liveness, 20 * SECOND)
    liveness.expect("g", 1, "2nd", 21 * SECOND)
    liveness.expect("g", 1, "2nd", 30 * SECOND)
    assert not may_judge(liveness, 31 * SECOND, incarnation="2nd")
    assert may_judge(liveness, 31 * SECOND + 1, incarnation="2nd")


def test_a_pulse_of_another_life_of_the_controller_orders_nothing():
    assert seen_pulse("a life", pulse_text("a life", 12)) == 12
    for brought in ("", "12", "0", pulse_text("another", 12), "a life.", "a life.-1", "a life.x", "a life." + "9" * 99):
        assert seen_pulse("a life", brought) == 0


def test_a_broker_that_names_a_time_of_its_own_is_dead_after_that():
    liveness = table()
    patient, hasty = (
        dataclasses.replace(report, timeout_ms=timeout_ms)
        for report, timeout_ms in ((FIRST_LIFE, 60_000), (OTHER, 500))
    )
    for report in (patient, hasty):
        heard(liveness, report, registered=report.incarnation, channel=Channel())
    liveness.expire(SECOND)
    assert (liveness.living("g", 1, "1st"), liveness.living("g", 2, "other")) == (patient, None)
    liveness.expire(60 * SECOND)
    assert liveness.living("g", 1, "1st") == patient
    liveness.expire(60 * SECOND + 1)
    assert liveness.living("g", 1, "1st") is None


@pytest.mark.parametrize("milliseconds", ["0", "-1", "x", str(2**31), "9" * 100])
def test_a_time_that_is_none_is_refused(milliseconds):
    fields = {**FIRST_LIFE.to_fields(), "heartbeatTimeoutMills": milliseconds}
    with pytest.raises(MalformedRequest, match="heartbeatTimeoutMills"):
        BrokerReport.from_fields(fields)
    assert BrokerReport.from_fields({**fields, "heartbeatTimeoutMills": "250"}).timeout_ms == 250
