"""Storms in which controllers take snapshots all the time, and get them from each other, break no promise."""

from __future__ import annotations

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario
from stormproof.search.sampling import drawn_storm
from stormproof.search.space import Space
from stormproof.search.storm import blown_and_judged
from stormproof.session import registry

SPACE = Space(system="rocketmq", workload="register", settings={"snapshot_threshold": 3})


def test_drawn_storms_stay_valid_where_the_log_of_the_controllers_is_hardly_longer_than_a_snapshot() -> None:
    taken = installed = 0
    for number in (0, 3, 4, 5, 6):
        scenario = drawn_storm(SPACE, 4242, number)
        judged = blown_and_judged(scenario, registry.resolve(scenario))
        assert judged.verdict is Verdict.VALID, judged.words()
        taken += judged.blown.reached.get("snapshot-persisted", 0)
        installed += judged.blown.reached.get("about-to-install-snapshot", 0)
    assert taken > 100
    assert installed > 5


MOMENTS = ("about-to-write-snapshot", "snapshot-persisted", "about-to-install-snapshot")


def test_no_moment_around_a_snapshot_is_one_at_which_power_must_not_fail() -> None:
    lines = [
        f"{1 + 2 * number} for 1.5 {verb} it {when} 2nd {point} [mine {number}]"
        for number, (verb, when, point) in enumerate(
            (verb, when, point) for verb in ("power off", "kill") for when in ("when", "after") for point in MOMENTS
        )
    ]
    # Somebody has to be behind, now and then.
    lines += [f"{number} for 1 isolate one of controllers [aside {number}]" for number in range(1, 24, 2)]
    scenario = Scenario(
        system="rocketmq",
        workload="register",
        settings={"snapshot_threshold": 3},
        schedule=tuple(lines),
        time_limit_s=28,
        rate=50,
        concurrency=6,
        recovery_s=3,
        seed=11,
    )
    judged = blown_and_judged(scenario, registry.resolve(scenario))
    struck = [window.point for window in judged.blown.faults.windows if window.point]
    assert set(struck) == set(MOMENTS)
    assert len(struck) > 8
    assert judged.verdict is Verdict.VALID, judged.words()
