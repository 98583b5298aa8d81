"""The verification held against all orders: it accepts one exactly where there is one, and no cycle where there is."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.verify import DEMANDS, Refuted
from checkers.transactions.verify.demands import Demand, ExternalOrder, Family, Seen
from checkers.transactions.verify.history import INITIAL, TransactionHistory, read_history
from checkers.transactions.verify.orders import require_order
from checkers.transactions.verify.steps import Facts, JudgedStep, require_proof
from tests.references.commit_orders import MODELS as DEFINITIONS
from tests.references.commit_orders import allowed
from tests.references.history_language import write_rows
from tests.references.transaction_histories import (
    Transaction,
    committed_of,
    history_rows,
    random_lists,
    random_registers,
)


def history_of(transactions: list[Transaction], directory: Path) -> TransactionHistory:
    path = write_rows(history_rows(transactions), TRANSACTION, directory / "history.parquet")
    lists = any(f == "append" or isinstance(value, tuple) for t in transactions for f, _, value in t.operations)
    return read_history(path, lists=lists)


def holds(require: Callable[..., None], *arguments: Any) -> bool:
    try:
        require(*arguments)
    except Refuted:
        return False
    return True


def orders(history: TransactionHistory, demand: Demand, starts: list[int]) -> Iterator[list[Any]]:
    """All of the transactions that are known to have happened."""
    if demand.family is not Family.SNAPSHOT:
        yield from map(list, permutations(starts))
        return
    for events in permutations([f"{side}{start}" for start in starts for side in "bc"]):
        if all(events.index(f"b{start}") < events.index(f"c{start}") for start in starts):
            yield list(events)


ORDERING = ("known", "overwritten", "overwrites", "exclusive")
SHOWING: dict[Seen, tuple[str, ...]] = {
    Seen.NOTHING: (),
    Seen.EARLIER_READS: ("read",),
    Seen.UPDATES: ("read", *ORDERING),
    Seen.CAUSES: ("read", "session"),
    Seen.VERSIONS: ("read", "session", "known", "overwritten"),
}


class EveryStep:
    """All steps that the verification accepts, found by trying; each with a shortest path where it needs one."""

    def __init__(self, history: TransactionHistory, demand: Demand, starts: list[int]) -> None:
        self.history, self.demand = history, demand
        self.transactions = [INITIAL, *starts]
        self.facts = Facts(history=history, demand=demand)
        self.steps: list[dict[str, Any]] = []
        self.taken: list[JudgedStep] = []
        self.grow()

    def grow(self) -> None:
        """What shows something at some models is kept apart from what orders the same two transactions."""
        seen: set[tuple[Any, Any, str]] = set()
        size = -1
        while size != len(self.steps):
            size = len(self.steps)
            for entry in self.candidates():
                shows = entry["because"] if entry["because"] in ("session", "read") else ""
                name = (entry["source"], entry["target"], shows)
                if name in seen:
                    continue
                try:
                    self.taken.append(self.facts.step(entry, self.taken, is_case=False))
                except Refuted:
                    continue
                seen.add(name)
                self.steps.append(entry)

    def event(self, transaction: int, side: str) -> Any:
        return f"{side}{transaction}" if self.demand.family is Family.SNAPSHOT else transaction

    def candidates(self) -> Iterator[dict[str, Any]]:
        keys = list(self.history.keys)
        for t in self.transactions:
            yield {"source": self.event(t, "b"), "target": self.event(t, "c"), "because": "inside"}
            for u in self.transactions:
                plain = {"source": self.event(t, "c"), "target": self.event(u, "b")}
                yield from ({**plain, "because": because} for because in ("initial", "session", "realtime"))
                for key in keys:
                    yield from ({**plain, "because": because, "key": key} for because in ("read", "known"))
                    for path in self.paths(self.event(t, "b"), self.event(u, "c")):
                        yield {**plain, "because": "exclusive", "key": key, "path": path}
                    for r in self.transactions:
                        named = {"key": key, "reader": r, "writer": u}
                        for path in self.paths(self.event(t, "c"), self.event(r, "b")):
                            yield {**plain, "because": "overwritten", **named, "path": path}
                        for path in self.paths(self.event(u, "b"), self.event(t, "c")):
                            after = {"source": self.event(r, "b"), "target": self.event(t, "c")}
                            yield {**after, "because": "overwrites", **named, "path": path}

    def paths(self, source: Any, target: Any) -> list[list[int]]:
        """Of steps that are there; at weak models all of at most three."""
        if self.demand.family is Family.COMMITS and self.demand.paths:
            ways = [[]] + [[number] for number in range(len(self.steps))]
            ways += [[a, b] for a in range(len(self.steps)) for b in range(len(self.steps)) if self.joined(a, b)]
            ways += [[*w, c] for w in ways if len(w) == 2 for c in range(len(self.steps)) if self.joined(w[-1], c)]
            return [
                w for w in ways if w and self.steps[w[0]]["source"] == source and self.steps[w[-1]]["target"] == target
            ]
        path = self.shortest(
            source, target, None if self.demand.family is not Family.COMMITS else SHOWING[self.demand.seen]
        )
        return [] if path is None else [path]

    def joined(self, one: int, other: int) -> bool:
        return self.steps[one]["target"] == self.steps[other]["source"]

    def shortest(self, source: Any, target: Any, kinds: tuple[str, ...] | None = None) -> list[int] | None:
        reached: dict[Any, list[int]] = {}
        queue = deque([(source, [])])
        while queue:
            event, path = queue.popleft()
            for number, step in enumerate(self.steps):
                if (
                    step["source"] == event
                    and step["target"] not in reached
                    and (not kinds or step["because"] in kinds)
                ):
                    reached[step["target"]] = [*path, number]
                    queue.append((step["target"], [*path, number]))
        return reached.get(target)

    def refutes(self) -> bool:
        """Whether a cycle of steps is accepted as a proof."""
        sides = ("b", "c") if self.demand.family is Family.SNAPSHOT else ("",)
        ordering = None if self.demand.keeps is not ExternalOrder.NOTHING else ("initial", "inside", "read", *ORDERING)
        for t in self.transactions:
            cycle = self.shortest(self.event(t, sides[0]), self.event(t, sides[0]), ordering)
            if cycle is not None and holds(
                require_proof, self.history, self.demand, [{"within": None, "steps": self.steps, "cycle": cycle}]
            ):
                return True
        return False


def judged_by_trying(transactions: list[Transaction], directory: Path, models: list[str]) -> Counter[tuple[str, bool]]:
    """What each model says of it, as both programs agree; nothing of histories that are too large or no question."""
    try:
        committed = committed_of(transactions)
    except ValueError:
        return Counter()
    shown = committed.start[1:].tolist()
    history = history_of(transactions, directory)
    said: Counter[tuple[str, bool]] = Counter()
    for name in models:
        demand = DEMANDS[name]
        if len(shown) > (3 if demand.family is Family.SNAPSHOT else 4):
            continue
        expected = allowed(name, committed)
        accepted = any(holds(require_order, history, demand, order) for order in orders(history, demand, shown))
        assert accepted == expected, (name, transactions)
        refuted = EveryStep(history, demand, shown).refutes()
        assert not (refuted and expected), (name, transactions)
        complete = demand.family is Family.COMMITS and demand.seen not in (Seen.UPDATES, Seen.VERSIONS)
        if complete:
            assert refuted != expected, (name, transactions, "its rules are complete, and there is no cycle")
        said[name, expected] += 1
    return said


def judge_random_histories(seeds: range, directory: Path) -> Counter[tuple[str, bool]]:
    said: Counter[tuple[str, bool]] = Counter()
    names = [name for name in DEMANDS if name in DEFINITIONS]
    for seed in seeds:
        rng = random.Random(seed)
        draw = rng.choice((random_registers, random_lists))
        said += judged_by_trying(draw(rng, most=4), directory, rng.sample(names, 3))
    return said


def test_it_accepts_orders_and_cycles_where_the_definitions_say_so(tmp_path: Path) -> None:
    judge_random_histories(range(15), tmp_path)


@pytest.mark.gate
def test_it_accepts_orders_and_cycles_where_the_definitions_say_so_in_many_histories(tmp_path: Path) -> None:
    said = judge_random_histories(range(15, 215), tmp_path)
    assert {valid for (_, valid), count in said.items() if count} == {False, True}
    assert len({name for name, _ in said}) == len(set(DEMANDS) & set(DEFINITIONS))
