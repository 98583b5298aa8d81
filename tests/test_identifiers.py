"""How things are named, kept by reading the code: verbs for what works, nouns for what is given; the glossary's words.

A participle that says nothing of what it names (`known`, `given`) is no name of a module, class, function, field or
parameter. What the glossary says not to call a thing is no word of a module's or a class's name, unless it is exempt.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("stormproof", "harness", "nemesis", "workloads", "checkers", "system_under_test", "results")
FOLDERS = (*PACKAGES, "benchmarks", "examples", "tests")
FILES = {
    path.relative_to(ROOT).as_posix(): path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))
}

EMPTY_NAMES = ("told", "judged", "known", "given", "said", "shown", "made")
# File -> the names that a stored format forces on it.
STORED = {
    # `Chase.given` is a key of the JSON in which a search keeps how it ended.
    "stormproof/search/compare.py": ("given",),
}


def fields(node: ast.ClassDef) -> Iterator[tuple[int, str]]:
    """What a class body binds, and what methods assign to `self`."""
    for statement in node.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            for target in ast.walk(statement):
                if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
                    yield target.lineno, target.id
    for target in ast.walk(node):
        if (
            isinstance(target, ast.Attribute)
            and isinstance(target.ctx, ast.Store)
            and ast.unparse(target.value) == "self"
        ):
            yield target.lineno, target.attr


@cache
def names(source: str) -> list[tuple[int, str, str]]:
    """(line, kind, name) of each class, function, field and parameter."""
    return list(_names(source))


def _names(source: str) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            yield node.lineno, "class", node.name
            yield from ((line, "field", name) for line, name in fields(node))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, "function", node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, "parameter", node.arg


def is_empty(name: str) -> bool:
    return name.strip("_").lower() in EMPTY_NAMES


def empty_names(file: str, source: str) -> list[str]:
    found = [f"{file}: module {Path(file).stem}"] if is_empty(Path(file).stem) else []
    found += [
        f"{file}:{line}: {kind} {name}"
        for line, kind, name in names(source)
        if is_empty(name) and name not in STORED.get(file, ())
    ]
    return sorted(set(found))


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_name_says_what_it_names(folder: str) -> None:
    files = {file: path for file, path in FILES.items() if file.startswith(f"{folder}/")}
    assert files
    assert [found for file, path in files.items() for found in empty_names(file, path.read_text("utf-8"))] == []


def test_a_stored_name_is_still_there() -> None:
    for file, stored in STORED.items():
        assert set(stored) <= {name for _, kind, name in names(FILES[file].read_text("utf-8")) if kind == "field"}


@pytest.mark.parametrize(
    ("file", "source", "found"),
    [
        ("harness/known.py", "", "harness/known.py: module known"),
        ("a.py", "class _Known: ...", "a.py:1: class _Known"),
        ("a.py", "class A:\n    GIVEN = 2", "a.py:2: field GIVEN"),
        ("a.py", "class A:\n    shown: int", "a.py:2: field shown"),
        ("a.py", "class A:\n    def __init__(self):\n        self.a, self._told = 1, 2", "a.py:3: field _told"),
        ("a.py", "async def _judged(): ...", "a.py:1: function _judged"),
        ("a.py", "def f(*, made=0): ...", "a.py:1: parameter made"),
        ("a.py", "f = lambda said: said", "a.py:1: parameter said"),
        ("a.py", "def f(**given): ...", "a.py:1: parameter given"),
    ],
)
def test_an_empty_name_would_be_found(file: str, source: str, found: str) -> None:
    assert empty_names(file, source) == [found]


def test_longer_names_and_locals_are_left_alone() -> None:
    source = "def is_known(known_names):\n    known = set(known_names)\n    return known"
    assert empty_names("checkers/known_names.py", source) == []


# The glossary ---------------------------------------------------------------------------------------------------------

# Reason -> words of the right column that names use all the same.
EXEMPT = {
    "too general: a plain word, of which only one sense is ruled out": (
        "access alternative answer argument call choice class closed config context cursor delay done empty "
        "error event example exception execution job kind level link loop message metadata options order output "
        "part progress record result rule sample sentence shared standing state status step thread token value "
        "window"
    ),
    "a word of databases, of the literature on consistency or of its algorithms": (
        "chain guarantee parallel pipeline repair"
    ),
    "a word of RocketMQ, of its protocols or of a fault in them": (
        "batch consumer lease log metrics mode proxy recover response server subscription"
    ),
    "a kind of fault or the nodes that it strikes, in a sense of its own": "cluster failure kill world",
    "a word of the language, of Jepsen or of the command line": "attempt attempts resources runner suite test trial",
}
EXEMPT_WORDS = {word for words in EXEMPT.values() for word in words.split()}


def glossary() -> Iterator[tuple[str, str]]:
    """(left column, right column) of the tables, without their heads."""
    for line in (ROOT / "docs" / "glossary.md").read_text("utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| word |"):
            word, _, instead = line.removeprefix("| ").removesuffix("|").split("|")
            yield word.strip(), instead.strip()


def terms() -> set[str]:
    """The words of the left column: `invocation, completion` are two, `model (of an object)` is `model`."""
    return {term.strip() for word, _ in glossary() for term in re.sub(r"\(.*?\)", "", word).split(",")}


def banned() -> set[str]:
    """The words of the right column that mean nothing else in the glossary."""
    return {word for _, instead in glossary() for word in re.split(r",\s*", instead) if word} - terms() - EXEMPT_WORDS


def words_of(name: str) -> tuple[str, ...]:
    """`FaultWindows` and `fault_windows` are `fault` and `window`."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)
    return tuple(part.lower().removesuffix("s") for part in parts)


def uses(word: str, name: str) -> bool:
    searched = tuple(part.lower().removesuffix("s") for part in re.findall(r"\w+", word))
    parts = words_of(name)
    return any(parts[at : at + len(searched)] == searched for at in range(len(parts)))


def module_and_class_names() -> Iterator[tuple[str, str]]:
    """(where, name) in the packages."""
    for file, path in FILES.items():
        if file.split("/")[0] in PACKAGES:
            yield file, path.stem
            for line, kind, name in names(path.read_text("utf-8")):
                if kind == "class":
                    yield f"{file}:{line}", name


def test_no_module_or_class_has_a_name_that_the_glossary_rules_out() -> None:
    words = sorted(banned())
    assert len(words) > 50
    found = [
        f"{where}: {name} says {word}, which docs/glossary.md rules out"
        for where, name in module_and_class_names()
        for word in words
        if uses(word, name)
    ]
    assert found == []


def test_every_exempt_word_is_ruled_out_by_the_glossary_and_used() -> None:
    ruled_out = {word for _, instead in glossary() for word in re.split(r",\s*", instead)}
    everything = [name for _, name in module_and_class_names()]
    for word in sorted(EXEMPT_WORDS):
        assert word in ruled_out - terms(), word
        assert any(uses(word, name) for name in everything), word


def test_a_word_that_the_glossary_rules_out_would_be_found() -> None:
    assert {"validator", "hosts file", "topology"} <= banned()
    assert uses("validator", "_InputValidators") and uses("hosts file", "hosts_file") and uses("POP log", "PopLog")
    assert not uses("op", "Operation") and not uses("gene", "generator")
    # What is a term of its own, or exempt, is not ruled out.
    assert not {"storm", "run", "message", "result"} & banned()
