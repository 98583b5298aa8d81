"""Judges small histories of every checker on one master, and prints all that was found as JSON: MASTER FOLDER ONE_OF.

With ONE_OF 3 every third history, with 1 all of them.
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from transaction_stores import Level, Store, Values, rows

from checkers import buckets
from checkers.api.plan import Checker, CheckRequest, Engine, RunUnderCheck
from checkers.availability import Availability
from checkers.in_process.engine import InProcessEngine
from checkers.linearizable.checker import Linearizable
from checkers.linearizable.objects import MODELS
from checkers.replication import ReplicationChecker
from checkers.run import check_history
from checkers.spark.engine import SparkEngine
from checkers.spark.session import spark_session
from checkers.statistics import Statistics
from harness.record.node_events import write_node_events
from stormproof.session.check_spec import checker_for
from tests.references.history_language import VALUE_TYPES, WrittenHistory, parse_history, write_rows
from tests.references.node_histories import random_cluster, write_cluster
from tests.references.register_histories import random_register_rows

HISTORIES = Path(__file__).parents[1] / "histories"
IN_PROCESS = "inprocess"
PIECES = 2
"""Row groups of a history, and buckets: as few as show that rows meet which were read apart."""

BY_SEARCH = ("object/counter", "register/beyond-its-bound")
BY_DECIDER = ("object/stack", "object/set-added-too-early")

Case = tuple[str, Checker, CheckRequest]


def written_cases(folder: Path) -> Iterator[Case]:
    """For each checker the first history that is not valid, and objects of both ways to judge them."""
    seen = set()
    for file in sorted(HISTORIES.glob("*/*.history")):
        written = parse_history(file.read_text())
        name = f"{file.parent.name}/{file.stem}"
        if name in (*BY_SEARCH, *BY_DECIDER) or (written.verdict == "invalid" and written.checker not in seen):
            seen.add(written.checker)
            history = in_pieces(written.write(folder / f"{name.replace('/', '-')}.parquet"))
            yield name, checker_of(written), CheckRequest(history=history, run=written.run)


def checker_of(written: WrittenHistory) -> Checker:
    if written.checker == "availability":
        return Availability()
    if written.checker in ("register", "object"):
        return Linearizable(MODELS[written.model or "cas-register"], written.max_configurations)
    return checker_for(written.checker, written.options)


def registers_case(folder: Path) -> Case:
    rows = random_register_rows(random.Random(4), registers=30)
    history = in_pieces(write_rows(rows, VALUE_TYPES["register"], folder / "registers.parquet"))
    return "registers", Linearizable(MODELS["cas-register"]), CheckRequest(history=history)


def cluster_case(folder: Path) -> Case:
    for number in range(4):
        write_cluster(random_cluster(random.Random(number), f"g{number}", length=40), folder / "nodes")
    table = in_pieces(write_node_events(folder / "nodes", folder / "node-events.parquet"))
    return (
        "cluster",
        ReplicationChecker(),
        CheckRequest(history=folder / "registers.parquet", run=RunUnderCheck(node_events=table)),
    )


def transaction_cases(folder: Path) -> Iterator[Case]:
    """Causal stores, held against what they do not promise; orders of versions are known of lists alone."""
    for workload, values in (("list-append", Values.LISTS), ("rw-register", Values.REGISTERS)):
        path = folder / f"{workload}.parquet"
        store = Store(level=Level.CAUSAL, values=values, transactions=100, lag=3, failed=0.05, indefinite=0.05)
        pq.write_table(pa.concat_tables(rows(store)), path)
        yield workload, checker_for(workload, {"model": "serializable"}), CheckRequest(history=in_pieces(path))


def in_pieces(path: Path) -> Path:
    table = pq.read_table(path)
    pq.write_table(table, path, row_group_size=-(-table.num_rows // PIECES))
    return path


def main(master: str, folder: Path, one_of: int) -> None:
    engine: Engine = InProcessEngine() if master == IN_PROCESS else SparkEngine(spark_session(master))
    cases = (*written_cases(folder), *transaction_cases(folder), registers_case(folder), cluster_case(folder))
    found = {}
    for name, checker, request in cases[::one_of]:
        buckets.BUCKET_ROWS = -(-pq.read_metadata(request.history).num_rows // PIECES)
        results = check_history(request, {checker.name: checker, "statistics": Statistics()}, engine)
        found[name] = {of: dataclasses.asdict(result) for of, result in results.items()}
    print(json.dumps(found, sort_keys=True, default=str))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
