"""What the set-up compiles is what checks need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.compiled import interpreted
from stormproof.cli import main
from tests.histories.compile_kernels import FOLDER, compile_kernels_of, jobs
from tests.references.history_language import parse_history

CHECK = "from stormproof.cli.main import main; main()"


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--model", "cas-register"), marks=pytest.mark.gate),
        pytest.param(("--workload", "list-append"), marks=pytest.mark.thorough),
        pytest.param(("--workload", "log"), marks=pytest.mark.thorough),
    ],
)
def test_after_the_set_up_a_first_check_compiles_nothing(options: tuple[str, str], tmp_path: Path) -> None:
    job = ("check", *options)
    assert job in jobs()
    compile_kernels_of(job)
    folder = "object" if options[0] == "--model" else options[1]
    written = [parse_history(file.read_text()) for file in sorted((FOLDER / folder).glob("*.history"))]
    history = next(one for one in written if options[0] == "--workload" or one.model == options[1])
    stored = history.write(tmp_path / "history.parquet")
    assert main.run(["export", str(stored), "--output", str(tmp_path / "history.edn")]) == 0
    ran = subprocess.run(
        [sys.executable, "-c", CHECK, *job, "history.edn", "--engine", "inprocess"],
        cwd=tmp_path,
        env={**os.environ, interpreted.NEVER: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in (0, 1, 2), ran.stderr
    assert "compiling" not in ran.stderr
