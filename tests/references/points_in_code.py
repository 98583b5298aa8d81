"""Which points code names where it calls `host.reached`."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path


def points_in(files: Iterable[Path]) -> Counter[str]:
    """How often each is named, planted bugs left out."""
    return Counter(point for file in files if "mutants" not in file.parts for point in named(file.read_text()))


def named(source: str) -> Iterator[str]:
    """The constants that calls of `reached`, or of a method `_reached` that passes them on, are given; one that is no
    constant is named by its place."""
    for node in _calls(ast.parse(source)):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("reached", "_reached") and node.args:
            (given,) = node.args
            for one in (given.body, given.orelse) if isinstance(given, ast.IfExp) else (given,):
                yield one.value if isinstance(one, ast.Constant) else f"no constant in line {node.lineno}"


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Outside of what passes points on."""
    if isinstance(tree, ast.FunctionDef) and tree.name == "_reached":
        return
    if isinstance(tree, ast.Call):
        yield tree
    for child in ast.iter_child_nodes(tree):
        yield from _calls(child)
