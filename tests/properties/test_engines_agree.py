"""Spark and this process compute the same results; a session is made once."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from transaction_stores import Level, Store, Values, rows

from checkers.api.per_key import PairedOperation, finding, per_key
from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import Verdict
from checkers.availability import Availability
from checkers.consumption import ConsumptionChecker, Mode
from checkers.consumption.rows import CONSUMPTION
from checkers.deadline_engine import EngineInTime
from checkers.elements.delay import DELAYED, DelayChecker
from checkers.elements.pop import POPPED, PopChecker
from checkers.in_process.engine import InProcessEngine
from checkers.linearizable.checker import Linearizable
from checkers.linearizable.objects import MODELS
from checkers.log import LogChecker
from checkers.log.rows import LOG_MESSAGES
from checkers.replication import ReplicationChecker
from checkers.run import check_history
from checkers.search_budget import Searches
from checkers.spark.engine import SparkEngine
from checkers.spark.java import JavaMissing, require_java
from checkers.spark.session import spark_session
from checkers.statistics import Statistics
from checkers.transactions.checker import RwRegister
from checkers.transactions.elle.graph.cycles import NAMES
from checkers.transactions.elle.rw_register import Assumption
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel
from harness.record.excuse import Excuse
from harness.record.fault_log import FaultLog, FaultWindow
from harness.record.history import history_schema
from harness.record.meaning import Meaning
from harness.record.node_events import write_node_events
from results import output
from stormproof.session.check_spec import checker_for
from tests.references.consumption_histories import random_consumption
from tests.references.content_histories import made_up_contents
from tests.references.delay_histories import random_delays
from tests.references.log_histories import random_history
from tests.references.log_transactions import random_transactions
from tests.references.node_histories import random_cluster, write_cluster
from tests.references.outage_histories import MS, random_operations
from tests.references.pop_histories import random_pops
from tests.references.queue_histories import made_up_rows
from tests.references.register_histories import random_register_rows
from tests.references.transaction_histories import history_rows, parsed

pytestmark = pytest.mark.xdist_group("spark")
"""One session: its tests share a worker, so that it is started once."""

MASTER = "local[2]"
REGISTER_VALUE = pa.struct([pa.field("value", pa.int64()), pa.field("expected", pa.int64())])


@pytest.fixture(scope="module")
def spark() -> SparkEngine:
    try:
        require_java()
    except JavaMissing as missing:
        pytest.skip(str(missing))
    return SparkEngine(spark_session(MASTER))


def write(path: Path, rows: list[dict[str, object]], value: pa.DataType) -> Path:
    numbered = [{"index": i, "time": i * 1_000, **row} for i, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(numbered, schema=history_schema(value)), path, row_group_size=70)
    return path


@pytest.mark.parametrize("seed", [5, pytest.param(2, marks=pytest.mark.gate)])
def test_both_engines_give_the_same_verdict_of_a_log(
    seed: int, spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    path = write(tmp_path / "h.parquet", random_history(random.Random(seed), 200), LOG_MESSAGES)
    faults = [FaultWindow(kind="kill", start_ns=at, stop_ns=at + 50_000) for at in (50_000, 200_000)]
    power = Excuse(anomalies=("lost-write", "inconsistent-offsets"), reason="power", from_ns=0, until_ns=200_000)
    run = RunUnderCheck(faults=FaultLog(windows=tuple(faults)))
    request = CheckRequest(history=path, run=run, excuses=(power,))
    checkers = {"log": LogChecker(), "statistics": Statistics()}
    alone = check_history(request, checkers, InProcessEngine())
    assert check_history(request, checkers, spark) == alone
    excused = {name for name, summary in alone["log"].found() if summary.legal}
    assert excused == (set(power.anomalies) if seed == 5 else set())
    assert ("data_at_risk" in alone["log"].statistics) == (seed == 5)
    in_memory = replace(request, history=pq.read_table(path))
    assert check_history(in_memory, checkers, InProcessEngine()) == alone
    assert check_history(in_memory, checkers, spark) == alone
    assert not any("failed" in reason for result in alone.values() for reason in result.reasons)


def test_on_both_engines_a_check_ends_once_its_time_is_up(spark: SparkEngine, tmp_path: Path) -> None:
    path = write(tmp_path / "h.parquet", random_history(random.Random(5), 200), LOG_MESSAGES)
    request, checkers = CheckRequest(history=path), {"log": LogChecker(), "statistics": Statistics()}
    for until, is_up in ((time.time() + 1_000, False), (0.0, True)):
        alone = check_history(request, checkers, EngineInTime(InProcessEngine(), until))
        assert check_history(request, checkers, EngineInTime(spark, until)) == alone
        assert all(("--give-up-after" in "".join(result.reasons)) == is_up for result in alone.values())


def test_both_engines_give_the_same_verdict_of_consumption(
    spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 60)
    rows = random_consumption(random.Random(3), 160, is_divided=True)
    path = write(tmp_path / "h.parquet", rows, CONSUMPTION)
    early = Excuse(anomalies=("unconsumed", "passed-over", "overlap"), reason="power", from_ns=0, until_ns=60_000)
    request = CheckRequest(history=path, excuses=(early,))
    checkers = {"consumption": ConsumptionChecker(mode=Mode.ORDERLY)}
    alone = check_history(request, checkers, InProcessEngine())
    assert len(alone["consumption"].anomalies) > 5
    assert check_history(request, checkers, spark) == alone


@pytest.mark.slow
def test_both_engines_give_the_same_verdict_of_transactions_on_a_log(
    spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    path = write(tmp_path / "h.parquet", random_transactions(random.Random(2), 60), LOG_MESSAGES)
    alone = check_history(CheckRequest(history=path), {"log": LogChecker()}, InProcessEngine())
    assert not set(NAMES).isdisjoint(alone["log"].anomalies)
    assert check_history(CheckRequest(history=path), {"log": LogChecker()}, spark) == alone


def test_both_engines_give_the_same_verdict_of_outages(
    spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    history = random_operations(random.Random(5), operations=400, clients=10, queues=7)
    pq.write_table(history, tmp_path / "h.parquet", row_group_size=70)
    faults = [FaultWindow(kind="kill", start_ns=at * 5_000 * MS, stop_ns=at * 6_000 * MS) for at in range(3)]
    run = RunUnderCheck(concurrency=10, recovery_limit_s=1.0, faults=FaultLog(windows=tuple(faults)))
    request = CheckRequest(history=tmp_path / "h.parquet", run=run)
    alone = check_history(request, {"availability": Availability()}, InProcessEngine())
    assert alone["availability"].anomalies["slow-recovery"].count > 10
    assert check_history(request, {"availability": Availability()}, spark) == alone


def test_both_engines_give_the_same_verdict_of_a_clusters_nodes(
    spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    for number in range(12):
        write_cluster(
            random_cluster(random.Random(number), f"g{number}", length=40, others=number % 2 == 0), tmp_path / "nodes"
        )
    table = write_node_events(tmp_path / "nodes", tmp_path / "node-events.parquet")
    request = CheckRequest(history=tmp_path, run=RunUnderCheck(node_events=table))
    alone = ReplicationChecker().check(request, InProcessEngine())
    assert len(alone.anomalies) > 4
    assert ReplicationChecker().check(request, spark) == alone


def test_both_engines_give_the_same_verdict_of_delays(
    spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    path = write(tmp_path / "h.parquet", random_delays(random.Random(3), 400), DELAYED)
    checkers = {"delay": DelayChecker(latest_ms=10)}
    alone = check_history(CheckRequest(history=path), checkers, InProcessEngine())
    assert len(alone["delay"].anomalies) == 3
    assert check_history(CheckRequest(history=path), checkers, spark) == alone


def test_both_engines_give_the_same_verdict_of_popped_messages(
    spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    path = write(tmp_path / "h.parquet", random_pops(random.Random(5), 400), POPPED)
    alone = check_history(CheckRequest(history=path), {"pop": PopChecker()}, InProcessEngine())
    assert len(alone["pop"].anomalies) > 3
    assert check_history(CheckRequest(history=path), {"pop": PopChecker()}, spark) == alone


def test_both_engines_give_the_same_verdict_of_registers(
    spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    rows = random_register_rows(random.Random(4), registers=150)
    request = CheckRequest(history=write(tmp_path / "h.parquet", rows, REGISTER_VALUE))
    checkers = {"linearizable": Linearizable(MODELS["cas-register"])}
    alone = check_history(request, checkers, InProcessEngine())
    assert alone["linearizable"].anomalies["nonlinearizable"].count > 10
    assert check_history(request, checkers, spark) == alone


@per_key(meanings={"changed": Meaning(says="A read shows another value than one before it.", usually="A write.")})
def never_changes(operations: Sequence[PairedOperation]) -> Iterator[Any]:
    reads = [one for one in operations if one.f == "read" and one.is_ok]
    for earlier, later in pairwise(reads):
        if earlier.precedes(later) and earlier.value["value"] != later.value["value"]:
            yield finding("changed", earlier, later, because=f"{later.value['value']} was read")
        if earlier.key == "unheard of":
            yield finding("chagned", earlier, because="this is no anomaly of the checker")


def test_both_engines_give_the_same_verdict_by_a_function_of_ones_own(
    spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    rows = random_register_rows(random.Random(3), registers=60)
    request = CheckRequest(history=write(tmp_path / "h.parquet", rows, REGISTER_VALUE))
    alone = check_history(request, {"own": never_changes}, InProcessEngine())
    assert alone["own"].anomalies["changed"].count > 10
    assert check_history(request, {"own": never_changes}, spark) == alone

    misnamed = [row | {"key": "unheard of"} for row in rows]
    request = replace(request, history=write(tmp_path / "m.parquet", misnamed, REGISTER_VALUE))
    words = "ValueError: never-changes yielded an unknown anomaly 'chagned'; did you mean changed?"
    for engine in (InProcessEngine(), spark):
        (reason,) = check_history(request, {"own": never_changes}, engine)["own"].reasons
        assert words in reason


def test_both_engines_give_and_certify_the_same_verdict_of_objects(
    spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    rows = random_register_rows(random.Random(4), registers=150)
    history = write(tmp_path / "h.parquet", rows, REGISTER_VALUE)
    request = CheckRequest(history=history, searches=Searches.ALL)
    checker = Linearizable(MODELS["cas-register"])
    alone = checker.check(request, InProcessEngine())
    assert alone.anomalies == checker.check(request, spark).anomalies
    engines = (spark, InProcessEngine())
    written = [checker.certify(request, one, partial(output.write, tmp_path / one.name)) for one in engines]
    orders = 150 - alone.anomalies["nonlinearizable"].count
    assert written[0] == written[1] == f"orders    {orders}"
    assert (tmp_path / spark.name).read_text() == (tmp_path / InProcessEngine().name).read_text()


@pytest.mark.parametrize("name", ["fifo-queue", pytest.param("stack", marks=pytest.mark.gate)])
def test_both_engines_give_and_certify_the_same_verdict_of_queues(
    name: str, spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    rng, model = random.Random(5), MODELS[name]
    rows: list[dict[str, object]] = []
    for queue in range(40):
        for row in made_up_rows(model, (), rng, 8, lies=0.2, unknown=0.1):
            process = 100 * queue + int(row["process"])
            rows.append(
                row | {"index": len(rows), "process": process, "key": f"q{queue}", "value": {"value": row["value"]}}
            )
    request = CheckRequest(history=write(tmp_path / "h.parquet", rows, REGISTER_VALUE))
    checker = Linearizable(model)
    alone = checker.check(request, InProcessEngine())
    assert alone.anomalies["nonlinearizable"].count > 5
    assert checker.check(request, spark) == alone
    engines = (spark, InProcessEngine())
    written = [checker.certify(request, one, partial(output.write, tmp_path / one.name)) for one in engines]
    orders = 40 - alone.anomalies["nonlinearizable"].count
    assert written[0] == written[1] == f"orders    {orders}"
    assert (tmp_path / spark.name).read_text() == (tmp_path / InProcessEngine().name).read_text()


@pytest.mark.parametrize("name", ["append-log", pytest.param("set", marks=pytest.mark.gate)])
def test_both_engines_give_the_same_verdict_of_contents(
    name: str, spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    rng, model = random.Random(5), MODELS[name]
    rows: list[dict[str, object]] = []
    for number in range(40):
        for row in made_up_contents(model, (), rng, 8, lies=0.2, unknown=0.1):
            process, value = 100 * number + int(row["process"]), {"json": json.dumps(row["value"])}
            rows.append(row | {"index": len(rows), "process": process, "key": f"o{number}", "value": value})
    json_value = pa.struct([pa.field("json", pa.string())])
    request = CheckRequest(history=write(tmp_path / "h.parquet", rows, json_value))
    alone = Linearizable(model).check(request, InProcessEngine())
    assert alone.anomalies["nonlinearizable"].count > 5
    assert Linearizable(model).check(request, spark) == alone


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[0,1] w(x,1)\n [2,5] w(x,2) w(y,5)\n [3,4] r(x,1) r(y,5)", "G-single-item"),
        ("[0,1] w(x,1) | [2,3] w(x,2)\n [4,5] r(x,2) | [6,7] r(x,1)", "cyclic-versions"),
    ],
)
def test_both_engines_certify_the_same_under_assumptions(
    text: str, name: str, spark: SparkEngine, tmp_path: Path
) -> None:
    request = CheckRequest(history=write(tmp_path / "h.parquet", history_rows(parsed(text)), TRANSACTION))
    checker = RwRegister(assume=frozenset({Assumption.LINEARIZABLE_KEYS}), model=ConsistencyModel.SERIALIZABLE)
    engines = (spark, InProcessEngine())
    written = [checker.certify(request, one, partial(output.write, tmp_path / one.name)) for one in engines]
    assert written == [f"cycle     {name}, assuming linearizable-keys,"] * 2
    assert (tmp_path / spark.name).read_text() == (tmp_path / InProcessEngine().name).read_text()


@pytest.mark.parametrize(
    ("workload", "values", "level", "model"),
    [
        ("list-append", Values.LISTS, Level.CAUSAL, "serializable"),
        ("rw-register", Values.REGISTERS, Level.SNAPSHOT, "causal"),
        pytest.param("list-append", Values.LISTS, Level.SNAPSHOT, "causal", marks=pytest.mark.gate),
        pytest.param("rw-register", Values.REGISTERS, Level.CAUSAL, "serializable", marks=pytest.mark.gate),
    ],
)
def test_both_engines_give_the_same_verdict_of_transactions(
    workload: str,
    values: Values,
    level: Level,
    model: str,
    spark: SparkEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    store = Store(level=level, values=values, transactions=150, sessions=5, lag=3, failed=0.05, indefinite=0.05)
    pq.write_table(pa.concat_tables(rows(store)), tmp_path / "h.parquet", row_group_size=70)
    request, checker = CheckRequest(history=tmp_path / "h.parquet"), checker_for(workload, {"model": model})
    alone = checker.check(request, InProcessEngine())
    assert checker.check(request, spark) == alone
    assert alone.verdict is (Verdict.INVALID if level is Level.CAUSAL else Verdict.VALID)


def test_a_session_is_reused(spark: SparkEngine) -> None:
    assert spark_session(MASTER) is spark_session(MASTER)


def test_a_plan_that_forgets_to_bound_itself_is_stopped(spark: SparkEngine, tmp_path: Path) -> None:
    path = write(tmp_path / "h.parquet", random_history(random.Random(1), 100), LOG_MESSAGES)
    for engine in (spark, InProcessEngine()):
        rows = engine.history(path, ("index",))
        with pytest.raises(ValueError, match="more than the 50 rows"):
            engine.gather(rows, 50)
        assert engine.gather(engine.union(rows, rows), 10_000).num_rows == 2 * pq.read_metadata(path).num_rows


def test_groups_of_strings_are_the_same_on_both_engines(spark: SparkEngine, tmp_path: Path) -> None:
    path = write(tmp_path / "h.parquet", random_history(random.Random(1), 100), LOG_MESSAGES)

    # A function of this function travels to the workers as it is; one of this module they could not import.
    def counted(table: pa.Table) -> pa.Table:
        return pa.table({"type": table["type"].slice(0, 1), "n": pa.array([table.num_rows])})

    found = []
    for engine in (spark, InProcessEngine()):
        rows = engine.history(path, ("type",))
        schema = pa.schema([rows.schema.field("type"), pa.field("n", pa.int64())])
        table = engine.gather(engine.grouped(rows, ("type",), counted, schema), 10)
        found.append(sorted((row["type"], row["n"]) for row in table.to_pylist()))
    assert found[0] == found[1]


def test_ctrl_c_is_not_sparks(spark: SparkEngine) -> None:
    # A run in the background ignores it from the start.
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)


def test_what_is_kept_has_the_same_rows_however_often_it_is_used(spark: SparkEngine, tmp_path: Path) -> None:
    path = write(tmp_path / "h.parquet", random_history(random.Random(1), 100), LOG_MESSAGES)
    for engine in (spark, InProcessEngine()):
        rows = engine.history(path, ("index", "process", "f"))
        expected = engine.gather(rows, 10_000).sort_by("index")
        with engine.kept(engine.union(rows, rows)) as kept:
            for _ in range(2):
                assert engine.gather(kept, 10_000).num_rows == 2 * expected.num_rows
            once = engine.gather(
                engine.grouped(kept, ("index",), partial(pa.Table.slice, length=1), kept.schema), 10_000
            )
            assert once.sort_by("index").equals(expected)
