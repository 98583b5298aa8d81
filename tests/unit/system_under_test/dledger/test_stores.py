"""What the protocol is promised of a log, of both stores; what only one with files promises is in `test_file_store`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.dledger.entry import NOTHING, Entry
from system_under_test.dledger.memory_store import MemoryStore
from system_under_test.dledger.store import FileStore
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.dledger.disk_machine import (
    DiskMachine,
)

Store = FileStore | MemoryStore


async def in_files(loop: VirtualTimeLoop) -> Store:
    return await DiskMachine(loop).boot()


async def in_memory(loop: VirtualTimeLoop) -> Store:
    return MemoryStore()


def held(store: Store) -> list[Entry]:
    entries = [store.entry(index) for index in range(store.begin, store.end + 1)] if store.begin >= 0 else []
    assert None not in entries
    return [entry for entry in entries if entry is not None]


@pytest.fixture(params=[in_files, in_memory])
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[Store], None]], None]:
    """Carry a test out with each of the stores, empty."""
    make: Callable[[VirtualTimeLoop], Coroutine[Any, Any, Store]] = request.param

    def carry_out(check: Callable[[Store], None]) -> None:
        async def body(loop: VirtualTimeLoop) -> None:
            store = await make(loop)
            check(store)
            await store.sync()
            assert store.durable_end == store.end

        simulate(body)

    return carry_out


Run = Callable[[Callable[[Store], None]], None]


def test_an_empty_log_begins_and_ends_at_nothing(run: Run) -> None:
    def check(store: Store) -> None:
        assert (store.begin, store.end, store.end_term) == (NOTHING, NOTHING, NOTHING)
        assert (store.entry(0), store.term(0)) == (None, NOTHING)
        assert (store.entry(-1), store.term(-1)) == (None, NOTHING)
        assert store.append([])
        assert store.append_own(0, []) == []

    run(check)


def test_own_entries_stand_one_behind_the_other(run: Run) -> None:
    def check(store: Store) -> None:
        first = store.append_own(0, [b"a", b""])
        assert [(entry.index, entry.term, entry.position) for entry in first] == [(0, 0, 0), (1, 0, 49)]
        second = store.append_own(2, [b"c"])
        assert held(store) == [*first, *second]
        assert (store.begin, store.end, store.end_term) == (0, 2, 2)
        assert [store.term(index) for index in range(-1, 4)] == [NOTHING, 0, 0, 2, NOTHING]
        assert store.entry(3) is None
        with pytest.raises(ValueError, match="term 1"):
            store.append_own(1, [b"d"])

    run(check)


def test_anothers_entries_are_taken_only_where_they_follow(run: Run) -> None:
    def check(store: Store) -> None:
        entries = [Entry(0, 1, 0, b"a", 3), Entry(1, 1, 49, b"b"), Entry(2, 4, 98, b"c")]
        assert not store.append(entries[1:])
        assert not store.append([entries[0], entries[2]])
        assert not store.append([entries[0], Entry(1, 1, 50, b"b")])
        assert not store.append([entries[0], Entry(1, 0, 49, b"b")])
        assert held(store) == []
        assert store.append(entries)
        assert held(store) == entries
        assert not store.append(entries[2:])

    run(check)


def test_a_log_ends_with_an_equal_entry_that_it_keeps_or_begins_anew_with_another_one(run: Run) -> None:
    def check(store: Store) -> None:
        entries = store.append_own(1, [b"a", b"b", b"c"])
        assert store.end_with(entries[1])
        assert held(store) == list(entries[:2])
        for other in (Entry(1, 2, 200, b"B"), Entry(2, 2, 400, b"d"), Entry(0, 3, 0, b"z")):
            assert store.end_with(other)
            assert (held(store), store.end_term) == ([other], other.term)

    run(check)


def test_a_log_begins_anew_where_it_would_have_a_gap(run: Run) -> None:
    def check(store: Store) -> None:
        store.append_own(1, [b"a", b"b"])
        for first in (Entry(7, 2, 400, b"x"), Entry(3, 2, 200, b"y"), Entry(3, 2, 600, b"z")):
            assert store.end_with(first)
            assert (store.begin, store.end, held(store)) == (first.index, first.index, [first])
            assert store.append([Entry(first.index + 1, 2, first.position + 49, b"")])
            assert store.term(first.index - 1) == NOTHING

    run(check)
