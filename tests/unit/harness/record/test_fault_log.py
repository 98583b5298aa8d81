"""The fault log: what the nemesis writes is read back, starts find their stops, and what is no row is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.record.fault_log import QUORUM, FaultLog, FaultWindow, kinds_of, read_fault_log
from harness.record.fault_row import FINAL_HEALING, FaultRow

KILL = FaultRow(
    time_ns=10,
    package="kill",
    number=1,
    starts=True,
    kind="kill",
    shape="kill one of brokers",
    nodes=("b1",),
    fault={"kind": "kill", "nodes": ["b1"]},
    happened=True,
    evidence="pid 17 is gone",
)
BOOT = replace(KILL, time_ns=30, starts=False, evidence="pid 18 runs")


def written(path: Path, *rows: FaultRow, torn: str = "") -> Path:
    path.write_text("".join(json.dumps(row.to_json()) + "\n" for row in rows) + torn)
    return path


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    assert FaultRow.from_json(json.loads(json.dumps(KILL.to_json()))) == KILL
    log = read_fault_log(written(tmp_path / "log.jsonl", KILL, BOOT, torn='{"time": 5, "ki'))
    assert log == FaultLog(
        windows=(
            FaultWindow(
                kind="kill",
                nodes=("b1",),
                start_ns=10,
                stop_ns=30,
                package="kill",
                shape="kill one of brokers",
                fault={"kind": "kill", "nodes": ["b1"]},
                evidence="pid 17 is gone",
                healing="pid 18 runs",
            ),
        )
    )
    assert log.windows[0].name == "kill one of brokers"


def test_a_run_without_faults_has_an_empty_log(tmp_path: Path) -> None:
    assert read_fault_log(tmp_path / "log.jsonl") == FaultLog()


def test_starts_are_paired_by_package_and_number() -> None:
    other = replace(KILL, number=2, time_ns=20, happened=False)
    again = replace(KILL, package="other", time_ns=25, kind="kill+pause", fault={"kind": "kill", "nodes": ["b2"]})
    log = FaultLog.of([KILL, other, again, BOOT])
    assert [(window.start_ns, window.stop_ns, window.is_stopped) for window in log.windows] == [
        (10, 30, True),
        (20, 30, False),
        (25, 30, False),
    ]
    assert [window.start_ns for window in log.struck] == [10, 25]
    assert kinds_of(log.struck) == ("kill", "pause")
    assert log.counts == {"kill": {"applied": 2, "with_effect": 1}, "kill+pause": {"applied": 1, "with_effect": 1}}
    assert log.unhealed == ("kill one of brokers (it was never stopped)",)


def test_progress_is_demanded_between_the_start_and_the_stop_of_the_quorum_fault() -> None:
    begun = replace(KILL, package=QUORUM, time_ns=50)
    assert FaultLog.of([KILL, BOOT]).progress_window is None
    assert FaultLog.of([begun]).progress_window is None
    assert FaultLog.of([begun, replace(begun, starts=False, time_ns=60)]).progress_window == (50, 60)


def test_of_faults_at_one_moment_each_kind_has_its_own_nodes() -> None:
    parts = [{"kind": "lost-disk", "nodes": ["b1"]}, {"kind": "slow-links", "links": [["b2", "c1"]]}]
    both = FaultWindow(
        kind="lost-disk+slow-links",
        nodes=("b1", "b2", "c1"),
        fault={"kind": "lost-disk+slow-links", "faults": parts},
        start_ns=0,
        stop_ns=1,
    )
    assert both.nodes_of("lost-disk") == both.down == ("b1",)
    assert both.nodes_of("kill") == ()
    assert FaultWindow(kind="power", nodes=("b1",), start_ns=0, stop_ns=1).nodes_of("power") == ("b1",)


def test_a_cut_around_one_node_was_aimed_at_it() -> None:
    links = [["b1", "b2"], ["b2", "b1"], ["b1", "b3"], ["b3", "b1"]]
    cut = {"kind": "partition", "links": links}
    window = FaultWindow(kind="partition", nodes=("b1", "b2", "b3"), start_ns=0, stop_ns=1, fault=cut)
    assert (window.aimed_at, window.down) == (("b1",), ())
    both = {"kind": "kill+partition", "faults": [cut, {"kind": "kill", "nodes": ["b3"]}]}
    assert (replace(window, fault=both).aimed_at, replace(window, fault=both).down) == (("b1", "b3"), ("b3",))
    one_link = replace(window, fault={"kind": "partition", "links": links[:2]})
    assert one_link.aimed_at == ("b1", "b2")
    assert FaultWindow(kind="power", nodes=("b1",), start_ns=0, stop_ns=1).down == ("b1",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"time": "1"}, "line 2 is no record of a fault"),
        ({"happened": 1}, "line 2 is no record of a fault"),
        ({"fault": []}, "line 2 is no record of a fault"),
        ({"shape": 5}, "line 2 is no record of a fault"),
        ({"targets": [1]}, "line 2 names targets that are no nodes"),
    ],
)
def test_what_is_no_row_is_refused_with_its_line(change: dict[str, object], words: str, tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", KILL, torn=json.dumps(KILL.to_json() | change) + "\n")
    with pytest.raises(UsageError, match=words):
        read_fault_log(path)


def test_what_only_the_final_healing_undid_was_left_to_the_end(tmp_path: Path) -> None:
    belated = replace(BOOT, time_ns=90, shape=FINAL_HEALING)
    kept = read_fault_log(written(tmp_path / "log.jsonl", KILL, belated))
    assert (kept.left_to_the_end, kept.unhealed) == (("kill one of brokers",), ())
    idle = replace(BOOT, happened=False)
    in_vain = read_fault_log(written(tmp_path / "log.jsonl", KILL, idle, belated))
    assert in_vain.left_to_the_end == ("kill one of brokers",)
    assert read_fault_log(written(tmp_path / "log.jsonl", KILL, BOOT)).left_to_the_end == ()
