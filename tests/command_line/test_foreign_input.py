"""Histories of others, good and bad, as a user hands them in: what is no history is refused with its place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.spark.java import JavaMissing, require_java
from harness.record.history import history_schema
from tests.command_line.answers import Stormproof

WRITE = "{:process 0, :type :invoke, :f :write, :value 1}\n{:process 0, :type :ok, :f :write, :value 1}\n"
READ = "{:process 0, :type :invoke, :f :read, :value nil}\n{:process 0, :type :ok, :f :read, :value 1}\n"
STALE = READ.replace(":value 1", ":value 2")
LOG = "INFO  jepsen.util - 0\t:invoke\t:write\t1\nINFO  jepsen.util - 0\t:ok\t:write\t1\n"
NEMESIS = "{:process :nemesis, :type :info, :f :start, :value {:cut [#{n1} (n2)]}}\n"
ENGINES = [
    ["--engine", "inprocess"],
    pytest.param(["--engine", "spark", "--master", "local[2]"], marks=pytest.mark.xdist_group("spark")),
]


def parquet(path: Path, *operations: tuple[int, str, str, int | None]) -> None:
    rows = [
        {"index": index, "time": index, "process": process, "type": kind, "f": f, "value": {"value": value}}
        for index, (process, kind, f, value) in enumerate(operations)
    ]
    value_type = pa.struct([("value", pa.int64()), ("expected", pa.int64())])
    pq.write_table(pa.Table.from_pylist(rows, schema=history_schema(value_type)), path)


@pytest.mark.parametrize("engine", ENGINES, ids=["inprocess", "spark"])
def test_each_path_is_judged_whatever_stands_beside_it(stormproof: Stormproof, engine: list[str]) -> None:
    if "spark" in engine:
        try:
            require_java()
        except JavaMissing as missing:
            pytest.skip(f"not run: {missing}")
    Path("cut.edn").write_text(WRITE + READ[:70])
    Path("good.edn").write_text(NEMESIS + WRITE + READ)
    Path("stale.log").write_text(LOG + LOG.replace("write", "read").replace("1\n", "2\n"))
    Path("packed.json.gz").write_bytes(gzip.compress(b'[{"process":0,"type":"invoke","f":"write","value":1}]'))
    Path("empty.edn").write_text("")
    Path("folder").mkdir()
    Path("noise").write_bytes(bytes(range(256)) * 20)
    parquet(
        Path("ours.parquet"),
        (0, "invoke", "write", 1),
        (0, "ok", "write", 1),
        (0, "invoke", "read", None),
        (0, "ok", "read", 1),
    )
    parquet(Path("torn.parquet"), (0, "invoke", "write", 1), (0, "invoke", "write", 1))
    expected = [
        ("cut.edn", "unknown", 2, ""),
        ("good.edn", "valid", 0, ""),
        ("noise", None, 254, "line 1, row 0: neither EDN, nor JSON, nor a line of Jepsen's log"),
        ("stale.log", "invalid", 1, ""),
        ("torn.parquet", None, 254, "row 1: process 0 invokes write while its write is still open"),
        ("missing.edn", None, 254, "there is no history missing.edn"),
        ("packed.json.gz", "unknown", 2, ""),
        ("folder", None, 254, "folder is not a run directory"),
        ("empty.edn", "unknown", 2, ""),
        ("ours.parquet", "valid", 0, ""),
    ]
    answer = stormproof("check", *(path for path, *_ in expected), "--model", "cas-register", "--json", *engine)
    assert answer.code == 1
    printed = [json.loads(line) for line in answer.out.splitlines()]
    assert [(line["path"], line["verdict"], line["exit_code"]) for line in printed] == [line[:3] for line in expected]
    for line, (_, _, _, words) in zip(printed, expected, strict=True):
        assert words in line.get("error", "")
        assert line["seconds"] >= 0
    assert printed[3]["anomalies"] == {"nonlinearizable": 1}
    assert printed[0]["passed_over"] == ["what stands from line 4, column 1 on (the text ends within an operation)"]
    assert printed[8]["reasons"] == ["nothing happened: the history is empty"]


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        (WRITE + READ.splitlines()[1], "line 3, row 2", "process 0 has ok of read without an open invocation"),
        (WRITE + WRITE[:49] + READ, "line 4, row 3", "process 0 invokes read while its write is still open"),
        (WRITE.replace(":ok", ":okay"), "line 2, row 1", "type must be one of invoke, ok, fail, info, it is :okay"),
        (LOG.replace(":ok", ":okay"), "line 2, row 1", "type must be one of invoke, ok, fail, info, it is :okay"),
        (WRITE.replace("1}", "1, :index 4}", 1).replace("1}", "1, :index 3}"), "line 2, row 1", "index runs back"),
        (WRITE.replace(":process 0", ":process nil"), "line 1, row 0", "process must be a number of at least 0"),
        ('{"process": 0.5, "type": "ok", "f": "read"}', "line 1, row 0", "process must be a number of at least 0"),
        (WRITE.replace(":write", ":append"), "line 1, row 0", "f must be one of cas, read, write, it is append"),
        ('{"process":0,"type":"ok"\n', "line 1, row 0", "the text ends within"),
        ('[{"process":0,"type":"info","f":"read","value":tru}]', "line 1, row 0", "no JSON"),
        ('{"process":0,"process":1}', "line 1, row 0", 'an object has the key "process" twice'),
        ("\ufeff; a mark\r\n{:process 0, :type", "line 2, row 0", "the text ends within an operation"),
    ],
)
def test_what_is_no_history_is_refused_with_place_and_reason(
    stormproof: Stormproof, text: str, place: str, reason: str
) -> None:
    Path("h").write_text(text)
    answer = stormproof("check", "h", "--model", "cas-register", "--engine", "inprocess")
    assert answer.code == 254
    (line,) = answer.err.splitlines()
    assert line.startswith(f"stormproof: h: {place}: {reason}")
    assert line.endswith(")")  # byte and column


def test_a_value_that_a_model_does_not_know_is_refused_with_its_line(stormproof: Stormproof) -> None:
    Path("h.edn").write_text("; counts\n" + WRITE.replace(":write, :value 1", ':add, :value "a"'))
    answer = stormproof("check", "h.edn", "--model", "counter", "--engine", "inprocess")
    assert answer.code == 254
    assert "h.edn: line 2, row 0: " in answer.err
    assert "means nothing to model counter" in answer.err


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("1.5", "1"),
        ("1/2", '"a"'),
        ('"a"', ":b"),
        ("123456789012345678901234567890N", "123456789012345678901234567891"),
        ("-9223372036854775808", "nil"),
        ("#{1 2}", "#{1}"),
        ("{:a [1 nil]}", "{:a [1 2]}"),
        ("true", "false"),
        ("\\a", "\\b"),
        ('#inst "2020-01-01"', '#inst "2020-01-02"'),
    ],
)
@pytest.mark.parametrize("key", ["", "5", '"a b"', ":k", "[1 :x]", "nil", "#{1}"])
def test_values_and_keys_of_any_kind_are_distinguished(
    stormproof: Stormproof, value: str, other: str, key: str
) -> None:
    def text(answer: str) -> str:
        held = f":key {key}, :value" if key else ":value"
        operations = (
            ("invoke", "write", value),
            ("ok", "write", value),
            ("invoke", "read", "nil"),
            ("ok", "read", answer),
        )
        return "".join(f"{{:process 0, :type :{kind}, :f :{f}, {held} {given}}}\n" for kind, f, given in operations)

    Path("same.edn").write_text(text(value))
    Path("other.edn").write_text(text(other))
    answer = stormproof("check", "same.edn", "other.edn", "--model", "register", "--engine", "inprocess", "--json")
    assert [json.loads(line)["verdict"] for line in answer.out.splitlines()] == ["valid", "invalid"]


@pytest.mark.parametrize("tag", ["", "#jepsen.independent/tuple ", "#clojure.lang.MapEntry"])
def test_pairs_are_keys_and_values_tagged_or_not(stormproof: Stormproof, tag: str) -> None:
    rows = WRITE + READ
    for given in ("1}", "nil}"):
        rows = rows.replace(f":value {given}", f":value {tag}[x {given[:-1]}]}}")
    Path("one.edn").write_text(rows)
    Path("two.edn").write_text(
        rows.replace("x nil", "y nil").replace(":read, :value " + tag + "[x", ":read, :value " + tag + "[y")
    )
    answer = stormproof("check", "one.edn", "two.edn", "--model", "register", "--engine", "inprocess", "--json")
    assert [json.loads(line)["verdict"] for line in answer.out.splitlines()] == ["valid", "invalid"]


def test_help_lists_formats_and_exit_codes(stormproof: Stormproof) -> None:
    printed = " ".join(stormproof("check", "--help").out.split())
    for words in ("EDN", "JSON", "gzip", ".parquet", ".arrows", "0 valid, 1 invalid, 2 unknown, 254", "255"):
        assert words in printed


def test_faults_of_a_nemesis_are_drawn_like_ours(stormproof: Stormproof) -> None:
    times = iter(range(1_000_000, 99_000_000, 1_000_000))
    timed = (WRITE + READ).replace("}\n", ", :time TIME}\n").splitlines()
    acts = [
        "{:process :nemesis, :type :info, :f :start-partition, :value :majority, :time TIME}",
        '{:process :nemesis, :type :info, :f :start-partition, :value {"n1" ["n2"]}, :time TIME}',
        "{:process :nemesis, :type :info, :f :stop-partition, :value nil, :time TIME}",
        "{:process :nemesis, :type :info, :f :stop-partition, :value :healed, :time TIME}",
    ]
    lines = [*timed[:1], *acts[:2], *timed[1:3], *acts[2:], *timed[3:]]
    Path("h.edn").write_text("\n".join(line.replace("TIME", str(next(times))) for line in lines))
    answer = stormproof("check", "h.edn", "--model", "register", "--engine", "inprocess")
    assert answer.code == 0
    (directory,) = Path("runs/checked").iterdir()
    page = (directory / "report.html").read_text()
    assert "<h2>Faults</h2>" in page
    assert "start-partition :majority<br>n1" in page
    assert '"partition"' in page.split('id="figure">')[1].split("</script>")[0]
    verdict = json.loads((directory / "verdict.json").read_text())
    assert verdict["faults"] == {"partition": {"applied": 1, "with_effect": 1}}
