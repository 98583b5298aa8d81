"""Orders and steps that somebody made up: what a model allows holds, and beside it what it does not is refused.

Each of these histories is the smallest one in which a rule of the verification decides.
"""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.verify import DEMANDS, Refuted
from checkers.transactions.verify.history import TransactionHistory, read_history
from checkers.transactions.verify.orders import require_order
from checkers.transactions.verify.steps import Facts, JudgedStep, require_proof
from tests.references.history_language import write_rows
from tests.references.transaction_histories import Transaction, Value, history_rows, parsed


def history_of(text: str, directory: Path) -> TransactionHistory:
    path = write_rows(history_rows(parsed(text)), TRANSACTION, directory / "history.parquet")
    return read_history(path, lists="a(" in text)


def negated(transactions: list[Transaction]) -> list[Transaction]:
    def below_zero(value: Value) -> Value:
        return tuple(-one for one in value) if isinstance(value, tuple) else value if value is None else -value

    return [
        replace(one, operations=tuple((f, key, below_zero(value)) for f, key, value in one.operations))
        for one in transactions
    ]


LEFT = "a(x,1) a(x,2) a(x,3)\n "
TWO_LISTS = "a(x,1)\n a(x,2)\n r(x,[2])"
UNREAD_APPEND = "a(x,1)\n a(x,2)\n a(x,3)\n r(x,[1,2])"
CONTRADICTORY = "a(x,1)\n a(x,2)\n r(x,[1,2])\n r(x,[2,1])"
HALF_READ = "a(x,1) a(x,3)\n a(x,2)\n r(x,[1])"
NOBODY_LEFT_IT = "1 read a list of x that nobody left there"
TWO_WRITERS = "w(x,1)\n w(x,2) w(y,2)\n r(y,2) r(x,1)"
LOST_UPDATE = "r(x,-) w(x,1)\n r(x,-) w(x,2)"
UNSEEN_UPDATE = "w(x,1)\n w(x,2)\n r(x,1) w(x,3)"
OWN_WRITE = "[0,1] w(x,1) | [2,3] r(x,-)"
READ_BEFORE = "[0,1] w(x,1)\n [2,3] r(x,1) | [4,5] r(x,-)"
WRITTEN_BEFORE = "[0,1] w(x,1) | [2,3] w(y,1)\n [4,5] r(y,1) r(x,-)"
FOLLOWED = "w(x,1)\n r(x,1) w(y,1)\n r(y,1) r(x,-)"
FOLLOWED_IN_SESSION = "[0,1] w(x,1)\n [2,3] r(x,1) | [4,5] w(y,1)\n [6,7] r(y,1) r(x,-)"
HEARD = "[0,1] w(x,1) | [2,3] w(y,1)\n [4,5] r(y,1) | [6,7] r(x,-)"
BESIDE_ANOTHER = "w(z,1)\n w(x,1) w(y,1)\n r(y,1) r(x,-)"
CAUSED = "w(x,1)\n r(x,1) w(y,1)\n r(y,1) w(z,1)\n r(z,1) r(x,-)"
REPLACED = "w(x,1) w(y,1)\n w(x,2)\n r(x,2) r(y,-)"
IN_TIME = "[0,1] w(x,1)\n [2,3] r(x,-)"

ORDERS: list[tuple[str, str, list[Any], str]] = [
    (LEFT + "r(x,[1,2,3])", "PL-2", [0, 1], ""),
    (LEFT + "r(x,[1])", "PL-2", [0, 1], NOBODY_LEFT_IT),
    (LEFT + "r(x,[1,2])", "PL-2", [0, 1], NOBODY_LEFT_IT),
    ("r(x,[1]) a(x,1)", "PL-2", [0], "0 read a list of x that nobody left there"),
    ("a(x,1)\n r(x,[1])", "PL-2", [1, 0], "1 read x from 0, which the order puts behind it"),
    (TWO_LISTS, "PL-2", [1, 0, 2], ""),
    (TWO_LISTS, "PL-2", [0, 1, 2], "2 read a list of x that is none in this order"),
    ("w(x,1) w(x,2)\n r(x,2)", "PL-2", [0, 1], ""),
    ("w(x,1) w(x,2)\n r(x,1)", "PL-2", [0, 1], "1 read 1 of x, which no other transaction of the order left there"),
    ("r(x,1) w(x,1)", "PL-2", [0], "0 read 1 of x, which no other transaction of the order left there"),
    ("w(x,1)\n r(x,1)", "PL-2", [0, 1], ""),
    ("w(x,1)\n r(x,1)", "PL-2", [1, 0], "1 read x from 0, which the order puts behind it"),
    ("w(x,1) r(x,1)", "read-atomic", [0], ""),
    ("w(x,1) r(x,2)\n w(x,2)", "PL-2", [0, 1], ""),
    ("w(x,1) r(x,2)\n w(x,2)", "read-atomic", [0, 1], "0 read 2 of x, having written 1"),
    ("a(x,1) r(x,[1])", "read-atomic", [0], ""),
    ("a(x,1) r(x,[])", "read-atomic", [0], "0 did not read of x what it had appended itself"),
    ("w(x,1) w(y,1)\n r(x,-) r(y,1)", "read-committed", [0, 1], ""),
    ("w(x,1) w(y,1)\n r(y,1) r(x,-)", "read-committed", [0, 1], "1 read x from nobody, and had seen 0"),
    ("w(x,1) w(y,1)\n r(y,1) r(x,-)", "PL-2", [0, 1], ""),
    ("w(x,1) w(y,1)\n r(x,-) r(y,1)", "read-atomic", [0, 1], "1 read x from nobody, and had seen 0"),
    (TWO_WRITERS, "read-committed", [1, 0, 2], ""),
    (TWO_WRITERS, "read-committed", [0, 1, 2], "2 read x from 0, and had seen 1"),
    (LOST_UPDATE, "read-committed", [0, 1], ""),
    (LOST_UPDATE, "cursor-stability", [0, 1], "1 read x from nobody, and had seen 0"),
    (LOST_UPDATE, "causal", [0, 1], ""),
    (LOST_UPDATE, "parallel-snapshot-isolation", [0, 1], "1 read x from nobody, and had seen 0"),
    (UNSEEN_UPDATE, "cursor-stability", [1, 0, 2], ""),
    (UNSEEN_UPDATE, "cursor-stability", [0, 1, 2], "2 read x from 0, and had seen 1"),
    ("w(x,1)\n w(x,2)\n r(x,1) w(y,3)", "cursor-stability", [0, 1, 2], ""),
    (OWN_WRITE, "monotonic-reads", [0, 2], ""),
    (OWN_WRITE, "read-your-writes", [0, 2], "2 read x from nobody, and had seen 0"),
    (OWN_WRITE, "read-your-writes", [2, 0], "2 read x from nobody, and had seen 0"),
    ("[0,1] w(x,1)\n [2,3] r(x,-)", "read-your-writes", [0, 2], ""),
    (READ_BEFORE, "read-your-writes", [0, 2, 4], ""),
    (READ_BEFORE, "monotonic-reads", [0, 2, 4], "4 read x from nobody, and had seen 0"),
    (WRITTEN_BEFORE, "monotonic-reads", [0, 2, 4], ""),
    (WRITTEN_BEFORE, "monotonic-writes", [0, 2, 4], "4 read x from nobody, and had seen 0"),
    (WRITTEN_BEFORE, "monotonic-writes", [2, 0, 4], "0 had ended before 2 began"),
    (FOLLOWED, "monotonic-writes", [0, 1, 2], ""),
    (FOLLOWED, "writes-follow-reads", [0, 1, 2], "2 read x from nobody, and had seen 0"),
    (FOLLOWED_IN_SESSION, "monotonic-reads", [0, 2, 4, 6], ""),
    (FOLLOWED_IN_SESSION, "writes-follow-reads", [0, 2, 4, 6], "6 read x from nobody, and had seen 0"),
    (HEARD, "monotonic-writes", [0, 2, 4, 6], ""),
    (HEARD, "pram", [0, 2, 4, 6], "6 read x from nobody, and had seen 0"),
    (BESIDE_ANOTHER, "PL-2", [0, 1, 2], ""),
    (BESIDE_ANOTHER, "causal", [0, 1, 2], "2 read x from nobody, and had seen 1"),
    (CAUSED, "pram", [0, 1, 2, 3], ""),
    (CAUSED, "causal", [0, 1, 2, 3], "3 read x from nobody, and had seen 0"),
    (REPLACED, "causal", [0, 1, 2], ""),
    (REPLACED, "parallel-snapshot-isolation", [1, 0, 2], ""),
    (REPLACED, "parallel-snapshot-isolation", [0, 1, 2], "2 read y from nobody, and had seen 0"),
    ("w(x,1)\n r(x,1)", "serializable", [0, 1], ""),
    ("w(x,1)\n r(x,1)", "serializable", [1, 0], "1 could not have read what it read of x"),
    ("w(x,1)\n r(x,1)", "serializable", [0, 0, 1], "a transaction is in the order twice"),
    ("w(x,1)\n r(x,1)", "serializable", [0], "1 completed with ok, and is not in the order"),
    ("w(x,1) !\n r(x,-)", "serializable", [1], ""),
    ("w(x,1) !\n r(x,-)", "serializable", [1, 0], "0 failed, and is in the order"),
    ("a(x,1)\n r(x,[1]) a(x,2) r(x,[1,2])", "serializable", [0, 1], ""),
    ("a(x,1)\n a(x,2) r(x,[2])", "serializable", [0, 1], "1 could not have read what it read of x"),
    ("a(x,1)\n a(x,2) r(x,[1])", "serializable", [0, 1], "1 could not have read what it read of x"),
    ("a(x,1)\n a(x,2) r(x,[3,2])", "serializable", [0, 1], "1 could not have read what it read of x"),
    ("a(x,1)\n a(x,2) r(x,[1,3])", "serializable", [0, 1], "1 could not have read what it read of x"),
    ("a(x,1)\n r(x,[])", "serializable", [0, 1], "1 could not have read what it read of x"),
    (IN_TIME, "strong-session-serializable", [2, 0], ""),
    (IN_TIME, "strict-serializable", [2, 0], "0 had ended before 2 began"),
    (OWN_WRITE, "serializable", [2, 0], ""),
    (OWN_WRITE, "strong-session-serializable", [2, 0], "0 had ended before 2 began"),
    (IN_TIME, "strong-session-snapshot-isolation", ["b2", "c2", "b0", "c0"], ""),
    (IN_TIME, "strong-session-snapshot-isolation", ["b0", "b2", "c0", "c2"], ""),
    (IN_TIME, "strong-snapshot-isolation", ["b0", "b2", "c0", "c2"], "0 had ended before 2 began"),
    ("w(x,1)\n r(x,-)", "strong-snapshot-isolation", ["b0", "b1", "c0", "c1"], ""),
    ("w(x,1)\n w(x,2)", "snapshot-isolation", ["b0", "c0", "b1", "c1"], ""),
    ("w(x,1)\n w(x,2)", "snapshot-isolation", ["b0", "b1", "c0", "c1"], "0 and 1 both write x"),
    ("w(x,1)\n w(y,2)", "snapshot-isolation", ["b0", "b1", "c0", "c1"], ""),
    ("w(x,1)", "snapshot-isolation", ["c0", "b0"], "0 commits before it begins"),
    ("w(x,1)", "snapshot-isolation", ["b0", "b0", "c0"], "0 begins twice"),
    ("w(x,1)", "snapshot-isolation", ["b0", "c0", "c0"], "a transaction is in the order twice"),
    ("w(x,1)\n w(y,1) ?", "snapshot-isolation", ["b0", "c0", "b1"], "a transaction begins and never commits"),
    (UNREAD_APPEND, "read-uncommitted", [0, 1, 2, 3], ""),
    (UNREAD_APPEND, "read-uncommitted", [2, 0, 1, 3], "a list of x was read that shows another order of 0"),
    (UNREAD_APPEND, "read-uncommitted", [1, 0, 2, 3], "a list of x was read that shows another order of 0"),
    (CONTRADICTORY, "read-uncommitted", [0, 1, 2, 3], ""),
    (CONTRADICTORY, "read-uncommitted", [1, 0, 2, 3], ""),
    (HALF_READ, "read-uncommitted", [0, 1, 2], ""),
    (HALF_READ, "read-uncommitted", [1, 0, 2], "a list of x was read that shows another order of 0"),
]
"""What transactions did, the model, an order of them, and what is wrong with it, if anything is."""


@pytest.mark.parametrize(("text", "model", "order", "wrong"), ORDERS)
def test_an_order_holds_only_where_the_model_allows_it(
    text: str, model: str, order: list[Any], wrong: str, tmp_path: Path
) -> None:
    history = history_of(text, tmp_path)
    with pytest.raises(Refuted, match=re.escape(wrong)) if wrong else nullcontext():
        require_order(history, DEMANDS[model], order)


@pytest.mark.parametrize(("text", "model", "order", "wrong"), ORDERS)
def test_so_it_is_however_few_chains_of_transactions_are_followed_at_a_time(
    text: str, model: str, order: list[Any], wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.transactions.verify.commits.CELLS", 1)
    test_an_order_holds_only_where_the_model_allows_it(text, model, order, wrong, tmp_path)


@pytest.mark.parametrize(("text", "model", "order", "wrong"), [case for case in ORDERS if "a(" in case[0]])
def test_so_it_is_where_all_numbers_are_below_zero(
    text: str, model: str, order: list[Any], wrong: str, tmp_path: Path
) -> None:
    path = write_rows(history_rows(negated(parsed(text))), TRANSACTION, tmp_path / "history.parquet")
    with pytest.raises(Refuted, match=re.escape(wrong)) if wrong else nullcontext():
        require_order(read_history(path, lists=True), DEMANDS[model], order)


Entry = dict[str, Any]


def step(source: Any, target: Any, because: str, **more: Any) -> Entry:
    return {"source": source, "target": target, "because": because, **more}


def of(reader: Any, writer: Any, *path: int, key: str = "x") -> Entry:
    """What a step names that rests on a read."""
    return {"key": key, "reader": reader, "writer": writer, "path": list(path)}


def on_x(*path: int) -> Entry:
    return {"key": "x", "path": list(path)}


READ_Y = step(1, 2, "read", key="y")
HEARD_BY = [step(0, 2, "session"), step(2, 4, "read", key="y"), step(4, 6, "session")]
FIRST, SECOND = step(-1, 0, "initial"), step(-1, 1, "initial")
SEEN_IN_SESSION = [step(0, 2, "session"), step(-1, 0, "initial")]
SHOWN_ORDER = "a(x,1) a(x,3)\n a(x,2)\n r(x,[1,2,3])"
AT_SI = [step("c-1", "b0", "initial"), step("b0", "c0", "inside"), step("c0", "b1", "read", key="x")]
READ_AT_SI = "w(x,1)\n r(x,1) w(x,2)"
READ_EARLIER = "w(x,1)\n w(x,2) w(y,2)\n r(x,1) r(y,2) r(x,1)"
READ_LATER = "w(x,1)\n w(x,2) w(y,2)\n r(x,1) r(y,2)"

STEPS: list[tuple[str, str, list[Entry], str]] = [
    ("w(x,1)", "serializable", [FIRST], ""),
    ("w(x,1)", "serializable", [step(0, -1, "initial")], "only the initial transaction is before all others"),
    ("w(x,1)", "serializable", [step(-1, -1, "initial")], "only the initial transaction is before all others"),
    ("w(x,1) ?", "serializable", [FIRST], "0 is not known to have happened"),
    ("w(x,1) ?\n r(x,1)", "serializable", [FIRST], ""),
    ("w(x,1) !\n r(x,1)", "serializable", [FIRST], "0 is not known to have happened"),
    ("w(x,1)", "serializable", [step(0, 0, "inside")], "transactions of this model have no inside"),
    ("w(x,1)", "snapshot-isolation", [step("b0", "c0", "inside")], ""),
    ("w(x,1)", "snapshot-isolation", [step("c0", "b0", "inside")], "it is not between these events"),
    ("w(x,1)", "snapshot-isolation", [step("b0", "b0", "inside")], "it is not between these events"),
    ("w(x,1)\n w(x,2)", "snapshot-isolation", [step("b0", "c1", "inside")], "of two transactions"),
    ("a(x,1)\n r(x,[1])", "serializable", [step(0, 1, "read", key="x")], ""),
    ("a(x,1)\n a(x,2)\n r(x,[1,2])", "serializable", [step(0, 2, "read", key="x")], "2 did not read x from 0"),
    (TWO_WRITERS, "serializable", [READ_Y], ""),
    (TWO_WRITERS, "serializable", [step(0, 2, "read", key="y")], "2 did not read y from 0"),
    (TWO_WRITERS, "serializable", [step(1, 2, "read", key="x")], "2 did not read x from 1"),
    (TWO_WRITERS, "read-uncommitted", [READ_Y], "step 0 may not be taken because of 'read'"),
    (TWO_WRITERS, "serializable", [step(0, 1, "case", key="x")], "step 0 may not be taken because of 'case'"),
    (OWN_WRITE, "read-your-writes", [step(0, 2, "session")], ""),
    (OWN_WRITE, "strong-session-PL-2", [step(0, 2, "session")], ""),
    (OWN_WRITE, "serializable", [step(0, 2, "session")], "the model knows no sessions"),
    (OWN_WRITE, "causal", [step(2, 0, "session")], "2 had not ended when 0 began"),
    (OWN_WRITE, "causal", [step(-1, 0, "session")], "not of one session"),
    (OWN_WRITE, "causal", [step(0, -1, "session")], "not of one session"),
    (IN_TIME, "causal", [step(0, 2, "session")], "not of one session"),
    (IN_TIME, "strict-serializable", [step(0, 2, "realtime")], ""),
    (IN_TIME, "strict-serializable", [step(2, 0, "realtime")], "2 had not ended when 0 began"),
    (IN_TIME, "strict-serializable", [step(-1, 0, "realtime")], "the initial transaction is in no time"),
    (IN_TIME, "strong-session-serializable", [step(0, 2, "realtime")], "the model does not keep realtime order"),
    ("[0,2] w(x,1)\n [1,3] r(x,-)", "strict-serializable", [step(0, 1, "realtime")], "0 had not ended when 1 began"),
    ("[0,1] w(x,1) ?\n [2,3] r(x,1)", "strict-serializable", [step(0, 2, "realtime")], "0 had not ended when 2 began"),
    (TWO_WRITERS, "causal", [step(0, 1, "known", key="x")], "registers do not show the order of their writes"),
    (UNREAD_APPEND, "causal", [step(0, 1, "known", key="x")], ""),
    (
        UNREAD_APPEND,
        "causal",
        [step(1, 0, "known", key="x")],
        "the longest list that was read does not show this order",
    ),
    (UNREAD_APPEND, "causal", [step(0, 2, "known", key="x")], ""),
    (UNREAD_APPEND, "causal", [step(1, 2, "known", key="x")], ""),
    (
        UNREAD_APPEND,
        "causal",
        [step(2, 1, "known", key="x")],
        "the longest list that was read does not show this order",
    ),
    (UNREAD_APPEND, "causal", [step(0, 3, "known", key="x")], "not two writers of the key"),
    (UNREAD_APPEND, "causal", [step(-1, 0, "known", key="x")], "not two writers of the key"),
    (SHOWN_ORDER, "causal", [step(1, 0, "known", key="x")], ""),
    (SHOWN_ORDER, "causal", [step(0, 1, "known", key="x")], ""),
    (TWO_WRITERS, "causal", [READ_Y, step(1, 0, "overwritten", **of(2, 0, 0))], ""),
    (TWO_WRITERS, "causal", [READ_Y, step(1, 0, "overwritten", **of(2, 0))], "its path does not lead there"),
    (TWO_WRITERS, "causal", [FIRST, step(1, 0, "overwritten", **of(2, 0, 0))], "its path does not lead there"),
    (TWO_WRITERS, "causal", [READ_Y, step(1, 2, "overwritten", **of(2, 0, 0))], "not from another writer to the one"),
    (TWO_WRITERS, "causal", [READ_Y, step(0, 0, "overwritten", **of(2, 0, 0))], "not from another writer to the one"),
    (TWO_WRITERS, "causal", [READ_Y, step(1, 0, "overwritten", **of(2, 1, 0))], "2 did not read x from 1"),
    (TWO_WRITERS, "causal", [READ_Y, step(1, 0, "overwritten", **of(2, 0, 1))], "1 is not the number of an earlier"),
    (TWO_WRITERS, "PL-2", [READ_Y, step(1, 0, "overwritten", **of(2, 0, 0))], "nothing is seen at this model"),
    (TWO_WRITERS, "read-committed", [READ_Y, step(1, 0, "overwritten", **of(2, 0, 0))], ""),
    (READ_EARLIER, "read-committed", [READ_Y, step(1, 0, "overwritten", **of(2, 0, 0))], ""),
    (
        READ_LATER,
        "read-committed",
        [READ_Y, step(1, 0, "overwritten", **of(2, 0, 0))],
        "nothing of that was read earlier",
    ),
    (TWO_WRITERS, "read-atomic", [READ_Y, step(1, 0, "overwritten", **of(2, 0, 0))], ""),
    (TWO_WRITERS, "read-your-writes", [READ_Y, step(1, 0, "overwritten", **of(2, 0, 0))], "by the path read"),
    (
        "w(x,1) w(y,1)\n r(x,1) w(x,2)",
        "causal",
        [step(1, 0, "overwritten", **of(1, 0))],
        "nothing is seen without a step",
    ),
    (
        "w(x,1)\n w(y,2)\n r(y,2) r(x,1)",
        "causal",
        [READ_Y, step(1, 0, "overwritten", **of(2, 0, 0))],
        "1 did not write x",
    ),
    (OWN_WRITE, "read-your-writes", [step(0, 2, "session"), step(0, -1, "overwritten", **of(2, -1, 0))], ""),
    (OWN_WRITE, "monotonic-writes", [step(0, 2, "session"), step(0, -1, "overwritten", **of(2, -1, 0))], "by the path"),
    (
        OWN_WRITE,
        "read-your-writes",
        [FIRST, step(0, 2, "session"), step(0, -1, "overwritten", **of(2, -1, 0, 1))],
        "its",
    ),
    (
        "[0,1] w(x,1) | [2,3] w(y,1) | [4,5] r(x,-)",
        "read-your-writes",
        [step(0, 2, "session"), step(2, 4, "session"), step(0, -1, "overwritten", **of(4, -1, 0, 1))],
        "",
    ),
    (
        HEARD,
        "pram",
        [*HEARD_BY, step(0, -1, "overwritten", **of(6, -1, 0, 1, 2))],
        "",
    ),
    (
        HEARD,
        "causal",
        [*HEARD_BY, step(0, -1, "overwritten", **of(6, -1, 0, 1, 2))],
        "",
    ),
    (
        HEARD,
        "pram",
        [*HEARD_BY, step(0, -1, "overwritten", **of(6, -1, 0, 2))],
        "the path [0, 2] has a gap",
    ),
    (LOST_UPDATE, "serializable", [FIRST, SECOND, step(0, 1, "overwrites", **of(0, -1, 1))], ""),
    (LOST_UPDATE, "cursor-stability", [FIRST, SECOND, step(0, 1, "overwrites", **of(0, -1, 1))], ""),
    (LOST_UPDATE, "causal", [FIRST, SECOND, step(0, 1, "overwrites", **of(0, -1, 1))], "need not precede the next"),
    (LOST_UPDATE, "serializable", [FIRST, SECOND, step(0, 0, "overwrites", **of(0, -1, 0))], "to another writer"),
    (LOST_UPDATE, "serializable", [FIRST, SECOND, step(1, 0, "overwrites", **of(0, -1, 0))], "to another writer"),
    (LOST_UPDATE, "serializable", [FIRST, SECOND, step(0, 1, "overwrites", **of(0, -1, 0))], "its path does not lead"),
    (LOST_UPDATE, "serializable", [step(0, -1, "overwrites", **of(0, -1))], "to another writer"),
    ("r(x,-)\n w(x,2)", "cursor-stability", [SECOND, step(0, 1, "overwrites", **of(0, -1, 0))], "0 did not write x"),
    ("r(x,-)\n w(x,2)", "serializable", [SECOND, step(0, 1, "overwrites", **of(0, -1, 0))], ""),
    ("r(x,-)\n w(y,2)", "serializable", [SECOND, step(0, 1, "overwrites", **of(0, -1, 0))], "1 did not write x"),
    (READ_AT_SI, "snapshot-isolation", [*AT_SI, step("c0", "b1", "exclusive", **on_x(1, 2))], "does not lead there"),
    (
        READ_AT_SI,
        "snapshot-isolation",
        [*AT_SI, step("b1", "c1", "inside"), step("c0", "b1", "exclusive", **on_x(1, 2, 3))],
        "",
    ),
    (READ_AT_SI, "serializable", [step(0, 1, "exclusive", **on_x())], "writers of this model have no begin"),
    (READ_AT_SI, "snapshot-isolation", [*AT_SI, step("c0", "b0", "exclusive", **on_x(1))], "not two writers"),
    (
        "w(x,1)\n r(x,1) w(y,2)",
        "snapshot-isolation",
        [*AT_SI, step("b1", "c1", "inside"), step("c0", "b1", "exclusive", **on_x(1, 2, 3))],
        "1 did not write x",
    ),
    (
        "w(x,1) w(y,1)\n r(x,1) w(y,2)",
        "snapshot-isolation",
        [*AT_SI, step("b1", "c1", "inside"), step("c1", "b0", "exclusive", key="y", path=[1, 2, 3])],
        "its path does not lead there",
    ),
]
"""What transactions did, the model, steps that may be taken but for the last, and what is wrong with that, if anything
is."""


def taken(history: TransactionHistory, model: str, entries: list[Entry], wrong: str) -> None:
    facts = Facts(history=history, demand=DEMANDS[model])
    steps: list[JudgedStep] = []
    for entry in entries[:-1]:
        steps.append(facts.step(entry, steps, is_case=False))
    with pytest.raises(Refuted, match=re.escape(wrong)) if wrong else nullcontext():
        facts.step(entries[-1], steps, is_case=False)


@pytest.mark.parametrize(("text", "model", "entries", "wrong"), STEPS)
def test_a_step_is_taken_only_by_its_rule(
    text: str, model: str, entries: list[Entry], wrong: str, tmp_path: Path
) -> None:
    taken(history_of(text, tmp_path), model, entries, wrong)


@pytest.mark.parametrize(("text", "model", "entries", "wrong"), [case for case in STEPS if "a(" in case[0]])
def test_so_is_one_about_numbers_below_zero(
    text: str, model: str, entries: list[Entry], wrong: str, tmp_path: Path
) -> None:
    path = write_rows(history_rows(negated(parsed(text))), TRANSACTION, tmp_path / "history.parquet")
    taken(read_history(path, lists=True), model, entries, wrong)


@pytest.mark.parametrize(
    ("text", "entry", "wrong"),
    [
        (TWO_WRITERS, step(0, 1, "case", key="x"), ""),
        (TWO_WRITERS, step(0, 0, "case", key="x"), "not two writers"),
        (TWO_WRITERS, step(0, 2, "case", key="x"), "2 did not write x"),
        (TWO_WRITERS, step(2, 0, "case", key="x"), "2 did not write x"),
        (TWO_WRITERS, READ_Y, "may not be taken because of 'read'"),
    ],
)
def test_a_case_is_of_two_writers_of_a_key(text: str, entry: Entry, wrong: str, tmp_path: Path) -> None:
    facts = Facts(history=history_of(text, tmp_path), demand=DEMANDS["serializable"])
    with pytest.raises(Refuted, match=wrong) if wrong else nullcontext():
        facts.step(entry, [], is_case=True)


CYCLE_OF_READS = [step(1, 0, "read", key="x"), step(0, 1, "read", key="y")]
SEEN_ONLY = "[0,1] r(x,1) | [2,3] w(x,1)"


@pytest.mark.parametrize(
    ("text", "model", "steps", "cycle", "wrong"),
    [
        ("r(x,1) w(y,1)\n w(x,1) r(y,1)", "PL-2", CYCLE_OF_READS, [0, 1], ""),
        ("r(x,1) w(y,1)\n w(x,1) r(y,1)", "PL-2", CYCLE_OF_READS, [0], "[0] is no cycle"),
        ("r(x,1) w(y,1)\n w(x,1) r(y,1)", "PL-2", CYCLE_OF_READS, [], "[] is no cycle"),
        (SEEN_ONLY, "strong-session-PL-2", [step(2, 0, "read", key="x"), step(0, 2, "session")], [0, 1], ""),
        (
            SEEN_ONLY,
            "read-your-writes",
            [step(2, 0, "read", key="x"), step(0, 2, "session")],
            [0, 1],
            "the order of this model need not keep to sessions",
        ),
    ],
)
def test_a_proof_ends_in_a_cycle_that_the_model_keeps_to(
    text: str, model: str, steps: list[Entry], cycle: list[int], wrong: str, tmp_path: Path
) -> None:
    history, blocks = history_of(text, tmp_path), [{"within": None, "steps": steps, "cycle": cycle}]
    with pytest.raises(Refuted, match=re.escape(wrong)) if wrong else nullcontext():
        require_proof(history, DEMANDS[model], blocks)
