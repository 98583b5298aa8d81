"""Compiled kernels are found again by their content, wherever they stand, and never once anything changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from checkers.spark import session
from harness.compiled import interpreted, store

ROOT = Path(__file__).resolve().parents[3]

CALLEE = """
from harness.compiled import compiled

@compiled
def grown(x):
    return x + {step}
"""
CALLER = """
from typing import NamedTuple
import numpy as np
from harness.compiled import compiled, on_compiling
from callee import grown

FACTOR = {factor}

class Pair(NamedTuple):
    {fields}

@compiled
def total(pair, values):
    result = pair.left - pair.right
    for value in values:
        result += FACTOR * grown(value)
    return result

compiled_here = []
on_compiling(compiled_here.append)
print(total(Pair(left=10, right=3), np.arange(4)), sorted(compiled_here))
"""


def run(
    directory: Path,
    kernels: Path,
    *,
    step: int = 1,
    factor: int = 1,
    fields: str = "left: int; right: int",
    caller: str = CALLER,
) -> str:
    """What a fresh process prints: the sum, and the modules of kernels that it had to compile."""
    directory.mkdir(exist_ok=True)
    (directory / "callee.py").write_text(CALLEE.format(step=step))
    (directory / "caller.py").write_text(caller.format(factor=factor, fields=fields))
    environment = {**os.environ, store.CHOSEN: str(kernels), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    environment[interpreted.NEVER] = "1"
    ran = subprocess.run(
        [sys.executable, "caller.py"], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_another_checkout_finds_what_the_first_compiled(tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    assert run(tmp_path / "one", kernels) == "17 ['__main__', 'callee']"
    assert run(tmp_path / "one", kernels) == "17 []"
    assert run(tmp_path / "two", kernels) == "17 []"


def test_a_kernel_of_a_class_that_was_moved_is_compiled_again(tmp_path: Path) -> None:
    kernels, one = tmp_path / "kernels", tmp_path / "one"
    program = CALLER.replace("class Pair(NamedTuple):\n    {fields}\n", "from pairs import Pair\n")
    for module in ("pairs", "couples"):
        moved = program.replace("from pairs", f"from {module}")
        one.mkdir(exist_ok=True)
        for old in one.glob("*.py"):
            old.unlink()
        (one / f"{module}.py").write_text(
            "from typing import NamedTuple\nclass Pair(NamedTuple):\n    left: int\n    right: int\n"
        )
        compiled = ["__main__", "callee"] if module == "pairs" else ["__main__"]
        assert run(one, kernels, caller=moved) == f"17 {compiled}"


@pytest.mark.parametrize(
    ("changed", "printed"),
    [
        ({"step": 2}, "21 ['__main__', 'callee']"),
        ({"factor": 3}, "37 ['__main__']"),
        # Fields are read by their places, which are compiled in, while the names in the source stay.
        ({"fields": "right: int; left: int"}, "17 ['__main__']"),
    ],
    ids=["a kernel in another file", "a constant", "the order of fields"],
)
def test_whatever_a_kernel_depends_on_is_compiled_anew_once_it_changed(
    changed: dict[str, int | str], printed: str, tmp_path: Path
) -> None:
    run(tmp_path / "one", tmp_path / "kernels")
    assert run(tmp_path / "one", tmp_path / "kernels", **changed) == printed  # type: ignore[arg-type]


def test_a_torn_entry_is_compiled_again(tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    run(tmp_path / "one", kernels)
    for entry in kernels.iterdir():
        entry.write_bytes(entry.read_bytes()[:-1])
    assert run(tmp_path / "one", kernels) == "17 ['__main__', 'callee']"
    assert run(tmp_path / "one", kernels) == "17 []"


def test_where_nothing_can_be_kept_kernels_run_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run(tmp_path / "one", tmp_path / "file" / "below") == "17 ['__main__', 'callee']"


def test_kernels_travel_with_the_project_to_workers_that_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import numpy as np; from harness.compiled import on_compiling; from checkers.kernels.adjacency import "
        "by_source; import checkers; compiled = []; on_compiling(compiled.append); "
        "found = by_source(np.array([1, 0], dtype=np.int32), 2)[0].tolist(); "
        "print(found, sorted({*compiled}), '.zip' in checkers.__path__[0])"
    )

    def printed(where: Path, kernels: str) -> str:
        environment = {**os.environ, store.CHOSEN: str(tmp_path / kernels), "PYTHONPATH": str(where)}
        environment[interpreted.NEVER] = "1"
        command = [sys.executable, "-S", "-c", f"import sys; sys.path += {sys.path!r}; {program}"]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True).stdout.strip()

    assert printed(ROOT, "kernels") == "[0, 1, 2] ['checkers.kernels.adjacency', 'checkers.kernels.gap_filling'] False"
    monkeypatch.setenv(store.CHOSEN, str(tmp_path / "kernels"))
    store.directory.cache_clear()
    try:
        packed = session._packed_project(tmp_path)
    finally:
        store.directory.cache_clear()
    assert printed(packed, "others") == "[0, 1, 2] [] True"
