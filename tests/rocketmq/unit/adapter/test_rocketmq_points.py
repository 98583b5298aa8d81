"""The points that the adapter declares are those that the code of the nodes names, each in one place."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import system_under_test
from workloads.systems.rocketmq.points import POINTS

MOST_WORDS = 30


def named(source: str) -> Iterator[str]:
    """The constants that calls of `reached` are given; one that is no constant is named by its place."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reached":
            (given,) = node.args
            for one in (given.body, given.orelse) if isinstance(given, ast.IfExp) else (given,):
                yield one.value if isinstance(one, ast.Constant) else f"no constant in line {node.lineno}"


def test_constants_are_found_wherever_a_point_is_reached() -> None:
    code = 'host.reached("a")\nself._host.reached("b" if wet else "c")\nhost.reached(word)\nreached("d")\n'
    assert list(named(code)) == ["a", "b", "c", "no constant in line 3"]


def test_the_points_declared_are_those_of_the_code_each_in_one_place() -> None:
    files = sorted(Path(system_under_test.__path__[0]).rglob("*.py"))
    found = Counter(point for file in files if "mutants" not in file.parts for point in named(file.read_text()))
    assert set(found) == set(POINTS)
    assert {point: count for point, count in found.items() if count > 1} == {}


def test_every_point_says_in_a_line_what_it_means() -> None:
    for point, meaning in POINTS.items():
        assert 3 < len(meaning.split()) < MOST_WORDS, point
    assert len(set(POINTS.values())) == len(POINTS)
