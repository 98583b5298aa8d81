"""Random histories of registers, some of them wrong."""

from __future__ import annotations

import random
from typing import Any

Row = dict[str, Any]


def random_register_rows(rng: random.Random, *, registers: int) -> list[Row]:
    """Rows of all registers; each has four processes of its own, and values that repeat in every second one."""
    rows: list[Row] = []
    for number in range(registers):
        rows += _register(rng, f"r{number}", first_process=number * 1_000, repeats=number % 2 == 0)
    return rows


def _register(rng: random.Random, key: str, *, first_process: int, repeats: bool) -> list[Row]:
    rows: list[Row] = []
    open_rows: dict[int, Row] = {}
    lives = [0, 0, 0, 0]
    value: int | None = None
    written: list[int | None] = [None]
    lies = rng.random() < 0.5

    def complete(place: int) -> None:
        row = open_rows.pop(place)
        rows.append(row)
        lives[place] += row["type"] == "info"

    for step in range(1, rng.randint(4, 14)):
        place = rng.randrange(4)
        if place in open_rows:
            complete(place)
        f = rng.choice(("read", "read", "write", "cas"))
        fresh = rng.randint(1, 3) if repeats else step
        expected = rng.choice([v for v in written if v is not None] or [1])
        kind = "ok" if rng.random() < 0.8 else "info"
        content: Row = {"value": fresh}
        if f == "read":
            content = {"value": rng.choice(written) if lies and rng.random() < 0.5 else value}
        elif f == "cas":
            content = {"value": fresh, "expected": expected}
            kind = kind if value == expected else "fail"
        if f != "read" and kind != "fail":
            value = fresh
            written.append(fresh)
        row = {"process": first_process + 4 * lives[place] + place, "f": f, "key": key}
        rows.append(row | {"type": "invoke", "value": {} if f == "read" else content})
        open_rows[place] = row | {"type": kind, "value": content}
    for place in sorted(open_rows):
        complete(place)
    return rows
