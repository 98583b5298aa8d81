"""What an environment promises of impairments, as in `promises`: of kinds that it has; others it refuses by name."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from beacon import NAP_S, ask

from harness.environments.environment import Environment
from harness.environments.impairment import (
    CorruptingLink,
    DiskErrors,
    FailingFsync,
    FlappingLink,
    FullDisk,
    HeldLink,
    KilledProcesses,
    LinkImpairment,
    LossyLink,
    LostDisk,
    NarrowLink,
    NodeImpairment,
    OldDisk,
    PausedProcesses,
    ReorderingLink,
    RestartLoop,
    RollingRestart,
    ScarceMemory,
    ShortFiles,
    SlowDisk,
    SlowedProcesses,
    SlowLink,
    SlowNode,
    Strobe,
)
from tests.between import Between
from tests.conformance.promises import (
    A_TO_B,
    B_TO_A,
    QUIET_S,
    READINGS,
    Promise,
    ahead_s,
    answered,
    connections_kept,
    is_silent,
    refuses,
    until,
)

# Links

SLOW = SlowLink(delay_ms=600, jitter_ms=0)
IMPAIRED_LINKS: tuple[LinkImpairment, ...] = (
    SLOW,
    LossyLink(share=0.999),
    NarrowLink(bytes_per_s=30),
    FlappingLink(down_ms=4000, up_ms=60_000),
    HeldLink(),
    CorruptingLink(share=0.999),
    ReorderingLink(share=1, delay_ms=600),
)
"""Each so bad that it is noticed at once."""
NOTICED_S = 0.4
MOST_READINGS = 20
ATTEMPTS_AT_SILENCE = 100
"""A verb that strikes by itself takes as long as a busy machine needs."""


async def round_trip_s(environment: Environment) -> float:
    """From a to b and back, over a connection that exists; at most what the beacon waits for."""
    from_ns = environment.timeline.now_ns()
    await answered(environment, "a", "s")
    return (environment.timeline.now_ns() - from_ns) / 1e9


async def least_s(measured: Callable[[], Awaitable[float]], enough_s: float = 0.0) -> float:
    """Of several: without what a busy machine adds. Measured again while that much is enough, and was not seen."""
    took_s = [await measured() for _ in range(READINGS)]
    while min(took_s) > enough_s and len(took_s) < (MOST_READINGS if enough_s else READINGS):
        took_s.append(await measured())
    return min(took_s)


async def an_impaired_link_is_bad_in_one_direction_until_it_is_relieved(environment: Environment) -> None:
    for impairment in IMPAIRED_LINKS:
        if impairment.kind in environment.faults:
            await _impaired_and_relieved(environment, impairment)


async def _impaired_and_relieved(environment: Environment, impairment: LinkImpairment) -> None:
    kind = impairment.kind
    await connections_kept(environment)
    well_s = await least_s(lambda: round_trip_s(environment))
    assert (await environment.impair_links([A_TO_B], impairment)).happened, f"{kind} had no effect"
    assert await round_trip_s(environment) > well_s + NOTICED_S, f"{kind} is not noticed within a connection"
    assert not await is_silent(environment, "b"), f"{kind} of two nodes strikes clients"
    assert not (await environment.relieve_links([B_TO_A], impairment)).happened, f"{kind} was relieved where it was not"
    assert (await environment.relieve_links([A_TO_B], impairment)).happened, f"the end of {kind} had no effect"
    assert not (await environment.relieve_links([A_TO_B], impairment)).happened, f"{kind} was relieved twice"
    await connections_kept(environment)
    enough_s = well_s + NOTICED_S / 2
    after_s = await least_s(lambda: round_trip_s(environment), enough_s)
    assert after_s <= enough_s, f"{kind} is noticed after its end"


async def impairments_of_one_link_add_up_and_each_is_relieved_alone(environment: Environment) -> None:
    if SLOW.kind not in environment.faults:
        return
    await connections_kept(environment)
    took_s = []
    changes = (environment.impair_links,) * 2 + (environment.relieve_links,) * 2
    for change, expected_s in zip(changes, (0.6, 1.2, 0.6, 0.0), strict=True):
        assert (await change([A_TO_B], SLOW)).happened
        took_s.append(await least_s(lambda: round_trip_s(environment), expected_s + 0.2))
    assert took_s == pytest.approx([0.6, 1.2, 0.6, 0.0], abs=0.2), f"two of 600 ms made round trips of {took_s} s"


async def an_impairment_leaves_a_cut_of_its_link_alone(environment: Environment) -> None:
    impairments = [impairment for impairment in IMPAIRED_LINKS if impairment.kind in environment.faults]
    await connections_kept(environment)
    for impairment in impairments:
        assert (await environment.impair_links([A_TO_B], impairment)).happened
    assert (await environment.cut([A_TO_B])).happened
    for impairment in impairments:
        assert (await environment.relieve_links([A_TO_B], impairment)).happened
    assert await answered(environment, "a", ">") is False, "the end of an impairment healed a cut"
    assert (await environment.heal()).happened
    await until(environment, "a", ">", True, "a link stays cut after a cut and impairments")


async def what_a_held_link_keeps_arrives_although_its_sender_died_and_came_back(environment: Environment) -> None:
    if HeldLink.kind not in environment.faults:
        return
    for ending in (environment.kill, *([environment.power_off] if "power" in environment.faults else [])):
        await connections_kept(environment)
        before = await answered(environment, "b", "c")
        assert (await environment.impair_links([A_TO_B], HeldLink())).happened
        assert await answered(environment, "a", "n") is True
        assert (await ending(["a"])).happened
        assert (await environment.boot(["a"])).happened
        await answered(environment, "a")
        await environment.timeline.sleep(QUIET_S)
        assert await answered(environment, "b", "c") == before, "a held link lets packets through"
        assert (await environment.relieve_links([A_TO_B], HeldLink())).happened
        await until(environment, "b", "c", before + 1, "what a link held is lost with its sender")


# Disks


async def a_slow_disk_is_slow_until_each_impairment_of_it_is_relieved(environment: Environment) -> None:
    if SlowDisk.kind not in environment.faults:
        return
    slow = SlowDisk(factor=40)

    async def fsync_s() -> float:
        from_ns = environment.timeline.now_ns()
        await answered(environment, "a", "!")
        return (environment.timeline.now_ns() - from_ns) / 1e9

    took_s = []
    changes = (environment.impair,) * 2 + (environment.relieve,) * 2
    for change, enough_s in zip(changes, (0.0, 0.0, 0.0, NOTICED_S / 5), strict=True):
        assert (await change(["a"], slow)).happened
        took_s.append(await least_s(fsync_s, enough_s))
    assert took_s[1] > NOTICED_S, f"an fsync takes {took_s[1]} s where it should take 1600 times as long"
    assert took_s[1] > 5 * took_s[0] > 5 * took_s[2] * 0.1 and took_s[3] < NOTICED_S / 4, f"fsyncs took {took_s} s"
    assert not (await environment.relieve(["a"], slow)).happened


FAILING: tuple[tuple[NodeImpairment, str], ...] = (
    (FailingFsync(most=1), "!"),
    (FailingFsync(most=None), "!"),
    (DiskErrors(reads=0.0, writes=1.0), "+"),
    (DiskErrors(reads=1.0, writes=0.0), "r"),
    (FullDisk(room_bytes=0), "+"),
)
"""With what the beacon is asked that ends it."""


async def a_failing_disk_ends_a_node_that_bears_it_not_and_is_no_panic(environment: Environment) -> None:
    for impairment, question in FAILING:
        if impairment.kind not in environment.faults:
            continue
        panics = dict(environment.panics())
        synced = await answered(environment, "a", "!")
        assert (await environment.impair(["a"], impairment)).happened
        assert await ask(environment.client_host("client"), "a", question) is None, f"{impairment.kind} was not noticed"
        assert await is_silent(environment, "a"), f"a node outlived {impairment.kind} that it does not handle"
        assert not await is_silent(environment, "b")
        healed = await environment.relieve(["a"], impairment)
        # A kernel may ask once more before it lets a program know.
        assert healed.happened and re.search(r"\b[1-9]\d* calls failed", healed.evidence), healed.evidence
        assert (await answered(environment, "a", "r")).startswith(synced), "what an fsync was to make durable is gone"
        assert environment.panics() == panics, "a node whose disk a fault let fail counts as panicked"


async def a_node_that_is_killed_after_its_disk_ended_it_stays_down(environment: Environment) -> None:
    impairment = DiskErrors(reads=0.0, writes=1.0)
    if impairment.kind not in environment.faults:
        return
    await answered(environment, "a")
    assert (await environment.impair(["a"], impairment)).happened
    assert await ask(environment.client_host("client"), "a", "+") is None
    await environment.kill(["a"])
    assert (await environment.relieve(["a"], impairment)).happened
    assert await is_silent(environment, "a"), "the end of a disk's fault booted a node that was killed"
    assert (await environment.boot(["a"])).happened
    await answered(environment, "a")
    assert await ask(environment.client_host("client"), "a", "+") is not None, "a disk fails after the end of it"


async def disks_are_lost_cut_short_and_rolled_back_as_is_said(environment: Environment) -> None:
    if not {LostDisk.kind, ShortFiles.kind, OldDisk.kind} <= environment.faults:
        return
    old = await _written(environment)
    await environment.impair(["a"], OldDisk(after_s=5.0))
    assert not await is_silent(environment, "a"), "a node is down while its disk is copied"
    assert len(await _written(environment)) > len(old)
    await environment.timeline.sleep(5.0)
    await _until_silent(environment, "a", "a node runs while its disk is put back")
    assert (await environment.relieve(["a"], OldDisk(after_s=5.0))).happened
    assert await answered(environment, "a", "r") == old, "what came back is not what was copied"
    short = ShortFiles(files=100, draw=7)
    assert (await environment.impair(["a"], short)).happened
    assert await is_silent(environment, "a")
    assert (await environment.relieve(["a"], short)).happened
    kept = await answered(environment, "a", "r")
    assert old.startswith(kept) and kept != old, f"cut short, {old} is {kept}"
    assert (await environment.impair(["a"], LostDisk())).happened
    assert await is_silent(environment, "a")
    assert (await environment.relieve(["a"], LostDisk())).happened
    assert await answered(environment, "a", "r") == "", "a lost disk holds something"
    assert environment.panics() == {}


async def _until_silent(environment: Environment, node: str, words: str) -> None:
    for _ in range(ATTEMPTS_AT_SILENCE):
        if await is_silent(environment, node):
            return
        await environment.timeline.sleep(0.1)
    raise AssertionError(words)


async def _written(environment: Environment) -> str:
    for _ in range(5):
        written: str = await answered(environment, "a", "+")
    return written


# Processes and clocks

OF_KERNELS = (KilledProcesses(name="*beacon:main*"), PausedProcesses(name="*beacon:main*"))
"""By which all processes of a beacon are struck."""


async def processes_are_struck_by_their_names_and_go_on_in_the_end(environment: Environment) -> None:
    for impairment in OF_KERNELS:
        if impairment.kind not in environment.faults:
            continue
        kept = await answered(environment, "a", "+")
        assert (await environment.impair(["a"], impairment)).happened
        assert await is_silent(environment, "a"), f"{impairment.kind} was not noticed"
        assert not await is_silent(environment, "b")
        assert (await environment.relieve(["a"], impairment)).happened
        assert await answered(environment, "a", "r") == kept
        nobody = replace(impairment, name="nobody")
        assert "no process is called 'nobody'" in (effect := await environment.impair(["a"], nobody)).evidence
        assert not effect.happened and not (await environment.relieve(["a"], nobody)).happened
    assert environment.panics() == {}


async def least_burn_ns(environment: Environment) -> float:
    return await least_s(lambda: answered(environment, "a", "b"))


async def slow_processes_compute_slowly_until_the_end(environment: Environment) -> None:
    slow = SlowedProcesses(name="*beacon:main*", stretch=20.0)
    if slow.kind not in environment.faults:
        return
    well_ns = await least_burn_ns(environment)
    assert (await environment.impair(["a"], slow)).happened
    slow_ns = await answered(environment, "a", "b")
    assert slow_ns > 4 * well_ns, f"what took {well_ns} ns takes {slow_ns} ns in a process that is to be slow"
    assert (await environment.relieve(["a"], slow)).happened
    assert await least_burn_ns(environment) < slow_ns / 2, "a process is slow after the end of it"
    nobody = replace(slow, name="nobody")
    assert "no process is called 'nobody'" in (effect := await environment.impair(["a"], nobody)).evidence
    assert not effect.happened and not (await environment.relieve(["a"], nobody)).happened


async def a_slow_node_computes_slowly_also_after_a_restart(environment: Environment) -> None:
    if SlowNode.kind not in environment.faults or environment.moments is not None:
        return  # in virtual time nothing is computed at all
    slow = SlowNode(callback_us=0, stretch=20.0)
    well_ns = await least_burn_ns(environment)
    assert (await environment.impair(["a"], slow)).happened
    for _ in range(2):
        slow_ns = await answered(environment, "a", "b")
        assert slow_ns > 4 * well_ns, f"what took {well_ns} ns takes {slow_ns} ns on a node that is to be slow"
        await environment.kill(["a"])
        await environment.boot(["a"])
    assert (await environment.relieve(["a"], slow)).happened
    assert await least_burn_ns(environment) < slow_ns / 2, "a node is slow after the end of it"


async def a_slow_node_is_slow_in_all_that_it_does_also_after_a_restart(environment: Environment) -> None:
    if SlowNode.kind not in environment.faults or environment.moments is None:
        return  # a real program's sleeps cannot be stretched
    slow = SlowNode(callback_us=50_000, stretch=3.0)
    assert (await environment.impair(["a"], slow)).happened
    for _ in range(2):
        from_ns = environment.timeline.now_ns()
        await answered(environment, "a", "z")
        napped_s = (environment.timeline.now_ns() - from_ns) / 1e9
        assert napped_s > 3 * NAP_S, f"a nap of {NAP_S} s took {napped_s} s on a node that is to be slow"
        await environment.kill(["a"])
        await environment.boot(["a"])
    assert not await is_silent(environment, "b")
    assert (await environment.relieve(["a"], slow)).happened
    from_ns = environment.timeline.now_ns()
    await answered(environment, "a", "z")
    assert (environment.timeline.now_ns() - from_ns) / 1e9 < 2 * NAP_S, "a node is slow after the end of it"


async def nodes_restart_in_a_loop_until_it_ends(environment: Environment) -> None:
    loop = RestartLoop(down_ms=1000, up_ms=3000)
    if loop.kind not in environment.faults:
        return
    finished, kept = await answered(environment, "a", "f"), await answered(environment, "a", "+")
    assert (await environment.impair(["a"], loop)).happened
    from_ns = environment.timeline.now_ns()
    phases: list[bool] = []
    for _ in range(200):
        await environment.timeline.sleep(0.4)
        silent = await is_silent(environment, "a")
        # Asked too late on a busy machine, it may be up for the first time.
        phases += [silent] if phases[-1:] != [silent] and (silent or phases) else []
        if len(phases) == 4:
            break
    assert phases == [True, False, True, False], f"silent, as was seen: {phases}"
    assert not await is_silent(environment, "b")
    ended = await environment.relieve(["a"], loop)
    turns = (environment.timeline.now_ns() - from_ns) / 4e9
    killed = re.search(r"killed (\d+) times", ended.evidence)
    assert killed is not None and 2 <= int(killed[1]) <= turns + 2, ended.evidence
    assert await answered(environment, "a", "r") == kept
    assert await answered(environment, "a", "f") == finished, "a killed process carried out a finally"


async def a_rolling_restart_takes_one_node_after_the_other(environment: Environment) -> None:
    rolling = RollingRestart(down_ms=1000, gap_ms=1000)
    if rolling.kind not in environment.faults:
        return
    await answered(environment, "b")
    assert (await environment.impair(["a", "b"], rolling)).happened
    # How long a start takes is the machine's affair, so it is looked at until both have had their turn.
    seen: list[str] = []
    for _ in range(200):
        down = [node for node in ("a", "b") if await is_silent(environment, node)]
        newly = [node for node in down if node not in seen]
        assert len(newly) < 2, "both went down together"
        seen += newly
        if len(seen) == 2 and not down:
            break
        await environment.timeline.sleep(0.1)
    assert seen == ["a", "b"] and not down, f"down in this order: {seen}, and in the end: {down}"
    assert (await environment.relieve(["a", "b"], rolling)).happened
    assert (await environment.impair(["a", "b"], rolling)).happened
    assert (await environment.relieve(["a", "b"], rolling)).happened
    for node in ("a", "b"):
        await answered(environment, node)
    for _ in range(7):
        assert not await is_silent(environment, "a") and not await is_silent(environment, "b")
        await environment.timeline.sleep(0.5)


async def who_takes_more_memory_than_is_left_is_killed_and_has_not_panicked(environment: Environment) -> None:
    scarce = ScarceMemory(left_mb=4)
    if scarce.kind not in environment.faults:
        return
    kept = await answered(environment, "a", "+")
    assert (await environment.impair(["a"], scarce)).happened
    assert not await is_silent(environment, "a"), "a node ends that takes no memory"
    assert await ask(environment.client_host("client"), "a", "*") is None, "there is memory that should not be"
    assert await is_silent(environment, "a") and not await is_silent(environment, "b")
    assert "booted" in (await environment.relieve(["a"], scarce)).evidence
    assert await answered(environment, "a", "r") == kept
    assert await answered(environment, "a", "*") is True
    assert environment.panics() == {}


async def a_strobing_clock_flips_beside_whatever_else_is_wrong_with_it(environment: Environment) -> None:
    strobe = Strobe(offset_ms=100_000, period_ms=300)
    if strobe.kind not in environment.faults:
        return

    async def wrong_by_s(*expected: float) -> set[float]:
        """What was seen of what is expected, and whatever else was."""
        seen = set()
        for _ in range(20):
            asked_ns = environment.timeline.now_ns()
            wall_ns = await answered(environment, "a", "w")
            read = Between((wall_ns - environment.timeline.now_ns()) / 1e9, (wall_ns - asked_ns) / 1e9)
            wrong_s = read.minus(true_s)
            seen.add(next((value for value in expected if wrong_s.may_be(value, 0.5)), wrong_s.most))
            await environment.timeline.sleep(0.1)
        return seen

    true_s = await ahead_s(environment, "a")
    for _ in range(2):
        assert (await environment.impair(["a"], strobe)).happened
    assert (await environment.set_clock("a", offset_s=7.0, rate=1.0)).happened
    assert await wrong_by_s(7, 207) == {7, 207}
    assert (await environment.relieve(["a"], strobe)).happened
    assert await wrong_by_s(7, 107) == {7, 107}
    assert (await environment.relieve(["a"], strobe)).happened
    assert await wrong_by_s(7) == {7}
    assert (await environment.set_clock("a", offset_s=0.0, rate=1.0)).happened
    assert await wrong_by_s(0) == {0}


async def an_impairment_that_the_environment_has_not_is_refused_by_name(environment: Environment) -> None:
    for impairment in IMPAIRED_LINKS:
        if impairment.kind not in environment.faults:
            assert impairment.kind in await refuses(lambda each=impairment: environment.impair_links([A_TO_B], each))
    for impairment, _ in (*FAILING, *((one, "") for one in (LostDisk(), *OF_KERNELS, ScarceMemory(left_mb=1)))):
        if impairment.kind not in environment.faults:
            assert impairment.kind in await refuses(lambda each=impairment: environment.impair(["a"], each))
    for verb in (environment.impair, environment.relieve):
        assert "nobody" in await refuses(lambda verb=verb: verb(["nobody"], LostDisk())) or (
            LostDisk.kind not in environment.faults
        )


IMPAIRMENT_PROMISES: tuple[Promise, ...] = (
    an_impaired_link_is_bad_in_one_direction_until_it_is_relieved,
    impairments_of_one_link_add_up_and_each_is_relieved_alone,
    an_impairment_leaves_a_cut_of_its_link_alone,
    what_a_held_link_keeps_arrives_although_its_sender_died_and_came_back,
    a_slow_disk_is_slow_until_each_impairment_of_it_is_relieved,
    a_failing_disk_ends_a_node_that_bears_it_not_and_is_no_panic,
    a_node_that_is_killed_after_its_disk_ended_it_stays_down,
    disks_are_lost_cut_short_and_rolled_back_as_is_said,
    a_slow_node_computes_slowly_also_after_a_restart,
    a_slow_node_is_slow_in_all_that_it_does_also_after_a_restart,
    nodes_restart_in_a_loop_until_it_ends,
    a_rolling_restart_takes_one_node_after_the_other,
    a_strobing_clock_flips_beside_whatever_else_is_wrong_with_it,
    processes_are_struck_by_their_names_and_go_on_in_the_end,
    slow_processes_compute_slowly_until_the_end,
    who_takes_more_memory_than_is_left_is_killed_and_has_not_panicked,
    an_impairment_that_the_environment_has_not_is_refused_by_name,
)
