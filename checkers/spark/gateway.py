"""Spark's JVM, started here and not by PySpark, so that it ends with this process, whatever ends that.

PySpark starts it within a function that loses track of it if it is interrupted: then the JVM waits for ever for a file
that is gone, and holds any pipe that it was given. Here it is under a supervisor from the first moment
(`harness.lifetime.supervisor`), in a session of its own together with all Python workers, and only writes into a
directory of this process. PySpark gets the port on which it listens.
"""

from __future__ import annotations

import os
import re
import shlex
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.lifetime import scratch
from harness.lifetime.supervised import Guarded

LOOKED_FOR_EACH_S = 0.02
LOG_TAIL_BYTES = 4_000
GRACE_S = 10.0
"""How long the JVM may take to leave a cluster once this process is gone. One that is alone is killed at once."""
PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


class SparkFailed(Exception):
    """Spark could not be started; says what it said."""


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """A JVM that listens."""

    port: int
    secret: str
    log: Path
    """The output of the JVM, its workers and those on its cluster."""
    guarded: Guarded


_started: list[Gateway] = []
"""The gateway of this process, once there is one."""


def of_this_process(settings: Mapping[str, str], *, is_local: bool) -> Gateway:
    """The gateway that listens already, because PySpark stays with the first one; otherwise a new one with these
    settings. Raises SparkFailed."""
    if not _started:
        _started.append(_start(settings, is_local=is_local))
    return _started[0]


def place() -> Path | None:
    """The directory of the JVM, gone with it; None before there is one."""
    return _started[0].log.parent if _started else None


def wait_for_end(longest_s: float) -> None:
    """Waits for the end of the JVM, which was asked to end. Raises subprocess.TimeoutExpired."""
    for gateway in _started:
        gateway.guarded.process.wait(longest_s)


def _start(settings: Mapping[str, str], *, is_local: bool) -> Gateway:
    from pyspark.find_spark_home import _find_spark_home

    place = scratch.for_the_process()
    listening, log = place / "listening", place / "spark.log"
    command = [str(Path(_find_spark_home(), "bin", "spark-submit"))]
    for name, value in _kept_in(place, settings).items():
        command += ["--conf", f"{name}={value}"]
    environment = {
        **os.environ,
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(listening),
        "SPARK_LOCAL_DIRS": str(place),
        "SPARK_LAUNCHER_OPTS": "-XX:-UsePerfData",
        "TMPDIR": str(place),
    }
    with log.open("wb") as file:
        guarded = Guarded(
            [*command, *shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))],
            stdout=file,
            stderr=file,
            environment=environment,
            grace_s=0.0 if is_local else GRACE_S,
            remove=[place],
        )
    while not listening.exists():
        if guarded.process.poll() is not None:
            raise SparkFailed(essence(tail(log)) or "its JVM ended before it listened")
        time.sleep(LOOKED_FOR_EACH_S)
    port, secret = _read(listening.read_bytes())
    return Gateway(port=port, secret=secret, log=log, guarded=guarded)


@contextmanager
def announced(gateway: Gateway) -> Iterator[None]:
    """While inside, PySpark finds this gateway and starts none."""
    os.environ[PORT], os.environ[SECRET] = str(gateway.port), gateway.secret
    try:
        yield
    finally:
        del os.environ[PORT], os.environ[SECRET]


def tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
        return file.read().decode(errors="replace")


def essence(output: str) -> str:
    """The last line that names an error, of all that a JVM says when something fails; empty if there is none."""
    telling = [line.strip() for line in output.splitlines() if re.search(r"(Exception|Error): |\bERROR\b", line)]
    return telling[-1] if telling else ""


def _kept_in(place: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """What the JVM writes for a while goes there."""
    java = "spark.driver.extraJavaOptions"
    return {**settings, java: f"{settings.get(java, '')} -Djava.io.tmpdir={place}".strip()}


def _read(message: bytes) -> tuple[int, str]:
    """Port and secret, as the JVM writes them: two numbers of four bytes, big-endian, and so many bytes of text."""
    port, length = struct.unpack_from(">ii", message)
    return port, message[8 : 8 + length].decode()
