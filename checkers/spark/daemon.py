"""PySpark's daemon, which forks a worker for each core: what all of them need is imported once, before that."""

from __future__ import annotations

import importlib

from pyspark.daemon import manager

from harness.arrow import start_arrow

NEEDED = ("checkers.spark.stages", "harness.compiled.machine_code", "numba", "pyspark.sql.pandas.serializers")

if __name__ == "__main__":
    start_arrow()
    for module in NEEDED:
        importlib.import_module(module)
    manager()
