"""Makes the archive of Spark's classes for the Java at hand: `python -m checkers.spark.lay_out_classes`.

It does a little of what plans do, and has the JVM write what it loaded for that.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from checkers.api.plan import CheckRequest
from checkers.spark import gateway
from checkers.spark.class_archive import archive
from checkers.spark.engine import SparkEngine
from checkers.spark.session import JAVA_OPTIONS, spark_session
from checkers.statistics import Statistics
from harness.compiled import store
from harness.errors import HarnessError
from harness.record.history import history_schema

LONGEST_S = 300.0
"""The longest time for the JVM to write the archive, which takes it 15 s of processor time."""


def make() -> Path:
    """Make it unless it is there. Raises JavaMissing, SparkFailed, OSError where the JVM wrote none, TimeoutExpired."""
    path = archive(JAVA_OPTIONS)
    if path.exists():
        return path
    unfinished = path.with_suffix(f".{os.getpid()}{store.UNFINISHED}")
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={unfinished}"
    _use_spark()
    unfinished.rename(path)
    return path


def _use_spark() -> None:
    """Read, shuffle, keep and gather, and end the JVM as one that may take leave."""
    from pyspark import SparkContext  # not before the session has chosen its Python and its Java

    history = history_schema(pa.int64()).empty_table()
    engine = SparkEngine(spark_session("local[1]"))
    Statistics().check(CheckRequest(history=history), engine)
    with engine.kept(engine.history(history)) as kept:
        engine.gather(engine.union(kept, kept), 1)
    with suppress(Exception):  # there is no answer any more
        SparkContext._gateway.jvm.java.lang.System.exit(0)  # type: ignore[union-attr]
    gateway.wait_for_end(LONGEST_S)


if __name__ == "__main__":
    try:
        make()
    except (HarnessError, gateway.SparkFailed, OSError, subprocess.TimeoutExpired) as error:
        sys.exit(str(error))
