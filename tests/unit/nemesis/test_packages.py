"""Packages are aimed at what a system declares: lists for RocketMQ, and for systems of other kinds."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.system import Declaration
from nemesis.package import PACKAGES
from tests.unit.nemesis.systems import LEADERLESS, MEMO, ROCKETMQ

OF_ROCKETMQ = """
partition
3.0 isolate primary
1.0 isolate primary with one of controllers
1.0 isolate primary with one of brokers
1.5 isolate active-controller
1.0 isolate active-controller with one of brokers
1.5 isolate one of brokers
1.0 isolate minority of controllers
1.0 one way around primary
1.0 one way around one of all
1.0 brokers apart from controllers
1.0 primary apart from brokers
0.7 random halves
0.7 bridge in controllers
0.5 majorities ring of brokers
kill
3.0 kill primary
1.5 kill active-controller
2.0 kill one of brokers
1.0 kill majority of brokers
1.0 kill minority of controllers
0.5 kill majority of controllers
0.7 kill brokers
0.3 kill all
pause
3.0 pause primary
1.5 pause active-controller
2.0 pause one of brokers
1.0 pause majority of brokers
1.0 pause minority of controllers
clock
2.0 skew clocks of primary
1.0 skew clocks of active-controller
2.0 skew clocks of one of all
1.0 skew clocks of minority of all
1.0 skew clocks of all
power
3.0 power off primary
1.5 power off active-controller
2.0 power off one of brokers
1.0 power off minority of controllers
1.0 power off controllers
0.5 power off brokers
"""
OF_A_LEADERLESS_SYSTEM = """
partition
1.5 isolate one of stores
1.0 one way around one of all
1.0 stores apart from gates
0.7 random halves
0.5 majorities ring of stores
kill
2.0 kill one of stores
1.0 kill majority of stores
0.7 kill stores
0.3 kill all
pause
2.0 pause one of stores
1.0 pause majority of stores
clock
2.0 skew clocks of one of all
1.0 skew clocks of minority of all
1.0 skew clocks of all
power
2.0 power off one of stores
0.5 power off stores
"""
OF_MEMO = """
partition
3.0 isolate primary
1.0 isolate primary with one of memos
1.5 isolate one of memos
1.0 one way around primary
1.0 one way around one of all
1.0 primary apart from memos
0.7 random halves
0.5 majorities ring of memos
kill
3.0 kill primary
2.0 kill one of memos
1.0 kill majority of memos
0.7 kill memos
0.3 kill all
pause
3.0 pause primary
2.0 pause one of memos
1.0 pause majority of memos
clock
2.0 skew clocks of primary
2.0 skew clocks of one of all
1.0 skew clocks of minority of all
1.0 skew clocks of all
power
3.0 power off primary
2.0 power off one of memos
0.5 power off memos
"""


def listed(system: Declaration) -> str:
    lines = []
    for name, make in PACKAGES.items():
        package = make(system)
        assert package.name == name
        assert {shape.kind for _, shape in package.shapes} == {package.fault}
        lines += [name, *(f"{weight} {shape}" for weight, shape in package.shapes)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("system", "shapes"),
    [(ROCKETMQ, OF_ROCKETMQ), (LEADERLESS, OF_A_LEADERLESS_SYSTEM), (MEMO, OF_MEMO)],
    ids=["rocketmq", "leaderless", "memo"],
)
def test_packages_strike_what_the_system_declares(system: Declaration, shapes: str) -> None:
    assert listed(system) == shapes.strip()


def test_a_system_that_declares_nothing_is_struck_as_a_whole() -> None:
    assert "2.0 pause one of all" in listed(Declaration())


@pytest.mark.parametrize("field", [{"data": ("b",)}, {"voters": ("b",)}, {"roles": {"leader": "b"}}])
def test_a_group_that_is_not_declared_is_refused(field: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="declares no group 'b'; it declares: a"):
        Declaration(groups=("a",), **field)  # type: ignore[arg-type]
