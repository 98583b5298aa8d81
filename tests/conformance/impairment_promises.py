"""What an environment promises of impairments, as in `promises`: of kinds that it has; others it refuses by name."""

from __future__ import annotations

import pytest

from harness.environments.environment import Environment
from harness.environments.impairment import FlappingLink, HeldLink, LinkImpairment, LossyLink, NarrowLink, SlowLink
from tests.conformance.promises import (
    A_TO_B,
    B_TO_A,
    QUIET_S,
    Promise,
    answered,
    connections_kept,
    is_silent,
    refuses,
    until,
)

SLOW = SlowLink(delay_ms=600, jitter_ms=0)
IMPAIRED_LINKS: tuple[LinkImpairment, ...] = (
    SLOW,
    LossyLink(share=0.999),
    NarrowLink(bytes_per_s=30),
    FlappingLink(down_ms=4000, up_ms=60_000),
    HeldLink(),
)
"""Each so bad that it is noticed at once."""
NOTICED_S = 0.4


async def round_trip_s(environment: Environment) -> float:
    """From a to b and back, over a connection that exists; at most what the beacon waits for."""
    from_ns = environment.timeline.now_ns()
    await answered(environment, "a", "s")
    return (environment.timeline.now_ns() - from_ns) / 1e9


async def an_impaired_link_is_bad_in_one_direction_until_it_is_relieved(environment: Environment) -> None:
    for impairment in IMPAIRED_LINKS:
        if impairment.kind in environment.faults:
            await _impaired_and_relieved(environment, impairment)


async def _impaired_and_relieved(environment: Environment, impairment: LinkImpairment) -> None:
    kind = impairment.kind
    await connections_kept(environment)
    well_s = await round_trip_s(environment)
    assert (await environment.impair_links([A_TO_B], impairment)).happened, f"{kind} had no effect"
    assert await round_trip_s(environment) > well_s + NOTICED_S, f"{kind} is not noticed within a connection"
    assert not await is_silent(environment, "b"), f"{kind} of two nodes strikes clients"
    assert not (await environment.relieve_links([B_TO_A], impairment)).happened, f"{kind} was relieved where it was not"
    assert (await environment.relieve_links([A_TO_B], impairment)).happened, f"the end of {kind} had no effect"
    assert not (await environment.relieve_links([A_TO_B], impairment)).happened, f"{kind} was relieved twice"
    await connections_kept(environment)
    assert await round_trip_s(environment) < well_s + NOTICED_S / 2, f"{kind} is noticed after its end"


async def impairments_of_one_link_add_up_and_each_is_relieved_alone(environment: Environment) -> None:
    if SLOW.kind not in environment.faults:
        return
    await connections_kept(environment)
    took_s = []
    for change in (environment.impair_links,) * 2 + (environment.relieve_links,) * 2:
        assert (await change([A_TO_B], SLOW)).happened
        took_s.append(await round_trip_s(environment))
    assert took_s == pytest.approx([0.6, 1.2, 0.6, 0.0], abs=0.2), f"two of 600 ms made round trips of {took_s} s"


async def an_impairment_leaves_a_cut_of_its_link_alone(environment: Environment) -> None:
    for impairment in IMPAIRED_LINKS:
        if impairment.kind in environment.faults:
            await connections_kept(environment)
            assert (await environment.impair_links([A_TO_B], impairment)).happened
            assert (await environment.cut([A_TO_B])).happened
            assert (await environment.relieve_links([A_TO_B], impairment)).happened
            assert await answered(environment, "a", ">") is False, f"the end of {impairment.kind} healed a cut"
            assert (await environment.heal()).happened


async def what_a_held_link_keeps_arrives_although_its_sender_died_and_came_back(environment: Environment) -> None:
    if HeldLink.kind not in environment.faults:
        return
    for ending in (environment.kill, environment.power_off):
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


async def an_impairment_that_the_environment_has_not_is_refused_by_name(environment: Environment) -> None:
    for impairment in IMPAIRED_LINKS:
        if impairment.kind not in environment.faults:
            assert impairment.kind in await refuses(lambda each=impairment: environment.impair_links([A_TO_B], each))


IMPAIRMENT_PROMISES: tuple[Promise, ...] = (
    an_impaired_link_is_bad_in_one_direction_until_it_is_relieved,
    impairments_of_one_link_add_up_and_each_is_relieved_alone,
    an_impairment_leaves_a_cut_of_its_link_alone,
    what_a_held_link_keeps_arrives_although_its_sender_died_and_came_back,
    an_impairment_that_the_environment_has_not_is_refused_by_name,
)
