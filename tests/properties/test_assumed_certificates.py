"""Certificates that rest on what was assumed: what the verification accepts, no order allows.

The reference puts what is assumed into the history as an order of versions, and tries all orders of transactions.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from checkers.api.plan import CheckRequest
from checkers.api.verdict import Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.transactions.checker import RwRegister
from checkers.transactions.elle.rw_register import Assumption
from checkers.transactions.history.committed import INITIAL, Committed
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel, forbidden
from checkers.transactions.verify import DEMANDS, Refuted, verified_against
from checkers.transactions.verify.assumptions import Assumptions
from checkers.transactions.verify.cycles import forbids, name_of, require_step
from checkers.transactions.verify.history import TransactionHistory, read_history
from checkers.transactions.verify.observations import Observations
from results.output import write
from tests.references.commit_orders import allowed
from tests.references.history_language import write_rows
from tests.references.thousands import thousands
from tests.references.transaction_histories import Transaction, committed_of, history_rows, random_registers

Version = int | None
ASSUMPTIONS = [assumption.value for assumption in Assumption]
JUDGED = [model.value for model in ConsistencyModel]


def left(t: Transaction, key: str) -> list[Version]:
    written = [value for f, of, value in t.operations if (f, of) == ("w", key)]
    return [] if t.kind == "fail" else written[-1:]  # type: ignore[return-value]


def read_before_writing(transactions: list[Transaction], t: Transaction, key: str) -> list[Version]:
    """The first version that it read, before it wrote the key itself."""
    versions = [None, *(value for u in transactions if u is not t for value in left(u, key))]
    for f, of, value in t.operations if t.kind == "ok" else ():
        if (f, of) == ("w", key):
            break
        if of == key and value in versions:
            return [value]  # type: ignore[list-item]
    return []


def ordered(transactions: list[Transaction], assumed: list[str]) -> Iterator[tuple[str, Version, Version]]:
    """(key, a version, one that it precedes by what is assumed)."""
    for key in sorted({key for t in transactions for _, key, _ in t.operations}):
        touched = {t.start: [*read_before_writing(transactions, t, key), *left(t, key)] for t in transactions}
        for t in transactions:
            if "wfr-keys" in assumed:
                yield from ((key, a, b) for a in read_before_writing(transactions, t, key) for b in left(t, key))
            for u in transactions:
                in_time = t.kind == "ok" and t.end is not None and t.end < u.start
                in_session = in_time and t.session == u.session
                if (in_time and "linearizable-keys" in assumed) or (in_session and "sequential-keys" in assumed):
                    yield from ((key, a, b) for a in touched[t.start] for b in touched[u.start])


def under(assumed: list[str], transactions: list[Transaction], committed: Committed) -> Committed:
    """With the order of versions that is assumed; INITIAL before itself where that contradicts itself."""
    number = {start: n for n, start in enumerate(committed.start.tolist())}
    writer = {(key, b): number.get(t.start) for t in transactions for _, key, _ in t.operations for b in left(t, key)}
    keys = {key: n for n, key in enumerate(sorted({key for t in transactions for _, key, _ in t.operations}))}
    known = {
        (keys[key], INITIAL if a is None else writer[key, a], INITIAL if b is None else writer[key, b])
        for key, a, b in ordered(transactions, assumed)
        if a != b
    }
    pairs = [(key, u, v) for key, u, v in known if u is not None and v is not None]
    return replace(committed, version_edges=np.array(sorted(pairs), dtype=np.int32).reshape(-1, 3))


class AssumedHistory:
    """One history, and which models allow it under which assumptions."""

    def __init__(self, transactions: list[Transaction], directory: Path) -> None:
        self.transactions, self.committed = transactions, committed_of(transactions)
        self.path = write_rows(history_rows(transactions), TRANSACTION, directory / "history.parquet")
        self.history: TransactionHistory = read_history(self.path, lists=False)
        self._allowed: dict[tuple[str, tuple[str, ...]], bool] = {}

    def allows(self, model: str, assumed: list[str]) -> bool:
        name = model, tuple(sorted(assumed))
        if name not in self._allowed:
            self._allowed[name] = allowed(model, under(assumed, self.transactions, self.committed))
        return self._allowed[name]

    def believed(self, certificate: Any) -> bool:
        try:
            verified_against(certificate, self.history)
        except Refuted:
            return False
        return True


def history_of(seed: int, directory: Path, most: int) -> AssumedHistory | None:
    """Nothing of histories that are no question."""
    try:
        return AssumedHistory(random_registers(random.Random(seed), most=most), directory)
    except ValueError:
        return None


Edge = tuple[str, int, int]


def all_steps(one: AssumedHistory, assumed: list[str]) -> dict[Edge, dict[str, Any]]:
    """By kind and transactions, of all that the verification accepts one each."""
    history = one.history
    assumptions = Assumptions(observations=Observations(history=history), assumed=frozenset(assumed))
    steps: dict[Edge, dict[str, Any]] = {}
    for step in candidates(one, assumed):
        try:
            edge = require_step(assumptions, step)
        except Refuted:
            continue
        steps.setdefault(edge, step)
    return steps


def candidates(one: AssumedHistory, assumed: list[str]) -> Iterator[dict[str, Any]]:
    orders = {key: list(orders_of(one, key, assumed)) for key in one.history.keys}
    for source in one.transactions:
        for target in one.transactions:
            ends = {"source": source.start, "target": target.start}
            yield from ({"kind": kind, **ends} for kind in ("process", "realtime"))
            for key in one.history.keys:
                yield {"kind": "wr", **ends, "key": key}
                for order in orders[key] if left(target, key) else ():
                    yield from ({"kind": kind, **ends, **order} for kind in ("ww", "rw"))


def orders_of(one: AssumedHistory, key: str, assumed: list[str]) -> Iterator[dict[str, Any]]:
    """What the reference finds ordered, shown by transactions that the verification accepts, and initial orders."""
    versions = [value for t in one.transactions for value in left(t, key)]
    for version in versions:
        yield {"key": key, "versions": [None, version], "because": "initial", "transactions": []}
    for because in assumed:
        found = [t for t in ordered(one.transactions, [because]) if t[0] == key and t[1] != t[2]]
        for _, a, b in sorted(set(found), key=str):
            for shown in witnesses(one, key, a, b, because):
                yield {"key": key, "versions": [a, b], "because": because, "transactions": shown}


def witnesses(one: AssumedHistory, key: str, a: Version, b: Version, because: str) -> Iterator[list[int]]:
    near = [t for t in one.transactions if any(of == key for _, of, _ in t.operations)]
    if because == "wfr-keys":
        yield from ([t.start] for t in near if left(t, key) == [b])
        return
    for t in near:
        touched = [*read_before_writing(one.transactions, t, key), *left(t, key)]
        yield from ([t.start, u.start] for u in near if a in touched and t.end is not None and t.end < u.start)


def cycles_of(edges: list[Edge], rng: random.Random, effort: int) -> Iterator[list[Edge]]:
    """Simple ones, as far as the effort allows."""
    rng.shuffle(edges)
    leading: dict[int, list[Edge]] = {}
    for edge in edges:
        leading.setdefault(edge[1], []).append(edge)
    waiting = [[edge] for edge in edges]
    while waiting and effort:
        effort -= 1
        path = waiting.pop(rng.randrange(len(waiting)))
        if path[-1][2] == path[0][1]:
            yield path
            continue
        waiting += [[*path, edge] for edge in leading.get(path[-1][2], ()) if edge[2] not in {e[2] for e in path}]


def certificate(model: str, assumed: list[str], cycle: list[Edge], steps: dict[Edge, dict[str, Any]]) -> dict[str, Any]:
    return {
        "model": model,
        "workload": "rw-register",
        "verdict": "invalid",
        "assumed": assumed,
        "cycle": name_of([kind for kind, _, _ in cycle]),
        "steps": [steps[edge] for edge in cycle],
    }


def certified(one: AssumedHistory, assumed: list[str], rng: random.Random) -> Iterator[dict[str, Any]]:
    """Of the models that something contradicts one certificate each, of another kind of cycle each time."""
    steps = all_steps(one, assumed)
    left_over = {(name, kinds) for name in JUDGED for kinds in range(3)}
    for cycle in cycles_of(list(steps), rng, 400):
        kinds = [kind for kind, _, _ in cycle]
        for model, anti in sorted(left_over):
            if forbids(DEMANDS[model], kinds) and min(kinds.count("rw"), 2) == anti:
                left_over.discard((model, anti))
                yield certificate(model, assumed, cycle, steps)


def judge(seed: int, directory: Path, counts: Counter[str], most: int) -> None:
    one = history_of(seed, directory, most)
    if one is None:
        return
    rng = random.Random(seed)
    assumed = [assumption for assumption in ASSUMPTIONS if rng.random() < 0.6]
    for certificate in certified(one, assumed, rng):
        assert one.believed(certificate), certificate
        assert not one.allows(certificate["model"], assumed), (seed, certificate)
        counts[certificate["cycle"]] += 1
        counts["assuming"] += one.allows(certificate["model"], [])
        if rng.random() < 0.3:
            tamper(one, certificate, rng, counts)


def tamper(one: AssumedHistory, certificate: dict[str, Any], rng: random.Random, counts: Counter[str]) -> None:
    """What is accepted all the same must be true."""
    for _ in range(3):
        forged = json.loads(json.dumps(certificate))
        change(one, forged, rng)
        if forged == certificate:
            continue
        counts["forged"] += 1
        if one.believed(forged):
            counts["true all the same"] += 1
            assert not one.allows(forged["model"], forged["assumed"]), (certificate, forged)


def change(one: AssumedHistory, forged: dict[str, Any], rng: random.Random) -> None:
    starts = [t.start for t in one.transactions]
    values = [None, *(value for _, _, value in (o for t in one.transactions for o in t.operations))]
    what = rng.choice(("model", "assumed", "cycle", "drop", "turn", "step", "step", "step", "step"))
    if what == "model":
        forged["model"] = rng.choice(JUDGED)
    elif what == "assumed":
        forged["assumed"] = rng.sample(ASSUMPTIONS, rng.randrange(len(ASSUMPTIONS) + 1))
    elif what == "cycle":
        forged["cycle"] = rng.choice(["G0", "G1c", "G-single-item", "G2-item", "cyclic-versions"])
    elif what == "drop":
        forged["steps"].pop(rng.randrange(len(forged["steps"])))
    elif what == "turn":
        forged["steps"].reverse()
    else:
        step = rng.choice(forged["steps"])
        drawn = {
            "kind": rng.choice(("ww", "wr", "rw", "process", "realtime")),
            "source": rng.choice(starts),
            "target": rng.choice(starts),
            "key": rng.choice(list(one.history.keys)),
            "versions": [rng.choice(values), rng.choice(values)],
            "because": rng.choice((*ASSUMPTIONS, "initial")),
            "transactions": rng.choices(starts, k=rng.randrange(3)),
        }
        for name in rng.sample(sorted(drawn), rng.choice((1, 1, 2))):
            step[name] = drawn[name]


def test_the_verification_forbids_what_the_lattice_does() -> None:
    """Each has a table of its own."""
    kinds = ("ww", "wr", "rw", "process", "realtime")
    for model in ConsistencyModel:
        for length in range(2, 5):
            for cycle in product(kinds, repeat=length):
                of_transactions = bool({"ww", "wr", "rw"}.intersection(cycle))
                name = name_of(cycle)
                assert not of_transactions or forbids(DEMANDS[model.value], cycle) == (name in forbidden(model)), name


def test_what_the_checker_certifies_under_assumptions_is_verified(tmp_path: Path) -> None:
    said: Counter[str] = Counter()
    for seed in range(40):
        rng = random.Random(seed)
        one = history_of(seed, tmp_path, 6)
        if one is not None:
            checker = RwRegister(
                model=rng.choice(list(ConsistencyModel)), assume=frozenset(rng.sample(list(Assumption), 2))
            )
            said[certified_by_checker(one, checker, tmp_path / "certificate.json")] += 1
    assert said["order"] > 5 and said["proof"] > 1 and said["cycle"] > 5


def certified_by_checker(one: AssumedHistory, checker: RwRegister, path: Path) -> str:
    """What the certificate has."""
    request, engine = CheckRequest(history=one.path), InProcessEngine()
    verdict = checker.check(request, engine).verdict
    checker.certify(request, engine, partial(write, path))
    certificate = json.loads(path.read_text())
    assert verdict is Verdict.UNKNOWN or certificate["verdict"] == verdict.value
    verified_against(certificate, one.history)
    if "cycle" in certificate:
        assert set(certificate["assumed"]) <= {assumption.value for assumption in checker.assume}
        assert not one.allows(certificate["model"], certificate["assumed"])
    return next(name for name in ("order", "proof", "anomaly", "cycle") if name in certificate)


def test_no_order_allows_what_is_certified_under_assumptions(tmp_path: Path) -> None:
    said: Counter[str] = Counter()
    for seed in range(100):
        judge(seed, tmp_path, said, 5)
    assert said["assuming"] > 20 and said["forged"] > 100


@thousands()
def test_no_order_allows_what_is_certified_under_assumptions_of_many_histories(seeds: range, tmp_path: Path) -> None:
    said: Counter[str] = Counter()
    for seed in seeds:
        judge(seed, tmp_path, said, 6)
    assert said["assuming"] > len(seeds) // 2 and said["forged"] > 3 * len(seeds)
    assert said["true all the same"] < said["forged"] / 2
