"""The references themselves: textbook histories at every model, the lattice, and theorems that say it otherwise."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from checkers.api.plan import CheckRequest
from checkers.causal.spans import transactions
from checkers.in_process.engine import InProcessEngine
from checkers.transactions.history.committed import NEVER, Committed
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import PROMISES, ConsistencyModel, implied
from tests.references.commit_orders import (
    MODELS,
    History,
    Order,
    allowed,
    base,
    no_sessions,
    paths,
    sessions,
    then,
    version_orders,
)
from tests.references.history_language import write_rows
from tests.references.thousands import thousands
from tests.references.transaction_histories import (
    committed,
    committed_of,
    history_rows,
    random_committed,
    random_lists,
    random_registers,
)

TEXTBOOK: dict[str, tuple[str, tuple[str, ...]]] = {
    "all in order": ("w(x,1) | r(x,1)\n r(x,-)", ()),
    "circular information flow": ("w(x,1) r(y,1)\n w(y,1) r(x,1)", ("PL-2",)),
    "circular information flow over sessions": (
        "r(x,1) | w(y,1)\n r(y,1) | w(x,1)",
        ("strong-session-PL-2", "monotonic-writes"),
    ),
    "write cycle": ("a(x,1) a(y,1)\n a(x,2) a(y,2)\n r(x,[1,2]) r(y,[2,1])", ("read-uncommitted",)),
    "two orders of two writers": (
        "w(x,1) w(y,1)\n w(x,2) w(y,2)\n r(x,2) r(y,1)\n r(x,1) r(y,2)",
        ("read-committed",),
    ),
    "fractured read": ("w(x,1) w(y,1)\n r(y,-) r(x,1)", ("read-atomic",)),
    "fractured read, what is new first": ("w(x,1) w(y,1)\n r(x,1) r(y,-)", ("read-committed",)),
    "a read not repeated": ("w(x,1)\n r(x,-) r(x,1)", ("read-atomic",)),
    "the initial version after a write of one's own": ("w(x,1) | r(x,-)", ("read-your-writes",)),
    "the first of two writes of one's own": ("w(x,1) | w(x,2) | r(x,1)", ("strong-session-read-atomic", "pram")),
    "the initial version after an indefinite write": ("w(x,1) ? | r(x,-) | r(x,1)", ()),
    "an append of one's own is not there": ("a(x,1)\n a(x,2) | r(x,[1])", ("read-your-writes",)),
    "a read that goes back": ("w(x,1)\n r(x,1) | r(x,-)", ("monotonic-reads",)),
    "a writer's session in another order": (
        "w(x,1) | w(x,2) | w(y,1)\n r(x,1) r(y,1)",
        ("monotonic-writes",),
    ),
    "an effect whose cause was read": (
        "w(x,1)\n r(x,1) w(y,1)\n r(y,1) r(x,-)",
        ("writes-follow-reads", "consistent-view"),
    ),
    "an effect whose cause the session had read": (
        "w(x,1)\n r(x,1) | w(y,1)\n r(y,1) r(x,-)",
        ("writes-follow-reads",),
    ),
    "two writes of a session, seen in another one": ("w(x,1) | w(y,1)\n r(y,1) | r(x,-)", ("pram",)),
    "an effect without its cause": ("w(x,1)\n r(x,1) | w(y,1)\n r(y,1) | r(x,-)", ("causal",)),
    "lost update": ("r(x,-) w(x,1)\n r(x,-) w(x,2)", ("cursor-stability",)),
    "lost update in a list": (
        "a(x,1)\n r(x,[1]) a(x,2)\n r(x,[1]) a(x,3)\n r(x,[1,2,3])",
        ("cursor-stability",),
    ),
    "long fork": ("w(x,1)\n w(y,1)\n r(x,1) r(y,-)\n r(x,-) r(y,1)", ("snapshot-isolation",)),
    "long fork over sessions": (
        "w(x,1)\n w(y,1)\n r(x,1) | r(y,-)\n r(y,1) | r(x,-)",
        ("strong-session-snapshot-isolation",),
    ),
    "write skew": ("r(x,-) r(y,-) w(x,1)\n r(x,-) r(y,-) w(y,1)", ("repeatable-read",)),
    "a reader that shows who was first": (
        "r(x,-) r(y,-) w(x,1)\n w(y,1)\n r(x,-) r(y,1)",
        ("repeatable-read",),
    ),
    "write skew over sessions": ("w(x,1) | r(y,-) w(z,1)\n w(y,1) | r(x,-)", ("strong-session-snapshot-isolation",)),
    "a stale read": ("[0,1] w(x,1)\n [2,3] r(x,-)", ("strong-snapshot-isolation",)),
    "a write that took its time": ("[0,1] w(x,1) ?\n [2,3] r(x,-) | [4,5] r(x,1)", ()),
}
"""A history, and the weakest models that forbid it: what is stronger forbids it too, all others allow it."""


SAME = {"consistent-view": "parallel-snapshot-isolation", "repeatable-read": "serializable"}
"""What is one and the same where transactions name items, and not predicates."""


def weaker(name: str) -> set[str]:
    """The model, and all that it implies."""
    if name == "strong-session-PL-2":
        return {name, *weaker("PL-2"), *weaker("strong-session-read-uncommitted")}
    found = {model.value for model in implied(ConsistencyModel(name))}
    if {"strong-session-read-committed", "pram"} & found:
        found |= weaker("strong-session-PL-2")
    return found | (weaker(SAME[name]) if name in SAME else set())


@pytest.mark.parametrize("name", TEXTBOOK)
def test_textbook_histories_get_their_verdict_at_every_model(name: str) -> None:
    text, weakest = TEXTBOOK[name]
    history = committed(text)
    forbidden = {model for model in MODELS if not allowed(model, history)}
    assert forbidden == {model for model in MODELS if weaker(model) & set(weakest)}


def test_there_is_a_reference_for_every_model() -> None:
    assert {model.value for model in PROMISES} == set(MODELS) - {"strong-session-PL-2"}


def judge_along_the_lattice(seeds: range) -> None:
    verdicts: Counter[tuple[str, bool]] = Counter()
    for seed in seeds:
        history = random_committed(random.Random(seed))
        allows = {model: allowed(model, history) for model in MODELS}
        verdicts.update(allows.items())
        for model in MODELS:
            assert not allows[model] or all(allows[other] for other in weaker(model)), (seed, model)
    for model in MODELS:
        forbidden = 0 if "uncommitted" in model else len(seeds) / 100
        assert verdicts[model, True] > len(seeds) / 4 and verdicts[model, False] >= forbidden, model


def test_what_a_model_allows_all_weaker_ones_allow() -> None:
    judge_along_the_lattice(range(300))


@thousands()
def test_what_a_model_allows_all_weaker_ones_allow_in_many_histories(seeds: range) -> None:
    judge_along_the_lattice(seeds)


def some_graph_is_acyclic(history: Committed, extra: Order, anti_dependencies: str) -> bool:
    """Whether versions have an order in which the graph of dependencies has no cycle at all, or (Cerone, Gotsman, JACM
    2018) none without two anti-dependencies in a row."""
    known = History(history)
    for order in version_orders(known, extra):
        dependencies = base(known, extra) | {p for versions in order.values() for p in pairwise(versions)}
        anti = frozenset((r, u) for r, k, w in known.reads for u in order[k][order[k].index(w) + 1 :][:2] if u != r)
        edges = dependencies | (anti if anti_dependencies == "any" else then(dependencies, anti))
        if all(t != u for t, u in paths(edges)):
            return True
    return False


@pytest.mark.parametrize(("extra", "prefix"), [(no_sessions, ""), (sessions, "strong-session-")])
def test_orders_exist_exactly_if_some_graph_is_acyclic(extra: Order, prefix: str) -> None:
    for seed in range(250):
        history = random_committed(random.Random(seed), most=5)
        assert allowed(f"{prefix}serializable", history) == some_graph_is_acyclic(history, extra, "any"), seed
        snapshot = some_graph_is_acyclic(history, extra, "apart")
        assert allowed(f"{prefix}snapshot-isolation", history) == snapshot, seed


@pytest.mark.parametrize("draw", [random_registers, random_lists])
def test_rows_are_a_history_of_the_same_transactions(draw, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for seed in range(20):
        drawn = draw(random.Random(seed))
        path = write_rows(history_rows(drawn), TRANSACTION, tmp_path / f"{seed}.parquet")
        engine = InProcessEngine()
        found = engine.gather(transactions(CheckRequest(history=path), engine), 100).sort_by("start").to_pydict()
        assert found["start"] == [t.start for t in drawn]
        assert found["end"] == [NEVER if t.end is None or t.kind == "info" else t.end for t in drawn]
        assert found["type"] == [{"ok": 1, "fail": 2, "info": 3}[t.kind] for t in drawn]
        there = committed_of(drawn).start.tolist()
        assert set(there) - {-1} <= set(found["start"])
        assert all(t.start in there for t in drawn if t.kind == "ok")


@pytest.mark.parametrize(
    "text", ["w(x,1) !\n r(x,1)", "r(x,1)", "w(x,1) w(x,2)\n r(x,1)", "a(x,1)\n r(x,[1])\n r(x,[2])"]
)
def test_reads_that_are_wrong_alone_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"left|aborted"):
        committed(text)
