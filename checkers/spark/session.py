"""One Spark session a process: quick to start, quiet, with workers that run what this process runs.

Locally the JVM only moves bytes between Python workers, so it is set to compile little, to collect garbage on one
thread and to take Spark's own classes on trust, and from an archive (`checkers.spark.class_archive`), which starts it
in a third of the time. On other masters the project's own packages travel with the job, with the kernels that were
compiled here; Python, pyarrow and numba must be there.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkers.spark.class_archive import options_with_archive
from checkers.spark.gateway import SparkFailed, announced, essence, of_this_process, place, tail
from checkers.spark.java import require_java
from harness.compiled import store
from harness.lifetime import scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAYLOADS_AT_ONCE = 16
"""How many rows the JVM hands to a worker at once; a row is a packed table of up to a few megabytes."""
NAMES_AT_ONCE = 10_000
"""The same number if a row only names a table."""

JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)

SHIPPED = ("checkers", "harness", "nemesis", "results", "stormproof", "system_under_test", "workloads")
"""The packages of the project: kernels import two of them, storms that are tried on workers all."""

_METADATA = "Metadata-Version: 2.1\nName: stormproof\nVersion: {version}\n"
SHIPPED_KERNELS_BYTES = 64 * 2**20
"""The most bytes of kernels that are shipped. All kernels of one version take a quarter of that."""


def spark_session(master: str = "local[*]") -> SparkSession:
    """The session of this process, made when first asked for; one on another master is stopped first.

    Raises JavaMissing, SparkFailed.
    """
    require_java()
    # This comes before PySpark is imported, because it reads them then.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        if running.sparkContext.master == master:
            return running
        running.stop()
    settings = {"spark.master": master, **_settings(master)}
    gateway = of_this_process(settings, is_local=_is_local(master))
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with announced(gateway):
            _make_context(settings)
        session = builder.getOrCreate()
    except Exception as error:
        words = essence(tail(gateway.log)) or str(error).partition("\n")[0]
        raise SparkFailed(f"Spark did not start on {master}: {words}") from error
    if not _is_local(master):
        session.sparkContext.addPyFile(str(_packed_project(scratch.for_the_process())))
    return session


def shared_folder(session: SparkSession) -> Path | None:
    """Where this process and all workers of the session may write for each other, as long as its JVM lasts; None where
    workers may be on other machines."""
    return place() if _is_local(session.sparkContext.master or "") else None


def _say_nothing(request: Any, client_address: Any) -> None:
    """Reports nothing of a connection to the JVM that broke."""


def _make_context(settings: Mapping[str, str]) -> None:
    """Makes the context, but not in the main thread: there PySpark would handle Ctrl-C itself, and take it from the
    caller that runs a storm."""
    from pyspark import SparkConf, SparkContext

    failures: list[BaseException] = []

    def make() -> None:
        try:
            context = SparkContext(conf=SparkConf().setAll(list(settings.items())))
            # The JVM is gone at the end of a command; PySpark's thread need not report that.
            context._accumulatorServer.handle_error = _say_nothing  # type: ignore[method-assign]
        except BaseException as error:  # noqa: BLE001  # raised where it is waited for
            failures.append(error)

    making = threading.Thread(target=make, name="spark", daemon=True)
    making.start()
    making.join()
    if failures:
        raise failures[0]


def _is_local(master: str) -> bool:
    """Whether workers are children of this process. Those of local-cluster[…] are not."""
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
        "spark.executorEnv.PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
    }
    if _is_local(master):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.python.daemon.module": "checkers.spark.daemon",
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(NAMES_AT_ONCE),
            # Otherwise a task makes a file for each other one, which takes longer than sorting its few rows.
            "spark.shuffle.sort.bypassMergeThreshold": "1",
            "spark.driver.extraJavaOptions": " ".join(options_with_archive(JAVA_OPTIONS)),
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(_python_path()),
        }
    return settings


def _python_path() -> list[str]:
    """Where this process finds modules, so that local workers find the same ones: a user's own model, say."""
    root = str(Path(__file__).resolve().parents[2])
    return list(dict.fromkeys([root, *(str(Path(place).absolute()) for place in sys.path)]))


def _packed_project(directory: Path) -> Path:
    """A zip of the project, of the names under which its parts are found, and of kernels that were compiled here:
    workers take those that fit their processors and versions, and compile the others."""
    root = Path(__file__).resolve().parents[2]
    archive = directory / "stormproof.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for package in SHIPPED:
            for source in sorted((root / package).rglob("*.py")):
                packed.write(source, source.relative_to(root))
        installed = metadata.distribution("stormproof")
        folder = f"stormproof-{installed.version}.dist-info"
        packed.writestr(f"{folder}/METADATA", _METADATA.format(version=installed.version))
        packed.writestr(f"{folder}/entry_points.txt", installed.read_text("entry_points.txt") or "")
        for entry in store.most_used(SHIPPED_KERNELS_BYTES):
            packed.write(entry, Path("harness", "compiled", store.SHIPPED, entry.name))
    return archive
