"""Storms in which controllers take snapshots all the time, and get them from each other, break no promise."""

from __future__ import annotations

from dataclasses import replace

from checkers.verdict import Verdict
from harness.explore.draw import drawn_storm
from harness.explore.space import Space
from harness.explore.storm import blown_and_judged
from harness.session import resolve as registry

SPACE = Space(system="rocketmq", settings={})


def test_drawn_storms_stay_valid_where_the_log_of_the_controllers_is_hardly_longer_than_a_snapshot() -> None:
    taken = installed = 0
    for number in (0, 4, 5, 7, 8):
        drawn = drawn_storm(SPACE, 4242, number)
        scenario = replace(drawn, settings={**drawn.settings, "snapshot_threshold": 3})
        judged = blown_and_judged(scenario, registry.resolve(scenario))
        assert judged.verdict is Verdict.VALID, judged.words()
        taken += judged.blown.reached.get("snapshot-persisted", 0)
        installed += judged.blown.reached.get("about-to-install-snapshot", 0)
    assert taken > 100
    assert installed > 5
