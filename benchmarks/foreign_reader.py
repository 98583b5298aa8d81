"""Operations a second that foreign histories are read, validated and converted at, by format.

python benchmarks/foreign_reader.py [--operations 500000]

An operation is an invocation and its completion: two rows. A third of them carries an error, some are the nemesis'.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.jepsen import Shape, convert
from harness.jepsen.edn import Keyword, written

REGISTER = Shape(value_type=pa.struct([("value", pa.int64()), ("expected", pa.int64())]))
PROCESSES = 20


def rows(operations: int) -> Iterator[dict[str, Any]]:
    rng = random.Random(7)
    for number in range(operations):
        f = rng.choice(("read", "write", "cas"))
        value = [rng.randrange(5), rng.randrange(5)] if f == "cas" else rng.randrange(5)
        failed = f == "cas" and rng.random() < 0.8
        row = {"type": Keyword("invoke"), "f": Keyword(f), "value": None if f == "read" else value}
        row |= {"process": number % PROCESSES, "time": number * 2_000, "index": 2 * number}
        yield row
        row |= {"type": Keyword("fail" if failed else "ok"), "value": value, "time": number * 2_000 + 900}
        row["index"] = 2 * number + 1
        yield row | {"error": Keyword("not-equal")} if failed else row
        if number % 1_000 == 0:
            yield row | {"type": Keyword("info"), "f": Keyword("kill"), "value": "n1", "process": Keyword("nemesis")}


def textual(row: dict[str, Any]) -> str:
    fields = [written(row[name]) for name in ("process", "type", "f", "value")]
    fields += [written(row["error"])] if "error" in row else []
    return "INFO  jepsen.util - " + "\t".join(fields)


FORMATS: dict[str, Callable[[dict[str, Any]], str]] = {"EDN": written, "JSON": json.dumps, "log lines": textual}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=500_000)
    operations = parser.parse_args().operations
    with tempfile.TemporaryDirectory() as directory:
        source, parquet = Path(directory) / "history", Path(directory) / "history.parquet"
        for name, line in FORMATS.items():
            with source.open("w") as file:
                file.writelines(f"{line(row)}\n" for row in rows(operations))
            begun, cpu_begun = time.perf_counter(), time.process_time()
            count = convert(source, parquet, REGISTER)
            seconds, cpu_s = time.perf_counter() - begun, time.process_time() - cpu_begun
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            print(
                f"{name:10} {count / cpu_s:10,.0f} rows and {operations / cpu_s:10,.0f} operations a second of one "
                f"processor ({cpu_s:.2f} s of it, {seconds:.2f} s by the clock, {source.stat().st_size >> 20} MiB), "
                f"at most {peak} MiB resident"
            )


if __name__ == "__main__":
    main()
