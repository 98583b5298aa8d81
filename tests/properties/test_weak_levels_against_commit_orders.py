"""The deciders of weak levels against all commit orders of few transactions, and against closed sets of many."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import numpy as np
import pytest

from checkers.api.verdict import Verdict
from checkers.search_budget import searching_until
from checkers.transactions.evidence.proof import Because, Bound, Proof
from checkers.transactions.history.committed import INITIAL, NEVER, NO_SESSION, WRITES, Committed
from checkers.transactions.orders.weak import visibility
from checkers.transactions.orders.weak.levels import IMPLIED, LEVELS, explaining_order, weak_levels
from checkers.transactions.orders.weak.precedence import Base
from tests.references import commit_orders
from tests.references.commit_orders import History, Pairs, allowed
from tests.references.thousands import thousands
from tests.references.transaction_histories import committed, random_committed

SEES = {
    "read-committed": "r",
    "strong-session-read-committed": "r",
    "read-atomic": "r",
    "strong-session-read-atomic": "r|s",
    "read-your-writes": "s",
    "monotonic-reads": "rs",
    "monotonic-writes": "sr",
    "writes-follow-reads": "rs?r",
    "pram": "s|rs|sr|srs",
    "causal": "[rs]+",
}
"""The paths of reads and sessions by which a transaction sees another one."""


def test_levels_are_decided_also_when_searches_are_over_but_not_for_ever() -> None:
    drawn = random_answers(random.Random(1))
    with searching_until(time.time()):
        just_over = weak_levels(drawn)
    with searching_until(0.0):
        long_over = weak_levels(drawn)
    assert {name: of.verdict for name, of in just_over.items()} == {
        n: of.verdict for n, of in weak_levels(drawn).items()
    }
    assert set(long_over) == set(LEVELS)
    for decision in long_over.values():
        assert decision.verdict is Verdict.UNKNOWN
        assert decision.established is not None and decision.established.bound is Bound.TIME


def random_answers(rng: random.Random) -> Committed:
    """At most six transactions of up to four sessions that read whatever some transaction wrote, at any time."""
    count, keys = rng.randint(2, 6), rng.randint(1, 3)
    writes = [sorted(rng.sample(range(keys), rng.randint(0, keys))) for _ in range(count)]
    operations: list[list[tuple[int, int]]] = [[(k, WRITES) for k in written] for written in writes]
    shown = set()
    for t, own in enumerate(operations):
        for _ in range(rng.choice((0, 1, 2, 3, 4))):
            k = rng.randrange(keys)
            writer = rng.choice([INITIAL] + [u + 1 for u in range(count) if k in writes[u] and u != t])
            shown.add(writer)
            own.insert(0 if (k, WRITES) in own else rng.randint(0, len(own)), (k, writer))
    indefinite = [
        t + 1 in shown and all(w == WRITES for _, w in operations[t]) and rng.random() < 0.3 for t in range(count)
    ]
    flat = [pair for own in operations for pair in own]
    return Committed(
        start=np.arange(-1, count, dtype=np.int64),
        end=np.array([-1] + [NEVER if indefinite[t] else count + t for t in range(count)], dtype=np.int64),
        session=np.array([NO_SESSION] + [rng.randrange(rng.randint(1, 4)) for _ in range(count)], dtype=np.int32),
        first=np.cumsum([0, 0, *map(len, operations)]).astype(np.int64),
        key=np.array([k for k, _ in flat], dtype=np.int32),
        writer=np.array([w for _, w in flat], dtype=np.int32),
    )


def drawn(seed: int) -> Committed:
    rng = random.Random(seed)
    return random_committed(rng) if seed % 2 else random_answers(rng)


def fault(level: str, history: Committed, proof: Proof) -> str | None:
    """What does not follow in a proof; None if all does."""
    known = History(history)
    for number, step in enumerate(proof.steps):
        pair = step.source, step.target
        path = [proof.steps[i] for i in step.path]
        follows = {
            Because.INITIAL: step.source == INITIAL != step.target,
            Because.READ: (step.key, step.source) in known.operations[step.target],
            Because.VERSION_ORDER: [step.key, *pair] in history.version_edges.tolist(),
            Because.SESSION: pair in known.session,
            Because.OVERWRITTEN: step.target == step.writer != step.source
            and known.writes(step.source, step.key)
            and (step.reader, step.key, step.writer) in known.reads
            and all(i < number for i in step.path)
            and [step.source, *(s.target for s in path)] == [*(s.source for s in path), step.reader]
            and re.fullmatch(SEES[level], "".join(s.because.value[0] for s in path)) is not None,
        }
        if not follows.get(step.because, False):
            return f"step {number}"
        if step.because is Because.OVERWRITTEN and "read-committed" in level:
            own = known.operations[step.reader]
            first = next(i for i, (_, writer) in enumerate(own) if writer == step.source)
            if (step.key, step.writer) not in own[first:]:
                return f"step {number} is of an earlier read"
    cycle = [proof.steps[i] for i in proof.cycle]
    if not cycle or [s.target for s in cycle] != [*(s.source for s in cycle[1:]), cycle[0].source]:
        return "no cycle"
    if LEVELS[level].base is Base.READS and any(s.because is Because.SESSION for s in cycle):
        return "sessions have no order"
    return None


def judge(history: Committed, expected: dict[str, bool], case: object) -> None:
    decisions = weak_levels(history)
    assert {name: decision.verdict is Verdict.VALID for name, decision in decisions.items()} == expected, case
    for name, decision in decisions.items():
        assert all(expected[weaker] for weaker in IMPLIED[name]) or not expected[name], (case, name)
        alone = weak_levels(history, [name])[name]
        assert alone.verdict is decision.verdict, (case, name)
        for proof in (decision.proof, alone.proof):
            assert proof is None if expected[name] else proof and fault(name, history, proof) is None, (case, name)


def judge_all(seeds: range) -> None:
    verdicts: Counter[tuple[str, bool]] = Counter()
    for seed in seeds:
        history = drawn(seed)
        expected = {name: allowed(name, history) for name in LEVELS}
        judge(history, expected, seed)
        verdicts.update(expected.items())
        for name in LEVELS:
            order = explaining_order(history, name)
            assert (order is not None) == expected[name], (seed, name)
            if order is not None:
                assert sorted(order.tolist()) == list(range(len(history))), (seed, name)
                in_order = np.array([(0, u, v) for u, v in pairwise(order.tolist())], dtype=np.int32).reshape(-1, 3)
                assert allowed(
                    name, replace(history, version_edges=np.concatenate((history.version_edges, in_order)))
                ), (seed, name)
    for name in LEVELS:
        assert min(verdicts[name, True], verdicts[name, False]) > 0.15 * len(seeds), (name, verdicts)


def test_levels_agree_with_all_commit_orders() -> None:
    judge_all(range(120))


@thousands()
def test_levels_agree_with_all_commit_orders_of_many_histories(seeds: range) -> None:
    judge_all(seeds)


def has_order(history: History, extra: commit_orders.Order, demanded: Pairs) -> bool:
    """What `some_commit_order` says, for more transactions than have all their orders tried."""
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for before, after in commit_orders.base(history, extra) | demanded:
        sorter.add(after, before)
    try:
        sorter.prepare()
    except CycleError:
        return False
    return True


def judge_longer(seeds: range) -> None:
    verdicts: Counter[tuple[str, bool]] = Counter()
    for seed in seeds:
        rng = random.Random(seed)
        history = random_committed(rng, most=rng.choice((15, 30, 50)))
        expected = {name: allowed(name, history) for name in LEVELS}
        verdicts.update(expected.items())
        judge(history, expected, seed)
    assert all(verdicts[name, answer] > len(seeds) // 20 for name in LEVELS for answer in (True, False)), verdicts


@pytest.mark.parametrize("chains", [1, 2, 16])
def test_levels_agree_with_closed_sets(chains: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_orders, "some_commit_order", has_order)
    monkeypatch.setattr(visibility, "MAX_CLOCK_CELLS", 0)
    monkeypatch.setattr(visibility, "MIN_CHAINS", chains)
    monkeypatch.setattr(visibility, "DEFER_AFTER", chains // 2)
    judge_longer(range(30))


def test_there_is_room_for_all_that_a_read_forces() -> None:
    """Behind the edge of the other session, a read of the first of so many own writes fills room for 1,024 edges."""
    own = 342
    text = "w(y,1)\n" + " | ".join([*(f"w(x,{value})" for value in range(own)), "r(x,0)"])
    assert weak_levels(committed(text), ["read-your-writes"])["read-your-writes"].verdict is Verdict.VALID


def test_there_is_room_for_all_that_a_session_knows() -> None:
    """What it wrote and read twice over fills room for 1,022 versions, and it reads ten of them once more."""
    keys = range(10)
    wrote = (f"w(x{key},1)" for key in range(1_022 - 2 * len(keys)))
    read = " ".join(f"r(y{key},1)" for key in keys)
    text = "\n".join([" | ".join([*wrote, read, read, read]), *(f"w(y{key},1)" for key in keys)])
    assert weak_levels(committed(text), ["pram"])["pram"].verdict is Verdict.VALID


def test_clocks_that_nobody_will_ask_for_again_are_given_up() -> None:
    """At the end there is room for no other clock than those of four transactions, and of the one that reads."""
    crowded = """
        r(a,1) w(x,1)
        r(i,1)
        w(b,1)
        w(e,1)
        r(b,1) r(e,1) w(c,1)
        w(a,1)
        r(x,1)
        r(c,1) w(f,1)
        r(c,1) w(g,1)
        r(c,1) w(h,1)
        r(c,1) r({})
        r(f,1) r(g,1) r(h,1) w(i,1)
    """
    for read, verdict in (("e,1", Verdict.VALID), ("e,-", Verdict.INVALID), ("b,-", Verdict.INVALID)):
        assert weak_levels(committed(crowded.format(read)))["causal"].verdict is verdict, read


def test_what_has_no_chain_of_its_own_passes_on_what_it_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first session has the only chain; the third one sees it by way of the second."""
    monkeypatch.setattr(visibility, "MAX_CLOCK_CELLS", 0)
    monkeypatch.setattr(visibility, "MIN_CHAINS", 1)
    seen = "w(x,1) | w(x,2) | w(z,1)\n r(x,2) w(y,1)\n r(y,1) r(x,{})\n r(z,1)"
    assert weak_levels(committed(seen.format(1)))["causal"].verdict is Verdict.INVALID
    assert weak_levels(committed(seen.format(2)))["causal"].verdict is Verdict.VALID


@pytest.mark.gate
@pytest.mark.parametrize("chains", [1, 3, 16])
def test_levels_agree_with_closed_sets_of_many_histories(chains: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_orders, "some_commit_order", has_order)
    monkeypatch.setattr(visibility, "MAX_CLOCK_CELLS", 0)
    monkeypatch.setattr(visibility, "MIN_CHAINS", chains)
    monkeypatch.setattr(visibility, "DEFER_AFTER", chains // 2)
    judge_longer(range(1_000, 1_500))


def test_a_weaker_levels_proof_serves_the_stronger_ones() -> None:
    decisions = weak_levels(committed("w(x,1) w(y,1)\n r(y,-) r(x,1)"))
    assert decisions["read-atomic"].proof is decisions["causal"].proof is not None
    assert decisions["read-committed"].verdict is Verdict.VALID


def test_the_first_of_ones_own_writes_may_be_read_if_nothing_orders_them() -> None:
    """Twice over: then each of the two is before the other."""
    once = weak_levels(committed("w(x,1) | w(x,2) | r(x,1)"))
    assert once["read-your-writes"].verdict is Verdict.VALID
    assert once["pram"].verdict is Verdict.INVALID
    twice = weak_levels(committed("w(x,1) | w(x,2) | r(x,1) | r(x,2)"))
    assert twice["read-your-writes"].verdict is Verdict.INVALID


def test_nothing_at_all_is_valid() -> None:
    nothing = Committed(
        start=np.array([-1]),
        end=np.array([-1]),
        session=np.array([NO_SESSION], dtype=np.int32),
        first=np.array([0, 0]),
        key=np.zeros(0, dtype=np.int32),
        writer=np.zeros(0, dtype=np.int32),
    )
    assert {decision.verdict for decision in weak_levels(nothing).values()} == {Verdict.VALID}
    order = explaining_order(nothing, "causal")
    assert order is not None and order.tolist() == [INITIAL]
