"""`stormproof` exports what it declares, to Python and to type checkers alike, and names packages that hide its own."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import stormproof

CHECKOUT = Path(stormproof.__file__).parents[1]


def test_type_checkers_read_the_same_names_as_python() -> None:
    tree = ast.parse(Path(stormproof.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {
        (node.module, alias.name) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert typed == {(module, name) for module, names in stormproof._NAMES.items() for name in names}


@pytest.mark.parametrize("name", stormproof.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(stormproof, name) is not None
    assert name in dir(stormproof)


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'thunder'"):
        stormproof.thunder  # noqa: B018


def run_beside(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with `folder` before Stormproof on its path, as for a test that lies there."""
    path = os.pathsep.join([str(folder), str(CHECKOUT)])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("kind", ["package", "module"])
def test_a_package_that_hides_one_of_ours_is_named(tmp_path: Path, kind: str) -> None:
    hiding = tmp_path / "results.py" if kind == "module" else tmp_path / "results" / "__init__.py"
    hiding.parent.mkdir(exist_ok=True)
    hiding.write_text("")
    command = run_beside(tmp_path, "-m", "stormproof", "list", "systems")
    assert command.returncode == 255
    assert command.stderr.count("\n") == 1
    shown = hiding if kind == "module" else hiding.parent
    assert f"'results' by {shown}" in command.stderr
    imported = run_beside(tmp_path, "-c", "from stormproof import Isolate")
    assert imported.returncode == 1
    assert imported.stderr.splitlines()[-1].startswith("ImportError: packages of Stormproof are hidden")


def test_nothing_is_hidden_where_other_names_lie_around(tmp_path: Path) -> None:
    (tmp_path / "my_results").mkdir()
    listed = run_beside(tmp_path, "-m", "stormproof", "list", "systems")
    assert (listed.returncode, listed.stderr) == (0, "")
