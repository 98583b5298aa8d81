"""A checker that is one function over the operations on a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.anomaly import Anomaly
from checkers.api.per_key import PairedOperation, PerKey, finding, per_key
from checkers.api.plan import CheckRequest
from checkers.api.verdict import CheckerResult, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from harness.record.excuse import Excuse
from harness.record.history import MalformedHistory, history_schema
from harness.record.meaning import Meaning

VALUE = pa.struct([pa.field("value", pa.int64()), pa.field("queue", pa.string())])
MEANINGS = {"went-back": Meaning(says="A read showed less than one before it.", usually="A replica lags behind.")}

Row = dict[str, Any]


@per_key(meanings=MEANINGS, final_on_a_prefix=["went-back"])
def only_forward(operations: Sequence[PairedOperation]) -> Iterator[Anomaly]:
    reads = [one for one in operations if one.f == "read" and one.is_ok]
    for number, later in enumerate(reads):
        for earlier in reads[:number]:
            if earlier.precedes(later) and later.value["value"] < earlier.value["value"]:
                yield finding("went-back", earlier, later, because=f"{later.value['value']} was read", times=1)


def operation(process: int, key: str | None, value: int, *, queue: str | None = None, type_: str = "ok") -> list[Row]:
    common = {"process": process, "f": "read", "key": key, "error": None, "node": None}
    invoked = common | {"type": "invoke", "value": {"value": None, "queue": queue}}
    return [invoked, common | {"type": type_, "value": {"value": value, "queue": None}}]


def history(*rows: Row) -> pa.Table:
    numbered = [{"index": i, "time": 10 * i, **row} for i, row in enumerate(rows)]
    return pa.Table.from_pylist(numbered, schema=history_schema(VALUE))


def result_of(checker: PerKey, table: pa.Table | Path, **request: Any) -> CheckerResult:
    return check_history(CheckRequest(history=table, **request), {"it": checker}, InProcessEngine())["it"]


BACK = history(
    *operation(0, "x", 7), *operation(1, "y", 3), *operation(1, "x", 5), *operation(2, "y", 3), *operation(0, "x", 6)
)


def test_the_function_is_given_the_operations_on_each_key_and_its_findings_are_judged() -> None:
    result = result_of(only_forward, BACK)
    assert result.verdict is Verdict.INVALID
    assert result.statistics == {"keys": 2, "operations": 5}
    summary = result.anomalies["went-back"]
    assert summary.count == 2 and summary.meaning == MEANINGS["went-back"]
    first, second = summary.examples
    assert first == Anomaly(
        name="went-back", key="x", operations=(0, 1, 4, 5), because="5 was read", details={"times": 1}
    )
    assert second.operations == (0, 1, 8, 9)


def test_a_checker_is_named_as_its_function_and_can_be_called_as_it() -> None:
    assert only_forward.name == "only-forward"
    assert list(only_forward.final_on_a_prefix) == ["went-back"]
    assert list(only_forward([])) == []


def seen(table: pa.Table, key: str = "key") -> list[list[PairedOperation]]:
    """What the function is given, key by key."""
    given: list[list[PairedOperation]] = []

    @per_key(meanings=MEANINGS, key=key)
    def listening(operations: Sequence[PairedOperation]) -> list[Anomaly]:
        given.append(list(operations))
        return []

    assert result_of(listening, table).verdict is Verdict.VALID
    return given


def test_operations_are_paired_whatever_their_end_and_those_of_the_nemesis_are_left_out() -> None:
    nemesis = {"process": -1, "type": "info", "f": "kill", "key": None, "value": None, "error": None, "node": None}
    (begun, ended), (failed, refused) = operation(4, "x", 1), operation(5, "x", 2, type_="fail")
    table = history(begun, nemesis, failed, refused | {"error": "not-found"}, ended, operation(6, "x", 3)[0])
    ((whole, failure, unfinished),) = seen(table)
    nothing = {"value": None, "queue": None}
    assert whole == PairedOperation(
        f="read",
        key="x",
        process=4,
        type="ok",
        argument=nothing,
        value={"value": 1, "queue": None},
        error=None,
        start=0,
        end=4,
        start_ns=0,
        end_ns=40,
    )
    assert (failure.type, failure.error, failure.end, failure.may_have_happened) == ("fail", "not-found", 3, False)
    assert (unfinished.type, unfinished.value, unfinished.end, unfinished.end_ns) == ("info", nothing, None, None)
    assert unfinished.may_have_happened and not unfinished.is_ok
    assert failure.precedes(unfinished) and not failure.precedes(whole) and not unfinished.precedes(failure)


def test_keys_may_be_members_of_the_value_as_the_invocation_names_them() -> None:
    rows = [*operation(0, "x", 1, queue="a"), *operation(0, "x", 2, queue="b"), *operation(1, "y", 3, queue="a")]
    by_queue = [[one.value["value"] for one in of_key] for of_key in seen(history(*rows), key="value.queue")]
    assert by_queue == [[1, 3], [2]]
    assert [len(of_key) for of_key in seen(history(*rows), key="process")] == [2, 1]


@pytest.mark.parametrize(
    ("key", "because"),
    [
        ("topic", "column 'topic' is missing; there are: index, time"),
        ("value.topic", "value has no member 'topic'; there are: value, queue"),
        ("f.topic", "f has no member 'topic'; there are: none"),
    ],
)
def test_a_key_column_that_is_not_there_is_named(key: str, because: str) -> None:
    with pytest.raises(MalformedHistory, match=because):
        result_of(replace(only_forward, key=key), BACK)


@pytest.mark.parametrize(
    ("yielded", "because"),
    [
        (["lost"], "TypeError: wrong yielded 'lost', which is no finding(name, operation, …, because=…)"),
        (None, "TypeError: wrong returned None, where it has to yield findings"),
        (
            [Anomaly(name="went-bakc", operations=(1,), because="so")],
            "ValueError: wrong yielded an unknown anomaly 'went-bakc'; did you mean went-back? Known are: went-back "
            "(per_key declares their meanings)",
        ),
        (
            [finding("went-back", because="so")],
            "ValueError: wrong yielded 'went-back' without any operation that shows it",
        ),
    ],
)
def test_what_is_no_finding_of_the_checker_makes_it_unknown(yielded: Iterable[Any] | None, because: str) -> None:
    function: Callable[[Any], Any] = lambda operations: yielded  # noqa: E731
    result = result_of(per_key(meanings=MEANINGS, name="wrong")(function), BACK)
    assert (result.verdict, result.reasons) == (Verdict.UNKNOWN, (f"the wrong checker failed: {because}",))


def test_a_checker_without_meanings_is_refused_where_it_is_declared() -> None:
    with pytest.raises(ValueError, match="needs the meanings of the anomalies"):
        per_key(meanings={})
    with pytest.raises(ValueError, match="final_on_a_prefix names an unknown anomaly 'back'"):
        per_key(meanings=MEANINGS, final_on_a_prefix=["back"])


def test_findings_are_excused_by_the_time_between_their_operations() -> None:
    # The first read of x ends after 10 ns, the one that went back begins after 40.
    excuse = Excuse(anomalies=("went-back",), from_ns=60, until_ns=70, reason="b1 lost power")
    summary = result_of(only_forward, BACK, excuses=(excuse,)).anomalies["went-back"]
    assert [one.operations for one in summary.examples] == [(0, 1, 4, 5)]
    assert summary.excused is not None and [one.operations for one in summary.excused.examples] == [(0, 1, 8, 9)]


def test_nothing_depends_on_how_a_history_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for n in range(60) for row in operation(n % 7, f"k{n % 5}", (n * 37) % 11)]
    path = tmp_path / "history.parquet"
    pq.write_table(history(*rows), path, row_group_size=13)
    whole = result_of(only_forward, history(*rows))
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 20)
    assert result_of(only_forward, path) == whole
    assert whole.anomalies["went-back"].count > len(whole.anomalies["went-back"].examples) == 10
