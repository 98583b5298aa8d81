"""From how many rows Spark pays: whole checks in this process and on Spark, a fresh process each, one after the other.

    python benchmarks/engines.py [--rows 200000 2000000] [--only log] [--master local[2]]

Each figure is seconds by the clock of the check alone, Spark's start, processor seconds, and what all processes
occupied at most. What `stormproof/session/engines.py` decides by comes from here.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
BENCHMARKS = {
    "log": ("log_check.py", "--operations"),
    "register": ("register_check.py", "--operations"),
    "list-append": ("transaction_checks.py", "--lists", "--transactions"),
    "rw-register": ("transaction_checks.py", "--level", "causal", "--model", "causal", "--transactions"),
}
"""By what is judged: a benchmark that makes its history up. An operation is two rows."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 2_000_000])
    parser.add_argument("--only", choices=BENCHMARKS, nargs="+", default=list(BENCHMARKS))
    parser.add_argument("--master", default="local[2]")
    chosen = parser.parse_args()
    for rows in chosen.rows:
        for name in chosen.only:
            script, *options = BENCHMARKS[name]
            for engine in (("--in-process",), ("--master", chosen.master)):
                begun = time.monotonic()
                command = [sys.executable, FOLDER / script, *options, str(rows // 2), *engine]
                ran = subprocess.run(command, capture_output=True, text=True, check=True)
                figures = " | ".join(line for line in ran.stdout.splitlines() if re.search(r"\d s\b", line))
                print(f"{name}, {rows:,} rows, {engine[-1]} ({time.monotonic() - begun:.0f} s with making): {figures}")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
