"""Repair in the processes of bookies, beside a metadata store: what is lost comes back, whoever dies meanwhile."""

from __future__ import annotations

import pytest

from system_under_test.bookkeeper.ledger.errors import LedgerError
from system_under_test.bookkeeper.ledger.metadata import LedgerState
from system_under_test.bookkeeper.repair.marks import MARKS
from tests.unit.system_under_test.bookkeeper.repair.repair_cluster import Cluster, play

ENTRY_LOG = "bookie/entries/0000000000"
RECORD_BYTES = 41
"""Of an entry with a payload of one byte, in an entry log."""


def test_copies_of_a_lost_bookie_come_back_to_their_number() -> None:
    async def story(cluster: Cluster) -> None:
        ledger = await cluster.written(40)
        await ledger.close()
        lost = await cluster.node_of(ledger, 0)
        await cluster.environment.kill([lost])
        await cluster.access.wait(MARKS, 0)
        assert await cluster.until_repaired(5.0) < 5.0
        assert await cluster.copies(ledger.ledger) == {3: 40}
        await cluster.environment.boot([lost])
        await cluster.sleep(5.0)
        assert await cluster.marks() == []

    play(story)


def test_a_short_absence_takes_nothing_from_a_bookie() -> None:
    async def story(cluster: Cluster) -> None:
        ledger = await cluster.written(10)
        await ledger.close()
        away = await cluster.node_of(ledger, 1)
        before = await cluster.ledgers.metadata(ledger.ledger)
        await cluster.environment.kill([away])
        await cluster.sleep(0.5)
        await cluster.environment.boot([away])
        await cluster.sleep(6.0)
        assert cluster.events("ledger_marked") == []
        assert await cluster.ledgers.metadata(ledger.ledger) == before

    play(story, lostBookieRecoveryDelay=2_000)


def test_where_the_auditors_host_dies_a_new_auditor_goes_on() -> None:
    async def story(cluster: Cluster) -> None:
        ledger = await cluster.written(10)
        await ledger.close()
        first = await cluster.auditor()
        holders = [await cluster.node_of(ledger, place) for place in range(3)]
        lost = next(node for node in holders if node != first)
        await cluster.environment.kill([first, lost])
        await cluster.access.wait(MARKS, 0)
        assert await cluster.auditor() != first
        await cluster.until_repaired(5.0)
        assert await cluster.copies(ledger.ledger) == {3: 10}

    play(story)


@pytest.mark.parametrize("point", ["ledger-marked", "ledger-locked", "fragment-copied", "fragment-published"])
def test_a_worker_that_is_killed_at_any_step_is_followed_by_another(point: str) -> None:
    async def story(cluster: Cluster) -> None:
        ledger = await cluster.written(10)
        await ledger.close()
        lost = await cluster.node_of(ledger, 0)
        killed = cluster.kill_at(point)
        await cluster.environment.kill([lost])
        second = await killed
        assert second != lost
        await cluster.environment.boot([second])
        await cluster.sleep(5.0)
        await cluster.until_repaired(10.0)
        assert await cluster.copies(ledger.ledger) == {3: 10}
        assert (await cluster.ledgers.metadata(ledger.ledger)).last_entry == 9

    play(story)


def test_an_open_ledger_is_left_to_its_writer_for_a_while_and_then_recovered() -> None:
    async def story(cluster: Cluster) -> None:
        ledger = await cluster.written(10)
        lost = await cluster.node_of(ledger, 2)
        began_ns = cluster.environment.timeline.now_ns()
        await cluster.environment.kill([lost])
        await cluster.access.wait(MARKS, 0)
        await cluster.sleep(3.0)
        assert (await cluster.ledgers.metadata(ledger.ledger)).state is LedgerState.OPEN
        await cluster.until_repaired(15.0)
        assert cluster.environment.timeline.now_ns() - began_ns > 5_000_000_000
        assert (await cluster.ledgers.metadata(ledger.ledger)).last_entry == 9
        assert await cluster.copies(ledger.ledger) == {3: 10}
        with pytest.raises(LedgerError):
            await ledger.append(b"late")

    play(story)


def test_a_writer_that_replaced_the_lost_bookie_goes_on() -> None:
    async def story(cluster: Cluster) -> None:
        ledger = await cluster.written(10)
        await cluster.environment.kill([await cluster.node_of(ledger, 2)])
        for _ in range(30):
            await ledger.append(b"x")
            await cluster.sleep(0.5)
        await cluster.until_repaired(1.0)
        assert await ledger.close() == 39
        assert await cluster.copies(ledger.ledger) == {3: 40}
        assert len((await cluster.ledgers.metadata(ledger.ledger)).fragments) == 2

    play(story)


def test_only_a_look_at_every_entry_finds_rot_between_the_ends() -> None:
    async def story(cluster: Cluster) -> None:
        ledger = await cluster.written(10)
        await ledger.close()
        disk = cluster.environment.disk_of(await cluster.node_of(ledger, 1))
        assert disk.rot(ENTRY_LOG, 7 * RECORD_BYTES + RECORD_BYTES - 1)
        assert await cluster.copies(ledger.ledger) == {2: 1, 3: 9}
        await cluster.sleep(10.0)
        found.append(await cluster.copies(ledger.ledger))

    found: list[object] = []
    play(story, auditorPeriodicCheckInterval=2_000)
    play(story, auditorPeriodicCheckInterval=2_000, auditorReplicasCheckInterval=2_000)
    assert found == [{2: 1, 3: 9}, {3: 10}]


def test_what_a_bookie_lost_of_its_own_ends_the_next_look_finds() -> None:
    async def story(cluster: Cluster) -> None:
        ledger = await cluster.written(10)
        await ledger.close()
        disk = cluster.environment.disk_of(await cluster.node_of(ledger, 1))
        assert disk.rot(ENTRY_LOG, 9 * RECORD_BYTES + RECORD_BYTES - 1)
        await cluster.sleep(10.0)
        found.append(await cluster.copies(ledger.ledger))

    found: list[object] = []
    play(story, auditorPeriodicCheckInterval=2_000)
    assert found == [{3: 10}]


def test_a_bookie_that_comes_back_empty_is_another_one_and_may_serve_as_such() -> None:
    """Of four bookies three have each entry; the new one takes what is left to be given."""

    async def story(cluster: Cluster) -> None:
        ledger = await cluster.written(10)
        await ledger.close()
        lost, second = await cluster.node_of(ledger, 0), await cluster.node_of(ledger, 1)
        identity = (await cluster.identities())[lost]
        await cluster.environment.power_off([lost])
        cluster.environment.disk_of(lost).put_back({})
        await cluster.environment.boot([lost])
        await cluster.sleep(5.0)
        await cluster.until_repaired(10.0)
        assert (await cluster.identities())[lost] != identity
        assert await cluster.copies(ledger.ledger) == {3: 10}
        await cluster.environment.kill([second])
        await cluster.sleep(5.0)
        await cluster.until_repaired(10.0)
        assert await cluster.copies(ledger.ledger) == {3: 10}

    play(story, bookies=4)


def test_a_bookie_leaves_limbo_once_it_has_back_what_it_lost() -> None:
    async def story(cluster: Cluster) -> None:
        ledger = await cluster.written(10)
        lost = await cluster.node_of(ledger, 0)
        await cluster.environment.power_off([lost])
        await cluster.environment.boot([lost])
        await cluster.sleep(20.0)
        assert [event["ledger"] for event in cluster.events("limbo_left")] == [ledger.ledger]
        assert (await cluster.ledgers.metadata(ledger.ledger)).last_entry == 9
        await cluster.until_repaired(5.0)
        assert await cluster.copies(ledger.ledger) == {3: 10}

    play(story, journalSyncData=False)


def test_the_same_seed_gives_the_same_trace() -> None:
    async def story(cluster: Cluster) -> None:
        ledger = await cluster.written(5)
        await ledger.close()
        await cluster.environment.kill([await cluster.node_of(ledger, 0)])
        await cluster.access.wait(MARKS, 0)
        await cluster.until_repaired(5.0)

    assert play(story).digest() == play(story).digest()
