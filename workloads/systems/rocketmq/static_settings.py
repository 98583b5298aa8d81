"""Which settings go together with static topics."""

from __future__ import annotations

from typing import Any

from harness.errors import UsageError
from workloads.systems.rocketmq.settings import RocketmqSettings, broker_groups


def require_fitting_moves(settings: RocketmqSettings, workload_settings: Any) -> None:
    """Raises UsageError."""
    move_share = getattr(workload_settings, "move_share", None)
    if not settings.static_queues:
        if move_share:
            raise UsageError(
                f"move_share={move_share} moves queues, and only those of a static topic move: set static_queues"
            )
        return
    if move_share is None:
        raise UsageError("static_queues is for workload log, whose clients know static topics; leave it out")
    queues, groups = workload_settings.queues, len(broker_groups(settings))
    if queues > settings.static_queues:
        raise UsageError(
            f"the workload uses {queues} queues of a static topic that has {settings.static_queues}; set queues to at "
            f"most {settings.static_queues}, or static_queues to at least {queues}"
        )
    if move_share and groups == 1:
        raise UsageError("move_share needs a group of brokers to move queues to: set groups to at least 2")
    if settings.retention_s or settings.clean_when_full:
        raise UsageError(
            "files of brokers with static topics are kept: leave out retention_s and clean_when_full, or static_queues"
        )
    if workload_settings.tags:
        raise UsageError("tags look messages up by keys, which static topics do not offer; leave tags out")
