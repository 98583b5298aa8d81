"""A search on a cluster of Spark's own kind, a master and two workers, each a process of this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from checkers.spark.java import JavaMissing, require_java
from stormproof.search.search import Search, here, searched
from stormproof.search.space import Space
from stormproof.search.store import Store

pytestmark = [pytest.mark.gate, pytest.mark.xdist_group("spark")]
ROOT = 13
NUMBERS = range(4)
NOT_OF_THE_TASK = ["processor_s"]


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The URL of a master at which two workers of one core each are registered; ended with all that they started."""
    try:
        require_java()
    except JavaMissing as missing:
        pytest.skip(f"not run: {missing}")
    with ExitStack() as running:
        log = tmp_path / "master.log"
        _start(running, log, "Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        url = _lines_of(log, r"Starting Spark master at (spark://\S+)")[0]
        for name in ("worker-1", "worker-2"):
            options = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "2g")
            _start(running, tmp_path / f"{name}.log", "Worker", *options, "--work-dir", str(tmp_path / name), url)
        _lines_of(log, r"Registering worker", count=2)
        yield url


def _start(running: ExitStack, log: Path, part: str, *options: str) -> None:
    import pyspark

    home = Path(pyspark.__file__).parent
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{part.lower()}.{part}", *options]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(command, stdout=log.open("wb"), stderr=subprocess.STDOUT, env=environment)
    running.callback(process.wait)
    running.callback(process.terminate)


def _lines_of(log: Path, what: str, count: int = 1) -> list[str]:
    """What the log says, once it says it so often; a process that cannot start says so instead."""
    while True:
        text = log.read_text(errors="replace")
        found = re.findall(what, text)
        if len(found) >= count:
            return found
        assert "Exception" not in text and "Error" not in text, text
        time.sleep(0.1)


def test_a_search_on_two_workers_is_that_of_this_process(master: str, tmp_path: Path) -> None:
    into = tmp_path / "explored"
    command = [Path(sys.executable).parent / "stormproof", "explore", "rocketmq", "--seed", str(ROOT), "--random"]
    command += ["--no-shrink", "--seeds", f"{NUMBERS.start}..{NUMBERS.stop - 1}", "--into", into, "--master", master]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1, 2), ended.stderr
    search = Search(space=Space(system="rocketmq", settings={}), root=ROOT, numbers=NUMBERS, is_guided=False)
    store = Store(tmp_path / "here", search.to_json())
    list(searched(search, store, here))
    rows, expected = (pq.read_table(path).drop_columns(NOT_OF_THE_TASK) for path in (into / "rounds", store.rounds))
    assert rows.num_rows == len(NUMBERS)
    assert rows.equals(expected)
    assert len(list(tmp_path.glob("worker-*/app-*"))) == 2, "both workers ran executors"
