"""What a broker tells a NameServer of itself, and how that travels (REGISTER_BROKER)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from zlib import crc32

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.json_body import decode_json
from system_under_test.rocketmq.data_version import DataVersion
from system_under_test.rocketmq.nameserver.compressed_registration import compress, decompress
from system_under_test.rocketmq.static_topic.mapping import MappingInfo, mappings_as_json, mappings_from_json
from system_under_test.rocketmq.topic import TopicConfig, topics_as_json, topics_from_json
from system_under_test.rocketmq.version import Version

MASTER_ID = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A broker's claim to an id in its group.

    `broker_id` is the role's id: 0 for the master, the controller's id for a slave. `version` is that of `topics`, but
    for its state version: that one is the master epoch of the claim, and decides between two claims to one id.
    """

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str
    version: DataVersion
    topics: Mapping[str, TopicConfig]
    mappings: Mapping[str, MappingInfo] = field(default_factory=dict)
    """Which queues the group leads of the static ones among the topics."""
    expiry_ms: int | None = None
    version_of_broker: Version = Version.V5

    @property
    def state_version(self) -> int:
        return self.version.state_version

    def encode(self) -> RemotingCommand:
        version = self.version.as_json()
        if self.version_of_broker is Version.V4:
            del version["stateVersion"]
        body = {
            "filterServerList": [],
            "topicConfigSerializeWrapper": {
                "dataVersion": version,
                "topicConfigTable": topics_as_json(self.topics),
                **(
                    {"topicQueueMappingInfoMap": mappings_as_json(self.mappings, self.broker_name)}
                    if self.mappings
                    else {}
                ),
            },
        }
        return self._command(json.dumps(body, separators=(",", ":")).encode(), "false")

    def encode_compressed(self) -> RemotingCommand:
        return self._command(compress(self.version, self.topics, self.mappings, self.broker_name), "true")

    def _command(self, body: bytes, compressed: str) -> RemotingCommand:
        fields = {
            "clusterName": self.cluster,
            "brokerName": self.broker_name,
            "brokerId": str(self.broker_id),
            "brokerAddr": self.address,
            "haServerAddr": self.ha_address,
            "compressed": compressed,
            "bodyCrc32": str(_crc(body)),
        }
        if self.version_of_broker is not Version.V4:
            fields["enableActingMaster"] = "false"
        if self.expiry_ms is not None:
            fields["heartbeatTimeoutMillis"] = str(self.expiry_ms)
        return RemotingCommand.request(RequestCode.REGISTER_BROKER, fields, body)

    @classmethod
    def decode(cls, command: RemotingCommand) -> Registration:
        """Raises RemotingError: INVALID_PARAMETER for what is none, SYSTEM_ERROR for a body that was harmed."""
        fields = command.ext_fields
        try:
            crc = int(fields.get("bodyCrc32") or "0")
            if crc != 0 and crc != _crc(command.body):
                raise RemotingError(ResponseCode.SYSTEM_ERROR, "crc32 not match")
            is_compressed = fields.get("compressed", "false").lower() == "true"
            version, topics, mappings = (decompress if is_compressed else _read_body)(command.body)
            expiry = fields.get("heartbeatTimeoutMillis")
            return cls(
                cluster=fields["clusterName"],
                broker_name=fields["brokerName"],
                broker_id=int(fields["brokerId"]),
                address=fields["brokerAddr"],
                ha_address=fields["haServerAddr"],
                version=version,
                topics=topics,
                mappings=mappings,
                expiry_ms=None if expiry is None else int(expiry),
                version_of_broker=Version.V5 if "enableActingMaster" in fields else Version.V4,
            )
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"not a registration: {error!r}") from error


def _read_body(body: bytes) -> tuple[DataVersion, dict[str, TopicConfig], dict[str, MappingInfo]]:
    """Brokers before 3.0.11 send the topics alone, and such as know of none nothing at all.

    Raises ValueError, KeyError, TypeError, AttributeError.
    """
    if not body:
        return DataVersion(), {}, {}
    value = decode_json(body)
    wrapper = value.get("topicConfigSerializeWrapper", value)
    mappings = mappings_from_json(wrapper.get("topicQueueMappingInfoMap") or {})
    return DataVersion.from_json(wrapper["dataVersion"]), topics_from_json(wrapper["topicConfigTable"]), mappings


def _crc(body: bytes) -> int:
    return crc32(body) & 0x7FFFFFFF


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
