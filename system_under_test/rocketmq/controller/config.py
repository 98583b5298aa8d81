"""Settings of a controller, with RocketMQ's names in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from system_under_test.raft.driver import RaftConfig
from system_under_test.rocketmq.controller.protocol import MalformedRequest
from system_under_test.rocketmq.settings import Settings

_CHANGEABLE = {
    "enableElectUncleanMaster": "enable_elect_unclean_master",
    "notifyBrokerRoleChanged": "notify_broker_role_changed",
}
"""Field names by setting names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    group: str = "group1"
    self_id: str
    peers: Mapping[str, str] = field(default_factory=dict)
    """Raft address of each controller by id."""
    listen_port: int | None = None
    """Where requests are taken, the same on all controllers; None: where each takes those of Raft."""
    store_path: str = "controller"
    enable_elect_unclean_master: bool = False
    notify_broker_role_changed: bool = True
    broker_timeout_s: float = 10.0
    """A broker silent for so long is dead."""
    scan_interval_s: float = 5.0
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
            listen_port=settings.port("controllerPort", 0) if "controllerPort" in config else None,
            store_path=settings.path("controllerStorePath", "controller"),
            enable_elect_unclean_master=settings.flag("enableElectUncleanMaster", False),
            notify_broker_role_changed=settings.flag("notifyBrokerRoleChanged", True),
            broker_timeout_s=settings.seconds_from_ms("brokerHeartbeatTimeout", 10_000),
            scan_interval_s=settings.seconds_from_ms("scanInactiveMasterInterval", 5_000),
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
            members=self.peers,
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
        """What getControllerConfig answers."""
        return {
            "controllerDLegerGroup": self.group,
            "controllerDLegerPeers": self.peers_text,
            "controllerDLegerSelfId": self.self_id,
            "controllerStorePath": self.store_path,
            "enableElectUncleanMaster": "true" if self.enable_elect_unclean_master else "false",
            "notifyBrokerRoleChanged": "true" if self.notify_broker_role_changed else "false",
        }

    def changed(self, changes: Any) -> ControllerConfig:
        """By updateControllerConfig. Raises MalformedRequest for what cannot change while it runs."""
        if not isinstance(changes, dict) or any(value not in ("true", "false") for value in changes.values()):
            raise MalformedRequest("expected settings with the values true or false")
        fixed = sorted(name for name in changes if name not in _CHANGEABLE)
        if fixed:
            raise MalformedRequest(f"cannot be changed while running: {', '.join(fixed)}")
        return replace(self, **{_CHANGEABLE[name]: value == "true" for name, value in changes.items()})

    @property
    def peers_text(self) -> str:
        return ";".join(f"{peer}-{address}" for peer, address in sorted(self.peers.items()))

    def request_address(self, peer: str | None) -> str | None:
        """Where this controller takes requests."""
        address = self.peers.get(peer or "")
        if address is None or self.listen_port is None:
            return address
        return f"{address.rpartition(':')[0]}:{self.listen_port}"


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
