"""Whatever becomes of the answers, a settled change says what happened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from system_under_test.metadata.access import Conflict, SessionLost, Unavailable, Versioned
from system_under_test.metadata.settling import TRIES, settled_create, settled_delete, settled_put
from tests.references.local_metadata import LocalMetadata, LocalStore, Loss


def in_a_store(body: Callable[[LocalStore, LocalMetadata], Coroutine[Any, Any, None]]) -> None:
    async def begin() -> None:
        store = LocalStore()
        await body(store, store.access())

    asyncio.run(begin())


@pytest.mark.parametrize("loss", Loss)
def test_a_put_whose_answer_was_lost_is_read_back(loss: Loss):
    async def body(store: LocalStore, access: LocalMetadata) -> None:
        version = await access.create("k", "a")
        access.losses.append(loss)
        written = await settled_put(access, "k", "b", version)
        assert await access.get("k") == Versioned("b", written)

    in_a_store(body)


@pytest.mark.parametrize("loss", Loss)
def test_a_put_that_another_one_overtook_is_a_conflict(loss: Loss):
    async def body(store: LocalStore, access: LocalMetadata) -> None:
        version = await access.create("k", "a")
        other = await store.access().put("k", "other", version)
        access.losses.append(loss)
        with pytest.raises(Conflict) as raised:
            await settled_put(access, "k", "b", version)
        assert raised.value.found == other

    in_a_store(body)


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("ephemeral", [False, True])
def test_a_create_whose_answer_was_lost_is_read_back(loss: Loss, ephemeral: bool):
    async def body(store: LocalStore, access: LocalMetadata) -> None:
        access.losses.append(loss)
        version = await settled_create(access, "k", "a", ephemeral)
        assert await access.get("k") == Versioned("a", version, access.session if ephemeral else None)

    in_a_store(body)


def test_an_equal_ephemeral_key_of_another_session_is_not_taken_for_ones_own():
    async def body(store: LocalStore, access: LocalMetadata) -> None:
        former = store.access()
        await former.create("k", "a", ephemeral=True)
        access.losses.append(Loss.OF_THE_ANSWER)
        with pytest.raises(Conflict):
            await settled_create(access, "k", "a", ephemeral=True)
        store.expire(former)
        assert await settled_create(access, "k", "a", ephemeral=True) == store.state.version

    in_a_store(body)


@pytest.mark.parametrize("loss", Loss)
def test_a_delete_whose_answer_was_lost_is_read_back(loss: Loss):
    async def body(store: LocalStore, access: LocalMetadata) -> None:
        version = await access.create("k", "a")
        access.losses.append(loss)
        await settled_delete(access, "k", version)
        assert await access.get("k") is None

    in_a_store(body)


def test_a_delete_of_what_was_changed_is_a_conflict():
    async def body(store: LocalStore, access: LocalMetadata) -> None:
        version = await access.create("k", "a")
        changed = await access.put("k", "b", version)
        access.losses.append(Loss.OF_THE_ANSWER)
        with pytest.raises(Conflict) as raised:
            await settled_delete(access, "k", version)
        assert raised.value.found == changed

    in_a_store(body)


def test_what_cannot_be_settled_stays_open():
    async def body(store: LocalStore, access: LocalMetadata) -> None:
        access.losses += [Loss.OF_THE_REQUEST] * TRIES
        with pytest.raises(Unavailable) as raised:
            await settled_create(access, "k", "a")
        assert not raised.value.is_definite

    in_a_store(body)


def test_a_lost_session_is_followed_by_another_one_and_its_keys_are_heard_to_go():
    async def body(store: LocalStore, access: LocalMetadata) -> None:
        first, watcher = access.session, store.access()
        since = await access.create("/owner", "x", ephemeral=True)
        going = asyncio.ensure_future(watcher.wait("/owner", since))
        follower = asyncio.ensure_future(access.session_other_than(first))
        await asyncio.sleep(0)
        assert not going.done()
        assert not follower.done()
        store.expire(access)
        assert await going == store.state.version
        assert await follower == access.session != first
        assert await watcher.list("/") == {}
        store.apply(b'{"end":["%b"]}' % access.session.encode())
        with pytest.raises(SessionLost):
            await access.create("/owner", "x", ephemeral=True)

    in_a_store(body)
