"""Settings of a controller, with RocketMQ's names in JSON."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from system_under_test.node.settings import Settings
from system_under_test.raft.driver import RaftConfig
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.controller.protocol import MalformedRequest

MAX_NUMBER: Final = 2**31 - 1
"""Of a setting that is changed while the controller runs; of milliseconds these are 24 days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    group: str = "group1"
    self_id: str
    peers: Mapping[str, str] = field(default_factory=dict)
    """Raft address of each controller by id, until members come and go."""
    joins: bool = False
    """This one belongs to no group until an administrator adds it to one; the others are already there."""
    listen_port: int | None = None
    """Where requests are taken, the same on all controllers; None: where each takes those of Raft."""
    store_path: str = "controller"
    enable_elect_unclean_master: bool = False
    notify_broker_role_changed: bool = True
    broker_timeout_s: float = 10.0
    """A broker silent for so long is dead."""
    scan_interval_s: float = 5.0
    """How often masters that are dead are looked for."""
    expiry_interval_s: float = 5.0
    """How often brokers that are silent are looked for; where one is a master, it is replaced at once."""
    election_tries: int = 3
    """Of the controller itself, for each master that it finds dead."""
    apply_timeout_s: float = 5.0
    """How long a request waits for its event to be applied; after that its outcome is unknown."""
    raft_heartbeat_s: float = 0.1
    raft_min_election_timeout_s: float = 1.0
    raft_max_election_timeout_s: float = 2.0
    raft_snapshot_threshold: int = 1_000
    """So many entries of Raft's log are applied until a snapshot takes their place."""

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> ControllerConfig:
        """Raises ValueError that names the wrong setting."""
        settings = Settings(config)
        self_id = settings.text("controllerDLegerSelfId")
        peers = parse_peers(settings.text("controllerDLegerPeers"))
        if self_id not in peers:
            raise ValueError(f"controllerDLegerSelfId: expected one of {', '.join(sorted(peers))}, got {self_id!r}")
        made = cls(
            group=settings.text("controllerDLegerGroup", "group1"),
            self_id=self_id,
            peers=peers,
            joins=settings.flag("controllerJoinsGroup", False),
            listen_port=settings.optional_port("controllerPort"),
            store_path=settings.path("controllerStorePath", "controller"),
            enable_elect_unclean_master=settings.flag("enableElectUncleanMaster", False),
            notify_broker_role_changed=settings.flag("notifyBrokerRoleChanged", True),
            broker_timeout_s=settings.seconds_from_ms("brokerHeartbeatTimeout", 10_000),
            scan_interval_s=settings.seconds_from_ms("scanInactiveMasterInterval", 5_000),
            expiry_interval_s=settings.seconds_from_ms("scanNotActiveBrokerInterval", 5_000),
            election_tries=settings.integer("electMasterMaxRetryCount", 3, minimum=1),
            apply_timeout_s=settings.seconds_from_ms("controllerApplyTimeout", 5_000),
            raft_heartbeat_s=settings.seconds_from_ms("raftHeartbeatInterval", 100),
            raft_min_election_timeout_s=settings.seconds_from_ms("raftMinElectionTimeout", 1_000),
            raft_max_election_timeout_s=settings.seconds_from_ms("raftMaxElectionTimeout", 2_000),
            raft_snapshot_threshold=settings.integer("raftSnapshotThreshold", 1_000, minimum=1),
        )
        made.raft()
        return made

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
        return {name: setting.render(getattr(self, setting.field)) for name, setting in _SETTINGS.items()}

    def changed(self, changes: Mapping[str, str]) -> ControllerConfig:
        """With other values for some settings. Raises MalformedRequest for what is no setting or no value of it,
        RemotingError (NO_PERMISSION) for what cannot change while the controller runs."""
        if not changes:
            raise MalformedRequest("expected at least one setting, as name=value")
        values = {}
        for name, text in changes.items():
            setting = _SETTINGS.get(name)
            if name in _NEVER or (setting is not None and setting.read is None):
                changeable = ", ".join(known for known, setting in _SETTINGS.items() if setting.read)
                raise RemotingError(
                    ResponseCode.NO_PERMISSION, f"{name} cannot be changed while the controller runs, only {changeable}"
                )
            if setting is None or setting.read is None:
                near = difflib.get_close_matches(name, _SETTINGS, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise MalformedRequest(f"there is no setting {name[:MAX_SHOWN]!r}{hint}")
            try:
                values[setting.field] = setting.read(text)
            except ValueError as error:
                raise MalformedRequest(f"{name}: {error}, got {text[:MAX_SHOWN]!r}") from error
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


def parse_peers(text: str) -> dict[str, str]:
    """`n0-127.0.0.1:9877;n1-127.0.0.1:9878` → addresses by id."""
    peers: dict[str, str] = {}
    for part in filter(None, text.split(";")):
        node, dash, address = part.strip().partition("-")
        if not dash or not node or node in peers or not address.rpartition(":")[2].isdigit():
            raise ValueError(f"controllerDLegerPeers: expected `id-host:port;…` with distinct ids, got {text!r}")
        peers[node] = address
    return peers


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


MAX_SHOWN: Final = 100
"""Characters of a wrong name or value that its error repeats."""
_NEVER: Final = ("configBlackList", "configStorePath", "rocketmqHome")
"""Settings of RocketMQ's controllers that it lets nobody change; they are none of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    field: str
    render: Callable[[Any], str] = str
    read: Callable[[str], Any] | None = None
    """Of those that may change while the controller runs. Raises ValueError that says what was expected."""


def _flag_text(value: bool) -> str:
    return "true" if value else "false"


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.lower() == "true"


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))


def _seconds(text: str) -> float:
    return _number(text) / 1000


def _number(text: str) -> int:
    digits = text if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_NUMBER)) else "0"
    if not 1 <= int(digits) <= MAX_NUMBER:
        raise ValueError(f"expected a whole number from 1 to {MAX_NUMBER}")
    return int(digits)


_SETTINGS: Final = {
    "controllerDLegerGroup": _Setting(field="group"),
    "controllerDLegerPeers": _Setting(field="peers_text"),
    "controllerDLegerSelfId": _Setting(field="self_id"),
    "controllerJoinsGroup": _Setting(field="joins", render=_flag_text),
    "controllerPort": _Setting(field="request_port"),
    "controllerStorePath": _Setting(field="store_path"),
    "enableElectUncleanMaster": _Setting(field="enable_elect_unclean_master", render=_flag_text, read=_flag),
    "notifyBrokerRoleChanged": _Setting(field="notify_broker_role_changed", render=_flag_text, read=_flag),
    "brokerHeartbeatTimeout": _Setting(field="broker_timeout_s", render=_milliseconds, read=_seconds),
    "scanInactiveMasterInterval": _Setting(field="scan_interval_s", render=_milliseconds, read=_seconds),
    "scanNotActiveBrokerInterval": _Setting(field="expiry_interval_s", render=_milliseconds, read=_seconds),
    "electMasterMaxRetryCount": _Setting(field="election_tries", read=_number),
    "controllerApplyTimeout": _Setting(field="apply_timeout_s", render=_milliseconds, read=_seconds),
    "raftHeartbeatInterval": _Setting(field="raft_heartbeat_s", render=_milliseconds),
    "raftMinElectionTimeout": _Setting(field="raft_min_election_timeout_s", render=_milliseconds),
    "raftMaxElectionTimeout": _Setting(field="raft_max_election_timeout_s", render=_milliseconds),
    "raftSnapshotThreshold": _Setting(field="raft_snapshot_threshold"),
}
"""By name. All others that `ControllerConfig.from_json` reads take effect at a start alone."""
