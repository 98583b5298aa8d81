"""A test of tests: each way in which a nemesis may heal too little, or too much, is noticed by a test of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.environments.environment import Effect
from nemesis.cluster import Cluster
from nemesis.fault import Fault
from nemesis.nemesis import Nemesis
from nemesis.schedule import Entry
from tests.unit.nemesis import test_nemesis as tests


class OpensWhatOthersHold(Nemesis):
    async def _undo(self, key: tuple[str, int]) -> Effect:
        return await self.active.pop(key).stop(self.environment)


class StopsAgainAndAgain(Nemesis):
    """What was undone is not forgotten."""

    async def _undo(self, key: tuple[str, int]) -> Effect:
        fault = self.active[key]
        effect = await super()._undo(key)
        self.active[key] = fault
        return effect


class UndoesNothing(Nemesis):
    async def _undo(self, key: tuple[str, int]) -> Effect:
        del self.active[key]
        return Effect(True, "said to be undone")


class StopsAllAtOnce(Nemesis):
    """The stop of one fault is the stop of all."""

    async def _stop(self, entry: Entry) -> tuple[Fault | None, Effect]:
        stopped = await super()._stop(entry)
        for key in sorted(self.active):
            await self._undo(key)
        return stopped


class GivesUpHealing(Nemesis):
    """What cannot be healed keeps the others from it."""

    async def heal(self) -> None:
        for key in sorted(self.active):
            await self._undo(key)


class ForgetsWhatCannotBeHealed(Nemesis):
    async def _undo(self, key: tuple[str, int]) -> Effect:
        try:
            return await super()._undo(key)
        finally:
            self.active.pop(key, None)


class ForgetsWhatStartedHalf(Nemesis):
    """Only a start that came to its end is healed."""

    async def _begin(self, entry: Entry, cluster: Cluster) -> tuple[Fault | None, Effect]:
        try:
            return await super()._begin(entry, cluster)
        except BaseException:
            self.active.pop(entry.key)
            raise


class StrikesTheDown(Nemesis):
    async def _cluster(self, entry: Entry) -> Cluster:
        return replace(await super()._cluster(entry), unavailable=frozenset())


class ForgetsRoles(Nemesis):
    async def _cluster(self, entry: Entry) -> Cluster:
        self.last_roles = {}
        return await super()._cluster(entry)


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (OpensWhatOthersHold, tests.test_a_link_that_two_partitions_share_stays_cut_until_both_are_stopped),
        (OpensWhatOthersHold, tests.test_a_compound_is_undone_whole_but_for_links_that_another_fault_holds),
        (StopsAgainAndAgain, tests.test_a_fault_is_stopped_once),
        (UndoesNothing, tests.test_healing_stops_what_is_active_and_only_that),
        (UndoesNothing, tests.test_a_link_that_two_partitions_share_stays_cut_until_both_are_stopped),
        (StopsAllAtOnce, tests.test_a_stop_whose_start_struck_no_node_has_no_effect),
        (StopsAllAtOnce, tests.test_a_link_that_two_partitions_share_stays_cut_until_both_are_stopped),
        (GivesUpHealing, tests.test_a_fault_that_cannot_be_healed_keeps_no_other_from_it_and_is_tried_again),
        (ForgetsWhatCannotBeHealed, tests.test_a_fault_that_cannot_be_healed_keeps_no_other_from_it_and_is_tried_again),
        (ForgetsWhatStartedHalf, tests.test_what_a_start_that_failed_half_way_has_done_is_healed),
        (StrikesTheDown, tests.test_nothing_is_sent_to_a_process_that_another_fault_holds_down),
        (ForgetsRoles, tests.test_roles_that_cannot_be_found_out_are_those_last_reported),
    ],
    ids=lambda part: part.__name__,
)
def test_a_broken_nemesis_is_noticed(
    kind: type[Nemesis], test: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    test()
    monkeypatch.setattr(tests, "Nemesis", kind)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test()
