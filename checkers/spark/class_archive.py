"""Spark's classes as a JVM has them in memory, so that the next one starts with half the processor time.

The set-up has it made, once for each Java and each Spark: `python -m checkers.spark.class_archive` does a little of
what plans do, and has the JVM write what it loaded for that. It lies where compiled kernels do, for what is in it is
run as well. A JVM that finds that it was made of other classes than its own says so in its log and goes on without it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from checkers.spark.java import find_java
from harness.compiled import store

SUFFIX = ".classes"
LONGEST_S = 300.0
"""The JVM writes it in 15 s of processor time."""


def archive(options: tuple[str, ...]) -> Path:
    """Where that of the Java and the Spark at hand belongs, for a JVM that is started with these options."""
    java = find_java()
    of = (metadata.version("pyspark"), *options, *(() if java is None else (str(java.home), _release(java.home))))
    return store.directory() / f"spark-{hashlib.sha256(repr(of).encode()).hexdigest()[:32]}{SUFFIX}"


def options_with_archive(options: tuple[str, ...]) -> tuple[str, ...]:
    """These options, and the one that has the JVM take its classes from an archive, where there is one."""
    path = archive(options)
    try:
        os.utime(path)  # it was used: what nobody used for a month is removed
    except OSError:
        return options
    return (*options, f"-XX:SharedArchiveFile={path}")


def _release(home: Path) -> str:
    with suppress(OSError):
        return (home / "release").read_text(errors="replace")
    return ""


def make() -> Path:
    """Make it unless it is there. Raises JavaMissing, SparkFailed, OSError where the JVM wrote none, TimeoutExpired."""
    from checkers.spark import session

    path = archive(session.JAVA_OPTIONS)
    if path.exists():
        return path
    unfinished = path.with_suffix(f".{os.getpid()}{store.UNFINISHED}")
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={unfinished}"
    _use_spark()
    unfinished.rename(path)
    return path


def _use_spark() -> None:
    """Read, shuffle, keep and gather, and end the JVM as one that may take leave."""
    import pyarrow as pa
    from pyspark import SparkContext

    from checkers.plan import CheckRequest
    from checkers.spark import gateway
    from checkers.spark.engine import SparkEngine
    from checkers.spark.session import spark_session
    from checkers.statistics import Statistics
    from harness.record.history import history_schema

    history = history_schema(pa.int64()).empty_table()
    engine = SparkEngine(spark_session("local[1]"))
    Statistics().check(CheckRequest(history=history), engine)
    with engine.kept(engine.history(history)) as kept:
        engine.gather(engine.union(kept, kept), 1)
    with suppress(Exception):  # there is no answer any more
        SparkContext._gateway.jvm.java.lang.System.exit(0)  # type: ignore[union-attr]
    gateway.wait_for_end(LONGEST_S)


if __name__ == "__main__":
    from checkers.spark.gateway import SparkFailed
    from harness.errors import HarnessError

    try:
        make()
    except (HarnessError, SparkFailed, OSError, subprocess.TimeoutExpired) as error:
        sys.exit(str(error))
