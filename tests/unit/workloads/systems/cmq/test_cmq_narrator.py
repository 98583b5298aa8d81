"""Words for people: whatever nodes of CMQ report in a storm has some, or is passed over on purpose."""

from __future__ import annotations

import json

import pytest

from harness.record.scenario import Scenario
from stormproof.search.storm import blow
from stormproof.session import registry
from workloads.systems.cmq.adapter import SYSTEM
from workloads.systems.cmq.narrator import ROUTINE, WORDS
from workloads.systems.cmq.settings import CmqSettings

NARRATOR = SYSTEM.narrator(CmqSettings())


def test_all_that_nodes_report_in_a_storm_has_words_or_is_routine() -> None:
    scenario = Scenario(
        system="cmq",
        workload="queue",
        schedule=("2 for 2 isolate leader [partition 0]", "5 for 2 shrink leader [membership 0]"),
        rate=40,
        time_limit_s=10,
        recovery_s=5,
        seed=1,
    )
    blown = blow(scenario, registry.resolve(scenario))
    events = {json.loads(line)["event"] for lines in blown.events.values() for line in lines}
    assert {"leader", "follower", "membership", "node_added", "node_promoted", "node_removed"} <= events
    assert events <= ROUTINE | WORDS.keys()
    assert not ROUTINE & WORDS.keys()


@pytest.mark.parametrize(
    ("event", "fields", "sentence"),
    [
        ("leader", {"group": "g1", "term": 3, "start": 41}, "led group g1 in term 3, from entry 41 on"),
        ("voted_in", {"group": "g1", "term": 3, "by": ["n1", "n2"]}, "was elected in group g1 in term 3 by n1, n2"),
        (
            "membership",
            {"group": "g2", "index": 7, "voters": ["n1", "n2"], "learners": []},
            "took n1, n2 for the voters of group g2, and for learners none",
        ),
        ("truncated", {"log": "g1", "to": 7}, "cut its log of group g1 at entry 7"),
        ("node_added", {"group": "g1"}, "added ? to group g1 as a learner"),
        ("something_new", {"left": 1}, "reported something_new (left 1)"),
    ],
)
def test_an_event_in_words(event: str, fields: dict[str, object], sentence: str) -> None:
    phrase = NARRATOR.narrate("n1", event, fields)
    assert phrase is not None and phrase.sentence == sentence and phrase.label


def test_what_the_other_events_tell_of_gets_no_words() -> None:
    assert NARRATOR.narrate("n1", "written", {"log": "g1", "start": 0, "end": 1}) is None
