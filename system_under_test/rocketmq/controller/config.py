"""Settings of a controller, with RocketMQ's names in JSON."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from system_under_test.node.members import members
from system_under_test.node.settings import (
    fields_by_setting,
    flag,
    integer,
    optional_port,
    path,
    seconds,
    text,
)
from system_under_test.raft.driver import RaftConfig
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.controller.protocol import MalformedRequest

MAX_NUMBER: Final = 2**31 - 1
"""The greatest value of a setting that is changed while the controller runs; of milliseconds these are 24 days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    group: str = text("controllerDLegerGroup", "group1")
    peers: Mapping[str, str] = members("controllerDLegerPeers", own="controllerDLegerSelfId")
    """Raft address of each controller by id, until members come and go."""
    self_id: str = text("controllerDLegerSelfId")
    joins: bool = flag("controllerJoinsGroup", False)
    """This one belongs to no group until an administrator adds it to one; the others are already there."""
    listen_port: int | None = optional_port("controllerPort")
    """Where requests are taken, the same on all controllers; None: where each takes those of Raft."""
    store_path: str = path("controllerStorePath", "controller")
    enable_elect_unclean_master: bool = flag("enableElectUncleanMaster", False)
    notify_broker_role_changed: bool = flag("notifyBrokerRoleChanged", True)
    broker_timeout_s: float = seconds("brokerHeartbeatTimeout", 10_000)
    """A broker silent for so long is dead."""
    scan_interval_s: float = seconds("scanInactiveMasterInterval", 5_000)
    """How often masters that are dead are looked for."""
    expiry_interval_s: float = seconds("scanNotActiveBrokerInterval", 5_000)
    """How often brokers that are silent are looked for; where one is a master, it is replaced at once."""
    election_tries: int = integer("electMasterMaxRetryCount", 3, minimum=1)
    """How often the controller itself tries, for each master that it finds dead."""
    apply_timeout_s: float = seconds("controllerApplyTimeout", 5_000)
    """How long a request waits for its event to be applied; after that its outcome is unknown."""
    raft_heartbeat_s: float = seconds("raftHeartbeatInterval", 100)
    raft_min_election_timeout_s: float = seconds("raftMinElectionTimeout", 1_000)
    raft_max_election_timeout_s: float = seconds("raftMaxElectionTimeout", 2_000)
    raft_snapshot_threshold: int = integer("raftSnapshotThreshold", 1_000, minimum=1)
    """So many entries of Raft's log are applied until a snapshot takes their place."""

    def __post_init__(self) -> None:
        self.raft()

    def raft(self) -> RaftConfig:
        """Raises ValueError for timings that cannot work together."""
        return RaftConfig(
            node=self.self_id,
            members={peer: at for peer, at in self.peers.items() if not self.joins or peer != self.self_id},
            directory=f"{self.store_path}/raft",
            heartbeat_s=self.raft_heartbeat_s,
            min_election_timeout_s=self.raft_min_election_timeout_s,
            max_election_timeout_s=self.raft_max_election_timeout_s,
            snapshot_threshold=self.raft_snapshot_threshold,
        )

    @property
    def raft_port(self) -> int:
        return port_of(self.peers[self.self_id])

    def public(self) -> dict[str, str]:
        """All settings by their names, as getControllerConfig answers them."""
        rendered = {name: _render(getattr(self, field)) for name, field in fields_by_setting(ControllerConfig).items()}
        return rendered | {"controllerDLegerPeers": self.peers_text, "controllerPort": str(self.request_port)}

    def changed(self, changes: Mapping[str, str]) -> ControllerConfig:
        """With other values for some settings. Raises MalformedRequest for what is no setting or no value of it,
        RemotingError (NO_PERMISSION) for what cannot change while the controller runs."""
        if not changes:
            raise MalformedRequest("expected at least one setting, as name=value")
        fields = fields_by_setting(ControllerConfig)
        values: dict[str, Any] = {}
        for name, written in changes.items():
            if name in _NEVER or (name in fields and name not in _CHANGEABLE):
                changeable = ", ".join(_CHANGEABLE)
                raise RemotingError(
                    ResponseCode.NO_PERMISSION, f"{name} cannot be changed while the controller runs, only {changeable}"
                )
            if name not in fields:
                near = difflib.get_close_matches(name, fields, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise MalformedRequest(f"there is no setting {name[:MAX_SHOWN]!r}{hint}")
            try:
                values[fields[name]] = _parse(written, getattr(self, fields[name]))
            except ValueError as error:
                raise MalformedRequest(f"{name}: {error}, got {written[:MAX_SHOWN]!r}") from error
        return replace(self, **values)

    @property
    def peers_text(self) -> str:
        return peers_text(self.peers)

    @property
    def request_port(self) -> int:
        """Where this one takes requests."""
        return self.raft_port if self.listen_port is None else self.listen_port

    def request_address(self, raft_address: str) -> str:
        """Where the controller with this Raft address takes requests."""
        if self.listen_port is None:
            return raft_address
        return f"{raft_address.rpartition(':')[0]}:{self.listen_port}"


def peers_text(peers: Mapping[str, str]) -> str:
    return ";".join(f"{peer}-{address}" for peer, address in sorted(peers.items()))


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


MAX_SHOWN: Final = 100
"""Characters of a wrong name or value that its error repeats."""
_NEVER: Final = ("configBlackList", "configStorePath", "rocketmqHome")
"""Settings of RocketMQ's controllers that it lets nobody change; they are none of these."""


_CHANGEABLE: Final = (
    "enableElectUncleanMaster",
    "notifyBrokerRoleChanged",
    "brokerHeartbeatTimeout",
    "scanInactiveMasterInterval",
    "scanNotActiveBrokerInterval",
    "electMasterMaxRetryCount",
    "controllerApplyTimeout",
)
"""Settings that may change while the controller runs; all others take effect at a start alone."""


def _render(value: bool | float | str) -> str:
    """A value in seconds is written in milliseconds."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(round(value * 1000) if isinstance(value, float) else value)


def _parse(written: str, old: bool | float) -> bool | float:
    """A value to take the place of the old one. Raises ValueError that says what was expected."""
    if isinstance(old, bool):
        if written.lower() not in ("true", "false"):
            raise ValueError("expected true or false")
        return written.lower() == "true"
    digits = written if written.isascii() and written.isdigit() and len(written) <= len(str(MAX_NUMBER)) else "0"
    if not 1 <= int(digits) <= MAX_NUMBER:
        raise ValueError(f"expected a whole number from 1 to {MAX_NUMBER}")
    return int(digits) / 1000 if isinstance(old, float) else int(digits)
