"""What nodes held of their machines is told by quarters, which neither peaks nor restarts change."""

from __future__ import annotations

import json
from pathlib import Path

from harness.record.usage_log import UsageRow, quarters_of, read_usage


def rows(node: str, memory: list[int]) -> list[UsageRow]:
    return [
        UsageRow(time_ns=number, node=node, memory_bytes=held, handles=held // 10) for number, held in enumerate(memory)
    ]


def test_quarters_are_medians_of_the_beginning_and_of_the_end() -> None:
    grows = [100, 900, 100, 200, 200, 200, 200, 200, 200, 300, 300, 0]
    found = quarters_of([*rows("b2", grows), *rows("b1", [50] * 4), *rows("b3", [1, 2, 3])])
    assert list(found) == ["b1", "b2"], "three samples have no quarters"
    assert found["b2"].memory_bytes == (100, 300)
    assert found["b2"].handles == (10, 30)
    assert found["b1"].samples == 4


def test_what_was_written_is_read_and_a_torn_line_is_left_out(tmp_path: Path) -> None:
    path, written = tmp_path / "usage.jsonl", rows("b1", [10, 20])
    assert read_usage(path) == ()
    lines = [json.dumps(row.to_json()) for row in written]
    path.write_text("\n".join([*lines, '{"time": 3, "node": "b1", "mem', '{"time": "3"}']), encoding="utf-8")
    assert read_usage(path) == tuple(written)
