"""What brokers, administrators and controllers say to each other: typed values and their remoting form.

Header fields have RocketMQ's names. Our own additions are `incarnation` (which process of a broker speaks),
`pulse` (which of the controller's answers it has seen), `learner`, `giveUp` and `withdraws`; a broker that leaves them
out is taken for an only incarnation that never gives up. Controllers add `controllers`, `controllersVersion` and
`learners` once members have come or gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from system_under_test.remoting.json_body import decode_json

Fields = Mapping[str, str]
MAX_DIGITS = 20
"""The greatest number of 64 bits has so many, with its sign."""
MAX_MASTER_EPOCH = 2**31 - 1
"""Replicas keep epochs in four bytes."""
MAX_ADDRESS = 255
MAX_TIMEOUT_MS = 2**31 - 1


class MalformedRequest(ValueError):
    """A header field or a body is missing or not what it should be."""


def text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not value:
        raise MalformedRequest(f"field {name!r} is missing")
    return value


def number(fields: Fields, name: str, default: int | None = None) -> int:
    value = fields.get(name)
    if value is None and default is not None:
        return default
    try:
        if value is not None and len(value) > MAX_DIGITS:
            raise ValueError
        parsed = int(text(fields, name))
        if not -(2**63) <= parsed < 2**63:
            raise ValueError
        return parsed
    except ValueError as error:
        raise MalformedRequest(f"field {name!r} is {value!r}, not a whole number of 64 bits") from error


def address(fields: Fields, name: str) -> str:
    """`name:port`, as its recipients will need it."""
    value = text(fields, name)
    host, _, port = value.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536
    if not host or not is_port or len(value) > MAX_ADDRESS:
        raise MalformedRequest(f"field {name!r} is {value[:MAX_ADDRESS]!r}, not name:port")
    return value


def flag(fields: Fields, name: str) -> bool:
    return fields.get(name, "false").lower() == "true"


def json_body(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def parse_json(body: bytes) -> Any:
    try:
        return decode_json(body)
    except ValueError as error:
        raise MalformedRequest(f"the body is not JSON: {error}") from error


def parse_names(body: bytes) -> list[str]:
    names = parse_json(body)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise MalformedRequest("the body is no list of names")
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStateSet:
    members: tuple[int, ...]
    """Sorted ids."""
    epoch: int

    @classmethod
    def of(cls, members: Iterable[int], epoch: int) -> SyncStateSet:
        return cls(members=tuple(sorted(set(members))), epoch=epoch)

    def to_body(self) -> bytes:
        return json_body({"syncStateSet": list(self.members), "syncStateSetEpoch": self.epoch})

    @classmethod
    def from_body(cls, body: bytes) -> SyncStateSet:
        value = parse_json(body)
        try:
            members, epoch = value["syncStateSet"], value["syncStateSetEpoch"]
            if type(epoch) is not int or not all(type(member) is int and member >= 1 for member in members):
                raise ValueError("ids are whole numbers from 1 on, and so is the set's epoch")
            return cls.of(members, epoch)
        except (KeyError, TypeError, ValueError) as error:
            raise MalformedRequest(f"the body is no SyncStateSet: {error!r}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerReport:
    """What a broker says of itself, in each heartbeat and when it registers."""

    cluster: str
    group: str
    broker_id: int
    address: str
    incarnation: str = ""
    """Differs between any two processes that ever ran as this broker."""
    master_epoch: int = 0
    """The newest epoch in its epoch file."""
    max_offset: int = 0
    confirm_offset: int = 0
    priority: int = 2**31 - 1
    """The lower, the sooner it is elected among equals."""
    is_learner: bool = False
    timeout_ms: int | None = None
    """How long it may be silent until it is taken for dead; None: the controller's own time."""

    def to_fields(self) -> dict[str, str]:
        timeout = {} if self.timeout_ms is None else {"heartbeatTimeoutMills": str(self.timeout_ms)}
        return {
            **timeout,
            "clusterName": self.cluster,
            "brokerName": self.group,
            "brokerId": str(self.broker_id),
            "brokerAddr": self.address,
            "brokerAddress": self.address,
            "incarnation": self.incarnation,
            "epoch": str(self.master_epoch),
            "maxOffset": str(self.max_offset),
            "confirmOffset": str(self.confirm_offset),
            "electionPriority": str(self.priority),
            "learner": "true" if self.is_learner else "false",
        }

    @classmethod
    def from_fields(cls, fields: Fields) -> BrokerReport:
        return cls(
            cluster=fields.get("clusterName", ""),
            group=text(fields, "brokerName"),
            broker_id=number(fields, "brokerId"),
            address=address(fields, "brokerAddr" if fields.get("brokerAddr") else "brokerAddress"),
            incarnation=fields.get("incarnation", ""),
            master_epoch=number(fields, "epoch", 0),
            max_offset=number(fields, "maxOffset", 0),
            confirm_offset=number(fields, "confirmOffset", 0),
            priority=number(fields, "electionPriority", 2**31 - 1),
            is_learner=flag(fields, "learner"),
            timeout_ms=_timeout_ms(fields),
        )


def _timeout_ms(fields: Fields) -> int | None:
    if "heartbeatTimeoutMills" not in fields:
        return None
    timeout_ms = number(fields, "heartbeatTimeoutMills")
    if not 0 < timeout_ms <= MAX_TIMEOUT_MS:
        raise MalformedRequest(f"field 'heartbeatTimeoutMills' is {timeout_ms}, not from 1 to {MAX_TIMEOUT_MS}")
    return timeout_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaInfo:
    """Who is master of a group, and its SyncStateSet: the answer of most requests, and a role notice."""

    master_id: int | None
    master_address: str | None
    master_epoch: int
    sync_state_set: SyncStateSet

    def to_fields(self) -> dict[str, str]:
        fields = {
            "masterEpoch": str(self.master_epoch),
            "syncStateSetEpoch": str(self.sync_state_set.epoch),
        }
        if self.master_id is not None:
            fields["masterBrokerId"] = str(self.master_id)
            fields["masterAddress"] = self.master_address or ""
        return fields

    def to_body(self) -> bytes:
        return self.sync_state_set.to_body()

    @classmethod
    def from_answer(cls, fields: Fields, body: bytes) -> ReplicaInfo:
        has_master = "masterBrokerId" in fields
        master_id = number(fields, "masterBrokerId") if has_master else None
        master_epoch = number(fields, "masterEpoch")
        if not 0 <= master_epoch <= MAX_MASTER_EPOCH or (master_id is not None and master_id < 1):
            raise MalformedRequest(f"no broker {master_id} can be master of epoch {master_epoch}")
        return cls(
            master_id=master_id,
            master_address=address(fields, "masterAddress") if has_master else None,
            master_epoch=master_epoch,
            sync_state_set=SyncStateSet.from_body(body),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownControllers:
    """Which controllers there are, in answers of theirs once members have come or gone."""

    addresses: tuple[str, ...]
    """Where they take requests."""
    version: int
    """The greater version makes one of two such lists the newer one, whichever node it is from."""

    def to_fields(self) -> dict[str, str]:
        return {"controllers": ";".join(self.addresses), "controllersVersion": str(self.version)}

    @classmethod
    def from_fields(cls, fields: Fields) -> KnownControllers | None:
        parts = tuple(filter(None, fields.get("controllers", "").split(";")))
        if not parts:
            return None
        addresses = tuple(address({"controllers": part}, "controllers") for part in parts)
        return cls(addresses=addresses, version=number(fields, "controllersVersion"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerMetadata:
    """What any controller, active or not, says of its group."""

    group: str
    leader_id: str | None
    leader_address: str | None
    is_active: bool
    """The one that answered is the leader and has applied its own no-op: it serves."""
    peers: str
    term: int
    learners: tuple[str, ...] = ()
    """Ids of those that were added and do not vote yet."""
    controllers: KnownControllers | None = None
    """The controllers that there are; None: those of the configuration, as far as this one knows."""

    def to_fields(self) -> dict[str, str]:
        fields = {
            "group": self.group,
            "isLeader": "true" if self.is_active else "false",
            "peers": self.peers,
            "term": str(self.term),
        }
        if self.learners:
            fields["learners"] = ";".join(self.learners)
        if self.controllers:
            fields |= self.controllers.to_fields()
        if self.leader_id is not None:
            fields["controllerLeaderId"] = self.leader_id
            fields["controllerLeaderAddress"] = self.leader_address or ""
        return fields

    @classmethod
    def from_fields(cls, fields: Fields) -> ControllerMetadata:
        return cls(
            group=fields.get("group", ""),
            leader_id=fields.get("controllerLeaderId"),
            leader_address=fields.get("controllerLeaderAddress") or None,
            is_active=flag(fields, "isLeader"),
            peers=fields.get("peers", ""),
            term=number(fields, "term", 0),
            learners=tuple(filter(None, fields.get("learners", "").split(";"))),
            controllers=KnownControllers.from_fields(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    broker_id: int
    address: str
    is_alive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """All an administrator asks about a broker group."""

    group: str
    info: ReplicaInfo
    in_sync: tuple[ReplicaState, ...]
    not_in_sync: tuple[ReplicaState, ...]
