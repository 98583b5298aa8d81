"""Words for people: whatever nodes of BookKeeper report has some, or is passed over on purpose."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import system_under_test.bookkeeper
import system_under_test.metadata
from workloads.systems.bookkeeper.adapter import SYSTEM
from workloads.systems.bookkeeper.narrator import ROUTINE, WORDS, BookkeeperNarrator
from workloads.systems.bookkeeper.settings import BookkeeperSettings


def reported_events() -> set[str]:
    """By the text of the code."""
    folders = [Path(package.__path__[0]) for package in (system_under_test.bookkeeper, system_under_test.metadata)]
    calls = [
        call
        for folder in folders
        for path in folder.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "log"
    ]
    names = (name for call in calls for name in ast.walk(call.args[0]) if call.args)
    return {name.value for name in names if isinstance(name, ast.Constant) and isinstance(name.value, str)}


def test_all_that_nodes_report_has_words_or_is_routine() -> None:
    events = reported_events()
    assert {"owner", "fenced", "recovery_read", "leader", "metadata_session_lost"} <= events
    assert events - ROUTINE - WORDS.keys() == {"bookie", "auditor"}
    assert not ROUTINE & WORDS.keys()
    assert isinstance(SYSTEM.narrator(BookkeeperSettings()), BookkeeperNarrator)


@pytest.mark.parametrize(
    ("event", "fields", "sentence"),
    [
        ("owner", {"partition": "storm-0"}, "got the owner's key of storm-0"),
        ("bookie", {"bookie": "00ab", "fresh": True}, "began with an empty disk, as bookie 00ab"),
        ("bookie", {"bookie": "00ab", "fresh": False}, "came back, as bookie 00ab"),
        ("auditor", {"elected": False}, "learned that it was the auditor no more"),
        (
            "recovery_read",
            {"ledger": 3, "entry": 5, "bookie": "00ab", "reply": "gone"},
            "heard of entry 5 of ledger 3 from bookie 00ab: gone",
        ),
        (
            "recovered",
            {"log": "ledger-3", "end": 8, "entries": [0, 4, 7, 7]},
            "had these entries of ledger 3 when it started: 0 to 4, 7",
        ),
        (
            "recovered",
            {"log": "ledger-3", "end": 0, "entries": []},
            "had these entries of ledger 3 when it started: none",
        ),
        ("voted_in", {"term": 2, "by": ["m1", "m3"]}, "was elected to lead the metadata store in term 2 by m1, m3"),
        ("closed", {"log": "ledger-3"}, "knew that ledger 3 was closed before entry ?"),
        ("something_else", {"count": 3}, "reported something_else (count 3)"),
    ],
)
def test_the_words_say_what_happened_to_whom(event: str, fields: dict[str, object], sentence: str) -> None:
    phrase = BookkeeperNarrator().narrate("b1", event, fields)
    assert phrase is not None and phrase.sentence == sentence
    assert phrase.label and 0 < phrase.weight <= 10


def test_what_is_routine_is_passed_over() -> None:
    assert all(BookkeeperNarrator().narrate("b1", event, {}) is None for event in ROUTINE)
