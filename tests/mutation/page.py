"""`make modules`: the page that says for each module which tests notice a mistake in it, `tests/MODULES.md`.

    python -m tests.mutation.page

A module's own tests are those that import it by its name. Where many do, only those that are named alike count. Beside
them stand the tests that `concerns.py` names for the file, and above the table those that it names for the folder.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutation.concerns import CONCERNS, OTHERS, ROOT, Concern

PAGE = ROOT / "tests" / "MODULES.md"
MANY = 4
"""A module that more test files import is used by most of them, not tested."""
MANY_TOGETHER = 8
"""More tests that several modules have in common say less than a module's own, where it has any."""
FIRST = ("unit", "properties", "histories", "scenarios")
"""Folders of tests, the quickest to read first."""
_IN_TEXT = re.compile(r"\b(?:from|import) ((?:\w+\.)+\w+)")


@dataclass(frozen=True)
class Module:
    name: str
    """As it is imported."""
    path: Path
    """From the root of the project."""
    handed_on: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Where a package has its names from: name -> module."""

    @property
    def word(self) -> str:
        """What a test of it would have in its name."""
        return self.name.rpartition(".")[2]


def packages() -> tuple[str, ...]:
    """The project's own."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return tuple(settings["tool"]["mypy"]["packages"])


def modules() -> dict[str, Module]:
    """By name, all that hold code; skeletons bring tests of their own along, which are none of the project's."""
    found = {}
    for path in sorted(path for package in packages() for path in (ROOT / package).rglob("*.py")):
        short = path.relative_to(ROOT)
        if "tests" in short.parts:
            continue
        if path.name != "__init__.py":
            name = ".".join(short.with_suffix("").parts)
            found[name] = Module(name, short)
        elif (body := ast.parse(path.read_text("utf-8")).body)[1:]:  # more than a docstring
            name = ".".join(short.parent.parts)
            found[name] = Module(name, short, _handed_on(body))
    return found


def _handed_on(body: Sequence[ast.stmt]) -> dict[str, str]:
    return {
        alias.asname or alias.name: node.module
        for node in body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }


def own_tests(every: Mapping[str, Module]) -> dict[str, tuple[str, ...]]:
    """Module -> the test files that are about it, in the folders beneath `tests`."""
    importing: dict[str, set[str]] = defaultdict(set)
    for test in sorted((ROOT / "tests").rglob("*/test_*.py")):
        text = test.read_text("utf-8")
        for name in {*_imported(ast.parse(text), every), *_IN_TEXT.findall(text)}:
            importing[name].add(test.relative_to(ROOT / "tests").as_posix())
    return {name: _few(module, importing[name]) or _named_alike(module) for name, module in every.items()}


def _imported(tree: ast.Module, every: Mapping[str, Module]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (_defining(node.module, alias.name, every) for alias in node.names)


def _defining(module: str, name: str, every: Mapping[str, Module]) -> str:
    """Where that name of a module comes from: a package hands on what modules in it define."""
    if f"{module}.{name}" in every:
        return f"{module}.{name}"
    return every[module].handed_on.get(name, module) if module in every else module


def _few(module: Module, tests: set[str]) -> tuple[str, ...]:
    """The tests named like the module come first."""
    alike = {test for test in tests if _is_named_like(test, module)}
    return tuple(sorted(tests if len(tests) <= MANY else alike, key=lambda test: (test not in alike, _place(test))))


def _named_alike(module: Module) -> tuple[str, ...]:
    """Of the folders of tests that are named for the module's own folder."""
    concern = concern_of_folder(module.path.parent)
    folders = [ROOT / "tests" / test for test in concern.tests] if concern is not None else []
    tests = {test.relative_to(ROOT / "tests").as_posix() for folder in folders for test in folder.glob("test_*.py")}
    return tuple(sorted(test for test in tests if _is_named_like(test, module)))


def _is_named_like(test: str, module: Module) -> bool:
    return f"_{module.word}_" in f"_{Path(test).stem}_"


def _place(test: str) -> tuple[int, str]:
    folder = test.partition("/")[0]
    return FIRST.index(folder) if folder in FIRST else len(FIRST), test


def concern_of_file(path: Path) -> Concern | None:
    """The entry that names that very file."""
    return next((one for one in (*CONCERNS, *OTHERS) if path.as_posix() in one.modules), None)


def concern_of_folder(folder: Path) -> Concern | None:
    """The entry that names the folder, or the innermost of those that it lies in."""
    found = (concern_of_file(one) for one in (folder, *folder.parents))
    return next((one for one in found if one is not None), None)


def without_tests(every: Mapping[str, Module], own: Mapping[str, Sequence[str]]) -> list[str]:
    """Paths of modules of which nobody could say which tests are theirs."""
    return [
        one.path.as_posix()
        for one in every.values()
        if not own[one.name] and concern_of_file(one.path) is None and concern_of_folder(one.path.parent) is None
    ]


def page(every: Mapping[str, Module], own: Mapping[str, Sequence[str]]) -> str:
    """Markdown: a section a folder."""
    folders: dict[str, list[Module]] = defaultdict(list)
    for module in every.values():
        folders[module.path.parent.as_posix()].append(module)
    lines = [
        "# Which tests notice a mistake in which module",
        "",
        "Made by `make modules` of the tests' imports and of `tests/mutation/concerns.py`; do not edit it here.",
        "",
        "Search this page for the file of the module. A module's own tests import it by its name, or `concerns.py`",
        "names them for it; tests of all modules in a folder stand above its table. Paths of tests are beneath",
        "`tests/`. Run one with `.venv/bin/python -m pytest tests/PATH`. `histories: log` means the smallest histories",
        "in `tests/histories/log`: `.venv/bin/python -m pytest tests/histories/test_history_files.py -k log/`.",
        "Where all is deselected, the tests belong to a tier: add `--tier gate` or `--tier thorough`.",
    ]
    for folder in sorted(folders):
        lines += _section(folder, folders[folder], own)
    return "\n".join(lines) + "\n"


def _section(folder: str, those: Sequence[Module], own: Mapping[str, Sequence[str]]) -> list[str]:
    """A table of a folder's modules; modules of the same tests share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for module in those:
        its = [f"`{test}`" for test in own[module.name]]
        named = _words(concern_of_file(module.path))
        if its and len(named) > MANY_TOGETHER:
            named = ()
        rows.setdefault(tuple(dict.fromkeys((*its, *named))), []).append(f"`{module.path.name}`")
    of_all = _words(concern_of_folder(Path(folder)))
    return [
        *("", f"## {folder}", ""),
        *((f"All of them: {', '.join(of_all)}.", "") if of_all else ()),
        *("| module | its own tests |", "|---|---|"),
        *(f"| {', '.join(names)} | {', '.join(tests) or 'those of all'} |" for tests, names in rows.items()),
    ]


def _words(concern: Concern | None) -> tuple[str, ...]:
    if concern is None:
        return ()
    histories = (f"histories: {', '.join(concern.histories)}",) if concern.histories else ()
    files = dict.fromkeys(test.partition("::")[0] for test in concern.tests)
    definitions = dict.fromkeys(test.partition("::")[0] for test in concern.definitions)
    return (*histories, *(f"`{test}`" for test in files), *(f"`properties/{test}`" for test in definitions))


def main() -> int:
    every = modules()
    own = own_tests(every)
    PAGE.write_text(page(every, own), "utf-8")
    lacking = without_tests(every, own)
    for path in lacking:
        print(f"{path}: no test imports it, and no entry of tests/mutation/concerns.py names it", file=sys.stderr)
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
