"""Whatever stands in a row or a column: it is refused as no history, or judged as what it is; nothing fails on it, and
nothing is taken for something else."""

from __future__ import annotations

import json
import random
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import CheckerResult
from checkers.history_batches import Source
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from harness.errors import HarnessError
from harness.jepsen import Format, exported
from harness.record.history import MalformedHistory, read_history
from stormproof.session.check_spec import CheckSpec, in_memory, of_model, of_workload
from tests.references.drawn_histories import KINDS
from tests.references.history_language import WrittenHistory
from tests.references.hostile_rows import OTHER_TYPES, Hostile, held_at, hostile, leaves, with_other_type
from tests.references.said_otherwise import table_of

MOST_BYTES = 32 << 20
"""That a short history may take while it is read and judged."""


def spec_of(history: WrittenHistory) -> CheckSpec:
    if history.checker == "object":
        return of_model(history.model, initial=None, failed_cas=None)
    return of_workload(history.checker, [f"{name}={value}" for name, value in history.options.items()])


def judge(rows: Source, spec: CheckSpec) -> list[CheckerResult]:
    request = CheckRequest(history=rows, repeats=spec.repeats)
    return list(check_history(request, spec.checkers, InProcessEngine()).values())


def failures(results: list[CheckerResult]) -> list[str]:
    return [reason for result in results for reason in result.reasons if "checker failed" in reason]


def fate(one: Hostile, spec: CheckSpec, folder: Path) -> str:
    """`refused`, `judged`, or what is wrong with how it was taken."""
    path = folder / "hostile.json"
    one.write(path)
    try:
        rows, spec, *_ = in_memory(path, spec)
        failed = failures(judge(rows, spec))
    except (MalformedHistory, HarnessError):
        return "refused"
    return failed[0] if failed else _taken(one, rows, folder)


def _taken(one: Hostile, rows: Source, folder: Path) -> str:
    """Of values: what is written again is what was read."""
    pq.write_table(rows, folder / "read.parquet")
    again = [json.loads(line) for line in exported(read_history(folder / "read.parquet"), Format.JSON)]
    found = held_at(again[one.row], one.member)
    is_named = len(one.member) > 1 and isinstance(one.member[-1], str)
    if one.member[0] != "value" or None in (found, one.instead) or isinstance(one.instead, dict | list):
        return "judged"
    if found is again[one.row] and found["type"] in ("fail", "info"):
        # What failed or has an unknown outcome may hold anything, which is kept as the text of its error.
        return "judged" if found.get("error") else f"{one.instead!r} is lost"
    if one.member == ("value", 0):
        # A key, whose name is a text; what failed may hold anything, and its key is that of its invocation.
        return "judged"
    if isinstance(found, dict | list) and not is_named:
        # What stands for a whole value may be one of its members alone.
        return "judged"
    same = found == one.instead and isinstance(found, bool) == isinstance(one.instead, bool)
    return "judged" if same else f"{one.instead!r} is taken for {found!r}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "count", [4, pytest.param(20, marks=pytest.mark.gate), pytest.param(120, marks=pytest.mark.thorough)]
)
def test_a_hostile_row_is_refused_or_judged_as_it_is(kind: str, count: int, tmp_path: Path) -> None:
    history = KINDS[kind].drawn(900)
    spec = spec_of(history)
    tracemalloc.start()
    try:
        for one in hostile(history, count, random.Random(f"{kind} {count}"), tmp_path):
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            outcome = fate(one, spec, tmp_path)
            assert outcome in ("refused", "judged"), (one.lines[one.row][:400], one.member)
            assert tracemalloc.get_traced_memory()[1] - before < MOST_BYTES, one.lines[one.row][:400]
    finally:
        tracemalloc.stop()


def describe(table: pa.Table, spec: CheckSpec) -> tuple[list[str], list[str]]:
    results = judge(table, spec)
    return failures(results), [f"{result.verdict} {sorted(result.anomalies)}" for result in results]


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_another_type_is_refused(kind: str) -> None:
    history = KINDS[kind].drawn(900)
    spec, table = spec_of(history), table_of(history)
    spec.require_values(table)
    refused = 0
    for member in leaves(table.schema.field("value").type):
        for other in OTHER_TYPES:
            changed = with_other_type(table, member, other)
            if changed is None:
                continue
            if history.checker == "object" and other not in NO_JSON and member != ("json",):
                spec.require_values(changed)
                continue
            with pytest.raises(MalformedHistory, match=member[-1]):
                spec.require_values(changed)
            refused += 1
    assert refused


NO_JSON = ("binary", "decimal", "moment")
"""Types of columns that JSON has not."""


def test_true_that_is_taken_for_1_is_noticed(tmp_path: Path) -> None:
    history = KINDS["register"].drawn(900)
    number, row = next((i, row) for i, row in enumerate(history.rows) if row["f"] == "write")
    pq.write_table(table_of(history), tmp_path / "h.parquet")
    lines = [line.rstrip("\n") for line in exported(read_history(tmp_path / "h.parquet"), Format.JSON)]
    one = Hostile(lines=lines, row=number, member=("value", 1), instead=row["value"]["value"] == 1)
    assert "is taken for" in fate(one, spec_of(history), tmp_path)


def test_a_checker_that_fails_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.elements.set.set_findings", None)
    history = KINDS["set"].drawn(900)
    outcomes = {fate(one, spec_of(history), tmp_path) for one in hostile(history, 20, random.Random(0), tmp_path)}
    assert any("checker failed" in outcome for outcome in outcomes)
