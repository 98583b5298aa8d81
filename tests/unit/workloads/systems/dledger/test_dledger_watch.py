"""What is seen of a group of DLedger as it happens: roles, a state that knows no names, and words for people."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path

import pytest

from harness.watch import BOOTED, CUT, ENDED, HEALED, PAUSED, RESUMED
from system_under_test.dledger import reports
from workloads.systems.dledger.narrator import ROUTINE, DledgerNarrator
from workloads.systems.dledger.settings import DledgerSettings, roles_in
from workloads.systems.dledger.watch import DledgerWatch

PARTS = {"leader": "n1", "near": "n2", "far": "n3"}


def group(parts: Mapping[str, str], more: int = 0, settings: DledgerSettings | None = None) -> DledgerWatch:
    """One leads with 60 entries, one has all but one, and one has 10; `more` is added to terms and ends."""
    watch = DledgerWatch(settings or DledgerSettings())
    for name in parts.values():
        watch.saw(name, BOOTED, {})
        watch.saw(name, "recovered", {"end": 0})
        watch.saw(name, "term", {"term": 3 + more, "vote": parts["leader"]})
    watch.saw(parts["leader"], "leader", {"term": 3 + more})
    for name, end in (("leader", 60), ("near", 59), ("far", 10)):
        if name != "leader":
            watch.saw(parts[name], "follower", {"term": 3 + more})
        watch.saw(parts[name], "written", {"end": end + more})
    return watch


def test_the_state_is_the_same_whichever_member_plays_which_part_and_however_high_terms_are() -> None:
    named = [dict(zip(PARTS, names, strict=True)) for names in permutations(("n1", "n2", "n3"))]
    states = {group(parts, more).state() for parts in named for more in (0, 100)}
    assert states == {("follower-0 lag 1", "follower-0 lag 2", "leader-0 lag 0")}


def test_whatever_changes_in_the_group_changes_the_state() -> None:
    changes: list[tuple[str, str, dict[str, object]]] = [
        ("n1", ENDED, {"how": "killed"}),
        ("n1", PAUSED, {}),
        ("n2", ENDED, {"how": "killed"}),
        ("n2", ENDED, {"how": "panicked"}),
        ("n3", PAUSED, {}),
        ("n1", "candidate", {"term": 3}),
        ("n2", "candidate", {"term": 4}),
        ("n2", "term", {"term": 5, "vote": None}),
        ("n2", "truncated", {"to": 59}),
        ("n3", "truncated", {"to": 10}),
        ("n1", "written", {"end": 120}),
        ("n1", CUT, {"to": "n2"}),
        ("n2", CUT, {"to": "n1"}),
        ("n2", CUT, {"to": "n3"}),
    ]
    states = [group(PARTS).state()]
    for change in changes:
        watch = group(PARTS)
        watch.saw(*change)
        states.append(watch.state())
    assert len(set(states)) == len(states)


def test_what_is_healed_resumed_or_written_on_is_as_before() -> None:
    watch = group(PARTS)
    before = watch.state()
    for event, back in (
        (("n1", CUT, {"to": "n2"}), ("n1", HEALED, {"to": "n2"})),
        (("n2", PAUSED, {}), ("n2", RESUMED, {})),
        (("n2", "truncated", {"to": 58}), ("n2", "written", {"end": 59})),
    ):
        watch.saw(*event)
        assert watch.state() != before
        watch.saw(*back)
        assert watch.state() == before


def test_of_two_that_take_themselves_for_leaders_the_one_of_the_newer_term_is_it() -> None:
    watch = group(PARTS)
    assert watch.roles() == {"leader": ("n1",), "spare": ("n1",)}
    watch.saw("n2", "leader", {"term": 4})
    assert watch.roles() == {"leader": ("n2",), "spare": ("n2",)}
    watch.saw("n2", ENDED, {"how": "killed"})
    assert watch.roles() == {"leader": ("n1",), "spare": ("n1",)}
    watch.saw("n1", "candidate", {"term": 4})
    assert watch.roles() == {}


def test_a_paused_leader_still_leads_and_clients_are_passed_over() -> None:
    watch = group(PARTS)
    watch.saw("n1", PAUSED, {})
    watch.saw("client-1", PAUSED, {})
    assert watch.roles() == {"leader": ("n1",), "spare": ("n1",)}


def test_who_is_preferred_is_known_from_the_settings() -> None:
    watch = group(PARTS, settings=DledgerSettings(preferred=3))
    assert watch.roles() == {"leader": ("n1",), "spare": ("n1",), "preferred": ("n3",)}


def test_without_those_that_are_spare_there_is_still_a_majority() -> None:
    assert roles_in(DledgerSettings(members=5), "n2")["spare"] == ("n2", "n1")


def reported_events() -> set[str]:
    """What a member's code reports."""
    source = Path(reports.__file__).read_text()
    found = {"follower", "candidate"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "log":
            found |= {one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return found


@pytest.mark.parametrize("event", sorted({*reported_events(), "running", "panic"}))
def test_whatever_members_report_has_words_or_is_routine(event: str) -> None:
    fields = {"term": 7, "start": 8, "to": 9, "end": 10, "by": ["n1", "n2"], "group": "storm"}
    phrase = DledgerNarrator().narrate("n1", event, fields)
    assert (phrase is None) is (event in ROUTINE)
    if phrase is not None:
        assert not phrase.sentence.startswith("reported") and 0 < phrase.weight <= 10


def test_the_words_say_who_led_when_and_what_became_of_logs() -> None:
    assert {"voted_in", "truncated", "recovered"} <= reported_events()
    narrate = DledgerNarrator().narrate
    voted = narrate("n1", "voted_in", {"term": 7, "by": ["n1", "n3"]})
    cut = narrate("n2", "truncated", {"to": 9})
    other = narrate("n2", "something_else", {"count": 3})
    assert voted is not None and voted.sentence == "was elected in term 7 by n1, n3"
    assert cut is not None and cut.sentence == "cut its log at entry 9"
    assert other is not None and other.sentence == "reported something_else (count 3)"
