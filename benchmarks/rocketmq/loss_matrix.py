"""What each deployment of `rocketmq` loses under which fault, measured against what the table of legal losses tells.

For each row (a deployment with its flush mode) and column (one fault, struck again and again at the node that matters
most, never two at a time) some storms are blown in the simulator. A cell says what is told, in how many storms
acknowledged messages were lost (`lost`), and in how many messages were read that are gone (`dirty`):

    V   nothing may be lost           L   losses are legal             DR   told that dirty reads are legal as well
    L2  legal only under a second fault that overlaps: none does here, so nothing may be lost either

A loss in a cell V or L2, or a storm that is judged INVALID, is a failure, and the exit code is then 1. That nothing is
lost in a cell L proves nothing, and is none. Loss here means that no replica shows the message in the final reads: what
a slave keeps beside its log (dual write, asynchronous flush, power) counts as lost at the master, and is told as L.

python benchmarks/rocketmq/loss_matrix.py [--seeds 3] [--seconds 12] [--only TEXT]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario, SettingValue
from stormproof.search.storm import blown_and_judged
from stormproof.session import registry

COLUMNS: Mapping[str, str] = {
    "kill": "kill primary every 5 for 1",
    "power, 1": "power off primary every 5 for 1",
    "power, all": "power off brokers every 5 for 1",
    "partition": "isolate primary every 5 for 2",
    "disk, 1": "wipe disks of primary every {seconds:g} for 1",
}
LOST = ("lost-write", "unseen")
SINGLE: Mapping[str, SettingValue] = {"deployment": "single"}
SLAVES: Mapping[str, SettingValue] = {"deployment": "async-slaves", "brokers": 2}
DUAL: Mapping[str, SettingValue] = {"deployment": "dual-write", "brokers": 2}
ASYNC: Mapping[str, SettingValue] = {"flush": "async"}
ONE_ACK: Mapping[str, SettingValue] = {"all_ack": False, "min_in_sync_replicas": 1}
TWO_OF_TWO: Mapping[str, SettingValue] = {"all_ack": False, "brokers": 2, "in_sync_replicas": 2}
TWO_OF_THREE: Mapping[str, SettingValue] = {"all_ack": False, "in_sync_replicas": 2}


@dataclass(frozen=True, kw_only=True)
class Row:
    name: str
    settings: Mapping[str, SettingValue]
    expected: tuple[str, ...]
    """By column."""


ROWS = (
    Row(name="single, async flush", settings={**SINGLE, **ASYNC}, expected=("V", "L", "L", "V", "L")),
    Row(name="single, sync flush", settings=SINGLE, expected=("V", "V", "V", "V", "L")),
    Row(name="master/slave, async flush", settings={**SLAVES, **ASYNC}, expected=("V", "L", "L", "V", "L")),
    Row(name="master/slave, sync flush", settings=SLAVES, expected=("V", "V", "V", "V", "L")),
    Row(name="dual write, async flush", settings={**DUAL, **ASYNC}, expected=("V", "L", "L", "V", "V")),
    Row(name="dual write, sync flush", settings=DUAL, expected=("V", "V", "V", "V", "V")),
    Row(name="inSyncReplicas=1", settings=ONE_ACK, expected=("L", "L", "L DR", "L", "L")),
    Row(name="inSyncReplicas=2 of 2, async", settings={**TWO_OF_TWO, **ASYNC}, expected=("V", "L", "L", "V", "V")),
    Row(name="inSyncReplicas=2 of 2, sync", settings=TWO_OF_TWO, expected=("V", "L2", "L", "V", "V")),
    Row(name="inSyncReplicas=2 of 3", settings=TWO_OF_THREE, expected=("L", "L", "L", "L", "L")),
    Row(
        name="allAck, min 1, async flush",
        settings={"min_in_sync_replicas": 1, **ASYNC},
        expected=("V", "L", "L", "V", "L2"),
    ),
    Row(name="allAck, min 1, sync flush", settings={"min_in_sync_replicas": 1}, expected=("V", "L2", "L", "V", "L2")),
    Row(name="allAck, min 2, async flush", settings=ASYNC, expected=("V", "L2", "L", "V", "V")),
    Row(name="allAck, min 2, sync flush", settings={}, expected=("V", "L2", "L", "V", "V")),
    Row(name="unclean election", settings={"unclean_election": True}, expected=("L",) * 5),
)


@dataclass
class Cell:
    expected: str
    storms: int = 0
    """In which the fault struck."""
    lost: int = 0
    dirty: int = 0
    invalid: list[int] = field(default_factory=list)
    """Seeds."""

    @property
    def failed(self) -> bool:
        """Whether what is told was broken."""
        return bool(self.invalid) or (self.lost > 0 and not self.expected.startswith("L ") and self.expected != "L")

    def __str__(self) -> str:
        measured = f"{self.lost}/{self.storms} lost" + (f", {self.dirty} dirty" if self.dirty else "")
        return f"{self.expected}: {measured}{' FAILED' if self.failed else ''}"


def measured(row: Row, column: str, expected: str, seeds: range, seconds: float) -> Cell:
    cell = Cell(expected)
    for seed in seeds:
        scenario = Scenario(
            system="rocketmq",
            workload="log",
            settings=row.settings,
            nemesis=(COLUMNS[column].format(seconds=seconds),),
            rate=100,
            time_limit_s=seconds,
            recovery_s=8,
            seed=seed,
        )
        storm = blown_and_judged(scenario, registry.resolve(scenario))
        found = storm.results["log"].anomalies
        cell.storms += bool(storm.blown.faults.struck)
        cell.lost += any(name in found for name in LOST)
        cell.dirty += "dirty-read" in found
        if storm.verdict is Verdict.INVALID:
            cell.invalid.append(seed)
            print(f"  {row.name}, {column}, seed {seed}: {storm.words()}", file=sys.stderr)
    return cell


def table(rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    lines = [("", list(COLUMNS)), *rows]
    widths = [max(len(name) for name, _ in lines)]
    widths += [max(len(cells[i]) for _, cells in lines) for i in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip((name, *cells), widths, strict=True)).rstrip()
        for name, cells in lines
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="storms a cell")
    parser.add_argument("--seconds", type=float, default=12.0, help="of each storm")
    parser.add_argument("--only", default="", help="rows whose names have this in them")
    chosen = parser.parse_args()
    started = time.process_time()
    rows, failures = [], 0
    for row in (row for row in ROWS if chosen.only in row.name):
        cells = [
            measured(row, column, told, range(chosen.seeds), chosen.seconds)
            for column, told in zip(COLUMNS, row.expected, strict=True)
        ]
        failures += sum(cell.failed for cell in cells)
        rows.append((row.name, [str(cell) for cell in cells]))
        print(table(rows[-1:]).splitlines()[1], flush=True)
    print(f"\n{table(rows)}\n\n{failures} cells failed, {time.process_time() - started:.0f} s of processor time")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
