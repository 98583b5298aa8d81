"""Compiles the kernels of all checkers ahead, on all cores: `python tests/histories/compile_kernels.py`

The set-up does so, for a first check that waits for the compiler waits for up to a minute. Which kernels there are for
which types is found out by using them: every history of this folder is checked as it is and read as EDN and as JSON,
and there is a storm for each workload. What was compiled before, by any checkout, is not compiled again.
"""

from __future__ import annotations

import hashlib
import importlib
import multiprocessing
import os
import pkgutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import checkers
import harness.jepsen
from harness.compiled import Kernel, interpreted, on_compiling, store
from harness.compiled.content import digest_of
from harness.compiled.machine_code import compiler
from stormproof.cli import main
from tests.references.history_language import parse_history

FOLDER = Path(__file__).parent
STORM = "--time-limit=3 --recovery=3 --seed=1 --engine=inprocess --nemesis=kill"
COSTLY = ("list-append", "cas-register", "rw-register", "stack")
"""What takes longest to compile, and shares little, begins first."""

FOREIGN = 4
"""So many of each kind are read as EDN and JSON, too."""

SILENT_S = 10.0
"""So often it is said how far this is, also while the kinds that take longest are compiled."""

Job = tuple[str, ...]
"""Arguments of `stormproof`; of `check` the histories are added."""


def say(line: str) -> None:
    print(f"set-up: {line}", file=sys.stderr, flush=True)


def jobs() -> list[Job]:
    judged = {judged_by(file) for file in histories()}
    storms = [("run", "rocketmq", f"--workload={workload}", *STORM.split()) for workload in ("log", "register")]
    return sorted((("check", *words) for words in judged), key=_late) + storms


def _late(job: Job) -> tuple[object, ...]:
    """Kernels that several need are compiled by the first of them, so that no two are at it at once."""
    return len(job), COSTLY.index(job[2]) if job[2] in COSTLY else len(COSTLY), job


def histories() -> Iterator[Path]:
    """All but those that are judged by demands which only a run makes."""
    return (file for file in sorted(FOLDER.glob("*/*.history")) if file.parent.name not in ("availability", "cluster"))


def judged_by(file: Path) -> tuple[str, ...]:
    return parse_history(file.read_text()).judged_by()


def compile_kernels_of(job: Job) -> int:
    """Returns how many kernels were compiled."""
    compiled: list[str] = []
    on_compiling(compiled.append)
    interpreted.allowance.left_s = 0.0
    with (
        tempfile.TemporaryDirectory() as scratch,
        open(os.devnull, "w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        if job[0] == "check":
            _check(job, Path(scratch))
        else:
            main.run([*job, "--runs", scratch])
    return len(compiled)


def _check(job: Job, scratch: Path) -> None:
    paths = []
    for number, file in enumerate(file for file in histories() if judged_by(file) == job[1:]):
        path = parse_history(file.read_text()).write(scratch / f"{number}.parquet")
        paths.append(path)
        for form in ("edn", "json") if number < FOREIGN else ():
            paths.append(path.with_suffix(f".{form}"))
            main.run(["export", str(path), "--format", form, "--output", str(paths[-1])])
    words = [*job[1:], "--engine", "inprocess", "--runs", str(scratch)]
    main.run(["check", *map(str, paths), *words])


def compile_all() -> int:
    """What is there already for these kernels, by whichever checkout, is not even looked for."""
    started = time.monotonic()
    done = f"compiled-ahead-{_content()}"
    if store.read(done) is not None:
        return 0
    with multiprocessing.get_context("spawn").Pool() as pool:
        compiled = done_jobs = 0
        todo = jobs()
        counts = pool.imap_unordered(compile_kernels_of, todo)
        while done_jobs < len(todo):
            try:
                count = counts.next(timeout=SILENT_S)
            except multiprocessing.TimeoutError:
                count = None
            else:
                compiled, done_jobs = compiled + count, done_jobs + 1
            if count != 0:
                seconds = time.monotonic() - started
                say(f"{compiled} kernels after {seconds:.0f} s, {done_jobs} of {len(todo)} kinds of histories")
    store.write(done, f"{compiled} kernels".encode())
    say(f"{compiled} kernels compiled in {time.monotonic() - started:.0f} s")
    return 0


def _content() -> str:
    """Of all kernels, of what compiles them, and of the histories that need them."""
    digest = hashlib.sha256(repr(compiler()).encode())
    for package in (checkers, harness.jepsen):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                module = importlib.import_module(found.name)
                kernels = [value for _, value in sorted(vars(module).items()) if isinstance(value, Kernel)]
                digest.update("".join(digest_of(kernel.function) for kernel in kernels).encode())
    for path in (Path(__file__), *histories()):
        digest.update(path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(compile_all())
