"""One-token changes of a module: the mistakes that a hand makes, each at one place.

    before > 0     before >= 0         a and b     a or b          x + 1     x - 1     x + 2
    a == b         a != b              not a       not not a       ~a        ~~a       True      False

Changed is what functions do. Left alone are annotations, decorators and defaults, what stands in strings, numbers below
0, which stand for nobody, constants of modules, which say how much is done at once rather than what is decided, and
what only asserts something, as `zip` does that is `strict`.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMBINED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
MOST_CHANGED = 1 << 16
"""Constants above are numbers of a hash or limits of a type."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One place of a module, and what is written there instead."""

    path: str
    place: int
    """Counted over all places of the module."""
    line: int
    statement: int
    """The innermost one that has it, counted over all statements within functions of the module."""
    function: str
    before: str
    after: str
    wording: Wording

    @property
    def name(self) -> str:
        return f"{self.path}:{self.place}"

    def words(self) -> str:
        return f"{self.path}:{self.line} {self.function}: {self.before}  →  {self.after}"


@dataclass(frozen=True, kw_only=True)
class Wording:
    """By which a change is known again when lines were written above it, or elsewhere in the function."""

    path: str
    function: str
    """With `(2)` behind it, if the same can be changed there twice."""
    before: str
    """The statement; of one that has others, its head."""
    after: str


def changes(path: Path, named: str) -> list[Change]:
    """All of a module, in the order of its text."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    number = {id(statement): number for number, statement in enumerate(statements(tree))}
    found = []
    times: Counter[tuple[str, str, str]] = Counter()
    for place, (function, statement, node, instead) in enumerate(_places(tree)):
        before, head = ast.unparse(node), _head(statement)
        with _Swap(node, instead):
            after, changed = ast.unparse(node), _head(statement)
        times[function, head, changed] += 1
        nth = times[function, head, changed]
        found.append(
            Change(
                path=named,
                place=place,
                line=getattr(node, "lineno", statement.lineno),
                statement=number[id(statement)],
                function=function,
                before=before,
                after=after,
                wording=Wording(
                    path=named,
                    function=function
                    if nth == 1
                    else f"{function}, {nth}{'nd' if nth == 2 else 'rd' if nth == 3 else 'th'}",
                    before=head,
                    after=changed,
                ),
            )
        )
    return found


def statements(tree: ast.Module) -> list[ast.stmt]:
    """All within functions."""
    bodies = [body for _, body in _functions(tree, "")]
    within = [node for body in bodies for statement in body for node in ast.walk(statement)]
    return [node for node in within if isinstance(node, ast.stmt)]


def _head(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Match):
        cases = [ast.unparse(ast.match_case(case.pattern, case.guard, [])) for case in statement.cases]
        return " ".join([f"match {ast.unparse(statement.subject)}:", *(case.strip() for case in cases)])
    if not hasattr(statement, "body"):
        return ast.unparse(statement)
    alone = copy.copy(statement)
    for name in ("body", "orelse", "handlers", "finalbody"):
        if hasattr(alone, name):
            setattr(alone, name, [])
    return ast.unparse(alone).strip()


def changed_tree(path: Path, place: int) -> ast.Module:
    """The module with that change."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for number, (_, _, node, instead) in enumerate(_places(tree)):
        if number == place:
            _Swap(node, instead).put()
            return ast.fix_missing_locations(tree)
    raise ValueError(f"{path} has no place {place}")


Instead = tuple[str, object]
"""A field of a node, and what it becomes."""


class _Swap:
    """One field of a node for another value, and back."""

    def __init__(self, node: ast.AST, instead: Instead) -> None:
        self._node, (self._name, self._value) = node, instead
        self._before: object = None

    def put(self) -> None:
        if self._name == "ops":
            place, operator = self._value  # type: ignore[misc]
            self._before = list(self._node.ops)  # type: ignore[attr-defined]
            self._node.ops[place] = operator  # type: ignore[attr-defined]
            return
        self._before = getattr(self._node, self._name)
        setattr(self._node, self._name, self._value)

    def __enter__(self) -> None:
        self.put()

    def __exit__(self, *_: object) -> None:
        setattr(self._node, self._name, self._before)


def _places(tree: ast.Module) -> Iterator[tuple[str, ast.stmt, ast.AST, Instead]]:
    """(function, statement, node, what of it changes)."""
    for function, body in _functions(tree, ""):
        for statement in body:
            for innermost, node in _nodes(statement, statement):
                for instead in _instead(node):
                    yield function, innermost, node, instead


def _functions(node: ast.AST, within: str) -> Iterator[tuple[str, list[ast.stmt]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{within}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield within + child.name, child.body


def _nodes(node: ast.AST, statement: ast.stmt) -> Iterator[tuple[ast.stmt, ast.AST]]:
    """What a statement decides, in the order of the text, each with the innermost statement that it stands in."""
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert) or (
        isinstance(node, ast.keyword) and node.arg == "strict"
    ):
        return
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return  # a sign that there is nothing
    if isinstance(node, ast.stmt):
        statement = node
    yield statement, node
    left_alone = {"annotation", "returns", "decorator_list", "defaults", "kw_defaults", "args"}
    for name, value in ast.iter_fields(node):
        is_call = isinstance(node, ast.Call)
        if name in left_alone and not is_call:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.expr_context | ast.operator | ast.cmpop):
                yield from _nodes(child, statement)


def _instead(node: ast.AST) -> Iterator[Instead]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            other = COMPARED.get(type(operator))
            if other is not None:
                yield "ops", (place, other())
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in COMBINED:
        if not _is_text(node.value if isinstance(node, ast.AugAssign) else node.left):
            yield "op", COMBINED[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        yield "op", ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        yield "operand", ast.UnaryOp(op=type(node.op)(), operand=node.operand)  # taken back
    elif isinstance(node, ast.Constant):
        yield from _other_constants(node.value)


def _other_constants(value: object) -> Iterator[Instead]:
    if isinstance(value, bool):
        yield "value", not value
    elif isinstance(value, int) and value < MOST_CHANGED:
        yield "value", value + 1
        if value > 0:
            yield "value", value - 1


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
