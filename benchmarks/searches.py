"""Storms a minute of a search, checks included, on one Spark master after the other, a fresh process each.

    python benchmarks/searches.py [--masters local[1] local[2] local-cluster[2,1,2048]] [--storms 96] [--drawn]

The storms are those of `storms.py`: 30 s, 6 nodes of `rocketmq`, partitions and kills, 100 operations/s; with `--drawn`
those of a guided search, which are of all lengths. A search of its own before them warms the workers up and does not
count. Told as well: how many times as many as on the first master, processor seconds a storm, and whether the rows are
equal.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import pyarrow as pa

from checkers.spark.session import spark_session
from harness.record.scenario import Scenario
from stormproof.search.guide import ROUND
from stormproof.search.search import Search, Trier, searched
from stormproof.search.space import Space
from stormproof.search.spark_runner import OnSpark
from stormproof.search.trial import RANDOM, ROWS, Task

NEMESIS = ("partition", "kill")
RATE, STORM_S = 100.0, 30.0
ROOT = 1
NOT_OF_THE_TASK = "processor_s"


def rows_of(trier: Trier, numbers: range, is_drawn: bool) -> list[dict[str, Any]]:
    """What a search over these storms comes to; unless they are drawn, standard ones are tried in their places."""
    search = Search(space=Space(system="rocketmq", settings={}), root=ROOT, numbers=numbers, is_guided=is_drawn)
    rounds: list[Future[pa.Table]] = []

    def recording(tasks: list[Task]) -> Future[pa.Table]:
        chosen = tasks if is_drawn else [standard(task.number) for task in tasks]
        rounds.append(trier(chosen))
        return rounds[-1]

    for _ in searched(search, None, recording):
        pass
    return [row for of_round in rounds for row in of_round.result().to_pylist()]


def standard(number: int) -> Task:
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        nemesis=NEMESIS,
        environment="simulated",
        time_limit_s=STORM_S,
        rate=RATE,
        seed=number,
    )
    return Task(number=number, origin=RANDOM, scenario=scenario)


def measure(master: str, storms: int, is_drawn: bool) -> dict[str, Any]:
    spark = OnSpark(spark_session(master))
    with spark.trying() as trier:
        rows_of(trier, range(ROUND), is_drawn)
        began = time.monotonic()
        rows = rows_of(trier, range(ROUND, ROUND + storms), is_drawn)
        took_s = time.monotonic() - began
    return {
        "master": master,
        "a_minute": 60 * len(rows) / took_s,
        "processor_s": sum(row[NOT_OF_THE_TASK] for row in rows) / len(rows),
        "simulated_s": sum(row["simulated_s"] for row in rows) / len(rows),
        "hash": digest(rows),
    }


def digest(rows: list[dict[str, Any]]) -> str:
    """Of all that follows from the tasks."""
    names = [field.name for field in ROWS if field.name != NOT_OF_THE_TASK]
    return hashlib.sha256(json.dumps([[row[name] for name in names] for row in rows]).encode()).hexdigest()[:16]


def in_a_process(master: str, arguments: argparse.Namespace) -> Mapping[str, Any]:
    command = [sys.executable, __file__, "--json", "--masters", master, "--storms", str(arguments.storms)]
    if arguments.drawn:
        command.append("--drawn")
    environment = {**os.environ, "PYTHONHASHSEED": "random"}
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    measured: Mapping[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--masters", nargs="+", default=["local[1]", "local[2]", "local-cluster[2,1,2048]"])
    parser.add_argument("--storms", type=int, default=6 * ROUND, help="a multiple of a round; so many count")
    parser.add_argument("--drawn", action="store_true", help="storms of a guided search")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.json:
        print(json.dumps(measure(arguments.masters[0], arguments.storms, arguments.drawn)))
        return
    results = [in_a_process(master, arguments) for master in arguments.masters]
    first = results[0]
    for result in results:
        print(
            f"{result['master']}: {result['a_minute']:.0f} storms a minute, "
            f"{result['a_minute'] / first['a_minute']:.2f} times as many as on {first['master']}; "
            f"{result['processor_s']:.2f} s of processor time and {result['simulated_s']:.0f} simulated s a storm; "
            f"rows {'equal' if result['hash'] == first['hash'] else 'DIFFER'}"
        )


if __name__ == "__main__":
    main()
