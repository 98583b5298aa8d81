"""Faults of a foreign nemesis, from its rows as Jepsen's own write them."""

from __future__ import annotations

from typing import Any

import pytest

from harness.jepsen.beside import NemesisAct
from harness.jepsen.edn import parse
from harness.jepsen.nemesis_faults import fault_rows
from harness.record.fault_log import FaultLog


def faults(*acts: tuple[str, str]) -> list[tuple[Any, ...]]:
    """(kind, nodes, from, to, whether something ended it) of acts at 0, 1, 2 …"""
    rows = fault_rows([NemesisAct(time_ns=time, f=f, value=parse(value)) for time, (f, value) in enumerate(acts)])
    windows = FaultLog.of(rows).windows
    return [(one.kind, one.nodes, one.start_ns, one.stop_ns, one.is_stopped) for one in windows]


@pytest.mark.parametrize(
    ("acts", "expected"),
    [
        (
            [
                ("start-partition", ":majority"),
                ("start-partition", '[:isolated {"n1" #{"n2"}}]'),
                ("stop-partition", "nil"),
                ("stop-partition", ":network-healed"),
            ],
            [("partition", (), 0, 3, True)],
        ),
        (
            [("start", "nil"), ("start", '"Cut off {n1 [n2]}"'), ("stop", "nil"), ("stop", '"fully connected"')],
            [("partition", (), 0, 3, True)],
        ),
        (
            [
                ("kill", ":one"),
                ("kill", '{"n2" :killed}'),
                ("pause", '["n1"]'),
                ("pause", '{"n1" :paused}'),
                ("start", ":all"),
                ("start", '{"n1" :started, "n2" :started}'),
                ("resume", ":all"),
                ("resume", '{"n1" :resumed}'),
            ],
            [("kill", ("n2",), 0, 5, True), ("pause", ("n1",), 2, 7, True)],
        ),
        ([("start", "nil"), ("stop", "nil")], [("fault", (), 0, 1, True)]),
        ([("stop", '["n1"]'), ("start", '["n1"]')], [("kill", ("n1",), 0, 1, True)]),
        (
            [("kill", '["n1"]'), ("x", "1"), ("kill", '["n2"]'), ("y", "2"), ("start", '["n2"]')],
            [
                ("kill", ("n1",), 0, 4, False),
                ("x", (), 1, 1, True),
                ("kill", ("n2",), 2, 4, True),
                ("y", (), 3, 3, True),
            ],
        ),
        (
            [("bump-clock", '{"n1" 9}'), ("bump-clock", '{"n1" 9}'), ("reset-clock", "nil"), ("reset-clock", "nil")],
            [("clock", ("n1",), 0, 3, True)],
        ),
        ([("bitflip", '{"n1" {}}'), ("bitflip", "nil")], [("bitflip", ("n1",), 0, 1, True)]),
        ([("start-packet", ":all"), ("start-packet", ":shaped")], [("packet", (), 0, 0, False)]),
        ([], []),
    ],
)
def test_acts_become_faults_from_their_start_to_what_ends_them(
    acts: list[tuple[str, str]], expected: list[tuple[Any, ...]]
) -> None:
    assert faults(*acts) == expected


def test_what_was_asked_and_what_was_done_are_shown_as_they_come() -> None:
    (row, _) = fault_rows(
        [
            NemesisAct(time_ns=1, f="start-partition", value=parse(":majority")),
            NemesisAct(time_ns=2, f="start-partition", value=parse('{"n1" #{"n2"}}')),
            NemesisAct(time_ns=3, f="stop-partition", value=None),
        ]
    )
    assert (row.shape, row.evidence) == ("start-partition :majority", '{:n1 #{"n2"}}')
