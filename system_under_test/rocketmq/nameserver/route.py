"""The route of a topic: which broker groups hold how many of its queues, and where their brokers are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from system_under_test.remoting.json_body import decode_json
from system_under_test.rocketmq.nameserver.registration import MASTER_ID
from system_under_test.rocketmq.static_topic.mapping import MappingInfo, mappings_from_json
from system_under_test.rocketmq.topic import READ_WRITE

_NUMERIC_KEY: Final = re.compile(rb'"([0-9]+)":')


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRoute:
    """One broker group's part. `brokers` maps role ids to addresses, 0 being the master, in order of id."""

    cluster: str
    broker_name: str
    brokers: Mapping[int, str]
    read_queues: int
    write_queues: int
    permission: int = READ_WRITE
    system_flag: int = 0
    mapping: MappingInfo | None = None
    """Which queues of a static topic the group leads."""

    @property
    def master(self) -> str | None:
        return self.brokers.get(MASTER_ID)


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """All groups that hold the topic, by name."""

    groups: tuple[GroupRoute, ...]

    def leaders(self) -> dict[int, str]:
        """Of a static topic: queue -> the group that leads it, by the greatest epoch that one claims it with."""
        claims: dict[int, tuple[int, str]] = {}
        for group in self.groups:
            mapping = group.mapping
            if mapping is None:
                continue
            for queue_id in mapping.led:
                claim = mapping.queue_epochs.get(queue_id, mapping.epoch), group.broker_name
                claims[queue_id] = max(claims.get(queue_id, claim), claim)
        return {queue_id: name for queue_id, (_, name) in sorted(claims.items())}

    def encode(self) -> bytes:
        """As RocketMQ's TopicRouteData, in standard JSON."""
        mappings = {
            group.broker_name: group.mapping.as_json(group.broker_name)
            for group in self.groups
            if group.mapping is not None
        }
        return encode_json(
            {
                "brokerDatas": [group_as_json(group) for group in self.groups],
                "filterServerTable": {},
                "queueDatas": [
                    {
                        "brokerName": group.broker_name,
                        "perm": group.permission,
                        "readQueueNums": group.read_queues,
                        "topicSysFlag": group.system_flag,
                        "writeQueueNums": group.write_queues,
                    }
                    for group in self.groups
                ],
                **({"topicQueueMappingByBroker": mappings} if mappings else {}),
            }
        )

    def encode_for_old_clients(self) -> bytes:
        """With ids of brokers as numbers, which JSON does not have for keys: so clients before 4.9.4 expect them."""
        # In a text every quote has a backslash before it, so what is matched is a whole key, and only ids are digits.
        return _NUMERIC_KEY.sub(rb"\1:", self.encode())

    @classmethod
    def decode(cls, body: bytes) -> TopicRoute:
        """Raises ValueError for a body that is no route."""
        try:
            data = decode_json(body)
            queues = {entry["brokerName"]: entry for entry in data["queueDatas"]}
            mappings = mappings_from_json(data.get("topicQueueMappingByBroker") or {})
            groups = [
                GroupRoute(
                    cluster=entry["cluster"],
                    broker_name=entry["brokerName"],
                    brokers=dict(sorted((int(key), str(value)) for key, value in entry["brokerAddrs"].items())),
                    read_queues=int(queues[entry["brokerName"]]["readQueueNums"]),
                    write_queues=int(queues[entry["brokerName"]]["writeQueueNums"]),
                    permission=int(queues[entry["brokerName"]].get("perm", READ_WRITE)),
                    system_flag=int(queues[entry["brokerName"]].get("topicSysFlag", 0)),
                    mapping=mappings.get(entry["brokerName"]),
                )
                for entry in data["brokerDatas"]
                if entry["brokerName"] in queues
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a route: {error!r}") from error
        return cls(tuple(sorted(groups, key=lambda group: group.broker_name)))


def group_as_json(group: GroupRoute) -> dict[str, Any]:
    return {
        "brokerAddrs": {str(broker_id): address for broker_id, address in sorted(group.brokers.items())},
        "brokerName": group.broker_name,
        "cluster": group.cluster,
        "enableActingMaster": False,
    }


def encode_json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
