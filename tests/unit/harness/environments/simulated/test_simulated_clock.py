"""Clocks of simulated hosts: wall time may be wrong by anything, monotonic time never goes back."""

from __future__ import annotations

import itertools
from dataclasses import replace

from harness.environments.simulated.regime import Regime


def test_a_wall_clock_jumps_drifts_and_is_set_right_again(simulate):
    async def body(environment, hosts) -> None:
        clock, truth = hosts["a"].clock, hosts["b"].clock

        def wrong_s() -> float:
            return round((clock.wall_ns() - truth.wall_ns()) / 1e9, 6)

        assert wrong_s() == 0
        effect = await environment.set_clock("a", offset_s=-3600, rate=1.0)
        assert effect.happened
        assert wrong_s() == -3600
        await environment.timeline.sleep(10)
        assert wrong_s() == -3600
        assert (await environment.set_clock("a", offset_s=0.5, rate=2.0)).happened
        await environment.timeline.sleep(10)
        assert wrong_s() == 10.5
        assert (await environment.set_clock("a", offset_s=0.0, rate=1.0)).happened
        assert wrong_s() == 0
        assert not (await environment.set_clock("a", offset_s=0.0, rate=1.0)).happened
        assert hosts["c"].clock.wall_ns() == truth.wall_ns()

    simulate(body)


def test_monotonic_time_and_sleep_know_nothing_of_wall_time(simulate):
    async def body(environment, hosts) -> None:
        clock = hosts["a"].clock
        readings = [clock.monotonic_ns()]
        for offset_s in (100.0, -100.0, 5.0, -86_400.0):  # a strobe
            await environment.set_clock("a", offset_s=offset_s, rate=0.5)
            await clock.sleep(1.0)
            readings.append(clock.monotonic_ns())
        steps_s = [(later - earlier) / 1e9 for earlier, later in itertools.pairwise(readings)]
        assert all(abs(step_s - 1.0) < 1e-6 for step_s in steps_s)

    simulate(body)


def test_each_host_has_its_own_quartz_and_sleeps_by_it(simulate):
    async def body(environment, hosts) -> None:
        elapsed: dict[str, tuple[float, int]] = {}
        for name in ("a", "b"):
            clock = hosts[name].clock
            true_ns, own_ns = environment.timeline.now_ns(), clock.monotonic_ns()
            await clock.sleep(1000.0)
            elapsed[name] = ((clock.monotonic_ns() - own_ns) / 1e9, environment.timeline.now_ns() - true_ns)
        assert all(abs(own_s - 1000.0) < 1e-6 for own_s, _ in elapsed.values())
        assert elapsed["a"][1] != elapsed["b"][1]
        assert all(abs(true_ns / 1e9 - 1000.0) <= 0.2 for _, true_ns in elapsed.values())

    simulate(body, regime=replace(Regime.calm(), quartz_ppm=200.0))


def test_a_clock_goes_on_while_its_host_is_down(simulate):
    async def body(environment, hosts) -> None:
        await environment.set_clock("a", offset_s=7.0, rate=1.0)
        before_ns = hosts["a"].clock.monotonic_ns()
        await environment.kill(["a"])
        await environment.timeline.sleep(30)
        await environment.boot(["a"])
        await environment.timeline.sleep(0)
        clock = hosts["a"].clock
        assert clock.monotonic_ns() - before_ns == 30_000_000_000
        assert clock.wall_ns() - hosts["b"].clock.wall_ns() == 7_000_000_000

    simulate(body)
