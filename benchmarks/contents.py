"""How long it takes to decide one set or append-only log to which no element is given twice.

    python benchmarks/contents.py [--object append-log] [--operations 1000000] [--clients 16] [--indefinite 0.01]
                                  [--planted] [--check]

The history is made up as by `objects`: an atomic object, clients that are always busy. `set` is asked about single
elements (two adds to one remove and two contains, half of which return a change), `set-read` is added to, asked,
and read as a whole 20 times, `append-log` returns a position to half of its appends and is read as a whole 20 times.

Without --check the decider alone is measured, on arrays; with it the whole check, from Parquet, in one process.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from log_check import TYPES, names_column
from objects import APART, INFO, OK, Timeline, checked, decided, timeline

from checkers.kernels.columns import NONE, Int8, Int64
from checkers.linearizable.deciders.spans import Lists, Spans
from checkers.linearizable.objects import MODELS
from checkers.linearizable.values import NEVER
from harness.compiled import compiled
from harness.record.history import history_schema

SCHEMA = history_schema(pa.struct([pa.field("json", pa.string())]))

READS = 20
ADD, REMOVE, CONTAINS, READ = range(4)
NEAR = 50
"""Elements are asked about that were added or removed by about so many calls before or after."""


@dataclass(frozen=True, kw_only=True)
class Story:
    """What happened to one object."""

    model: str
    timeline: Timeline
    f: Int8
    argument: Int64
    result: Int64
    """1 or 0, or a position; NONE where it is unknown."""
    lists: Mapping[int, Int64]
    """By operation, what reads showed."""

    def spans(self) -> Spans:
        when = self.timeline
        kept = when.definite | (self.argument != NONE) & ((self.model != "set") | (self.f != CONTAINS))
        sizes = np.zeros(len(when), dtype=np.int64)
        sizes[list(self.lists)] = [len(shown) for shown in self.lists.values()]
        lists = Lists(
            elements=np.concatenate([np.empty(0, np.int64), *(self.lists[at] for at in sorted(self.lists))]),
            bounds=np.concatenate(([0], np.cumsum(sizes))),
        )
        return Spans(
            start=when.start[kept],
            end=np.where(when.definite, when.end, NEVER)[kept],
            f=self.f[kept],
            argument=self.argument[kept],
            result=np.where(when.definite, self.result, NONE)[kept],
            lists=lists.part(np.flatnonzero(kept)),
        )

    def table(self) -> pa.Table:
        """All rows of the history."""
        when, functions = self.timeline, MODELS[self.model].functions
        order = np.argsort(np.concatenate((when.start, when.end)), kind="stable")
        asked = ["null" if one == NONE else str(one) for one in self.argument.tolist()]
        answered = [
            self._answer(at) if is_definite else asked[at] for at, is_definite in enumerate(when.definite.tolist())
        ]
        rows = len(order)
        types = np.concatenate((np.zeros(len(when), np.int64), np.where(when.definite, OK, INFO)))[order]
        columns = {
            "index": pa.array(np.arange(rows)),
            "time": pa.array(np.arange(rows) * 1_000),
            "process": pa.array(np.tile(when.process, 2)[order], pa.int32()),
            "type": names_column(types, TYPES),
            "f": names_column(np.tile(self.f, 2)[order].astype(np.int64), functions),
            "key": pa.array(["k"] * rows, pa.string()),
            "value": pa.StructArray.from_arrays([pa.array([*asked, *answered]).take(pa.array(order))], ["json"]),
            "error": pa.nulls(rows, pa.string()),
            "node": pa.nulls(rows, pa.string()),
        }
        return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def _answer(self, at: int) -> str:
        if at in self.lists:
            return json.dumps(self.lists[at].tolist())
        if self.result[at] == NONE:
            return str(self.argument[at])
        if self.model == "set":
            return "true" if self.result[at] else "false"
        return f"[{self.result[at]}, {self.argument[at]}]"


def _read_at(random: np.random.Generator, when: Timeline) -> Int64:
    return np.sort(random.choice(np.flatnonzero(when.definite), READS, replace=False))


def append_log(when: Timeline, random: np.random.Generator) -> Story:
    count = len(when)
    f, argument = np.zeros(count, np.int8), random.permutation(count)
    reads = _read_at(random, when)
    f[reads], argument[reads] = 1, NONE
    effects = when.effects
    happened = effects[f[effects] == 0]
    place = np.full(count, NONE)
    place[happened] = np.arange(len(happened))
    before = np.cumsum(f[effects] == 0)
    lists = {int(at): argument[happened[: before[i]]] for i, at in enumerate(effects) if f[at] == 1}
    result = np.where(random.random(count) < 0.5, place, NONE)
    return Story(model="append-log", timeline=when, f=f, argument=argument, result=result, lists=lists)


def elements(when: Timeline, random: np.random.Generator) -> Story:
    f = random.choice(np.array([ADD, ADD, REMOVE, CONTAINS, CONTAINS], np.int8), len(when))
    return _set(when, random, f, {})


def elements_read(when: Timeline, random: np.random.Generator) -> Story:
    f = random.choice(np.array([ADD, CONTAINS], np.int8), len(when))
    reads = _read_at(random, when)
    f[reads] = READ
    added = when.effects[f[when.effects] == ADD]
    before = np.cumsum(f[when.effects] == ADD)
    number = np.cumsum(f == ADD) - 1
    lists = {int(at): number[added[: before[i]]] for i, at in enumerate(when.effects) if f[at] == READ}
    return _set(when, random, f, lists)


def _set(when: Timeline, random: np.random.Generator, f: Int8, lists: Mapping[int, Int64]) -> Story:
    """Elements are added and removed in the order of their numbers."""
    added, removed = np.cumsum(f == ADD), np.cumsum(f == REMOVE)
    near = np.where(random.random(len(f)) < 0.5, added, removed) + random.integers(-NEAR, NEAR, len(f))
    argument = np.select((f == ADD, f == REMOVE, f == CONTAINS), (added - 1, removed - 1, np.maximum(near, 0)), NONE)
    result = np.full(len(f), NONE)
    result[when.effects] = _changes(f[when.effects], argument[when.effects], int(argument.max()) + 1)
    says = (f == CONTAINS) | (random.random(len(f)) < 0.5)
    result = np.where(says & (f != READ), result, NONE)
    return Story(model="set", timeline=when, f=f, argument=argument, result=result, lists=lists)


@compiled
def _changes(f: Int8, argument: Int64, elements: int) -> Int64:
    there = np.zeros(elements, dtype=np.bool_)
    result = np.zeros(len(f), dtype=np.int64)
    for i in range(len(f)):
        if f[i] == READ:
            continue
        result[i] = there[argument[i]] != (f[i] == ADD)
        if f[i] != CONTAINS:
            there[argument[i]] = f[i] == ADD
    return result


STORIES: Mapping[str, Callable[[Timeline, np.random.Generator], Story]] = {
    "append-log": append_log,
    "set": elements,
    "set-read": elements_read,
}


def story(name: str, *, operations: int, clients: int, indefinite: float = 0.0, seed: int = 1) -> Story:
    random = np.random.default_rng(seed)
    return STORIES[name](timeline(operations, clients, indefinite, random), random)


def planted(history: Story) -> Story:
    """The same, and a late answer is out of date."""
    when = history.timeline
    clients = int(when.client.max()) + 1
    if history.lists:
        late = max(history.lists, key=lambda at: len(history.lists[at]))
        return replace(history, lists={**history.lists, late: history.lists[late][: -APART * clients]})
    end_of_add = np.full(int(history.argument.max()) + 1, NEVER)
    adds = np.flatnonzero((history.f == ADD) & when.definite)
    end_of_add[history.argument[adds]] = when.end[adds]
    found = np.flatnonzero((history.f == CONTAINS) & when.definite & (history.result == 1))
    found = found[end_of_add[history.argument[found]] < when.start[found]]
    removed = history.argument[history.f == REMOVE]
    stays = found[~np.isin(history.argument[found], removed)]
    result = history.result.copy()
    result[stays[len(stays) * 9 // 10]] = 0
    return replace(history, result=result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--object", choices=sorted(STORIES), nargs="+", default=sorted(STORIES))
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, nargs="+", default=[16])
    parser.add_argument("--indefinite", type=float, nargs="+", default=[0.0, 0.01, 0.05])
    parser.add_argument("--planted", action="store_true", help="spoil an answer")
    parser.add_argument("--check", action="store_true", help="the whole check, from Parquet")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for name in arguments.object:
        for clients in arguments.clients:
            for indefinite in arguments.indefinite:
                history = story(
                    name,
                    operations=arguments.operations,
                    clients=clients,
                    indefinite=indefinite,
                    seed=arguments.seed,
                )
                history = planted(history) if arguments.planted else history
                if arguments.check:
                    figures = checked(history.model, history.table())
                else:
                    figures = decided(history.model, history.spans(), story(name, operations=1_000, clients=4).spans())
                print(f"{name}, {clients} clients, {indefinite:.0%} indefinite: {figures}", flush=True)


if __name__ == "__main__":
    main()
