"""Small drawn histories of every workload and every object, as the files under tests/histories are read."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from checkers.linearizable.objects import MODELS
from tests.references.consumption_histories import random_consumption
from tests.references.content_histories import made_up_contents
from tests.references.delay_histories import random_delays
from tests.references.element_histories import random_bank
from tests.references.history_language import WrittenHistory
from tests.references.list_histories import random_lists
from tests.references.log_histories import random_history
from tests.references.log_transactions import random_transactions
from tests.references.map_histories import made_up_entry
from tests.references.object_histories import made_up
from tests.references.pop_histories import random_pops
from tests.references.pop_order_histories import random_ordered_pops
from tests.references.queue_histories import made_up_rows
from tests.references.register_histories import random_register_rows
from tests.references.transaction_histories import history_rows, random_registers
from tests.references.workload_cases import CASES

Row = dict[str, Any]
Drawn = Callable[[random.Random], list[Row]]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How histories of one kind are drawn, and what they are judged for."""

    checker: str
    rows: Drawn
    model: str = ""
    options: dict[str, str] = field(default_factory=dict)

    def drawn(self, seed: int) -> WrittenHistory:
        rng = random.Random(f"{self.checker} {self.model} {self.options} {seed}")
        rows = [_complete(row, self.checker == "object") for row in self.rows(rng)]
        return WrittenHistory(
            source=f"seed {seed}",
            checker=self.checker,
            model=self.model,
            verdict="",
            anomalies=(),
            options=self.options,
            demands={},
            bounds={},
            operations=None,
            rows=rows,
        )


def _complete(row: Row, is_object: bool) -> Row:
    value = row["value"]
    if is_object:
        value = {"json": None if value is None else json.dumps(value)}
    blank = {"key": None, "error": None, "node": None}
    return blank | {name: cell for name, cell in row.items() if name != "index"} | {"value": value}


def _spans(rows: list[Row]) -> list[Row]:
    """Delayed messages whose sends say for how long."""
    names = {"send": "enqueue", "take-back": "take-back", "deliver": "dequeue"}
    return [row | {"f": names[row["f"]], "value": _spanned(row["value"])} for row in rows]


def _spanned(value: Row | None) -> Row | None:
    if value is None:
        return None
    return {"value": value.get("message"), "delay_ms": 40 if "due" in value else None, "values": value.get("messages")}


def _locks(rng: random.Random, *, fencing: bool) -> list[Row]:
    """Of two locks, which are now and then given to two at once."""
    rows: list[Row] = []
    for lock in range(2):
        held: list[tuple[int, int]] = []
        token = 0
        for _ in range(6):
            process = 100 * lock + rng.randrange(3)
            mine = [one for one in held if one[0] == process]
            f = "release" if mine else "acquire"
            ended = "ok" if mine or not held or rng.random() < 0.1 else "fail"
            token += rng.choice((1, 1, 2)) if rng.random() < 0.9 else 0
            shown = (mine[0][1] if mine else token) if fencing else None
            if ended == "ok":
                held = [one for one in held if one[0] != process] + [(process, token)] * (f == "acquire")
            row = {"process": process, "f": f, "key": f"l{lock}"}
            rows.append(row | {"type": "invoke", "value": {"value": shown if mine else None}})
            rows.append(row | {"type": ended, "value": {"value": shown if ended == "ok" else None}})
    return rows


def _unacked(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["f"] != "ack"]


def _registers(rng: random.Random) -> list[Row]:
    return random_register_rows(rng, registers=rng.randint(1, 2))


def _bank(rng: random.Random) -> list[Row]:
    return random_bank(rng.randrange(10**6))[0][:12]


def _objects(name: str) -> Drawn:
    return lambda rng: made_up(MODELS[name], rng, rng.randint(1, 8))


def _queues(name: str) -> Drawn:
    return lambda rng: made_up_rows(
        MODELS[name], (), rng, rng.randint(2, 10), lies=rng.choice((0, 0.2)), unknown=rng.choice((0, 0.2))
    )


def _contents(name: str) -> Drawn:
    return lambda rng: made_up_contents(
        MODELS[name], (), rng, rng.randint(2, 10), lies=rng.choice((0, 0.2)), unknown=rng.choice((0, 0.2))
    )


def _entries(values: str) -> Drawn:
    return lambda rng: made_up_entry(
        None, values, rng, rng.randint(2, 10), lies=rng.choice((0, 0.3)), unknown=rng.choice((0, 0.2))
    )


KINDS: dict[str, Kind] = {
    "bank": Kind(checker="bank", options={"total": "10"}, rows=_bank),
    "consumption": Kind(checker="consumption", rows=lambda rng: random_consumption(rng, 30, is_divided=True)),
    "delay": Kind(checker="delay", options={"latest_ms": "200"}, rows=lambda rng: random_delays(rng, 20)),
    "delayed": Kind(checker="delayed", options={"latest_ms": "200"}, rows=lambda rng: _spans(random_delays(rng, 20))),
    "list-append": Kind(checker="list-append", rows=random_lists),
    "causal list-append": Kind(checker="list-append", options={"model": "causal"}, rows=random_lists),
    "snapshots of lists": Kind(checker="list-append", options={"model": "snapshot-isolation"}, rows=random_lists),
    "lock": Kind(checker="lock", rows=partial(_locks, fencing=False)),
    "fencing lock": Kind(checker="lock", options={"fencing": "true"}, rows=partial(_locks, fencing=True)),
    "log": Kind(checker="log", rows=lambda rng: random_history(rng, 30)),
    "transactions on a log": Kind(checker="log", rows=lambda rng: random_transactions(rng, 16)),
    "pop": Kind(checker="pop", rows=lambda rng: random_pops(rng, 25)),
    "pop in order": Kind(checker="pop", options={"orderly": "true"}, rows=lambda rng: random_ordered_pops(rng, 25)),
    "queue, at least once": Kind(checker="queue", rows=CASES["queue"].rows),
    "transactional": Kind(checker="transactional", rows=lambda rng: _unacked(CASES["queue"].rows(rng))),
    "register": Kind(checker="register", rows=_registers),
    "rw-register": Kind(
        checker="rw-register", rows=lambda rng: history_rows(random_registers(rng)), options={"model": "serializable"}
    ),
    "registers that keep their order": Kind(
        checker="rw-register",
        rows=lambda rng: history_rows(random_registers(rng)),
        options={"assume": "linearizable-keys"},
    ),
    **{
        name: Kind(checker=case.workload, options=case.options, rows=case.rows)
        for name, case in CASES.items()
        if "twice" not in name
    },
    **{f"object {name}": Kind(checker="object", model=name, rows=_objects(name)) for name in MODELS},
    **{f"long {name}": Kind(checker="object", model=name, rows=_queues(name)) for name in ("fifo-queue", "stack")},
    **{f"long {name}": Kind(checker="object", model=name, rows=_contents(name)) for name in ("append-log", "set")},
    **{
        f"map of {values}": Kind(checker="object", model="map", rows=_entries(values))
        for values in ("lists", "numbers")
    },
}


def drawn(count: int, *, first: int = 0) -> Iterator[tuple[str, WrittenHistory]]:
    """So many of each kind, with a name each."""
    for name, kind in KINDS.items():
        for seed in range(first, first + count):
            history = kind.drawn(seed)
            if history.rows:
                yield f"{name} {seed}", history
