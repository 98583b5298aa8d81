"""What a user waits for: help, wrong usage, a first check, a second one, and a storm's verdict on each engine.

    python benchmarks/startup.py [CHECKOUT …] [--rounds 3] [--storms 1]

Each command is a fresh process of a CHECKOUT's own .venv (this one's, unless others are given: so a change is measured
against what was before, in turns). A round has a directory of its own for compiled kernels, empty for the first check
and warm from the second on; storms are run in the first rounds only. Printed are seconds by the clock and of processor
time, children included, as medians over the rounds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
SIX_EVENTS = """\
{:type :invoke, :f :write, :value 1, :process 0, :time 1}
{:type :ok, :f :write, :value 1, :process 0, :time 2}
{:type :invoke, :f :read, :value nil, :process 1, :time 3}
{:type :ok, :f :read, :value 1, :process 1, :time 4}
{:type :invoke, :f :cas, :value [1 2], :process 0, :time 5}
{:type :ok, :f :cas, :value [1 2], :process 0, :time 6}
"""
CHECK = "check six.edn --model cas-register --engine inprocess"
RUN = "run rocketmq --nemesis partition,kill,clock --time-limit 60 --seed 1729"
QUICK = {
    "run --help": "run --help",
    "a system misspelt": "run rocketmqq",
    "check, up to the first row": "check missing.edn --model cas-register --engine inprocess",
    "first check of six events, nothing compiled": CHECK,
    "second check": CHECK,
}
STORMS = {
    "60 s of storm, default engine": RUN,
    "60 s of storm, in-process": f"{RUN} --engine inprocess",
    "60 s of storm, Spark": f"{RUN} --engine spark",
}

Figures = dict[tuple[str, Path], list[tuple[float, float]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path, nargs="*", default=[HERE], metavar="CHECKOUT")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--storms", type=int, default=1, help="rounds with storms")
    chosen = parser.parse_args()
    figures: Figures = {}
    for number in range(chosen.rounds):
        for checkout in chosen.checkouts:
            one_round(checkout.resolve(), {**QUICK, **STORMS} if number < chosen.storms else QUICK, figures)
    print(f"load {os.getloadavg()[0]:.1f}; clock and processor time in seconds, medians of {chosen.rounds}")
    print("| | " + " | ".join(f"{checkout.resolve().name}" for checkout in chosen.checkouts) + " |")
    print("|---" * (len(chosen.checkouts) + 1) + "|")
    for name in {**QUICK, **STORMS} if chosen.storms else QUICK:
        cells = [render(figures[name, checkout.resolve()]) for checkout in chosen.checkouts]
        print(f"| {name} | " + " | ".join(cells) + " |")


def one_round(checkout: Path, commands: dict[str, str], figures: Figures) -> None:
    with tempfile.TemporaryDirectory(prefix="startup-") as scratch:
        (Path(scratch) / "six.edn").write_text(SIX_EVENTS)
        kernels = Path(scratch) / "kernels"
        kernels.mkdir()
        # The second is where numba itself keeps what it compiled, which earlier versions relied on.
        environment = {**os.environ, "STORMPROOF_KERNELS": str(kernels), "NUMBA_CACHE_DIR": str(kernels)}
        for name, command in commands.items():
            figures.setdefault((name, checkout), []).append(timed(checkout, command, Path(scratch), environment))
            print(f"{checkout.name}: {name}: {render(figures[name, checkout][-1:])}", file=sys.stderr, flush=True)
        shutil.rmtree(kernels)


def timed(checkout: Path, command: str, directory: Path, environment: dict[str, str]) -> tuple[float, float]:
    begun = time.monotonic()
    process = subprocess.Popen(
        [checkout / ".venv" / "bin" / "stormproof", *command.split()],
        cwd=directory,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - begun, used.ru_utime + used.ru_stime


def render(figures: list[tuple[float, float]]) -> str:
    clock, processor = (statistics.median(column) for column in zip(*figures, strict=True))
    return f"{clock:.2f} ({processor:.2f})"


if __name__ == "__main__":
    main()
