"""The points that the adapter declares are those that the code of the nodes names, each in one place."""

from __future__ import annotations

from pathlib import Path

import system_under_test
from tests.references.points_in_code import named, points_in
from workloads.systems.dledger.points import POINTS as OF_MEMBERS
from workloads.systems.rocketmq.points import OF_DLEDGER, POINTS

MOST_WORDS = 30
OF_OTHERS = ("bookkeeper", "cmq", "dledger", "metadata")
"""Rooms whose points are not those of RocketMQ."""


def test_constants_are_found_wherever_a_point_is_reached() -> None:
    code = 'host.reached("a")\nself._host.reached("b" if wet else "c")\nhost.reached(word)\nreached("d")\n'
    code += 'def _reached(self, point):\n    self._host.reached(point)\nself._reached("e")\n'
    assert list(named(code)) == ["a", "b", "c", "no constant in line 3", "e"]


def test_the_points_declared_are_those_of_the_code_each_in_one_place() -> None:
    root = Path(system_under_test.__path__[0])
    found = points_in(file for file in sorted(root.rglob("*.py")) if file.relative_to(root).parts[0] not in OF_OTHERS)
    assert set(found) == set(POINTS)
    assert set(OF_DLEDGER) < {*POINTS, *OF_MEMBERS}
    assert {point: count for point, count in found.items() if count > 1} == {}


def test_every_point_says_in_a_line_what_it_means() -> None:
    for point, meaning in POINTS.items():
        assert 3 < len(meaning.split()) < MOST_WORDS, point
    assert len(set(POINTS.values())) == len(POINTS)
