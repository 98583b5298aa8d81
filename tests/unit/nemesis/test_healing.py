"""A fault that had an effect must be undone: by its own stop, or by another fault that leaves nothing of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.environments.environment import Link
from harness.environments.impairment import BitRot, SlowDisk
from harness.record.fault_row import FaultRow
from harness.record.healing import unhealed
from nemesis.fault import ClockSkew, Compound, Fault, ImpairedNodes, Kill, Partition, Pause, PowerLoss, Restart, Skew

Step = tuple[str, int, Fault, bool]
"""start or stop, the number of the fault, it, and whether that had an effect."""

B1 = Kill(nodes=("b1",))
BOTH = Kill(nodes=("b1", "b2"))
CUT = Partition(links=(Link("b1", "b2"), Link("b2", "b1")))
ONE_WAY = Partition(links=(Link("b1", "b2"),))
SKEWED = ClockSkew(skews=(Skew("b1", 3.0, 1.0),))

ROTTEN = ImpairedNodes(nodes=("b1",), impairment=BitRot(bits=1, draw=1))
SLOW = ImpairedNodes(nodes=("b1",), impairment=SlowDisk(factor=9.0))


def rows(*steps: Step) -> list[FaultRow]:
    return [
        FaultRow(
            time_ns=time,
            package=fault.kind,
            number=number,
            starts=phase == "start",
            kind=fault.kind,
            nodes=fault.nodes,
            fault=fault.to_json(),
            happened=happened,
            evidence="read back",
        )
        for time, (phase, number, fault, happened) in enumerate(steps)
    ]


@pytest.mark.parametrize(
    "steps",
    [
        [("start", 0, B1, True), ("stop", 0, B1, True)],
        [("start", 0, B1, False), ("stop", 0, B1, False)],
        [("start", 0, B1, False)],
        [("start", 0, Restart(nodes=("b1",)), True), ("stop", 0, Restart(nodes=("b1",)), False)],
        [("start", 0, Restart(nodes=("b1",)), True)],
        # A restart started the node that another fault had killed.
        [("start", 0, B1, True), ("start", 1, Restart(nodes=("b1", "b2")), True), ("stop", 0, B1, False)],
        # The other one's stop started both; this one's came too late.
        [("start", 0, B1, True), ("start", 1, BOTH, True), ("stop", 1, BOTH, True), ("stop", 0, B1, False)],
        # A process that is killed is paused no more.
        [
            ("start", 0, Pause(nodes=("b1",)), True),
            ("start", 1, PowerLoss(nodes=("b1",)), True),
            ("stop", 0, Pause(nodes=("b1",)), False),
            ("stop", 1, PowerLoss(nodes=("b1",)), True),
        ],
        # What another partition holds is opened by that one's stop.
        [
            ("start", 0, ONE_WAY, True),
            ("start", 1, CUT, True),
            ("stop", 0, ONE_WAY, False),
            ("stop", 1, CUT, True),
        ],
        # A clock that another fault has set since is set right by that one's stop.
        [("start", 0, SKEWED, True), ("start", 1, SKEWED, True), ("stop", 0, SKEWED, False), ("stop", 1, SKEWED, True)],
        [("start", 0, Compound((B1, CUT)), True), ("stop", 0, Compound((B1, CUT)), True)],
        # What has rotted stays so.
        [("start", 0, ROTTEN, True), ("stop", 0, ROTTEN, False)],
        [("start", 0, SLOW, True), ("start", 1, SLOW, True), ("stop", 0, SLOW, True), ("stop", 1, SLOW, True)],
    ],
)
def test_what_was_undone_is_healed(steps: list[Step]) -> None:
    assert unhealed(rows(*steps)) == ()


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([("start", 0, B1, True)], ["kill b1 (it was never stopped)"]),
        ([("start", 0, B1, True), ("stop", 0, B1, False)], ["kill b1 (its stop had no effect: read back)"]),
        # The restart was of another node.
        (
            [("start", 0, B1, True), ("start", 1, Restart(nodes=("b2",)), True), ("stop", 0, B1, False)],
            ["kill b1 (its stop had no effect: read back)"],
        ),
        # It came before.
        (
            [("start", 1, Restart(nodes=("b1",)), True), ("start", 0, B1, True), ("stop", 0, B1, False)],
            ["kill b1 (its stop had no effect: read back)"],
        ),
        # Only one of two nodes was started by another fault.
        (
            [("start", 0, BOTH, True), ("start", 1, Restart(nodes=("b1",)), True), ("stop", 0, BOTH, False)],
            ["kill b1 b2 (its stop had no effect: read back)"],
        ),
        # Neither of the two partitions was healed.
        (
            [("start", 0, ONE_WAY, True), ("start", 1, CUT, True), ("stop", 0, ONE_WAY, False)],
            ["partition b1 b2 (its stop had no effect: read back)", "partition b1 b2 (it was never stopped)"],
        ),
        # The stop of one leaves alone what the other holds.
        (
            [("start", 0, ONE_WAY, True), ("start", 1, CUT, True), ("stop", 1, CUT, True)],
            ["partition b1 b2 (it was never stopped)"],
        ),
        # Of two that are alike one is left.
        (
            [("start", 0, SLOW, True), ("start", 1, SLOW, True), ("stop", 0, SLOW, True), ("stop", 1, SLOW, False)],
            ["slow-disk b1 (its stop had no effect: read back)"],
        ),
        # The stop of the one that came later went back to what the other has set.
        (
            [("start", 0, SKEWED, True), ("start", 1, SKEWED, True), ("stop", 1, SKEWED, True)],
            ["clock b1 (it was never stopped)"],
        ),
        ([("start", 0, SKEWED, True), ("stop", 0, SKEWED, False)], ["clock b1 (its stop had no effect: read back)"]),
        (
            [("start", 0, Compound((B1, CUT)), True), ("stop", 0, Compound((B1, CUT)), False)],
            ["kill+partition b1 b2 (its stop had no effect: read back)"],
        ),
    ],
)
def test_what_nothing_undid_is_named(steps: list[Step], words: list[str]) -> None:
    assert list(unhealed(rows(*steps))) == words


def test_a_fault_of_an_unknown_kind_is_healed_by_its_own_stop_alone() -> None:
    (start, stop) = rows(("start", 0, B1, True), ("stop", 0, B1, True))
    begun = replace(start, package="meteor", kind="meteor", fault={"kind": "meteor", "size": 3})
    ended = replace(begun, time_ns=1, starts=False)
    assert unhealed([begun, ended]) == ()
    assert unhealed([begun, stop]) == ("meteor b1 (it was never stopped)",)
    assert unhealed([begun, replace(ended, happened=False)]) != ()
