"""What a broker tells a NameServer of itself, and how that travels (REGISTER_BROKER)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.json_body import decode_json

MASTER_ID = 0
PERMISSION_READ_WRITE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A broker's claim to an id in its group.

    `broker_id` is the role's id: 0 for the master, the controller's id for a slave. `state_version` decides
    between two claims to one id; it carries the master epoch. `topics` maps a topic to its number of queues.
    """

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str
    state_version: int
    topics: Mapping[str, int]
    expiry_ms: int | None = None

    def encode(self) -> RemotingCommand:
        fields = {
            "clusterName": self.cluster,
            "brokerName": self.broker_name,
            "brokerId": str(self.broker_id),
            "brokerAddr": self.address,
            "haServerAddr": self.ha_address,
            "compressed": "false",
        }
        if self.expiry_ms is not None:
            fields["heartbeatTimeoutMillis"] = str(self.expiry_ms)
        body = {
            "filterServerList": [],
            "topicConfigSerializeWrapper": {
                "dataVersion": {"counter": len(self.topics), "stateVersion": self.state_version, "timestamp": 0},
                "topicConfigTable": {
                    topic: {
                        "order": False,
                        "perm": PERMISSION_READ_WRITE,
                        "readQueueNums": queues,
                        "topicName": topic,
                        "topicSysFlag": 0,
                        "writeQueueNums": queues,
                    }
                    for topic, queues in self.topics.items()
                },
            },
        }
        return RemotingCommand.request(
            RequestCode.REGISTER_BROKER, fields, json.dumps(body, separators=(",", ":")).encode()
        )

    @classmethod
    def decode(cls, command: RemotingCommand) -> Registration:
        """Raises RemotingError (INVALID_PARAMETER) for a request that is none."""
        fields = command.ext_fields
        try:
            wrapper = decode_json(command.body)["topicConfigSerializeWrapper"]
            expiry = fields.get("heartbeatTimeoutMillis")
            return cls(
                cluster=fields["clusterName"],
                broker_name=fields["brokerName"],
                broker_id=int(fields["brokerId"]),
                address=fields["brokerAddr"],
                ha_address=fields["haServerAddr"],
                state_version=int(wrapper["dataVersion"]["stateVersion"]),
                topics={topic: int(entry["writeQueueNums"]) for topic, entry in wrapper["topicConfigTable"].items()},
                expiry_ms=None if expiry is None else int(expiry),
            )
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"not a registration: {error!r}") from error


def unregistration(registration: Registration) -> RemotingCommand:
    """The request with which a broker takes leave."""
    return RemotingCommand.request(
        RequestCode.UNREGISTER_BROKER,
        {
            "clusterName": registration.cluster,
            "brokerName": registration.broker_name,
            "brokerId": str(registration.broker_id),
            "brokerAddr": registration.address,
        },
    )
