"""When a member of a Galera cluster begins it anew, joins it, or waits: what an administrator would do."""

from __future__ import annotations

import pytest

from workloads.systems.mariadb.member import (
    NOWHERE,
    PATIENCE_S,
    State,
    Status,
    Step,
    furthest,
    recovered,
    resets_quorum,
    running,
    start,
)

HISTORY = "5a4ec1ff-c93f-11f1-b5ae-1a2b3c4d5e6f"


def down(seqno: int) -> State:
    return State(Status.DOWN, HISTORY, seqno)


def apart(seqno: int) -> State:
    return State(Status.APART, HISTORY, seqno)


def primary(seqno: int) -> State:
    return State(Status.PRIMARY, HISTORY, seqno)


def test_where_all_are_down_the_furthest_begins_anew_and_the_others_wait_for_it() -> None:
    states = {"m1": down(7), "m2": down(9), "m3": down(8)}
    steps = {
        name: start(name, state, {one: other for one, other in states.items() if one != name})
        for name, state in states.items()
    }
    assert steps == {"m1": Step.WAIT, "m2": Step.BOOTSTRAP, "m3": Step.WAIT}


def test_of_equals_the_first_begins_anew_as_at_the_very_first_start() -> None:
    fresh = State(Status.DOWN)
    assert start("m1", fresh, {"m2": fresh, "m3": fresh}) is Step.BOOTSTRAP
    assert start("m2", fresh, {"m1": fresh, "m3": fresh}) is Step.WAIT


def test_a_server_that_lost_its_disk_never_begins_what_another_remembers() -> None:
    assert furthest({"m1": State(Status.DOWN, NOWHERE, 99), "m2": down(1)}) == "m2"


def test_without_the_answer_of_one_nothing_is_begun_anew() -> None:
    assert start("m1", down(9), {"m2": down(1), "m3": None}) is Step.WAIT
    assert not resets_quorum("m1", apart(9), {"m2": apart(1), "m3": None}, PATIENCE_S)


@pytest.mark.parametrize("other", [primary(3), apart(3)])
def test_whoever_is_down_joins_one_that_runs(other: State) -> None:
    assert start("m1", down(9), {"m2": other, "m3": None}) is Step.JOIN


def test_servers_that_run_apart_get_time_and_then_the_furthest_becomes_the_component() -> None:
    others: dict[str, State | None] = {"m2": apart(8), "m3": apart(9)}
    assert not resets_quorum("m1", apart(9), others, PATIENCE_S / 2)
    assert resets_quorum("m1", apart(9), others, PATIENCE_S)
    assert not resets_quorum("m1", apart(8), others, PATIENCE_S)
    assert not resets_quorum("m1", apart(9), {**others, "m2": primary(8)}, PATIENCE_S)


def test_a_position_is_read_from_what_recovery_prints_and_is_nowhere_without_one() -> None:
    line = f"2026-11-25 21:00:00 0 [Note] WSREP: Recovered position: {HISTORY}:1234\n"
    assert recovered("InnoDB: …\n" + line) == down(1234)
    assert recovered("InnoDB: Corruption\n") == State(Status.DOWN)


def test_a_server_that_answers_nothing_yet_is_where_it_was() -> None:
    assert running("", down(5)) == apart(5)
    rows = f"wsrep_cluster_status\tPrimary\nwsrep_local_state_uuid\t{HISTORY}\nwsrep_last_committed\t6\n"
    assert running(rows, down(5)) == primary(6)
    assert running(rows.replace("Primary", "non-Primary"), down(5)) == apart(6)
