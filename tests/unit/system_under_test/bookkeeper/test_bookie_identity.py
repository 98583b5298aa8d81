"""Who a bookie is: drawn when its disk is empty, registered before it is written down, and nobody else's."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.bookkeeper.bookie.bookie import Bookie
from system_under_test.bookkeeper.bookie.identity import (
    Identity,
    IdentityChoice,
    IdentityFile,
    IdentityUnfit,
    Registered,
    decode_identity,
)
from system_under_test.storage.errors import StorageCorrupt
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.bookkeeper.bookie_machine import BookieMachine
from tests.unit.system_under_test.bookkeeper.metadata_in_memory import MetadataInMemory

ADDRESS = "b1:3181"


class Stage:
    def __init__(self, loop: VirtualTimeLoop) -> None:
        self.machine = BookieMachine(loop)
        self.metadata = MetadataInMemory()
        self.draw = random.Random(3)

    async def settle(self, *, address: str = ADDRESS, is_empty: bool = True) -> Identity:
        host = self.machine.host()
        file = IdentityFile(host.disk, "bookie/identity")
        choice = IdentityChoice(
            host.clock,
            self.metadata,
            file,
            place="the disk of b1",
            address=address,
            draw=lambda here: Bookie.draw_identity(self.draw, here),
        )
        return await choice.settle(is_empty=is_empty)

    def wipe(self) -> None:
        self.machine.kill()
        self.machine.store.put_back({})

    def registered(self) -> dict[str, Registered]:
        return {key[9:]: Registered.decode(value) for key, value in self.metadata.values("/bookies/").items()}


def play(body: object) -> None:
    async def whole(loop: VirtualTimeLoop) -> None:
        await body(Stage(loop))  # type: ignore[operator]

    simulate(whole)


def test_an_identity_is_drawn_once_and_kept() -> None:
    async def body(stage: Stage) -> None:
        first = await stage.settle()
        assert len(first.own) == 16
        assert first.replaced == frozenset()
        assert stage.registered() == {first.own: Registered(ADDRESS)}
        stage.machine.power_off()
        assert first.is_drawn and await stage.settle(is_empty=False) == replace(first, is_drawn=False)

    play(body)


def test_one_that_comes_back_empty_is_another_one_and_marks_the_one_before() -> None:
    async def body(stage: Stage) -> None:
        first = await stage.settle()
        image = stage.machine.store.image()
        stage.wipe()
        second = await stage.settle()
        assert second.own != first.own
        assert second.replaced == {first.own}
        assert stage.registered() == {first.own: Registered(ADDRESS, second.own), second.own: Registered(ADDRESS)}
        assert (await stage.settle(is_empty=False)).replaced == {first.own}, "it still knows after a restart"
        stage.wipe()
        third = await stage.settle()
        assert third.replaced == {first.own, second.own}
        stage.machine.store.put_back(image)
        with pytest.raises(
            IdentityUnfit, match=f"is that of bookie {first.own}, in whose place {second.own} has begun"
        ):
            await stage.settle(is_empty=False)

    play(body)


def test_a_disk_without_its_identity_is_refused() -> None:
    async def body(stage: Stage) -> None:
        first = await stage.settle()
        stage.wipe()
        with pytest.raises(IdentityUnfit) as caught:
            await stage.settle(is_empty=False)
        assert str(caught.value) == (
            "the disk of b1 has files of a bookie and no identity, and of b1:3181 the metadata store has "
            f"{first.own} at this address: bring the file 'identity' back, or empty the disk, and the bookie starts as "
            "another one"
        )

    play(body)


def test_a_disk_that_the_metadata_store_has_elsewhere_or_not_at_all_is_refused() -> None:
    async def body(stage: Stage) -> None:
        first = await stage.settle()
        with pytest.raises(IdentityUnfit, match=r"has at b1:3181: start it there; it does not start at b1:9"):
            await stage.settle(address="b1:9", is_empty=False)
        stage.metadata = MetadataInMemory()
        with pytest.raises(IdentityUnfit, match=f"bookie {first.own}, which the metadata store does not know"):
            await stage.settle(is_empty=False)

    play(body)


def test_it_is_registered_before_its_disk_says_so_and_a_start_in_between_is_another_one() -> None:
    async def body(stage: Stage) -> None:
        stage.machine.store.faults.fsync_slow_factor = 1e9
        start = asyncio.ensure_future(stage.settle())
        await stage.machine.clock.sleep(1)
        [first] = stage.registered()
        start.cancel()
        stage.machine.store.faults.fsync_slow_factor = 1.0
        stage.machine.power_off()
        second = await stage.settle()
        assert second.own != first
        assert stage.registered() == {first: Registered(ADDRESS, second.own), second.own: Registered(ADDRESS)}

    play(body)


def test_it_waits_for_the_metadata_store_and_settles_lost_answers() -> None:
    async def body(stage: Stage) -> None:
        stage.metadata.is_away = True
        start = asyncio.ensure_future(stage.settle())
        await stage.machine.clock.sleep(5)
        assert not start.done()
        stage.metadata.is_away, stage.metadata.loses_answers = False, 1
        identity = await start
        assert stage.metadata.changes == [(f"/bookies/{identity.own}", Registered(ADDRESS).encode())]
        stage.wipe()
        stage.metadata.loses_answers = 2
        await stage.settle()
        assert len(stage.metadata.changes) == 3, "nothing was written twice"

    play(body)


def test_a_harmed_identity_is_an_error() -> None:
    assert decode_identity(bytes(8)) == "0" * 16
    with pytest.raises(StorageCorrupt):
        decode_identity(bytes(7))
    for value in ("", "[]", "{}", '{"address": 3}', '{"address": "a", "replacedBy": 4}'):
        with pytest.raises(ValueError):  # noqa: PT011 - whatever the JSON decoder has to say of it
            Registered.decode(value)
