"""Each planted bug of bookies does the wrong thing where the healthy part does the right one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.bookkeeper import mutants
from system_under_test.bookkeeper.bookie.message import Code
from system_under_test.bookkeeper.parts import BookieParts
from system_under_test.node.mutant import find_mutant, mutant_names
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.bookkeeper.bookie_machine import HEALTHY, BookieMachine

Act = Callable[[BookieMachine], Awaitable[object]]


async def fence_that_comes_with_an_add(machine: BookieMachine) -> object:
    """Whether an add is acknowledged that the read that fenced did not find."""
    await machine.boot()
    await machine.added(1, 0)
    adds = [machine.add(1, entry) for entry in range(1, 9)]
    await asyncio.sleep(0)
    await machine.fence(1)
    found = (await machine.listed(1))[1]
    answers = [(await add).code for add in adds]
    return [entry for entry, code in enumerate(answers, 1) if code is Code.OK and entry not in found]


async def fence_before_a_loss_of_power(machine: BookieMachine) -> object:
    await machine.boot()
    await machine.fence(1)
    machine.power_off()
    await machine.boot()
    return await machine.added(1, 0)


async def who_comes_back_empty(machine: BookieMachine) -> object:
    bookie = machine.parts.bookie
    return bookie.draw_identity(random.Random(1), ["a" * 16]) == "a" * 16


async def missing_after_a_loss_of_power(machine: BookieMachine) -> object:
    await machine.boot()
    await machine.fence(2)
    machine.power_off()
    await machine.boot(unclosed=[1, 2])
    return await machine.read(2, 0)


async def entry_in_the_place_of_another(machine: BookieMachine) -> object:
    """A misdirected write: of two entries as long as each other the later one stands where the first one should."""
    await machine.boot()
    await machine.added(1, 0, payload=b"one")
    await machine.added(1, 1, payload=b"two")
    [path] = machine.files("entries")
    inode = dict(machine.store.files())[path]
    size = len(inode.content) // 2
    inode.change(0, bytes(inode.content[size:]))
    return await machine.read(1, 0)


WRONG: dict[str, tuple[Act, bool, object, object]] = {
    "fence-race": (fence_that_comes_with_an_add, True, [], list(range(1, 9))),
    "fence-not-journaled": (fence_before_a_loss_of_power, True, Code.FENCED, Code.OK),
    "replacement-unfenced": (who_comes_back_empty, True, False, True),
    "no-limbo": (missing_after_a_loss_of_power, False, Code.UNKNOWN, Code.NO_SUCH_ENTRY),
    "digest-without-id": (entry_in_the_place_of_another, True, Code.CORRUPT, b"two"),
}
"""By mutant: what is done, with a synced journal or without, what a healthy bookie shows, and what it shows."""


def outcome(act: Act, parts: BookieParts, *, is_synced: bool) -> object:
    async def body(loop: VirtualTimeLoop) -> object:
        machine = BookieMachine(loop, parts=parts, journalSyncData=is_synced)
        found = await act(machine)
        machine.kill()
        return found

    return simulate(body)


@pytest.mark.parametrize("name", WRONG)
def test_a_planted_bug_does_the_wrong_thing_and_the_healthy_bookie_does_not(name: str) -> None:
    act, is_synced, right, wrong = WRONG[name]
    assert outcome(act, HEALTHY, is_synced=is_synced) == right
    assert outcome(act, find_mutant(mutants, name).parts_of(BookieParts), is_synced=is_synced) == wrong


def test_every_planted_bug_of_bookies_is_shown() -> None:
    of_bookies = {name for name in mutant_names(mutants) if find_mutant(mutants, name).parts_of(BookieParts) != HEALTHY}
    assert of_bookies == set(WRONG)
