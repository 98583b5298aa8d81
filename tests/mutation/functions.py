"""Functions that are there already get other code, in place: whoever imported one has the changed one.

Kernels are plain Python here, so all that a module decides is in functions, and neither a change nor a mark needs an
import. Only what was called while modules were imported is as it was.
"""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from tests.mutation.changes import statements

MARKS = "_statements_reached"
"""A global variable of each marked module: a byte a statement."""


def functions_by_file(files: Iterable[Path]) -> dict[str, list[FunctionType]]:
    found: dict[str, list[FunctionType]] = {str(file): [] for file in files}
    for thing in gc.get_objects():
        # Not isinstance: it asks what a weak proxy stands for, which may be gone.
        if type(thing) is FunctionType and thing.__code__.co_filename in found:
            found[thing.__code__.co_filename].append(thing)
    return found


def caches() -> list[Any]:
    """What remembers answers that a change would make others."""
    return [thing for thing in gc.get_objects() if type(thing) is functools._lru_cache_wrapper]


def put(tree: ast.Module, file: Path, functions: Iterable[FunctionType]) -> None:
    """The functions of this file become those of the tree."""
    module = compile(tree, str(file), "exec", dont_inherit=True)
    codes = {(code.co_qualname, code.co_firstlineno): code for code in _within(module)}
    for function in functions:
        code = function.__code__
        if "<" not in function.__name__:  # of lambdas there may be several in a line
            function.__code__ = codes[code.co_qualname, code.co_firstlineno]


def _within(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _within(constant)


def mark(file: Path, functions: Iterable[FunctionType]) -> bytearray:
    """From now on each statement that is reached sets its byte in what is returned."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = statements(tree)
    number = {id(statement): number for number, statement in enumerate(found)}
    for node in [tree, *ast.walk(tree)]:
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and id(value[0]) in number:
                setattr(node, name, [one for statement in value for one in (_mark(statement, number), statement)])
    put(tree, file, functions)
    marks = bytearray(len(found))
    for function in functions:
        function.__globals__[MARKS] = marks
    return marks


def _mark(statement: ast.stmt, number: dict[int, int]) -> ast.stmt:
    (made,) = ast.parse(f"{MARKS}[{number[id(statement)]}] = 1").body
    for node in ast.walk(made):
        ast.copy_location(node, statement)
    return made
