"""Registers recorded by others, with verdicts that others gave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from checkers.kernels.columns import NONE, TYPES
from checkers.linearizable.operations import FUNCTIONS, ROWS, Operations, operations_by_key
from checkers.linearizable.search import LINEARIZABLE, NOT_LINEARIZABLE, search

FOREIGN = Path(__file__).parents[3] / "shared" / "histories"
LIMIT = 3_000_000

Event = tuple[str, str, str, str]
"""Process, type, f, value."""


def expected(folder: str) -> list[tuple[Path, str]]:
    table = FOREIGN / folder / "expected.tsv"
    if not table.exists():
        return []
    lines = [line.split("\t") for line in table.read_text().split("\n") if "\t" in line]
    return [(FOREIGN / folder / name, verdict) for name, verdict in lines if verdict in ("valid", "invalid")]


def register(events: Iterator[Event], initial: int | None) -> Operations:
    """Processes are renumbered after an indefinite outcome, and a read of nil without a value tells nothing."""
    columns: dict[str, list[object]] = {name: [] for name in ROWS.names}

    def add(process: int, kind: str, f: str, value: int, expects: int) -> None:
        index = len(columns["index"])
        row = (0, "r", index, process, TYPES.index(kind), FUNCTIONS.index(f), value, expects)
        for name, cell in zip(ROWS.names, row, strict=True):
            columns[name].append(cell)

    if initial is not None:
        add(9_999, "invoke", "write", initial, NONE)
        add(9_999, "ok", "write", initial, NONE)
    lives: dict[str, int] = {}
    for process, kind, f, text in events:
        numbers = [int(number) for number in re.findall(r"-?\d+", text)]
        logical = int(process) * 1_000 + lives.get(process, 0)
        if kind == "info":
            lives[process] = lives.get(process, 0) + 1
        if f == "cas":
            add(logical, kind, f, numbers[1] if numbers else NONE, numbers[0] if numbers else NONE)
        else:
            add(logical, kind, f, numbers[0] if numbers else NONE, NONE)
    return operations_by_key(pa.table(columns, schema=ROWS))[0][1]


def etcd_events(path: Path) -> Iterator[Event]:
    for line in path.read_text().splitlines():
        if match := re.search(r"(\d+)\s+:(invoke|ok|fail|info)\s+:(read|write|cas)\s+(.*)", line):
            yield match[1], match[2], match[3], match[4]


def knossos_events(path: Path) -> Iterator[Event]:
    text = re.sub(r";[^\n]*", "", path.read_text())
    for entry in re.findall(r"\{[^{}]*\}", text):
        found = [
            re.search(rf":{name} +({pattern})", entry)
            for name, pattern in (
                ("process", r"\d+"),
                ("type", r":\w+"),
                ("f", r":\w+"),
                ("value", r"\[[^\]]*\]|[-\w]+|nil"),
            )
        ]
        process, kind, f, value = (match[1].lstrip(":") if match else "" for match in found)
        if not process or f not in FUNCTIONS or (kind, f, value) == ("ok", "read", "nil"):
            continue
        yield process, kind, f, value


@pytest.mark.skipif(not FOREIGN.exists(), reason="no foreign histories beside the checkout")
@pytest.mark.parametrize(("path", "verdict"), expected("etcd"), ids=lambda value: getattr(value, "stem", value))
def test_etcd_registers_get_the_known_verdict(path: Path, verdict: str) -> None:
    found = search(register(etcd_events(path), None), limit=LIMIT)
    assert found.outcome == (LINEARIZABLE if verdict == "valid" else NOT_LINEARIZABLE)


@pytest.mark.skipif(not FOREIGN.exists(), reason="no foreign histories beside the checkout")
@pytest.mark.parametrize(("path", "verdict"), expected("knossos"), ids=lambda value: getattr(value, "stem", value))
def test_knossos_registers_get_the_verdict_of_knossos(path: Path, verdict: str) -> None:
    found = search(register(knossos_events(path), 0), limit=LIMIT)
    assert found.outcome == (LINEARIZABLE if verdict == "valid" else NOT_LINEARIZABLE)
