"""The page of a history that came without its run: what surrounds what fits nowhere, order where there are no times,
values that could be overlooked, and where it all comes from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from results.report import write_report
from results.report.figure import BY_ORDER, figure
from results.report.measure import measure
from results.report.witness import value_words
from results.verdict_file import VerdictFile, read_verdict, write_verdict
from stormproof.cli.main import group

MS = 1_000_000
STALE = [
    (0, "invoke", "write", "1"),
    (0, "ok", "write", "1"),
    (0, "invoke", "write", "2"),
    (0, "ok", "write", "2"),
    (2, "invoke", "read", "nil"),
    (3, "invoke", "write", "5"),
    (2, "ok", "read", "1"),
    (3, "info", "write", "5"),
]


def recorded(path: Path, rows: list[tuple[int, str, str, str]], *, step_ns: int | None) -> Path:
    lines = [
        f"{{:process {process} :type :{type_} :f :{f} :value {value}"
        + ("" if step_ns is None else f" :time {number * step_ns}")
        + "}\n"
        for number, (process, type_, f, value) in enumerate(rows)
    ]
    path.write_text("".join(lines))
    return path


def checked(path: Path, *arguments: str) -> tuple[Path, int]:
    """The directory with the page, and the exit code."""
    runs = path.parent / "runs"
    command = ["check", str(path), *arguments, "--engine", "inprocess", "--runs", str(runs)]
    result = CliRunner().invoke(group, command, standalone_mode=False)
    assert result.exception is None, result.exception
    [directory] = (runs / "checked").iterdir()
    return directory, result.return_value


def words(directory: Path) -> str:
    """What a reader sees, on one line."""
    text = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", (directory / "report.html").read_text(), flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_the_page_of_a_stale_read_shows_what_was_open_what_could_explain_it_and_the_longest_order(
    tmp_path: Path,
) -> None:
    directory, code = checked(recorded(tmp_path / "stale.edn", STALE, step_ns=MS), "--model", "register")
    text = words(directory)
    assert code == 1
    assert "Open at the same time (1)" in text
    assert "5 – unknown write 5 0.005000 s" in text
    assert "0 – 1 write 1 write 2 (operation 2, completed by 3) came after it" in text
    order = text[text.index("The longest order of what came before it") :]
    assert "0 – 1 write 1 1 0.000000 s 0.001000 s 0 2 – 3 write 2 2" in order
    assert "Here read that returned 1 would have had to return 2 or 5 ." in order


def test_the_page_names_its_source_what_it_was_judged_as_the_engine_and_what_checks_it_again(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a history.edn", STALE, step_ns=MS)
    directory, _ = checked(path, "--model", "register", "--initial", "[1, 2]")
    text = words(directory)
    again = f"stormproof check &#x27;{path}&#x27; --model register --initial &#x27;[1, 2]&#x27; --engine inprocess"
    assert again in text
    assert str(path) in text.replace(again, "")
    assert "checked by engine inprocess" in text
    checking = read_verdict(directory).checking
    assert checking is not None
    assert (checking.history, checking.engine) == (str(path), "inprocess")
    assert checking.judged_as == "--model register --initial '[1, 2]'"


def test_a_verdict_without_a_source_is_read_and_drawn(tmp_path: Path) -> None:
    directory, _ = checked(recorded(tmp_path / "stale.edn", STALE, step_ns=MS), "--model", "register")
    data = json.loads((directory / "verdict.json").read_text())
    del data["checked"]
    (directory / "verdict.json").write_text(json.dumps(data))
    assert read_verdict(directory).checking is None
    assert write_report(directory) is None


@pytest.mark.parametrize("step_ns", [None, 0])
def test_a_history_without_times_is_drawn_by_the_order_of_events_and_nothing_is_said_about_seconds(
    tmp_path: Path, step_ns: int | None
) -> None:
    directory, _ = checked(recorded(tmp_path / "stale.edn", STALE, step_ns=step_ns), "--model", "register")
    measured = measure(directory / "history.parquet")
    assert not measured.timed
    drawn = figure(measured, (), (), ())
    assert drawn["layout"]["xaxis"]["title"]["text"] == BY_ORDER
    assert drawn["layout"]["xaxis"]["range"] == [0, 8]
    points = {(x, y) for trace in drawn["data"] for x, y in zip(trace["x"], trace["y"], strict=True)}
    assert points == {(0, 1), (2, 1), (4, 2), (5, 2)}
    text = words(directory)
    assert not re.search(r"\d (s|ms|µs|ns)\b", text)
    assert "a second" not in json.dumps(drawn)
    assert "8 events, no times" in text


def test_latencies_say_of_which_operations_they_are(tmp_path: Path) -> None:
    directory, _ = checked(recorded(tmp_path / "stale.edn", STALE, step_ns=MS), "--model", "register")
    text = words(directory)
    assert "median of ok p99 of ok worst of ok" in text
    assert "failed ones and those of unknown outcome are not among them" in text


@pytest.mark.parametrize(
    ("rows", "code"), [([], 2), ([(0, "invoke", "write", "1")], None), ([(0, "invoke", "read", "nil")], None)]
)
@pytest.mark.parametrize("step_ns", [None, MS])
def test_a_history_of_no_rows_or_one_has_a_page(
    tmp_path: Path, rows: list[tuple[int, str, str, str]], code: int | None, step_ns: int | None
) -> None:
    path = recorded(tmp_path / "short.edn", rows, step_ns=step_ns)
    if not rows:
        path.write_text("[]")
    directory, ended = checked(path, "--model", "register")
    assert code is None or ended == code
    text = words(directory)
    assert "could not be" not in text
    assert "nan" not in text.lower().split()
    assert ("The history is empty." in text) is (not rows)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        ({"json": None}, "null"),
        ({"json": "null"}, "null"),
        ({"json": '""'}, '""'),
        ({"json": "[]"}, "[]"),
        ({"value": None, "expected": None}, "null"),
        ({"value": 0}, "value 0"),
        ({"name": ""}, 'name ""'),
        ({"name": "  "}, 'name "  "'),
        ({"name": "a"}, "name a"),
        ({"messages": []}, "messages []"),
    ],
)
def test_nothing_and_emptiness_are_seen(value: dict[str, Any] | None, words: str) -> None:
    assert value_words(value) == words


def test_a_read_of_nothing_within_a_transaction_is_null_once_it_completed() -> None:
    read = {"ops": [{"f": "r", "key": "x", "value": None, "values": None}]}
    assert value_words(read) == "ops [r x]"
    assert value_words(read, completed=True) == "ops [r x = null]"
    empty = {"ops": [{"f": "r", "key": "x", "value": None, "values": []}]}
    assert value_words(empty, completed=True) == "ops [r x = []]"


def test_what_a_history_holds_is_shown_and_acts_on_no_page(tmp_path: Path) -> None:
    hostile = '"<img src=x>\\u202e\\u001b[2J"'
    rows = [(0, "invoke", "write", hostile), (0, "ok", "write", hostile), (1, "invoke", "read", "nil")]
    directory, code = checked(
        recorded(tmp_path / "<b>.edn", [*rows, (1, "ok", "read", '"other"')], step_ns=MS), "--model", "register"
    )
    text = (directory / "report.html").read_text()
    assert code == 1
    assert "<img src=x>" not in text
    assert "<b>.edn" not in text
    assert not {"\u202e", "\x1b"} & set(re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))
    assert "&lt;img src=x&gt;" in text


def test_details_of_another_shape_do_not_keep_a_page_from_being_drawn(tmp_path: Path) -> None:
    directory, _ = checked(recorded(tmp_path / "stale.edn", STALE, step_ns=MS), "--model", "register")
    data = json.loads((directory / "verdict.json").read_text())
    [example] = data["checkers"]["linearizable"]["anomalies"]["nonlinearizable"]["examples"]
    for broken in (
        {"failing": {}, "concurrent": 3, "candidates": [], "longest_prefixes": {"order": []}},
        {"failing": {"operation": "x"}, "concurrent": {"count": "x"}, "candidates": {"count": 2, "operations": [1]}},
        {"failing": {}, "longest_prefixes": [1, {"operations": [{}, {"operation": 10**9}]}]},
    ):
        example["details"] = broken
        write_verdict(directory, VerdictFile.from_json(data))
        assert write_report(directory) is None
