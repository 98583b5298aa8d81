"""A schedule is written as text that is read back equal, and a line that is wrong is named by its number."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.record.scenario import Scenario
from nemesis.periodic import every
from nemesis.schedule import Entry
from nemesis.schedule_file import lines_of, read_schedule, schedule_text
from nemesis.shape import CutLink, Isolate, RandomHalves, Together, kill
from nemesis.target import Nodes, One, Role
from stormproof.session import registry
from tests.unit.nemesis.systems import WORDS

STORM_S = 60.0
SHAPES = (
    RandomHalves(),
    kill(One("brokers")),
    Isolate(Nodes(("b1", "c3"))),
    Together((CutLink(Role("primary"), Role("active-controller")), kill(Nodes(("b1",))))),
)
STREAMS = ("partition", str(every(10, Isolate(Role("primary")), heal_after_s=5)), "mine 2")


@st.composite
def entries(draw: st.DrawFn) -> tuple[Entry, ...]:
    streams = draw(st.lists(st.tuples(st.sampled_from(STREAMS), st.integers(0, 10**17)), min_size=1, unique=True))
    found = []
    for package, number in streams:
        at_ns = draw(st.integers(0, round(STORM_S * 1e9) - 1))
        until_ns = draw(st.integers(at_ns + 1, round(STORM_S * 1e9)))
        shape = draw(st.sampled_from(SHAPES))
        found.append(Entry(at_ns=at_ns, until_ns=until_ns, package=package, number=number, shape=shape))
    return tuple(sorted(found, key=lambda entry: (entry.at_ns, entry.package, entry.number)))


@given(entries())
def test_what_is_written_is_read_as_the_same_faults(entries: tuple[Entry, ...]) -> None:
    text = schedule_text(entries, "stormproof run rocketmq")
    assert read_schedule(text.split("\n"), WORDS, STORM_S).entries == entries


def test_a_schedule_can_be_written_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("# by hand\r\n\n  10 for 2.5\tkill one of brokers and random halves [mine 1]  # why not\n\n")
    read = read_schedule(lines_of(file), WORDS, STORM_S)
    shape = Together((kill(One("brokers")), RandomHalves()))
    assert read.entries == (Entry.between(10, 12.5, "mine", 1, shape),)
    assert read.fault == "kill+partition"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kill b1", "expected when the fault strikes, as seconds such as 12.5, got 'kill'"),
        ("-3 for 2 kill b1 [kill 0]", "expected when the fault strikes, as seconds such as 12.5, got '-3'"),
        ("nan for 2 kill b1 [kill 0]", "as seconds such as 12.5, got 'nan'"),
        ("1.1234567890 for 2 kill b1 [kill 0]", "as seconds such as 12.5, got '1.1234567890'"),
        ("3", "expected 'for' and a length after '3', got nothing"),
        ("3 kill b1 [kill 0]", "expected 'for' and a length after '3', got 'kill'"),
        ("3 for", "expected the fault's length, as seconds such as 12.5, got nothing"),
        ("3 for kill b1 [kill 0]", "expected the fault's length, as seconds such as 12.5, got 'kill'"),
        ("3 for 0 kill b1 [kill 0]", "the fault's length is a number of seconds greater than 0, got '0'"),
        ("3 for 2 kill b1", "the fault's random stream, such as [kill 0], is missing at the line's end"),
        ("3 for 2 kill b1 [kill]", "a random stream is a name and a whole number, such as [kill 0], got '[kill]'"),
        ("3 for 2 kill b1 [0]", "a random stream is a name and a whole number, such as [kill 0], got '[0]'"),
        ("3 for 2 kill b1 [kill x]", "such as [kill 0], got '[kill x]'"),
        ("3 for 2 kill b1 [kill 0] now", "such as [kill 0], got '[kill 0] now'"),
        ("3 for 2 kill b1 [quorum 0]", "the random stream [quorum 0] is kept for the nodes that --liveness takes down"),
        ("3 for 2 kill b1 [kill 1]", "the random stream [kill 1] is that of line 1"),
        ("3 for 2 [kill 0]", "no shape stands there"),
        ("3 for 2 kil b1 [kill 0]", "the verb 'kil' is unknown"),
        (
            "3 for 2 kill b1 c1 [kill 0]",
            "only 'and', 'when', 'after' or a random stream can follow 'kill b1', got ",
        ),
        ("3 for 2 kill primry [kill 0]", "'primry' is no target that can follow 'kill'"),
        ("60 for 2 kill b1 [kill 0]", "the fault strikes at 60 s, but the storm lasts 60 s"),
        ("59 for 2 kill b1 [kill 0]", "the fault is healed at 61 s, but the storm lasts 60 s"),
    ],
)
def test_a_wrong_line_is_named_with_what_was_expected_and_what_came(line: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_schedule(["1 for 2 kill b1 [kill 1]", "# good so far", line], WORDS, STORM_S)
    message = str(refused.value)
    assert message.startswith("schedule, line 3: ")
    assert words in message
    assert message.endswith("'12.5 for 5 kill one of all [kill 0]'") or "; did you mean 'kill " in message


@pytest.mark.parametrize("lines", [[""], ["# nothing"]])
def test_a_schedule_without_a_fault_is_no_way_to_ask_for_none(lines: list[str]) -> None:
    with pytest.raises(UsageError, match="no line with a fault; for a run without faults say --nemesis none"):
        read_schedule(lines, WORDS, STORM_S)


def test_a_file_that_is_no_text_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name in ("binary", "nowhere", "."):
        with pytest.raises(UsageError, match=f"schedule file {tmp_path}.*cannot be read: "):
            lines_of(tmp_path / name)
    with pytest.raises(UsageError, match="it is a device"):
        lines_of(Path(os.devnull))


def test_a_schedule_stands_alone_and_is_kept_with_the_scenario() -> None:
    line = "1 for 2 kill b1 [kill 1]"
    scenario = Scenario(system="rocketmq", workload="log", schedule=("# mine", line))
    assert Scenario.from_json(scenario.to_json()) == scenario
    (written,) = registry.resolve(scenario).packages
    assert written.entries == (Entry.between(1, 3, "kill", 1, kill(Nodes(("b1",)))),)
    for wrong, words in (
        ({"nemesis": ["kill"]}, "a schedule says itself which faults strike; leave it or the nemesis out"),
        ({"schedule": "1 for 2"}, "schedule takes a list of lines, got '1 for 2'"),
        ({"schedule": ["x", 3]}, "schedule, line 2: takes text, got 3"),
        ({"schedule": ["\x1b"]}, "schedule, line 1: takes printable text"),
        ({"schedule": ["x"] * 100_001}, "a schedule has at most 100000 lines, got 100001"),
    ):
        with pytest.raises(UsageError, match=words):
            Scenario.from_json({**scenario.to_json(), **wrong})
