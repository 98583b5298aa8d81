"""A test of tests: a world that breaks a promise is noticed by the check of that promise, in words that name it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.environments.environment import Effect, Environment
from harness.environments.simulated.environment import run_simulation
from harness.environments.simulated.regime import Regime
from harness.seed import Seed
from harness.trace import Trace
from nemesis.nemesis import Nemesis
from tests.conformance import broken_worlds as broken
from tests.conformance import impairment_promises, promises
from tests.conformance.impairment_promises import (
    IMPAIRMENT_PROMISES,
    a_slow_node_computes_slowly_also_after_a_restart,
    processes_are_struck_by_their_names_and_go_on_in_the_end,
    slow_processes_compute_slowly_until_the_end,
    who_takes_more_memory_than_is_left_is_killed_and_has_not_panicked,
)
from tests.conformance.promises import PROMISES, Promise, nodes

NOT_REFUSED = "was not refused"

BROKEN: list[tuple[type[broken.World], Promise, str]] = [
    (broken.CutOfNewConnections, promises.a_cut_stops_one_direction_and_leaves_the_other, "notes came from b to a"),
    (
        broken.CutOfNewConnections,
        promises.a_cut_of_both_directions_stops_both_until_each_is_healed,
        "notes came from a to b",
    ),
    (broken.CutOfNewConnections, promises.what_was_sent_into_a_cut_arrives_once_after_the_healing, "that were there"),
    (broken.WayBackOpen, promises.a_cut_of_both_directions_stops_both_until_each_is_healed, "notes came from b to a"),
    (broken.WayThereOpen, promises.a_cut_of_both_directions_stops_both_until_each_is_healed, "notes came from a to b"),
    (broken.CutBothWays, promises.a_cut_stops_one_direction_and_leaves_the_other, "though that way is open"),
    (
        broken.HealingOfBothWays,
        promises.a_cut_of_both_directions_stops_both_until_each_is_healed,
        "opened the other",
    ),
    (broken.HealingOfNothing, promises.a_cut_stops_one_direction_and_leaves_the_other, "was healed that was not cut"),
    (broken.HealingOfNothing, promises.what_was_sent_into_a_cut_arrives_once_after_the_healing, "is lost"),
    (broken.HealingOfNothing, promises.a_nemesis_leaves_the_world_as_it_was, "does not reach the other node"),
    (broken.CutByReset, promises.what_was_sent_into_a_cut_arrives_once_after_the_healing, "is lost"),
    (broken.CutOfClients, promises.a_cut_stops_one_direction_and_leaves_the_other, "never answered"),
    (broken.GracefulKill, promises.a_killed_node_is_gone_until_it_boots_on_its_own_disk, "carried out a finally"),
    (broken.GracefulKill, promises.a_paused_node_can_be_killed, "carried out a finally"),
    (broken.KillOfNothing, promises.a_killed_node_is_gone_until_it_boots_on_its_own_disk, "where nothing was left"),
    (broken.KillThatTakesTheDisk, promises.a_killed_node_is_gone_until_it_boots_on_its_own_disk, "what was written"),
    (broken.SilentKill, promises.a_killed_node_is_gone_until_it_boots_on_its_own_disk, "is as silent"),
    (broken.BootThatSaysTooMuch, promises.a_killed_node_is_gone_until_it_boots_on_its_own_disk, "nothing was left"),
    (
        broken.UpgradeByKill,
        promises.an_upgraded_node_ends_cleanly_and_is_another_version_on_its_own_disk,
        "carried out no finally",
    ),
    (
        broken.UpgradeToTheSame,
        promises.an_upgraded_node_ends_cleanly_and_is_another_version_on_its_own_disk,
        "runs what it ran before",
    ),
    (broken.ProgramOfOneLife, promises.another_program_runs_from_the_next_boot_on, "was replaced while it ran"),
    (broken.ProgramOfNobody, promises.another_program_runs_from_the_next_boot_on, "runs what it ran before"),
    (broken.PauseOfTheNetwork, promises.a_paused_node_does_nothing_and_forgets_nothing, "timers ran"),
    (broken.PauseOfAll, promises.a_paused_node_does_nothing_and_forgets_nothing, "while another one is paused"),
    (broken.ResumingByRestart, promises.a_paused_node_does_nothing_and_forgets_nothing, "never answered"),
    (
        broken.PowerThatKeepsEverything,
        promises.a_loss_of_power_takes_what_was_not_synced_and_that_alone,
        "nothing was lost",
    ),
    (
        broken.BootWithUnsyncedBytes,
        promises.a_loss_of_power_takes_what_was_not_synced_and_that_alone,
        "nothing was lost",
    ),
    (
        broken.FsyncBehindTheNewestWrite,
        promises.a_loss_of_power_takes_what_was_not_synced_and_that_alone,
        "what an fsync was to make durable is gone",
    ),
    (
        broken.FsyncThatDoesNothing,
        promises.a_loss_of_power_takes_what_was_not_synced_and_that_alone,
        "what an fsync was to make durable is gone",
    ),
    (
        broken.ReplaceThatIsNotDurable,
        promises.a_loss_of_power_takes_what_was_not_synced_and_that_alone,
        "a file that replaced another one is gone",
    ),
    (
        broken.PolitePowerLoss,
        promises.a_node_without_power_is_silent_on_connections_that_exist,
        "closes its connections",
    ),
    (
        broken.TidyPowerLoss,
        promises.a_loss_of_power_takes_what_was_not_synced_and_that_alone,
        "carried out a finally",
    ),
    (broken.PowerThatIsNotThere, promises.a_fault_that_the_environment_has_not_is_refused, NOT_REFUSED),
    (
        broken.MonotonicTimeFollowsWallTime,
        promises.a_wrong_clock_leaves_monotonic_time_and_timers_alone,
        "monotonic time of a",
    ),
    (broken.TimersFollowWallTime, promises.a_wrong_clock_leaves_monotonic_time_and_timers_alone, "a nap of"),
    (broken.ClockOfAll, promises.a_clock_is_wrong_on_one_node_alone, "wall time of b"),
    (broken.ClockWithoutDrift, promises.a_clock_drifts_at_the_rate_that_was_set, "not at a rate of"),
    (broken.ClockThatStaysWrong, promises.a_clock_is_wrong_on_one_node_alone, "stays wrong"),
    (broken.ClockThatStaysWrong, promises.a_nemesis_leaves_the_world_as_it_was, "the clock of"),
    (broken.VerbsForAnybody, promises.a_verb_for_a_node_that_is_not_there_says_so, NOT_REFUSED),
]


def ask_broken(kind: type[broken.World], promise: Promise, logs: Path) -> None:
    async def inside(environment: Environment) -> None:
        world = kind(environment)
        await world.start(nodes(world.program), logs)
        await promise(world)  # type: ignore[arg-type]
        await world.stop()

    run_simulation(inside, Seed(1729), Trace(), regime=Regime.calm())


@pytest.mark.parametrize(
    ("kind", "promise", "words"), [pytest.param(*row, id=f"{row[0].__name__}-{row[1].__name__}") for row in BROKEN]
)
def test_a_broken_world_is_noticed(kind: type[broken.World], promise: Promise, words: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=words):
        ask_broken(kind, promise, tmp_path)


def test_each_promise_is_broken_by_some_world() -> None:
    assert {promise for _, promise, _ in BROKEN} == set(PROMISES)


@pytest.mark.parametrize("program", ["beacon:main", f"{broken.__name__}:noting_its_task"])
def test_a_world_of_the_same_make_in_which_nothing_is_broken_keeps_all_promises(program: str, tmp_path: Path) -> None:
    for number, promise in enumerate(PROMISES):
        logs = tmp_path / str(number)
        logs.mkdir()
        ask_broken(broken.Ending if "task" in program else broken.World, promise, logs)


class HealsNothing(Nemesis):
    """It says that it undid what it left as it was."""

    async def _undo(self, key: tuple[str, int]) -> Effect:
        del self.active[key]
        return Effect(True, "said to be undone")


class HealsOnlyWhatIsDue(Nemesis):
    """What is active when the storm ends stays so."""

    async def heal(self) -> None:
        return None


class ForgetsToHeal(Nemesis):
    """It undoes one fault in the end, and leaves the others."""

    async def heal(self) -> None:
        for key in sorted(self.active)[1:]:
            del self.active[key]
        await super().heal()


@pytest.mark.parametrize("kind", [HealsNothing, HealsOnlyWhatIsDue, ForgetsToHeal])
def test_a_nemesis_that_does_not_heal_is_noticed(kind: type[Nemesis], tmp_path: Path) -> None:
    async def inside(environment: Environment) -> None:
        await environment.start(nodes(), tmp_path)
        await promises.a_nemesis_leaves_the_world_as_it_was(environment, kind)

    with pytest.raises(AssertionError, match=r"left unhealed|does not reach|never answered"):
        run_simulation(inside, Seed(1729), Trace(), regime=Regime.calm())


class ImpairsNothing(broken.World):
    """It says that it impaired what it left as it was."""

    async def impair_links(self, links: Any, impairment: Any) -> Effect:
        return broken.DONE

    async def impair(self, nodes: Any, impairment: Any) -> Effect:
        return broken.DONE


class RelievesNothing(broken.World):
    """It says that it relieved what it left impaired."""

    async def relieve_links(self, links: Any, impairment: Any) -> Effect:
        return broken.DONE

    async def relieve(self, nodes: Any, impairment: Any) -> Effect:
        return broken.DONE


class RelievesAllAtOnce(broken.World):
    """One impairment taken away takes those like it away, too."""

    async def relieve_links(self, links: Any, impairment: Any) -> Effect:
        first = await self.beneath.relieve_links(links, impairment)
        while (await self.beneath.relieve_links(links, impairment)).happened:
            pass
        return first  # type: ignore[no-any-return]

    async def relieve(self, nodes: Any, impairment: Any) -> Effect:
        first = await self.beneath.relieve(nodes, impairment)
        while (await self.beneath.relieve(nodes, impairment)).happened:
            pass
        return first  # type: ignore[no-any-return]


@pytest.mark.parametrize("world", [ImpairsNothing, RelievesNothing])
def test_a_world_that_impairs_or_relieves_nothing_is_noticed_by_every_promise_of_impairments(
    world: type[broken.World], tmp_path: Path
) -> None:
    unnoticed = []
    for number, promise in enumerate(IMPAIRMENT_PROMISES):
        logs = tmp_path / str(number)
        logs.mkdir()
        try:
            ask_broken(world, promise, logs)
        except AssertionError:
            continue
        unnoticed.append(promise)
    assert unnoticed == [
        a_slow_node_computes_slowly_also_after_a_restart,
        processes_are_struck_by_their_names_and_go_on_in_the_end,
        slow_processes_compute_slowly_until_the_end,
        who_takes_more_memory_than_is_left_is_killed_and_has_not_panicked,
    ], "which say nothing of virtual time, and of worlds in which a node is one process"


@pytest.mark.parametrize(
    "promise",
    [
        impairment_promises.impairments_of_one_link_add_up_and_each_is_relieved_alone,
        impairment_promises.a_slow_disk_is_slow_until_each_impairment_of_it_is_relieved,
        impairment_promises.a_strobing_clock_flips_beside_whatever_else_is_wrong_with_it,
    ],
)
def test_a_world_that_relieves_all_at_once_is_noticed(promise: Promise, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        ask_broken(RelievesAllAtOnce, promise, tmp_path)
