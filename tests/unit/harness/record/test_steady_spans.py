"""Spans in which faults stay the same: who is healthy and connected in each, and what nobody can say that of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness.administration import ADMINISTER
from harness.environments.impairment import HOST_IMPAIRMENTS, KERNEL_IMPAIRMENTS, LINK_IMPAIRMENTS
from harness.record.fault_log import FaultWindow
from harness.record.steady_spans import AT_ONCE, CUT, DOWN, UNSURE, SteadySpan, steady_spans

NODES = ("a", "b", "c", "d")
END = 100


def window(start: int, stop: int, *faults: Mapping[str, Any], is_stopped: bool = True) -> FaultWindow:
    fault = faults[0] if len(faults) == 1 else {"kind": "+".join(one["kind"] for one in faults), "faults": faults}
    return FaultWindow(kind=fault["kind"], start_ns=start, stop_ns=stop, is_stopped=is_stopped, fault=fault)


def kill(*nodes: str, **more: Any) -> dict[str, Any]:
    return {"kind": "kill", "nodes": nodes, **more}


def cut(*links: str, both: bool = True, kind: str = "partition") -> dict[str, Any]:
    ways = [link for link in links for link in ((link, link[::-1]) if both else (link,))]
    return {"kind": kind, "links": [list(link) for link in ways]}


def spans(*struck: FaultWindow, at_least: int = 1) -> list[SteadySpan]:
    return list(steady_spans(struck, NODES, 0, END, at_least))


def healthy(*struck: FaultWindow, at_least: int = 1) -> list[tuple[int, int, str]]:
    found = spans(*struck, at_least=at_least)
    return [(span.from_ns, span.until_ns, "".join(sorted(span.healthy))) for span in found]


def test_without_faults_all_are_healthy_all_the_time() -> None:
    assert healthy() == [(0, END, "abcd")]


def test_each_change_of_what_is_broken_begins_another_span() -> None:
    assert healthy(window(10, 40, kill("a")), window(20, 30, kill("b"))) == [
        (0, 10, "abcd"),
        (10, 20, "bcd"),
        (20, 30, "cd"),
        (30, 40, "bcd"),
        (40, END, "abcd"),
    ]


def test_what_changes_nothing_does_not() -> None:
    down = window(10, 40, kill("a"))
    assert healthy(down, window(20, 30, cut("ab"))) == [(0, 10, "abcd"), (10, 40, "bcd"), (40, END, "abcd")]
    assert healthy(down, window(20, 50, {"kind": "pause", "nodes": ["a"]}))[1] == (10, 50, "bcd")


def test_spans_that_are_too_short_are_left_out() -> None:
    assert healthy(window(10, 40, kill("a")), at_least=31) == [(40, END, "abcd")]
    assert healthy(window(10, 40, kill("a")), at_least=30) == [(10, 40, "bcd"), (40, END, "abcd")]


@pytest.mark.parametrize("kind", sorted(CUT))
@pytest.mark.parametrize("both", [True, False])
def test_of_two_that_do_not_reach_each_other_one_is_healthy(kind: str, both: bool) -> None:
    found = spans(window(0, END, cut("ab", both=both, kind=kind)))
    assert sorted("".join(sorted(span.healthy)) for span in found) == ["acd", "bcd"]
    of = {min(NODES, key=lambda node: node in span.healthy): span.reached for span in found}
    assert of == {"a": {"a": frozenset("cd")}, "b": {"b": frozenset("cd") if both else frozenset("acd")}}


def test_a_split_leaves_two_sides_neither_of_which_reaches_the_other() -> None:
    found = spans(window(0, END, cut("ac", "ad", "bc", "bd")))
    assert [(sorted(span.healthy), dict(span.reached)) for span in found] == [
        (["a", "b"], {"c": frozenset(), "d": frozenset()}),
        (["c", "d"], {"a": frozenset(), "b": frozenset()}),
    ]


def test_nodes_that_are_down_are_told_from_those_that_are_cut_off() -> None:
    (span,) = spans(window(0, END, kill("a"), cut("bc", "bd", "ab")), at_least=END)[1:]
    assert (span.healthy, span.down, span.reached) == (frozenset("cd"), frozenset("a"), {"b": frozenset()})


@pytest.mark.parametrize("fault", [kill("a", restart=True), {"kind": "reset", "links": [["a", "b"]], "once": True}])
def test_what_is_over_at_once_begins_another_span(fault: dict[str, Any]) -> None:
    assert healthy(window(10, 40, fault)) == [(0, 10, "abcd"), (10, END, "abcd")]


def test_while_links_are_lossy_nobody_knows_who_is_healthy() -> None:
    lossy = window(10, 40, {"kind": "lossy-links", "links": [["a", "b"]], "share": 0.1}, kill("c"))
    assert healthy(lossy) == [(0, 10, "abcd"), (40, END, "abcd")]


@pytest.mark.parametrize("kind", ["bit-rot", "full-disk", "shrink", "of-another-package"])
def test_after_what_leaves_something_behind_nobody_knows_either(kind: str) -> None:
    assert healthy(window(10, 40, {"kind": kind, "nodes": ["a"]})) == [(0, 10, "abcd")]


def test_a_fault_that_does_not_say_whom_it_struck_may_have_struck_anybody() -> None:
    assert healthy(FaultWindow(kind="kill", start_ns=10, stop_ns=40)) == [(0, 10, "abcd")]


def test_a_fault_that_was_never_stopped_lasts_to_the_end() -> None:
    assert healthy(window(10, 40, kill("a"), is_stopped=False)) == [(0, 10, "abcd"), (10, END, "bcd")]


def test_every_kind_that_passes_is_one_that_there_is() -> None:
    impairments = {one.kind for one in (*HOST_IMPAIRMENTS, *KERNEL_IMPAIRMENTS, *LINK_IMPAIRMENTS)}
    assert (
        impairments | {ADMINISTER, "kill", "power", "pause", "partition", "upgrade", "clock"}
        >= DOWN | CUT | AT_ONCE | UNSURE
    )
