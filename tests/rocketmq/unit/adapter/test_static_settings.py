"""Which settings do not go together with static topics: each is refused, in words that say what to change."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harness.errors import UsageError
from workloads.log import LogSettings
from workloads.queue import QueueSettings
from workloads.systems.rocketmq.settings import RocketmqSettings
from workloads.systems.rocketmq.static_settings import require_fitting_moves

STATIC = RocketmqSettings(static_queues=4, groups=2)


@pytest.mark.parametrize(
    ("settings", "of_the_workload", "says"),
    [
        (RocketmqSettings(), LogSettings(move_share=0.1), "move_share=0.1 moves queues.*set static_queues"),
        (STATIC, QueueSettings(), "static_queues is for workload log.*leave it out"),
        (STATIC, LogSettings(queues=5), "uses 5 queues.*that has 4; set queues to at most 4"),
        (RocketmqSettings(static_queues=4), LogSettings(move_share=0.1), "set groups to at least 2"),
        (RocketmqSettings(static_queues=4, retention_s=60), LogSettings(), "leave out retention_s"),
        (STATIC, LogSettings(tags=2), "leave tags out"),
    ],
)
def test_what_does_not_go_with_static_topics_is_refused(
    settings: RocketmqSettings, of_the_workload: Any, says: str
) -> None:
    with pytest.raises(UsageError) as refused:
        require_fitting_moves(settings, of_the_workload)
    assert re.search(says, str(refused.value))


@pytest.mark.parametrize(
    ("settings", "of_the_workload"),
    [
        (RocketmqSettings(), LogSettings()),
        (RocketmqSettings(), QueueSettings()),
        (STATIC, LogSettings(queues=4, move_share=0.1)),
        (RocketmqSettings(static_queues=4), LogSettings()),
    ],
)
def test_what_goes_with_static_topics_is_let_through(settings: RocketmqSettings, of_the_workload: Any) -> None:
    require_fitting_moves(settings, of_the_workload)
