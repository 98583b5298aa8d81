"""Spark's classes as a JVM has them in memory, so that the next one starts with half the processor time.

The set-up makes it once for each Java and each Spark (`checkers.spark.lay_out_classes`). It is kept where compiled
kernels are, because its content is run as well. A JVM that finds that it was made from other classes than its own says
so in its log and goes on without it.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from checkers.spark.java import find_java
from harness.compiled import store

SUFFIX = ".classes"


def archive(options: tuple[str, ...]) -> Path:
    """The path of the archive for the current Java and Spark, and for a JVM that is started with these options."""
    java = find_java()
    of = (metadata.version("pyspark"), *options, *(() if java is None else (str(java.home), _release(java.home))))
    return store.directory() / f"spark-{hashlib.sha256(repr(of).encode()).hexdigest()[:32]}{SUFFIX}"


def options_with_archive(options: tuple[str, ...]) -> tuple[str, ...]:
    """These options, and the one by which the JVM takes its classes from an archive, if there is one."""
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
