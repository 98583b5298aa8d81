"""When a session is silent, as a leader counts it."""

from __future__ import annotations

import random

from system_under_test.metadata.sessions import SessionClock


def test_a_session_is_silent_after_its_time_out_and_not_before():
    clock = SessionClock(100)
    clock.hear("s", 0)
    clock.hear("t", 50)
    assert clock.silent(("s", "t"), 99) == []
    assert clock.next_deadline_ns(99) == 100
    assert clock.silent(("s", "t"), 100) == ["s"]
    clock.hear("s", 120)
    assert clock.silent(("s", "t"), 150) == ["t"]


def test_sessions_that_a_leader_finds_begin_when_it_looks():
    clock = SessionClock(100)
    clock.hear("s", 0)
    clock.begin_anew()
    assert clock.silent(("s", "t"), 90) == []
    assert clock.silent(("s", "t"), 189) == []
    assert clock.silent(("s", "t"), 190) == ["s", "t"]


def test_no_session_is_silent_before_the_next_deadline():
    draw = random.Random(1)
    for _ in range(200):
        clock, now = SessionClock(100), 0
        sessions = [f"s{number}" for number in range(draw.randrange(4))]
        for _ in range(20):
            now += draw.randrange(60)
            if sessions and draw.random() < 0.7:
                clock.hear(draw.choice(sessions), now)
            silent = clock.silent(sessions, now)
            sessions = [session for session in sessions if session not in silent]
            assert clock.silent(sessions, now) == []
            deadline = clock.next_deadline_ns(now)
            newcomer = draw.randrange(now, max(deadline, now + 1))
            clock.hear("newcomer", newcomer)
            assert clock.silent([*sessions, "newcomer"], max(deadline, now) - 1) == []
            assert clock.silent(sessions, now) == []
