"""Packages are aimed at what a system declares: lists for RocketMQ, and for systems of other kinds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import UsageError
from harness.system import Declaration
from nemesis.able import require_able
from nemesis.package import PACKAGES
from tests.unit.nemesis.systems import LEADERLESS, MEMO, ROCKETMQ, WORDS

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
links
1.5 cut link primary to active-controller
1.0 cut link primary to one of brokers
1.0 cut link primary to one of controllers
1.0 cut link active-controller to one of brokers
1.0 cut link active-controller to one of controllers
1.0 cut link one of all to one of all
0.75 cut link primary to active-controller one way
0.5 cut link primary to one of brokers one way
0.5 cut link primary to one of controllers one way
0.5 cut link active-controller to one of brokers one way
0.5 cut link active-controller to one of controllers one way
0.5 cut link one of all to one of all one way
0.75 cut link active-controller to primary one way
0.5 cut link one of brokers to primary one way
0.5 cut link one of controllers to primary one way
0.5 cut link one of brokers to active-controller one way
0.5 cut link one of controllers to active-controller one way
slow-links
3.0 slow links of primary
1.5 slow links of active-controller
1.5 slow links of one of brokers
1.0 slow links of minority of controllers
0.5 slow links of all
1.5 slow link primary to active-controller
1.0 slow link primary to one of brokers
1.0 slow link primary to one of controllers
1.0 slow link active-controller to one of brokers
1.0 slow link active-controller to one of controllers
1.0 slow link one of all to one of all
0.75 slow link primary to active-controller one way
0.5 slow link primary to one of brokers one way
0.5 slow link primary to one of controllers one way
0.5 slow link active-controller to one of brokers one way
0.5 slow link active-controller to one of controllers one way
0.5 slow link one of all to one of all one way
0.75 slow link active-controller to primary one way
0.5 slow link one of brokers to primary one way
0.5 slow link one of controllers to primary one way
0.5 slow link one of brokers to active-controller one way
0.5 slow link one of controllers to active-controller one way
disk
2.0 slow disks of primary
1.0 slow disks of active-controller
2.0 slow disks of one of brokers
1.0 slow disks of minority of controllers
2.0 fail fsyncs of primary
1.0 fail fsyncs of active-controller
2.0 fail fsyncs of one of brokers
1.0 fail fsyncs of minority of controllers
2.0 fail disks of primary
1.0 fail disks of active-controller
2.0 fail disks of one of brokers
1.0 fail disks of minority of controllers
2.0 fill disks of primary
1.0 fill disks of active-controller
2.0 fill disks of one of brokers
1.0 fill disks of minority of controllers
disk-damage
2.0 rot disks of primary
1.0 rot disks of active-controller
2.0 rot disks of one of brokers
1.0 rot disks of minority of controllers
2.0 cut files of primary
1.0 cut files of active-controller
2.0 cut files of one of brokers
1.0 cut files of minority of controllers
2.0 wipe disks of primary
1.0 wipe disks of active-controller
2.0 wipe disks of one of brokers
1.0 wipe disks of minority of controllers
2.0 roll back disks of primary
1.0 roll back disks of active-controller
2.0 roll back disks of one of brokers
1.0 roll back disks of minority of controllers
slow-nodes
2.0 slow down primary
1.0 slow down active-controller
2.0 slow down one of brokers
1.0 slow down minority of controllers
memory
2.0 exhaust memory of primary
1.0 exhaust memory of active-controller
2.0 exhaust memory of one of brokers
1.0 exhaust memory of minority of controllers
restarts
2.0 restart loop of primary
1.0 restart loop of active-controller
2.0 restart loop of one of brokers
1.0 restart loop of minority of controllers
1.5 rolling restart of brokers
1.5 rolling restart of controllers
strobe
2.0 strobe clocks of primary
1.0 strobe clocks of active-controller
2.0 strobe clocks of one of brokers
1.0 strobe clocks of minority of controllers
upgrades
3.0 upgrade one of brokers
3.0 upgrade one of controllers
1.0 upgrade brokers
1.0 upgrade controllers
membership
2.0 shrink active-controller
2.0 shrink one of controllers
1.0 wipe active-controller
1.0 wipe one of controllers
administration
1.0 administer more-queues
1.0 administer more-retry-queues
1.0 administer remade-groups
1.0 administer passing-topic
clients
2.0 isolate one of clients
1.0 isolate minority of clients
1.5 cut link one of clients to primary
1.0 cut link minority of clients to primary
1.0 cut link primary to one of clients one way
2.0 pause one of clients
1.0 pause minority of clients
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
links
1.0 cut link one of all to one of all
0.5 cut link one of all to one of all one way
slow-links
1.5 slow links of one of stores
0.5 slow links of all
1.0 slow link one of all to one of all
0.5 slow link one of all to one of all one way
disk
2.0 slow disks of one of stores
2.0 fail fsyncs of one of stores
2.0 fail disks of one of stores
2.0 fill disks of one of stores
disk-damage
2.0 rot disks of one of stores
2.0 cut files of one of stores
2.0 wipe disks of one of stores
2.0 roll back disks of one of stores
slow-nodes
2.0 slow down one of stores
memory
2.0 exhaust memory of one of stores
restarts
2.0 restart loop of one of stores
1.5 rolling restart of stores
1.5 rolling restart of gates
strobe
2.0 strobe clocks of one of stores
upgrades
3.0 upgrade one of stores
3.0 upgrade one of gates
1.0 upgrade stores
1.0 upgrade gates
clients
2.0 isolate one of clients
1.0 isolate minority of clients
2.0 pause one of clients
1.0 pause minority of clients
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
links
1.0 cut link primary to one of memos
1.0 cut link one of all to one of all
0.5 cut link primary to one of memos one way
0.5 cut link one of all to one of all one way
0.5 cut link one of memos to primary one way
slow-links
3.0 slow links of primary
1.5 slow links of one of memos
0.5 slow links of all
1.0 slow link primary to one of memos
1.0 slow link one of all to one of all
0.5 slow link primary to one of memos one way
0.5 slow link one of all to one of all one way
0.5 slow link one of memos to primary one way
disk
2.0 slow disks of primary
2.0 slow disks of one of memos
2.0 fail fsyncs of primary
2.0 fail fsyncs of one of memos
2.0 fail disks of primary
2.0 fail disks of one of memos
2.0 fill disks of primary
2.0 fill disks of one of memos
disk-damage
2.0 rot disks of primary
2.0 rot disks of one of memos
2.0 cut files of primary
2.0 cut files of one of memos
2.0 wipe disks of primary
2.0 wipe disks of one of memos
2.0 roll back disks of primary
2.0 roll back disks of one of memos
slow-nodes
2.0 slow down primary
2.0 slow down one of memos
memory
2.0 exhaust memory of primary
2.0 exhaust memory of one of memos
restarts
2.0 restart loop of primary
2.0 restart loop of one of memos
1.5 rolling restart of memos
strobe
2.0 strobe clocks of primary
2.0 strobe clocks of one of memos
upgrades
3.0 upgrade one of memos
1.0 upgrade memos
clients
2.0 isolate one of clients
1.0 isolate minority of clients
1.5 cut link one of clients to primary
1.0 cut link minority of clients to primary
1.0 cut link primary to one of clients one way
2.0 pause one of clients
1.0 pause minority of clients
"""


ALIKE = {
    "lossy-links": "lossy",
    "narrow-links": "narrow",
    "flapping-links": "flapping",
    "held-links": "hold",
    "duplicating-links": "duplicating",
    "corrupting-links": "corrupting",
    "reordering-links": "reordering",
    "reset": "reset",
}
"""Packages whose shapes are those of `slow-links` with another verb."""


def listed(system: Declaration) -> str:
    lines = []
    for name, make in PACKAGES.items():
        package = make(system)
        if name in ALIKE:
            continue
        assert package.name == name
        needed = {
            "membership": system.elastic,
            "administration": system.acts,
            "misdirected-writes": system.verifies_reads,
        }
        if not needed.get(name, True):
            assert package.shapes == ()
            continue
        assert "+".join(sorted({shape.kind for _, shape in package.shapes})) == package.fault
        lines += [name, *(f"{weight} {shape}" for weight, shape in package.shapes)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("system", "shapes"),
    [(ROCKETMQ, OF_ROCKETMQ), (LEADERLESS, OF_A_LEADERLESS_SYSTEM), (MEMO, OF_MEMO)],
    ids=["rocketmq", "leaderless", "memo"],
)
def test_packages_strike_what_the_system_declares(system: Declaration, shapes: str) -> None:
    assert listed(system) == shapes.strip()


def test_who_holds_no_data_is_cut_off_from_those_through_whom_it_works() -> None:
    gate = Declaration(
        groups=("stores", "gates", "names"), data=("stores",), roles={"owner": "gates", "first-name": "names"}
    )
    apart = [str(shape) for _, shape in PACKAGES["partition"](gate).shapes if str(shape).startswith("owner apart")]
    assert apart == [
        "owner apart from gates",
        "owner apart from names",
        "owner apart from majority of stores",
        "owner apart from minority of stores",
    ]


@pytest.mark.parametrize("system", [ROCKETMQ, LEADERLESS, MEMO, Declaration()])
def test_links_are_impaired_in_the_same_places_whatever_is_wrong_with_them(system: Declaration) -> None:
    slow = [(weight, str(shape)) for weight, shape in PACKAGES["slow-links"](system).shapes]
    for name, verb in ALIKE.items():
        package = PACKAGES[name](system)
        assert {shape.kind for _, shape in package.shapes} == {package.fault} == {package.name}
        assert [(weight, str(shape)) for weight, shape in package.shapes] == [
            (weight, text.replace("slow link", f"{verb} link")) for weight, text in slow
        ]


def test_a_system_that_declares_nothing_is_struck_as_a_whole() -> None:
    assert "2.0 pause one of all" in listed(Declaration())


@pytest.mark.parametrize("at_once", [1, 2])
def test_all_of_a_group_are_asked_to_leave_only_where_several_may_be_out(at_once: int) -> None:
    package = PACKAGES["membership"](replace(ROCKETMQ, elastic_at_once=at_once))
    assert ("shrink controllers" in [str(shape) for _, shape in package.shapes]) is (at_once > 1)
    require_able(package, "rocketmq", ROCKETMQ, WORDS)


def test_writes_are_misdirected_only_where_nodes_notice() -> None:
    declared = Declaration(
        groups=("bookies", "brokers", "voters"),
        data=("bookies", "voters"),
        voters=("voters",),
        roles={"owner": "brokers", "auditor": "bookies"},
        verifies_reads=("bookies",),
    )
    package = PACKAGES["misdirected-writes"](declared)
    assert [str(shape) for _, shape in package.shapes] == [
        "misdirect writes of auditor",
        "misdirect writes of one of bookies",
    ]
    require_able(package, "ledgers", declared, WORDS)
    for system in (ROCKETMQ, declared.serving_alone("log").of_groups(("voters",))):
        none = PACKAGES["misdirected-writes"](system)
        assert none.shapes == ()
        with pytest.raises(UsageError, match=r"declare which of their nodes would notice .* 'misdirect writes of all"):
            require_able(none, "system", system, WORDS)


@pytest.mark.parametrize(
    "field",
    [
        {"data": ("b",)},
        {"voters": ("b",)},
        {"elastic": ("b",)},
        {"verifies_reads": ("b",)},
        {"roles": {"leader": "b"}},
    ],
)
def test_a_group_that_is_not_declared_is_refused(field: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="declares no group 'b'; it declares: a"):
        Declaration(groups=("a",), **field)  # type: ignore[arg-type]
