"""Settings of a node of the metadata store, by their names in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from system_under_test.node.members import members
from system_under_test.node.settings import integer, path, seconds, text
from system_under_test.raft.driver import RaftConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataConfig:
    peers: Mapping[str, str] = members("metadataPeers", own="metadataSelfId")
    """Address of each node by id, where it takes requests of clients and messages of the others."""
    self_id: str = text("metadataSelfId")
    store_path: str = path("metadataStorePath", "metadata")
    session_timeout_s: float = seconds("sessionTimeout", 10_000)
    """A session of which nothing was heard for so long is over."""
    session_heartbeat_s: float = seconds("sessionHeartbeat", 3_000)
    """How often clients let hear of their sessions; the nodes say so to them."""
    apply_timeout_s: float = seconds("metadataApplyTimeout", 5_000)
    """How long a request waits for its command to be applied; after that its outcome is unknown."""
    raft_heartbeat_s: float = seconds("raftHeartbeatInterval", 100)
    raft_min_election_timeout_s: float = seconds("raftMinElectionTimeout", 1_000)
    raft_max_election_timeout_s: float = seconds("raftMaxElectionTimeout", 2_000)
    raft_snapshot_threshold: int = integer("raftSnapshotThreshold", 1_000, minimum=1)
    """So many entries of Raft's log are applied until a snapshot takes their place."""

    def __post_init__(self) -> None:
        if self.session_timeout_s < 2 * self.session_heartbeat_s:
            raise ValueError(
                f"sessionTimeout: expected at least two heartbeats of sessionHeartbeat, "
                f"{2_000 * self.session_heartbeat_s:.0f} ms, got {1_000 * self.session_timeout_s:.0f}"
            )
        self.raft()

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
    def port(self) -> int:
        return int(self.peers[self.self_id].rpartition(":")[2])
