"""The files that a program needs in its image: what it imports, and nothing that only type checkers read."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.environments.remote.sources import sources


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_imports_within_functions_are_followed_and_those_for_type_checkers_are_not(packages: Path) -> None:
    write(packages, "program_of_mine.py", "def main():\n    import needed_by_mine\n")
    branches = "if TYPE_CHECKING:\n    import typed_by_mine\nelse:\n    import else_of_mine\n"
    write(packages, "needed_by_mine.py", f"from typing import TYPE_CHECKING\n{branches}")
    write(packages, "typed_by_mine.py", "")
    write(packages, "else_of_mine.py", "")
    assert list(sources(["program_of_mine"], [])) == ["else_of_mine.py", "needed_by_mine.py", "program_of_mine.py"]


def test_a_name_that_a_package_imports_when_asked_brings_its_module(packages: Path) -> None:
    write(
        packages,
        "lazy_of_mine/__init__.py",
        "def __getattr__(name):\n    import behind_mine\n    return behind_mine.Thing\n",
    )
    write(packages, "behind_mine.py", "import deeper_of_mine\nclass Thing: ...\n")
    write(packages, "deeper_of_mine.py", "")
    write(packages, "program_of_mine.py", "from lazy_of_mine import Thing\n")
    found = sources(["program_of_mine"], [])
    assert list(found) == ["behind_mine.py", "deeper_of_mine.py", "lazy_of_mine/__init__.py", "program_of_mine.py"]


def test_a_program_that_imports_stormproof_brings_what_it_uses_of_it_and_no_checkers(packages: Path) -> None:
    write(packages, "program_of_mine.py", "from stormproof import Client, Host, ConnectFailed\n")
    tops = {path.partition("/")[0] for path in sources(["program_of_mine"], [])}
    assert tops == {"harness", "program_of_mine.py", "stormproof", "system_under_test"}
