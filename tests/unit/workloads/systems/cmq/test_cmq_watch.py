"""The abstract state of a cluster of queues is that of what has happened, whenever it was asked for."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.watch import BOOTED, CUT, ENDED, HEALED, PAUSED, RESUMED
from system_under_test.cmq.config import group_name
from workloads.systems.cmq.settings import CmqSettings
from workloads.systems.cmq.watch import CmqWatch

Event = tuple[str, str, dict[str, Any]]
FIRST, SECOND = group_name(1), group_name(2)
SETTINGS = CmqSettings(groups=2)
NODE = st.sampled_from(SETTINGS.names)
GROUP = st.sampled_from((FIRST, SECOND))
SMALL = st.integers(0, 25)


def event(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Event]:
    return st.tuples(NODE, st.just(kind), st.fixed_dictionaries(fields))


MEMBERS = st.lists(NODE, unique=True)
EVENTS = st.one_of(
    event(BOOTED),
    event(PAUSED),
    event(RESUMED),
    event(ENDED, how=st.sampled_from(("killed", "panicked"))),
    event(CUT, to=NODE),
    event(HEALED, to=NODE),
    event("leader", group=GROUP, term=SMALL),
    event("follower", group=GROUP, term=SMALL),
    event("membership", group=GROUP, index=SMALL, voters=MEMBERS, learners=MEMBERS),
    event("written", log=GROUP, end=SMALL),
    event("truncated", log=GROUP, to=SMALL),
    event("deleted", log=GROUP, to=SMALL),
    event("recovered", log=GROUP, end=SMALL),
    event("confirmed", log=GROUP, offset=SMALL),
    event("raft_committed", group=GROUP, index=SMALL),
)


@given(st.lists(EVENTS, max_size=40))
def test_the_state_is_that_of_what_has_happened(events: list[Event]) -> None:
    asked = CmqWatch(SETTINGS)
    for count, (node, kind, fields) in enumerate(events, start=1):
        asked.saw(node, kind, fields)
        fresh = CmqWatch(SETTINGS)
        for earlier in events[:count]:
            fresh.saw(*earlier)
        assert asked.state() == fresh.state()


def test_the_state_says_who_lags_how_far_and_who_needs_a_snapshot() -> None:
    watch = CmqWatch(CmqSettings(groups=1))
    first, second, third = SETTINGS.names
    for name in SETTINGS.names:
        watch.saw(name, BOOTED, {})
    watch.saw(first, "leader", {"group": FIRST, "term": 3})
    watch.saw(first, "written", {"log": FIRST, "end": 50})
    watch.saw(first, "deleted", {"log": FIRST, "to": 41})
    watch.saw(second, "follower", {"group": FIRST, "term": 3})
    watch.saw(second, "written", {"log": FIRST, "end": 49})
    watch.saw(third, ENDED, {"how": "killed"})
    words = ("leads-0 lag 0", "follows-0 lag 1", "follows(killed)-2 lag 2 needs a snapshot")
    assert watch.state() == (" + ".join(sorted(words)), "killed")
