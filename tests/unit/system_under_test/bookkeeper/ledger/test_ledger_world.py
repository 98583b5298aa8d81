"""Ledgers in random worlds: what was acknowledged is read for ever, and a ledger has one end."""

from __future__ import annotations

import pytest

from system_under_test.bookkeeper import mutants
from system_under_test.bookkeeper.ledger.metadata import LedgerState
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.node.mutant import find_mutant
from tests.unit.system_under_test.bookkeeper.ledger.ledger_world import storm

WORLDS = 300
CAUGHT = (
    "close-without-cas",
    "deferred-failure",
    "ensemble-overtaken",
    "fenced-is-refused",
    "lac-is-lap",
    "one-no-is-enough",
    "write-set-kept",
)
"""Planted bugs that a few hundred random worlds show. The others need rare ones, and have their stories."""


def test_no_world_breaks_a_promise_and_all_that_can_happen_does() -> None:
    worlds = [storm(seed) for seed in range(WORLDS)]
    assert sum(len(world.acknowledged) for world in worlds) > 2 * WORLDS
    assert sum(world.explicit_lacs > 0 for world in worlds) > WORLDS // 10, "bookies hear of the LAC"
    histories = [world.store.history for world in worlds]
    assert sum(len(history[-1].fragments) > 1 for history in histories) > WORLDS // 10, "ensembles change"
    assert sum(any(name == "writer" for name, _ in world.ends) for world in worlds) > WORLDS // 30, "writers close"
    assert sum(len({name for name, _ in world.ends}) > 1 for world in worlds) > WORLDS // 30, "several come to one end"
    late = [
        history[-1].last_entry + 1 - len(world.acknowledged) for world, history in zip(worlds, histories, strict=True)
    ]
    assert sum(count > 0 for count in late) > WORLDS // 10, "recovery finds what was not acknowledged"
    assert all(history[-1].state is LedgerState.CLOSED for history in histories)


@pytest.mark.parametrize("name", CAUGHT)
def test_planted_bug_shows_in_random_worlds(name: str) -> None:
    parts = find_mutant(mutants, name).parts_of(LedgerParts)
    assert any(breaks_a_promise(seed, parts) for seed in range(WORLDS))


def breaks_a_promise(seed: int, parts: LedgerParts) -> bool:
    try:
        storm(seed, parts)
    except AssertionError:
        return True
    return False


def test_one_seed_is_one_world() -> None:
    once, again = storm(17), storm(17)
    assert (once.now_ms, once.count, once.store.history) == (again.now_ms, again.count, again.store.history)
