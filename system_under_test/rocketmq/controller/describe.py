"""What administrators are shown of a broker group (getSyncStateSet)."""

from __future__ import annotations

from typing import Any

from system_under_test.rocketmq.controller.heartbeat import Liveness
from system_under_test.rocketmq.controller.state_machine import Group


def describe(group: Group, liveness: Liveness) -> dict[str, Any]:
    """JSON data: who is master, who is in the SyncStateSet and who is not, and who of them lives."""

    def row(broker_id: int) -> dict[str, Any]:
        return {
            "brokerName": group.name,
            "brokerId": broker_id,
            "brokerAddress": group.replicas[broker_id].address,
            "alive": group.living(broker_id, liveness) is not None,
        }

    known = sorted(group.replicas)
    return {
        "masterBrokerId": group.master,
        "masterAddress": group.info.master_address,
        "masterEpoch": group.master_epoch,
        "syncStateSetEpoch": group.sync_state_set_epoch,
        "inSyncReplicas": [row(broker_id) for broker_id in known if broker_id in group.sync_state_set],
        "notInSyncReplicas": [row(broker_id) for broker_id in known if broker_id not in group.sync_state_set],
    }
