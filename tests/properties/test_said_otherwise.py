"""A history that is said in another way gets the same verdict, and the same is found in it: the smallest ones under
tests/histories, and drawn ones of every workload and object.

`make test` tries one way on every fourth of them, `make gate` every way on a third, `make thorough` every way on each.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from zlib import crc32

import pytest

from checkers.transactions.elle.graph.cycles import NAMES as CYCLES
from tests.histories.test_history_files import FILES
from tests.references import said_otherwise
from tests.references.drawn_histories import drawn
from tests.references.history_language import WrittenHistory, parse_history
from tests.references.said_otherwise import (
    WAYS,
    Report,
    by_key,
    may_be_together,
    report,
    timed,
    together,
    told_together,
    weakest,
)

Row = dict[str, Any]
Reading = Callable[[list[Row]], list[Row]]
"""How somebody takes the rows of a history; a careless one says something else."""


def as_they_are(rows: list[Row]) -> list[Row]:
    return rows


@cache
def histories(drawn_of_each: int) -> dict[str, WrittenHistory]:
    written = {f"{file.parent.name}/{file.stem}": parse_history(file.read_text()) for file in FILES}
    return {name: one for name, one in (written | dict(drawn(drawn_of_each))).items() if one.rows}


@cache
def told_plainly(name: str) -> Report:
    return report(histories(MOST_DRAWN)[name])


MOST_DRAWN = 8


def otherwise(name: str, way: str) -> tuple[WrittenHistory, WrittenHistory] | None:
    history = histories(MOST_DRAWN)[name]
    other = WAYS[way](history, random.Random(f"{name} {way}"))
    return None if other is None else (history, other)


def is_same(before: Report, after: Report, way: str) -> bool:
    """Of lists of which two reads contradict each other one is believed, so that cycles may have other names."""
    contradictory = "incompatible-order" in before.anomalies & after.anomalies
    if contradictory:
        return before.verdict == after.verdict and not any(
            not (weakest(name) or is_cycle(name)) for name in before.anomalies ^ after.anomalies
        )
    if way in GIVES_EVIDENCE and before.verdict == "unknown":
        return after.verdict in ("unknown", "valid") and before.anomalies == after.anomalies
    return before == after


GIVES_EVIDENCE = ("looked again",)
"""Ways after which there may be something that could contradict a history."""


def differing(names: Sequence[str], way: str, reading: Reading = as_they_are) -> tuple[int, list[str]]:
    """(how many could be said in this way, what became of those that are judged otherwise then)."""
    said, differs = 0, []
    for name in names:
        both = otherwise(name, way)
        if both is None:
            continue
        said += 1
        if reading is as_they_are:
            before, after = told_plainly(name), report(both[1])
        else:
            before, after = (report(replace(one, rows=reading(timed(one.rows)))) for one in both)
        if not is_same(before, after, way):
            differs.append(f"{name}: {before}, and {after}")
    return said, differs


@pytest.mark.parametrize(
    "one_of",
    [pytest.param(3, marks=pytest.mark.gate, id="a third"), pytest.param(1, marks=pytest.mark.thorough, id="all")],
)
@pytest.mark.parametrize("way", WAYS)
def test_a_verdict_is_the_same_in_every_way(way: str, one_of: int) -> None:
    """In each way of other histories."""
    names = [name for name in histories(MOST_DRAWN) if crc32(f"{way} {name}".encode()) % one_of == 0]
    said, differs = differing(names, way)
    assert said > 20
    assert not differs


@pytest.mark.parametrize("part", range(2))
def test_a_verdict_is_the_same_in_one_way_of_many(part: int) -> None:
    """Of every fourth history."""
    some = [name for name in histories(1) if crc32(name.encode()) % 8 == part]
    for name in some:
        ways = sorted(WAYS, key=lambda way: crc32(f"{name} {way}".encode()))
        way = next(one for one in ways if otherwise(name, one) is not None)
        assert not differing([name], way)[1], way


# What a careless reader would say.


def completions_alone(rows: list[Row]) -> list[Row]:
    """What was asked is read off the completion."""
    read = list(rows)
    for invoked, completed in said_otherwise.operations_in(rows):
        if completed is not None and rows[completed]["type"] != "info":
            read[invoked] = read[invoked] | {"value": read[completed]["value"], "key": read[completed]["key"]}
    return read


def without_indefinite(rows: list[Row]) -> list[Row]:
    """What is known to be indefinite is taken for what never happened."""
    gone = {
        place
        for invoked, completed in said_otherwise.operations_in(rows)
        if completed is not None and rows[completed]["type"] == "info"
        for place in (invoked, completed)
    }
    return [row for place, row in enumerate(rows) if place not in gone]


def one_by_one(rows: list[Row]) -> list[Row]:
    """What ended first is taken to have happened first."""
    begun = {completed: rows[invoked] for invoked, completed in said_otherwise.operations_in(rows)}
    read = [one for place, row in enumerate(rows) if place in begun for one in (begun[place], row)]
    times = [row["time"] for row in rows]
    return [row | {"time": time} for row, time in zip(read, times, strict=False)]


def few_processes(rows: list[Row]) -> list[Row]:
    """Whoever has a number that is too large is not heard."""
    return [row for row in rows if row["process"] < 1_000]


def initials_alone(rows: list[Row]) -> list[Row]:
    """Of a key only its first letter counts, if that is one."""

    def initial(key: Any) -> Any:
        return key[:1] if isinstance(key, str) and key[:1].isalpha() else None

    read = _with_leaves(rows, lambda member, cell: initial(cell) if member in ("key", "queue") else cell)
    return [row | {"key": initial(row["key"])} for row in read]


def as_doubles(rows: list[Row]) -> list[Row]:
    """Numbers are read as JavaScript does."""
    return _with_leaves(rows, lambda member, cell: min(int(float(cell)), 2**63 - 1) if type(cell) is int else cell)


def small_numbers(rows: list[Row]) -> list[Row]:
    return _with_leaves(
        rows, lambda member, cell: cell % 64 if type(cell) is int and member in said_otherwise.VALUES else cell
    )


def zero_is_nothing(rows: list[Row]) -> list[Row]:
    return _with_leaves(rows, lambda member, cell: cell or None)


def failed_is_done(rows: list[Row]) -> list[Row]:
    """What failed is taken to have happened."""
    return [row | {"type": "ok"} if row["type"] == "fail" else row for row in rows]


def all_are_answered(rows: list[Row]) -> list[Row]:
    """What was never answered is taken to have been answered with nothing."""
    unanswered = [rows[invoked] for invoked, completed in said_otherwise.operations_in(rows) if completed is None]
    return [*rows, *(row | {"type": "ok", "time": rows[-1]["time"]} for row in unanswered)]


def newcomers_see_nothing(rows: list[Row]) -> list[Row]:
    """Whoever does one thing only is taken to have seen nothing."""
    counts: dict[int, int] = defaultdict(int)
    for row in rows:
        counts[row["process"]] += 1
    return [
        row | {"value": None} if counts[row["process"]] == 2 and row["f"] in said_otherwise.READING else row
        for row in rows
    ]


def _with_leaves(rows: list[Row], leaf: said_otherwise.Leaf) -> list[Row]:
    return [row | {"value": said_otherwise.with_leaves(row["value"], leaf)} for row in rows]


CARELESS: dict[str, Reading] = {
    "what was asked is left out": completions_alone,
    "the key is left out": completions_alone,
    "indefinite rows are left out": without_indefinite,
    "indefinite rows are put in": without_indefinite,
    "rows in another order": one_by_one,
    "other processes": few_processes,
    "other keys": initials_alone,
    "strange keys": initials_alone,
    "other values": small_numbers,
    "ends of 64 bits": as_doubles,
    "a value is 0": zero_is_nothing,
    "a value is the empty text": zero_is_nothing,
    "a failed one more": failed_is_done,
    "an unanswered one more": all_are_answered,
    "looked again": newcomers_see_nothing,
}


def test_there_is_a_careless_reader_for_every_way() -> None:
    assert set(CARELESS) == set(WAYS)


@pytest.mark.parametrize("way", WAYS)
def test_a_careless_reader_is_noticed_in_every_way(way: str) -> None:
    names = sorted(histories(1), key=lambda name: crc32(name.encode()))
    for begin in range(0, len(names), 20):
        if differing(names[begin : begin + 20], way, CARELESS[way])[1]:
            return
    pytest.fail("nothing differs, though it is read carelessly")


# Several histories in one, and one in several.


@cache
def alike() -> dict[tuple[str, ...], list[str]]:
    """Histories that are judged alike."""
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, one in histories(MOST_DRAWN).items():
        found[(*one.judged_by(), str(one.bounds))].append(name)
    return found


def pairs(count: int) -> Iterator[tuple[str, str]]:
    """So many of each kind that may be one history."""
    for kind, names in alike().items():
        rng = random.Random(str(kind))
        drawn_pairs = [(rng.choice(names), rng.choice(names)) for _ in range(count)]
        yield from {
            pair: None for pair in drawn_pairs if may_be_together(*(histories(MOST_DRAWN)[one] for one in pair))
        }


def differing_together(some: Iterator[tuple[str, str]], reading: Reading = as_they_are) -> tuple[int, list[str]]:
    said, differs = 0, []
    for pair in some:
        one, other = (histories(MOST_DRAWN)[name] for name in pair)
        both = together(one, other, random.Random(str(pair)))
        expected = told_together(map(told_plainly, pair))
        found = report(replace(both, rows=reading(timed(both.rows))))
        said += 1
        if not is_same_in_parts(found, expected):
            differs.append(f"{pair}: {found}, and {expected} of the two")
    return said, differs


def differing_apart(names: Sequence[str], reading: Reading = as_they_are) -> tuple[int, list[str]]:
    said, differs = 0, []
    for name in names:
        history = histories(MOST_DRAWN)[name]
        parts = by_key(history)
        if len(parts) > 1:
            said += 1
            expected = told_together(map(report, parts.values()))
            found = report(replace(history, rows=reading(timed(history.rows))))
            if not is_same_in_parts(found, expected):
                differs.append(f"{name}: {found}, and {expected} of its keys")
    return said, differs


def is_same_in_parts(whole: Report, parts: Report) -> bool:
    """One part may show what another one lacks, so that UNKNOWN of a part says nothing of the whole. Of cycles those
    are named that break most, so that one in a part may hide another one's name."""
    names = [{name for name in one.anomalies if not (weakest(name) or is_cycle(name))} for one in (whole, parts)]
    return names[0] == names[1] and (parts.verdict == "unknown" or whole.verdict == parts.verdict)


def is_cycle(name: str) -> bool:
    return name in CYCLES


def no_keys(rows: list[Row]) -> list[Row]:
    read = _with_leaves(rows, lambda member, cell: "k" if member in ("key", "queue") else cell)
    return [row | {"key": None if row["key"] is None else "k"} for row in read]


def test_histories_together_are_judged_as_each_by_itself() -> None:
    said, differs = differing_together(pairs(1))
    assert said > 20
    assert not differs


@pytest.mark.gate
def test_many_histories_together_are_judged_as_each_by_itself() -> None:
    said, differs = differing_together(pairs(8))
    assert said > 160
    assert not differs


@pytest.mark.parametrize("drawn_of_each", [2, pytest.param(MOST_DRAWN, marks=pytest.mark.gate)])
def test_keys_are_judged_apart_as_together(drawn_of_each: int) -> None:
    said, differs = differing_apart(list(histories(drawn_of_each)))
    assert said > 10
    assert not differs


def test_a_reader_without_keys_is_noticed_together_and_apart() -> None:
    assert differing_together(pairs(1), no_keys)[1]
    assert differing_apart(list(histories(2)), no_keys)[1]
