"""Help, wrong usage and small checks import nothing that they do not need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

HEAVY = (
    "numpy",
    "pyarrow",
    "pandas",
    "numba",
    "llvmlite",
    "pyspark",
    "plotly",
    "docker",
    "requests",
    "asyncio",
)
REPORTED = """
import json, os, sys
from stormproof.cli.main import run
code = run(sys.argv[2:])
os.write(int(sys.argv[1]), json.dumps([code, sorted(sys.modules)]).encode())
"""


def imported(*words: str, cwd: Path) -> tuple[int, set[str]]:
    """The exit code of a command, and which of the heavy packages it imported."""
    code, modules = reported(words, cwd)
    return code, {name for name in HEAVY if name in modules}


def reported(words: Sequence[str], cwd: Path) -> tuple[int, list[str]]:
    read, write = os.pipe()
    with open(read) as report:
        process = subprocess.Popen(
            [sys.executable, "-c", REPORTED, str(write), *words],
            cwd=cwd,
            pass_fds=[write],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(write)
        code, modules = json.loads(report.read())
        process.wait()
    return code, modules


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["run", "--help"],
        ["check", "--help"],
        ["check", "history.edn", "--modle", "register"],
        ["check", "history.edn", "--model", "registre"],
        ["replay", "--help"],
        ["list", "--help"],
        ["doctor", "--help"],
        ["cleanup", "--help"],
        ["rnu"],
        ["run", "rocketmqq"],
        ["run", "rocketmq", "--nemess", "kill"],
        ["run", "rocketmq", "--workload", "lgo"],
        ["run", "rocketmq", "--nemesis", "kil"],
        ["run", "rocketmq", "--environment", "dokcer"],
        ["run", "rocketmq", "--rate", "fast"],
    ],
    ids=" ".join,
)
def test_help_and_misspelt_names_import_nothing_heavy(words: list[str], tmp_path: Path) -> None:
    code, heavy = imported(*words, cwd=tmp_path)
    assert code == (0 if "--help" in words else 254)
    assert heavy == set()


SIX_EVENTS = """
{:type :invoke, :f :write, :value 1, :process 0, :time 1}
{:type :ok, :f :write, :value 1, :process 0, :time 2}
{:type :invoke, :f :read, :value nil, :process 1, :time 3}
{:type :ok, :f :read, :value 1, :process 1, :time 4}
{:type :invoke, :f :cas, :value [1 2], :process 0, :time 5}
{:type :ok, :f :cas, :value [1 2], :process 0, :time 6}
"""


NINE_EVENTS = """
{:type :invoke, :f :write, :value 1, :process 0, :time 1}
{:type :ok, :f :write, :value 1, :process 0, :time 2}
{:type :invoke, :f :write, :value 2, :process 0, :time 3}
{:type :invoke, :f :write, :value 1, :process 1, :time 4}
{:type :invoke, :f :read, :value nil, :process 2, :time 5}
{:type :ok, :f :read, :value 3, :process 2, :time 6}
{:type :ok, :f :write, :value 1, :process 1, :time 7}
{:type :ok, :f :write, :value 2, :process 0, :time 8}
{:type :invoke, :f :cas, :value [1 3], :process 0, :time 9}
"""
"""Values repeat, so that it is searched for an order; there is none."""


THREE_TRANSACTIONS = """
{:type :invoke, :f :txn, :value [[:append :x 1]], :process 0, :time 1}
{:type :ok, :f :txn, :value [[:append :x 1]], :process 0, :time 2}
{:type :invoke, :f :txn, :value [[:r :x nil] [:append :x 2]], :process 1, :time 3}
{:type :ok, :f :txn, :value [[:r :x [1]] [:append :x 2]], :process 1, :time 4}
{:type :invoke, :f :txn, :value [[:r :x nil]], :process 0, :time 5}
{:type :ok, :f :txn, :value [[:r :x [1 2]]], :process 0, :time 6}
"""


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        ("--model cas-register", SIX_EVENTS, 0),
        ("--model cas-register", NINE_EVENTS, 1),
        ("--workload list-append", THREE_TRANSACTIONS, 0),
        (
            "--workload rw-register",
            THREE_TRANSACTIONS.replace("append", "w").replace("[1]", "1").replace("[1 2]", "2"),
            0,
        ),
    ],
)
def test_a_small_check_does_without_spark_pandas_and_machine_code(
    options: str, text: str, expected: int, tmp_path: Path
) -> None:
    (tmp_path / "small.edn").write_text(text)
    code, heavy = imported("check", "small.edn", *options.split(), cwd=tmp_path)
    assert code == expected
    assert heavy <= {"numpy", "pyarrow", "asyncio", "plotly"}


def test_a_storm_judged_in_this_process_does_without_spark_and_pandas(tmp_path: Path) -> None:
    words = "run rocketmq --time-limit 5 --recovery 5 --seed 1 --engine inprocess"
    code, heavy = imported(*words.split(), cwd=tmp_path)
    assert code in (0, 2)
    assert heavy <= {"numpy", "pyarrow", "numba", "llvmlite", "asyncio", "docker", "requests", "plotly"}


def test_systems_and_workloads_are_listed_without_spark_and_pandas(tmp_path: Path) -> None:
    code, heavy = imported("list", "workloads", cwd=tmp_path)
    assert code == 0
    assert "pyarrow" in heavy and not heavy & {"pandas", "pyspark", "numba", "plotly"}


def test_a_heavy_import_would_be_seen(tmp_path: Path) -> None:
    assert "pyarrow" in imported("check", "missing.edn", cwd=tmp_path)[1]
