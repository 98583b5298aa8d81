"""Histories without their run, by both engines: the verdict, its code, one line of JSON, and several at once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.spark.java import JavaMissing, require_java
from harness.errors import HarnessError
from tests.command_line.answers import Stormproof
from tests.references.history_language import parse_history

HISTORIES = Path(__file__).parents[1] / "histories"
HERE = ["--engine", "inprocess"]
SPARK = ["--engine", "spark", "--master", "local[2]"]
ON_SPARK = pytest.mark.xdist_group("spark")


@pytest.fixture(params=[HERE, pytest.param(SPARK, marks=ON_SPARK)], ids=["inprocess", "spark"])
def engine(request: pytest.FixtureRequest) -> list[str]:
    if "spark" in request.param:
        try:
            require_java()
        except JavaMissing as missing:
            pytest.skip(f"not run: {missing}")
    chosen: list[str] = request.param
    return chosen


def written(name: str) -> Path:
    """One of the smallest histories, as a Parquet file of other origin."""
    history = parse_history((HISTORIES / f"{name}.history").read_text())
    return history.write(Path(f"{Path(name).name}.parquet"))


A_CODE_EACH = [("log/lost-write-none", 0), ("log/lost-write", 1), ("log/no-final-reads", 2)]
OF_OTHER_WORKLOADS = [
    ("causal/initial-read-none", 0),
    ("causal/initial-read", 1),
    ("long-fork/long-fork-none", 0),
    ("long-fork/long-fork", 1),
    ("monotonic/nonmonotonic-read", 1),
    ("register/stale-read-none", 0),
    ("register/stale-read", 1),
]


@pytest.mark.parametrize(
    ("engine", "name", "code"),
    [
        *(pytest.param(HERE, *row, id=f"inprocess-{row[0]}") for row in (*A_CODE_EACH, *OF_OTHER_WORKLOADS)),
        *(pytest.param(SPARK, *row, id=f"spark-{row[0]}", marks=ON_SPARK) for row in A_CODE_EACH),
    ],
    indirect=["engine"],
)
def test_a_bare_history_gets_its_verdict_as_exit_code_and_as_json(
    stormproof: Stormproof, engine: list[str], name: str, code: int
) -> None:
    answer = stormproof("check", written(name), "--workload", name.partition("/")[0], *engine, "--json")
    assert answer.code == code, answer.err
    assert len(answer.out.splitlines()) == 1
    assert answer.json["exit_code"] == code
    assert answer.json["verdict"] == ["valid", "invalid", "unknown"][code]
    assert bool(answer.json["reasons"]) is (code != 0)
    assert bool(answer.json["anomalies"]) is (code == 1)
    assert all(count > 0 for count in answer.json["anomalies"].values())
    directory = Path(answer.json["directory"])
    assert (directory / "report.html").exists()
    assert (directory / "verdict.json").exists()


@pytest.mark.gate
def test_several_histories_go_on_after_a_malformed_one_and_the_worst_decides(
    stormproof: Stormproof, engine: list[str]
) -> None:
    valid, invalid, unknown = written("log/lost-write-none"), written("log/lost-write"), written("log/no-final-reads")
    broken = Path("broken.parquet")
    broken.write_bytes(b"PAR1")
    check = ["check", "--workload", "log", *engine]
    assert stormproof(*check, valid, unknown).code == 2
    assert stormproof(*check, unknown, broken, valid).code == 254
    answer = stormproof(*check, broken, unknown, invalid, valid, "--json")
    entries = [json.loads(line) for line in answer.out.splitlines()]
    assert answer.code == 1
    assert [entry["exit_code"] for entry in entries] == [254, 2, 1, 0]
    assert "broken.parquet: not a Parquet file" in entries[0]["error"]


def test_a_failed_harness_outranks_unknown_and_invalid_outranks_it(
    stormproof: Stormproof, stored_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_room(stream: Path, parquet: Path) -> NoReturn:
        raise HarnessError(f"{stream} cannot be closed: no room is left")

    monkeypatch.setattr("stormproof.session.judge_history.close_torn", without_room)
    unknown, invalid = written("log/no-final-reads"), written("log/lost-write")
    torn = Path("recorded.arrows")
    with (
        pq.ParquetFile(stored_run / "history.parquet") as file,
        pa.ipc.new_stream(torn, file.schema_arrow) as out,
    ):
        out.write_table(file.read())
    check = ["check", "--workload", "log", "--engine", "inprocess"]
    assert stormproof(*check, torn).code == 255
    assert stormproof(*check, unknown, torn).code == 255
    assert stormproof(*check, unknown, torn, invalid).code == 1


def test_a_stored_run_is_judged_again_by_either_engine(
    stormproof: Stormproof, engine: list[str], stored_run: Path
) -> None:
    before = json.loads((stored_run / "verdict.json").read_text())
    answer = stormproof("check", stored_run, *engine)
    assert answer.code == 0
    assert "verdict   VALID" in answer.out
    now = json.loads((stored_run / "verdict.json").read_text())
    checked = before.pop("checked"), now.pop("checked")
    assert [one["engine"] for one in checked] == ["inprocess", engine[1]]
    assert now == before


def test_a_history_of_something_else_is_no_pass(stormproof: Stormproof) -> None:
    answer = stormproof("check", written("log/lost-write-none"), "--workload", "register", "--engine", "inprocess")
    assert answer.code == 2
    assert "nothing could have contradicted workload register; that takes an ok read or an ok cas" in answer.out
    assert "; is this a history of workload register?" in answer.out


def test_an_empty_history_is_no_pass(stormproof: Stormproof) -> None:
    path = written("log/lost-write-none")
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    assert stormproof("check", path, "--workload", "log", "--engine", "inprocess").code == 2


def test_the_storms_operations_alone_make_a_run_worth_a_verdict(
    stormproof: Stormproof, tmp_path: Path, stored_run: Path
) -> None:
    """What succeeded only after the storm, in the final reads, is not counted."""
    run = Path(shutil.copytree(stored_run, tmp_path / "run"))
    record = json.loads((run / "scenario.json").read_text())
    record["facts"]["final_from_ns"] = record["facts"]["storm_from_ns"]
    (run / "scenario.json").write_text(json.dumps(record))
    answer = stormproof("check", run, "--engine", "inprocess")
    assert answer.code == 2
    assert "too little happened: 0 send succeeded in the storm, 20 are required" in answer.out
