"""Compiled kernels are found again by their content, wherever they stand, and never once anything changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from checkers.spark import session
from harness.compiled import interpreted, store

ROOT = Path(__file__).resolve().parents[4]

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


class Compiled(NamedTuple):
    checkout: Path
    kernels: Path


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """A checkout of which all is compiled: by a process that found nothing kept."""
    folder = tmp_path_factory.mktemp("compiled")
    there = Compiled(folder / "one", folder / "kernels")
    assert run(*there) == "17 ['__main__', 'callee']"
    return there


def test_another_checkout_finds_what_the_first_compiled(once: Compiled, tmp_path: Path) -> None:
    assert run(*once) == "17 []"
    assert run(tmp_path / "two", once.kernels) == "17 []"


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
    changed: dict[str, int | str], printed: str, once: Compiled
) -> None:
    assert run(*once, **changed) == printed  # type: ignore[arg-type]


def test_a_torn_entry_is_compiled_again(once: Compiled, tmp_path: Path) -> None:
    kernels = shutil.copytree(once.kernels, tmp_path / "kernels")
    for entry in kernels.iterdir():
        entry.write_bytes(entry.read_bytes()[:-1])
    assert run(once.checkout, kernels) == "17 ['__main__', 'callee']"
    assert run(once.checkout, kernels) == "17 []"


def test_where_nothing_can_be_kept_kernels_run_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run(tmp_path / "one", tmp_path / "file" / "below") == "17 ['__main__', 'callee']"


def test_kernels_travel_with_the_project_to_workers_that_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The digest of a kernel that calls others stands for compiling it as well, which takes seconds.
    program = (
        "import numpy as np; from harness.compiled import content, on_compiling; import checkers; "
        "from checkers.kernels.gap_filling import next_place; from checkers.kernels.adjacency import by_source; "
        "compiled = []; on_compiling(compiled.append); "
        "print(next_place(np.array([0, 1]), np.array([0, 1, 2]), 1), compiled, '.zip' in checkers.__path__[0]); "
        "print(content.digest_of(by_source.function))"
    )

    def printed(where: Path, kernels: str) -> list[str]:
        environment = {**os.environ, store.CHOSEN: str(tmp_path / kernels), "PYTHONPATH": str(where)}
        environment[interpreted.NEVER] = "1"
        command = [sys.executable, "-S", "-c", f"import sys; sys.path += {sys.path!r}; {program}"]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True
        ).stdout.splitlines()

    answer, digest = printed(ROOT, "kernels")
    assert answer == "1 ['checkers.kernels.gap_filling'] False"
    monkeypatch.setenv(store.CHOSEN, str(tmp_path / "kernels"))
    store.directory.cache_clear()
    try:
        packed = session._packed_project(tmp_path)
    finally:
        store.directory.cache_clear()
    assert printed(packed, "others") == ["1 [] True", digest]
