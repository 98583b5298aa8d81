"""What a key-value history with get, put and append costs, beside Porcupine on the same file, in one run.

    python benchmarks/key_values.py [LOG…] [--porcupine PROGRAM] [--rounds 5]

LOG is a history as Porcupine's test data has them (test_data/kv), or any that `check --model map` reads; where none
is given, one of 50 clients is made up. PROGRAM is Porcupine's own tests as a program (`go test -c` in its checkout),
which know these logs by their names (c01-ok, c50-bad), in the folders where they lie there. Both are asked in turns,
and the least of some rounds counts, so that the ratio holds on a busy machine. Processor seconds beyond the start of
either program: reading, converting, checking, of ours with the evidence.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from checkers.api.plan import CheckRequest
from checkers.api.verdict import Verdict
from checkers.in_process.engine import InProcessEngine
from stormproof.session.check_spec import of_model, read


def ours(log: Path) -> tuple[Verdict, float]:
    spec = of_model("map", initial=None, failed_cas=None)
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as scratch:
        history, spec = read(log, Path(scratch) / "history.parquet", spec)
        result = spec.checkers["linearizable"].check(CheckRequest(history=history), InProcessEngine())
    return result.verdict, time.process_time() - begun


def porcupine(program: Path, log: Path) -> tuple[bool, float]:
    """Whether it found the log linearizable, and what that took beyond the start of its program."""
    clients, _, told = log.stem.removeprefix("c").partition("-")
    several = "Client" if int(clients) == 1 else "Clients"
    passed, seconds = _tested(program, log, f"^TestKv{int(clients)}{several}{told.capitalize()}$")
    _, start = _tested(program, log, "^$")
    return passed is (told == "ok"), seconds - start


def _tested(program: Path, log: Path, test: str) -> tuple[bool, float]:
    """Whether the test passed, which is that the verdict is the one in the log's name."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run([program.resolve(), "-test.run", test], cwd=log.resolve().parents[2], capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ran.returncode == 0, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def made_up(path: Path, clients: int = 50, keys: int = 10, operations: int = 1_700) -> Path:
    """Each operation takes effect where it ends."""
    rng = random.Random(1729)
    store: dict[int, str] = {}
    opened: dict[int, tuple[str, int, str]] = {}
    lines = []
    begun = 0
    while begun < operations or opened:
        client = rng.randrange(clients)
        if client in opened:
            f, key, value = opened.pop(client)
            if f == "get":
                shown = store.get(key, "")
            else:
                shown = value
                store[key] = value if f == "put" else store.get(key, "") + value
            lines.append(f'{{:process {client}, :type :ok, :f :{f}, :key "{key}", :value "{shown}"}}')
        elif begun < operations:
            f, key, value = rng.choice(("get", "append", "append", "put")), rng.randrange(keys), f"x {begun} y"
            f = "append" if f == "put" and rng.random() < 0.8 else f
            asked = "nil" if f == "get" else f'"{value}"'
            lines.append(f'{{:process {client}, :type :invoke, :f :{f}, :key "{key}", :value {asked}}}')
            opened[client] = f, key, value
            begun += 1
    path.write_text("\n".join(lines) + "\n")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", metavar="LOG", nargs="*", type=Path)
    parser.add_argument("--porcupine", metavar="PROGRAM", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments, arguments.logs or [made_up(Path(folder) / "made-up.edn")])


def measure(arguments: argparse.Namespace, logs: list[Path]) -> None:
    for log in logs:
        ours(log)  # Kernels are loaded.
        measured, theirs = [], []
        for _ in range(arguments.rounds):
            verdict, seconds = ours(log)
            measured.append(seconds)
            if arguments.porcupine:
                other, its_seconds = porcupine(arguments.porcupine, log)
                assert other is (verdict is Verdict.VALID), (log, verdict, other)
                theirs.append(its_seconds)
        line = f"{log.name:16} {verdict.value:8} {min(measured):.3f} s"
        if theirs:
            line += f", Porcupine {min(theirs):.3f} s"
        print(line)


if __name__ == "__main__":
    main()
