"""One Spark session a process: quick to start, quiet, with workers that run what this process runs.

Locally the JVM only moves bytes between Python workers, so it is told to compile little, to collect garbage on one
thread and to take Spark's own classes on trust, which starts it in half the time. On other masters the project's own
packages travel with the job; Python, pyarrow and numba must be there.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from checkers.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAYLOADS_AT_ONCE = 16
"""Rows that the JVM hands to a worker at once; a row is a packed table of up to a few megabytes."""

JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)

SHIPPED = ("checkers", "harness")
"""What kernels may import of the project."""

SILENCED_TAIL_BYTES = 4_000


class SparkFailed(Exception):
    """Spark could not be started; says what it said."""


def spark_session(master: str = "local[*]") -> SparkSession:
    """The session of this process, made when first asked for; one on another master is stopped first.

    Raises JavaMissing, SparkFailed.
    """
    find_java()
    # Before PySpark is imported, for it reads them then.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        if running.sparkContext.master == master:
            return running
        running.stop()
    builder = SparkSession.builder.master(master)
    for name, value in _settings(master).items():
        builder = builder.config(name, value)
    with _silenced() as said, _own_interrupts():
        try:
            session = builder.getOrCreate()
        except Exception as error:
            said.seek(max(0, said.seek(0, os.SEEK_END) - SILENCED_TAIL_BYTES))
            words = essence(said.read().decode(errors="replace")) or str(error).partition("\n")[0]
            raise SparkFailed(f"Spark did not start on {master}: {words}") from error
    if not _is_local(master):
        session.sparkContext.addPyFile(str(_packed_project(Path(tempfile.mkdtemp(prefix="stormproof-")))))
    return session


def essence(said: str) -> str:
    """The last line that names an error, of all that a JVM says when something fails; empty if there is none."""
    telling = [line.strip() for line in said.splitlines() if re.search(r"(Exception|Error): |\bERROR\b", line)]
    return telling[-1] if telling else ""


def _is_local(master: str) -> bool:
    """Are workers children of this process? Those of local-cluster[…] are not."""
    return re.match(r"local(\[|$)", master) is not None


def _settings(master: str) -> dict[str, str]:
    settings = {
        "spark.app.name": "stormproof",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.adaptive.enabled": "false",
        # Plans here only hand bytes on; compiling them takes longer than running them.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(PAYLOADS_AT_ONCE),
        "spark.executorEnv.PYTHONHASHSEED": "0",
    }
    if _is_local(master):
        root = str(Path(__file__).resolve().parents[2])
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": " ".join(JAVA_OPTIONS),
            "spark.executorEnv.PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]).rstrip(
                os.pathsep
            ),
        }
    return settings


@contextmanager
def _silenced() -> Iterator[IO[bytes]]:
    """What is written to stderr meanwhile, by the JVM as long as it lives, goes to a file without a name."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as said:
        kept = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """PySpark makes Ctrl-C its own; whoever runs a storm in this process must hear it first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _packed_project(directory: Path) -> Path:
    """A zip of the packages that kernels import."""
    root = Path(__file__).resolve().parents[2]
    archive = directory / "stormproof.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for package in SHIPPED:
            for source in sorted((root / package).rglob("*.py")):
                packed.write(source, source.relative_to(root))
    return archive
