"""The points that a node of a Raft group of ours reaches, whatever the group decides."""

from __future__ import annotations

from collections.abc import Mapping

RAFT_POINTS: Mapping[str, str] = {
    "about-to-persist-vote": "a node has a new term or vote in memory; neither file nor message has it yet",
    "vote-persisted": "a node's term and vote are durable; what tells others of them is not sent yet",
    "became-leader": "a node has won an election of Raft; its no-op is not written yet",
    "lost-leadership": "a node that led has stepped down, in memory only",
    "noop-committed": "a leader's no-op is committed: from now on it decides",
    "about-to-append": "a node is about to write entries at the end of its Raft log",
    "about-to-cut-entries": "a node is about to write entries over others of its Raft log that conflict",
    "appended-before-answer": "a node's entries are durable; neither counted by it nor acknowledged yet",
    "about-to-write-snapshot": "a node is about to write a snapshot, and the log behind it, beside the old ones",
    "snapshot-persisted": "a node's snapshot is durable and has taken the place of the log's front",
    "transfer-received": "a node has all of a leader's snapshot, with its files; it goes by its own still",
    "about-to-install-snapshot": "a node is about to take over the leader's state, as it lacks what led to it",
    "about-to-apply": "a node is about to apply a committed entry, which may let go an answer",
    "raft-connection-was-closed": "a message of Raft met a connection that had ended",
}
