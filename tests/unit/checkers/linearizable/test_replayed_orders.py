"""What a replay believes: each object says no to what it cannot have told, and an order is held against its history."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.linearizable.replay import OBJECTS, fault, plain
from checkers.linearizable.replay.files import Unreadable

Step = tuple[Any, ...]
"""f, argument and result; without a result of unknown outcome."""

TOKENS = (("acquire", None, 3), ("release", None, None))

IMPOSSIBLE: list[tuple[str, Any, tuple[Step, ...]]] = [
    ("register", None, (("write", 1, 1), ("read", None, 2))),
    ("register", None, (("write", 1, 1), ("read", None, None))),
    ("register", None, (("write", 1, 1), ("read", None, True))),
    ("register", None, (("write", [1], [1]), ("read", None, [1, 2]))),
    ("register", None, (("write", [1], [1]), ("read", None, [2]))),
    ("register", None, (("write", {"a": 1}, {"a": 1}), ("read", None, {"a": 2}))),
    ("register", None, (("write", {"a": 1}, {"a": 1}), ("read", None, {"b": 1}))),
    ("register", 7, (("read", None, 0),)),
    ("cas-register", None, (("write", 1, 1), ("cas", [2, 3], [2, 3]))),
    ("cas-register", None, (("write", 1, 1), ("cas", [1, 2], [1, 2]), ("read", None, 1))),
    ("cas-register", None, (("write", 1, 1), ("cas", [1, 2], "failed"))),
    ("cas-register", None, (("write", 1, 1), ("cas", [2, 3], "failed"), ("read", None, 3))),
    ("multi-register", None, (("write", [["w", "x", 1]], [["w", "x", 1]]), ("read", None, [["r", "x", 2]]))),
    ("multi-register", None, (("write", [["write", "x", 1]], [["write", "x", 1]]), ("read", None, [["r", "x", None]]))),
    ("multi-register", None, (("write", [["w", 1, 5]], [["w", 1, 5]]), ("read", None, [["r", "1", 5]]))),
    ("multi-register", {"x": 7}, (("read", None, [["r", "x", None]]),)),
    ("multi-register", None, (("txn", None, [["r", "x", 1], ["w", "x", 1]]),)),
    ("map", None, (("get", None, "a"),)),
    ("map", None, (("put", "a", "a"), ("get", None, ""))),
    ("map", None, (("put", "a", "a"), ("put", "b", "b"), ("get", None, "ab"))),
    ("map", None, (("put", "a", "a"), ("append", "b", "b"), ("get", None, "b"))),
    ("set", None, (("add", 1, True), ("read", None, []))),
    ("set", None, (("add", 1, True), ("read", None, None))),
    ("set", None, (("add", 1, True), ("add", 1, True))),
    ("set", None, (("add", 1, False),)),
    ("set", None, (("contains", 1, True),)),
    ("set", None, (("add", 1, True), ("contains", 1, False))),
    ("set", None, (("remove", 1, True),)),
    ("set", None, (("add", 1, True), ("remove", 1, False))),
    ("set", [1], (("remove", 1, True), ("contains", 1, True))),
    ("mutex", None, (("acquire", None, None), ("acquire", None, None))),
    ("mutex", None, (("release", None, None),)),
    ("mutex", None, (("acquire", None, None), ("release", None, None), ("release", None, None))),
    ("mutex", True, (("acquire", None, None),)),
    ("fenced-lock", None, (("acquire", None, 3), ("acquire", None, 4))),
    ("fenced-lock", None, (("release", None, None),)),
    ("fenced-lock", None, (*TOKENS, ("release", None, None))),
    ("fenced-lock", None, (*TOKENS, ("acquire", None, 3))),
    ("fenced-lock", None, (("acquire", None, 0),)),
    ("fenced-lock", None, (("acquire", None, None),)),
    ("fenced-lock", None, (("acquire", None), ("acquire", None, 4))),
    ("fenced-lock", None, (("acquire", None, 3), ("release", 2, 2))),
    ("fenced-lock", None, (("acquire", None, 3), ("release", 4, 4))),
    ("fenced-lock", 3, (("acquire", None), ("release", 3, 3))),
    ("fenced-lock", None, (("acquire", None), ("release", 5, 5), ("acquire", None, 5))),
    ("fenced-lock", None, (*TOKENS, ("acquire", None), ("release", None, None), ("acquire", None, 4))),
    ("leased-lock", None, (("acquire", None, 3), ("acquire", None, 3))),
    ("leased-lock", None, (("acquire", None, 0),)),
    ("leased-lock", None, (("acquire", None, "x"),)),
    ("leased-lock", None, (("acquire", None, 3), ("release", 2, 2))),
    ("counter", None, (("add", 2, 2), ("read", None, 1))),
    ("counter", 5, (("add", 2, 2), ("read", None, 2))),
    ("fifo-queue", None, (("enqueue", 1, 1), ("enqueue", 2, 2), ("dequeue", None, 2))),
    ("fifo-queue", None, (("enqueue", 1, 1), ("dequeue", None, None))),
    ("fifo-queue", None, (("dequeue", None, 1),)),
    ("fifo-queue", None, (("enqueue", 1, 1), ("dequeue", None), ("dequeue", None, 1))),
    ("unordered-queue", None, (("dequeue", None, 1),)),
    ("unordered-queue", None, (("enqueue", 1, 1), ("dequeue", None, 1), ("dequeue", None, 1))),
    ("unordered-queue", None, (("enqueue", 1, 1), ("dequeue", None, None))),
    ("unordered-queue", None, (("dequeue", None), ("enqueue", 1, 1), ("dequeue", None, None))),
    ("unordered-queue", None, (("enqueue", 1, 1), ("enqueue", 2, 2), ("dequeue", None), ("dequeue", None, None))),
    ("unordered-queue", None, (("enqueue", 1, 1), ("dequeue", None), ("dequeue", None, None), ("dequeue", None, 1))),
    ("unordered-queue", [1], (("dequeue", None, None),)),
    ("priority-queue", None, (("enqueue", 2, 2), ("enqueue", 1, 1), ("dequeue", None, 2))),
    ("priority-queue", [2, 1], (("dequeue", None, 2),)),
    ("priority-queue", None, (("enqueue", 1, 1), ("dequeue", None, None))),
    ("priority-queue", None, (("enqueue", 2, 2), ("enqueue", 1, 1), ("dequeue", None), ("dequeue", None, 1))),
    ("stack", None, (("push", 1, 1), ("push", 2, 2), ("pop", None, 1))),
    ("stack", None, (("push", 1, 1), ("pop", None, None))),
    ("stack", None, (("push", 1, 1), ("push", 2, 2), ("pop", None), ("pop", None, 2))),
    ("append-log", None, (("append", 1, 1), ("read", None, []))),
    ("append-log", None, (("append", 1, [1, 1]),)),
    ("append-log", None, (("append", 1, [0, 2]),)),
    ("append-log", [5], (("append", 1, [0, 1]),)),
    ("echo", None, (("echo", "a", "b"),)),
]
"""Model, the value it begins with, and what is asked of it: all of it can happen but the last."""

POSSIBLE: list[tuple[str, Any, tuple[Step, ...]]] = [
    ("register", None, (("read", None, None), ("write", 1, 1), ("read", None, 1.0), ("read", None))),
    ("register", None, (("write", [1, {"a": True}], None), ("read", None, [1, {"a": True}]))),
    ("register", 7, (("read", None, 7), ("read", None, None))),
    ("cas-register", 1, (("cas", [1, 2], [1, 2]), ("cas", [1, 3], "failed"), ("read", None, 2))),
    ("multi-register", {"x": 7}, (("txn", None, [["r", "x", 7], ["w", "x", 1], ["r", "x", 1], ["r", "y", None]]),)),
    ("multi-register", None, (("txn", [["r", "x", 4], ["write", "x", 1]]), ("read", None, [["r", "x", 1]]))),
    ("map", None, (("get", None, None), ("get", None, ""), ("append", "a", "a"), ("append", "b", "b"))),
    ("map", "a", (("append", "b", "b"), ("get", None, "ab"), ("get", None), ("put", "c", None), ("get", None, "c"))),
    (
        "set",
        [1, [2]],
        (("add", 1, False), ("add", 3, 3), ("remove", 1, None), ("read", None, [3, [2]]), ("read", None)),
    ),
    ("set", None, (("add", 1), ("add", 1), ("remove", 2), ("contains", 5), ("contains", 1, True), ("remove", 1, True))),
    ("mutex", None, (("acquire", None, None), ("release", None, None), ("acquire", None))),
    ("mutex", True, (("release", None, None),)),
    ("fenced-lock", None, (*TOKENS, ("acquire", None, 4), ("release", 4, 4), ("acquire", None), ("release", 7, 7))),
    ("fenced-lock", 2, (("acquire", None), ("release", 3, 3), ("acquire", None, 4))),
    (
        "leased-lock",
        2,
        (("release", 2, 2), ("acquire", None, 3), ("acquire", None), ("acquire", None, 4), ("release", 4)),
    ),
    ("fenced-lock", None, (("acquire", None, 1), ("release", 1, 1))),
    ("leased-lock", None, (("acquire", None, 1), ("release", 1, 1))),
    ("counter", None, (("read", None, 0), ("add", 2, 2), ("read", None, 2))),
    ("set", None, (("add", {"a": 1, "b": 2}, True), ("contains", {"b": 2, "a": 1}, True))),
    ("unordered-queue", None, (("enqueue", {"a": 1, "b": 2}, None), ("dequeue", None, {"b": 2, "a": 1}))),
    ("unordered-queue", None, (("enqueue", {"b": 2, "a": 1}, None), ("dequeue", None, {"a": 1, "b": 2}))),
    ("multi-register", None, (("write", [["w", {"a": 1, "b": 2}, 5]]), ("read", None, [["r", {"b": 2, "a": 1}, 5]]))),
    ("counter", 1, (("add", 2, 2), ("add", -1), ("read", None, 2), ("read", None))),
    ("fifo-queue", [1], (("enqueue", 2, 2), ("dequeue", None, 1), ("dequeue", None, 2), ("dequeue", None, None))),
    (
        "fifo-queue",
        None,
        (("dequeue", None), ("enqueue", 2, 2), ("enqueue", 3), ("dequeue", None), ("dequeue", None, 3)),
    ),
    ("unordered-queue", [1], (("enqueue", 2, 2), ("dequeue", None, 2), ("dequeue", None, 1), ("dequeue", None, None))),
    ("unordered-queue", None, (("enqueue", 1, 1), ("enqueue", 1, 1), ("dequeue", None, 1), ("dequeue", None, 1))),
    (
        "unordered-queue",
        None,
        (("dequeue", None), ("enqueue", 1, 1), ("dequeue", None), ("dequeue", None, None), ("dequeue", None, None)),
    ),
    (
        "unordered-queue",
        None,
        (("enqueue", 1, 1), ("dequeue", None), ("enqueue", 1, 1), ("dequeue", None, 1), ("dequeue", None, None)),
    ),
    ("priority-queue", [2], (("enqueue", 1, 1), ("dequeue", None, 1), ("dequeue", None, 2), ("dequeue", None, None))),
    ("priority-queue", None, (("dequeue", None), ("enqueue", 3, 3), ("dequeue", None, 3))),
    ("stack", [1], (("push", 2, 2), ("pop", None, 2), ("pop", None, 1), ("pop", None, None))),
    ("stack", None, (("pop", None), ("push", 2, 2), ("pop", None, 2))),
    ("append-log", [5], (("append", 1, [1, 1]), ("append", 2, 2), ("append", 3), ("read", None, [5, 1, 2, 3]))),
    ("append-log", None, (("append", [0, 7], [0, 7]), ("append", 1, None), ("read", None))),
    ("echo", None, (("echo", "a", "a"), ("echo", [1], [1]))),
]


def happens(model: str, initial: Any, steps: tuple[Step, ...]) -> list[bool]:
    run = OBJECTS[model](initial)
    return [run(f, argument, result[0] if result else None, bool(result)) for f, argument, *result in steps]


@pytest.mark.parametrize(("model", "initial", "steps"), IMPOSSIBLE)
def test_an_object_does_not_tell_what_it_cannot(model: str, initial: Any, steps: tuple[Step, ...]) -> None:
    assert happens(model, initial, steps) == [True] * (len(steps) - 1) + [False]


@pytest.mark.parametrize(("model", "initial", "steps"), POSSIBLE)
def test_an_object_tells_what_it_may(model: str, initial: Any, steps: tuple[Step, ...]) -> None:
    assert happens(model, initial, steps) == [True] * len(steps)


@pytest.mark.parametrize("f", ["add", "remove"])
def test_what_a_set_answered_counts_only_where_the_outcome_is_known(f: str) -> None:
    """Whether it is known is the last argument."""
    for element, answer in ((1, True), (1, False), (2, True), (2, False)):
        assert OBJECTS["set"]([1])(f, element, answer, False)
        assert OBJECTS["set"]([1])(f, element, answer, True) is (answer is ((element == 1) is (f == "remove")))


def test_every_object_is_here() -> None:
    assert {model for model, *_ in IMPOSSIBLE} == {model for model, *_ in POSSIBLE} == set(OBJECTS)


WRITTEN = "0 invoke write 1, 0 ok write 1, "
AT_ONCE = "0 invoke write 1, 1 invoke read -, 0 ok write 1, 1 ok read 1"


def rows_of(text: str) -> list[dict[str, Any]]:
    """`process type f value [key=k] [error=e]`, one behind the other; `-` is null, `cas` has `expected/new`."""
    rows = []
    for index, words in enumerate(row.split() for row in text.strip(", ").split(",")):
        process, kind, f, value, *more = words
        said = dict(part.split("=") for part in more)
        number = None if value == "-" else [int(one) for one in value.split("/")]
        row = {"index": index, "process": int(process), "type": kind, "f": f, "key": said.get("key")}
        value_ = number[0] if number is not None and len(number) == 1 else number
        rows.append(row | {"value": value_, "error": said.get("error")})
    return rows


@pytest.mark.parametrize(
    ("text", "order", "wrong"),
    [
        (AT_ONCE, [0, 1], None),
        (AT_ONCE, [1, 0], "read 1 could not have returned 1"),
        (AT_ONCE, [0, 1, 0], "the order names an operation twice"),
        (AT_ONCE, [0, 2, 1], "2 is no invocation"),
        (AT_ONCE, [0], "1 is missing"),
        (AT_ONCE, [], "0 is missing"),
        (
            WRITTEN + "1 invoke write 2, 1 ok write 2",
            [2, 0],
            "0 had ended when 2, which the order puts before it, began",
        ),
        ("0 invoke write 1, 1 invoke write 2, 0 ok write 1, 1 ok write 2", [1, 0], None),
        ("0 invoke write 1, 0 info write 1, 1 invoke write 2, 1 ok write 2", [2, 0], None),
        ("0 invoke write 1, 1 invoke write 2, 1 ok write 2", [1, 0], None),
        ("0 invoke write 1, 1 invoke write 2, 1 ok write 2", [1], None),
        ("0 invoke write 1, 0 info write 1", [], None),
        ("0 invoke write 1, 0 fail write 1", [], None),
        ("0 invoke write 1, 0 fail write 1", [0], "0 failed"),
        ("0 invoke read -, 0 ok read -", [], None),
        (WRITTEN + "0 invoke read -, 0 info read 2", [0, 2], None),
        ("0 invoke acquire -, 0 ok acquire -", [], "0 is missing"),
        ("-1 info kill -, " + WRITTEN, [1], None),
    ],
)
def test_an_order_is_complete_in_time_and_as_the_object_would_have_it(
    text: str, order: list[int], wrong: str | None
) -> None:
    assert fault(rows_of(text), {"": order}, lambda: OBJECTS["register"](None), False) == wrong


MISSED = WRITTEN + "1 invoke cas 2/3, 1 fail cas -"
REFUSED = f"{MISSED} error=not-master"


@pytest.mark.parametrize(
    ("text", "answers", "order", "wrong"),
    [
        (MISSED, False, [0], None),
        (MISSED, False, [0, 2], "2 failed"),
        (MISSED, True, [0, 2], None),
        (MISSED, True, [0], "2 is missing"),
        (REFUSED, True, [0], None),
        (REFUSED, True, [0, 2], "2 failed"),
        (MISSED.replace("2/3", "1/3"), True, [0, 2], "cas 2 could not have returned 'failed'"),
        (WRITTEN + "1 invoke write 2, 1 fail write 2", True, [0, 2], "2 failed"),
        (WRITTEN + "1 invoke cas 2/3, 1 info cas -", True, [0], None),
        (WRITTEN + "1 invoke cas 2/3, 1 info cas -", True, [0, 2], "cas 2 could not have returned None"),
    ],
)
def test_a_cas_that_failed_is_in_the_order_where_that_is_an_answer(
    text: str, answers: bool, order: list[int], wrong: str | None
) -> None:
    assert fault(rows_of(text), {"": order}, lambda: OBJECTS["cas-register"](None), answers) == wrong


def test_every_key_has_an_order_of_its_own() -> None:
    rows = rows_of("0 invoke write 1 key=x, 0 ok write 1, 1 invoke read - key=y, 1 ok read -")
    for orders, wrong in (
        ({"x": [0], "y": [2]}, None),
        ({"x": [0], "y": [2], "z": []}, None),
        ({"x": [0]}, "y: has no order"),
        ({"x": [2], "y": [2]}, "x: 2 is no invocation"),
        ({"x": [0], "y": [2], "z": [0]}, "z: nothing in the history is on this key"),
    ):
        assert fault(rows, orders, lambda: OBJECTS["register"](None), False) == wrong


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("0 invoke write 1, 0 invoke write 2", "row 1: process 0 has an operation open"),
        (WRITTEN + "0 ok write 2", "row 2: process 0 completes what it did not invoke"),
        ("0 invoke write 1, 1 ok write 2", "row 1: process 1 completes what it did not invoke"),
    ],
)
def test_operations_that_do_not_pair_are_no_history(text: str, wrong: str) -> None:
    with pytest.raises(Unreadable, match=wrong):
        fault(rows_of(text), {"": []}, lambda: OBJECTS["register"](None), False)


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (None, None),
        ({"json": None}, None),
        ({"json": "[1]"}, [1]),
        ({"value": 1}, 1),
        ({"value": None, "expected": None}, None),
        ({"value": 2, "expected": 1}, [1, 2]),
        ({"value": 1, "expected": None}, 1),
    ],
)
def test_a_value_means_what_its_column_says(value: Any, meant: Any) -> None:
    assert plain(value) == meant
