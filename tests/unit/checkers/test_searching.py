"""Searches end when they are told to, and say what they do to whoever listens."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from checkers import search_budget
from checkers.search_budget import Effort, heard_by, saying_of, searching_until


def test_a_search_is_over_once_the_moment_has_passed_and_without_one_never() -> None:
    assert not search_budget.is_bounded() and not search_budget.is_over()
    with searching_until(time.time() + 1_000):
        assert search_budget.is_bounded() and not search_budget.is_over() and 900 < search_budget.left_s() <= 1_000
        with searching_until(0.0):
            assert search_budget.is_over() and search_budget.left_s() == 0.0
        with searching_until(None):
            assert not search_budget.is_bounded() and search_budget.left_s() == search_budget.LONGEST_WAIT_S
        assert not search_budget.is_over()


def test_time_begins_when_an_effort_is_begun() -> None:
    assert Effort().until is None
    until = Effort(give_up_after_s=50.0).until
    assert until is not None and 0 < until - time.time() <= 50


def test_a_kernel_is_told_to_stop_once_searches_are_over_and_not_before() -> None:
    with search_budget.stopping() as stop:
        assert not stop[0]
    with searching_until(time.time() + 1_000), search_budget.stopping() as stop:
        assert not stop[0]
    with searching_until(0.0), search_budget.stopping() as stop:
        assert stop[0]
    with searching_until(time.time() + 0.01), search_budget.stopping() as stop:
        patience_s = time.monotonic() + 20
        while not stop[0] and time.monotonic() < patience_s:
            time.sleep(0.001)
        assert stop[0]
    over = threading.Event()
    with searching_until(time.time() + 0.01), search_budget.ending(over.set):
        assert over.wait(60)


def test_what_is_said_is_said_of_its_subject_also_on_other_threads() -> None:
    heard: list[str] = []
    with heard_by(heard.append), saying_of("x, 1 of 2"), ThreadPoolExecutor(1) as pool:
        pool.submit(copy_context().run, search_budget.say, lambda: "7 configurations").result()
    assert heard == ["x, 1 of 2", "x, 1 of 2: 7 configurations"]


def test_where_nobody_listens_nothing_is_made_up() -> None:
    with saying_of("x"):
        search_budget.say(lambda: "7"[8])
