"""What a system says of its nodes becomes their events, once for each change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import CONNECT_FAILED, OperationError
from harness.observation import Observation, is_observable
from harness.record.run_directory import EVENTS
from system_under_test.rocketmq.controller.protocol import GroupState, ReplicaInfo, ReplicaState, SyncStateSet
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.observation import _brokers

MASTER, SLAVE = {"event": "role", "role": "master"}, {"event": "role", "role": "slave"}


class Timeline:
    """A second passes with each look."""

    def __init__(self) -> None:
        self.seconds = 0

    def now_ns(self) -> int:
        return self.seconds * 1_000_000_000

    async def sleep(self, seconds: float) -> None:
        self.seconds += round(seconds)
        await asyncio.sleep(0)


class Cluster:
    """Shows one look after another; None is a look at which nobody answers."""

    def __init__(self, looks: list[Mapping[str, tuple[Mapping[str, Any], ...]] | None]) -> None:
        self.looks = looks
        self.over = asyncio.Event()

    async def observed(self, settings: Any, host: Any) -> Mapping[str, tuple[Mapping[str, Any], ...]]:
        if not self.looks:
            self.over.set()
            return {}
        look = self.looks.pop(0)
        if look is None:
            raise OperationError(CONNECT_FAILED, "nobody answers")
        return look


def written(looks: list[Mapping[str, tuple[Mapping[str, Any], ...]] | None], nodes: Path) -> dict[str, list[Any]]:
    async def observe() -> None:
        cluster = Cluster(looks)
        observation = Observation(cluster, None, Timeline())
        going = asyncio.create_task(observation.go_on(None))
        await cluster.over.wait()
        going.cancel()
        observation.write(nodes)

    asyncio.run(observe())
    return {
        path.parent.name: [json.loads(line) for line in path.read_text().splitlines()]
        for path in nodes.glob(f"*/{EVENTS}")
    }


def test_each_change_is_an_event_with_the_time_at_which_it_was_seen(tmp_path: Path) -> None:
    found = written([{"a": (MASTER,)}, {"a": (MASTER,), "b": (SLAVE,)}, None, {}, {"a": (SLAVE,)}], tmp_path)
    assert found == {"a": [{"time": 0, **MASTER}, {"time": 4_000_000_000, **SLAVE}], "b": [{"time": 10**9, **SLAVE}]}


def test_what_a_node_wrote_itself_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / EVENTS).write_text('{"time": 0, "event": "started"}\n')
    assert [event["event"] for event in written([{"a": (MASTER,)}], tmp_path)["a"]] == ["started", "role"]


def test_a_broker_is_what_the_controllers_say_and_the_master_has_the_sync_state_set() -> None:
    one, other, third = (ReplicaState(broker_id=i, address=f"b{i}:10911", is_alive=True) for i in (1, 2, 3))
    in_sync = SyncStateSet(members=(1, 2), epoch=7)
    info = ReplicaInfo(master_id=2, master_address="b2:10911", master_epoch=4, sync_state_set=in_sync)
    events = _brokers(GroupState(group="a", info=info, in_sync=(other, one), not_in_sync=(third,)))
    assert {node: [event.get("role") for event in found] for node, found in events.items()} == {
        "b1": ["slave"],
        "b2": ["master", None],
        "b3": ["slave"],
    }
    assert events["b2"][1] == {"event": "sync_state_set", "members": [1, 2], "epoch": 7}


def test_our_own_nodes_are_not_asked() -> None:
    assert is_observable(SYSTEM)
    assert asyncio.run(SYSTEM.observed(SYSTEM.settings_type(), None)) == {}
