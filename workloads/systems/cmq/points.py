"""The points that nodes of CMQ reach: moments at which faults may strike."""

from __future__ import annotations

from collections.abc import Mapping

from workloads.systems.raft_points import RAFT_POINTS

POINTS: Mapping[str, str] = {
    **RAFT_POINTS,
    "about-to-apply-produce": "a node is about to write a committed message to its queue's file",
    "applied-not-confirmed": "a leader has applied a message, and has not confirmed it to its producer",
    "about-to-confirm": "a leader is about to confirm a message to its producer",
    "ack-applied-not-answered": "a leader has applied an acknowledgement, and has not answered it",
    "pull-taken-up": "a node has taken up a pull, and has not made sure that it leads",
    "gave-out": "a leader has chosen a message for a consumer, and has not answered",
    "snapshot-copied": "a node has copied the state of a group, and nothing of it is durable yet",
    "message-files-synced": "the messages of a copied state are durable, and its snapshot has no name yet",
    "snapshot-named": "a snapshot is durable under its name, and the files that it does without are still there",
    "about-to-cut-files": "a node is about to cut a group's files to what a snapshot says of them",
    "transfer-received": "a node has got a leader's whole snapshot, and has not taken it over",
    "about-to-hand-over": "a leader is about to have another node lead its group",
}
