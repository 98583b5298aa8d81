"""The points that RocketMQ's nodes reach, each where its code calls `host.reached`: moments at which faults may strike.

`about-to-…` is the moment before; what the name says has not happened yet. All others are the moment after.
"""

from __future__ import annotations

from collections.abc import Mapping

from workloads.systems.dledger.points import POINTS as OF_MEMBERS
from workloads.systems.raft_points import RAFT_POINTS

_CONTROLLER: Mapping[str, str] = {
    "registered": "a broker's registration is applied by the active controller and not answered yet",
    "heartbeat-expired": "the active controller has just taken a silent broker for dead",
    "broker-connection-closed": "a controller has taken a broker for dead because its connection ended",
    "looked-for-dead-masters": "a controller's periodic look for dead masters begins",
    "found-master-dead": "the active controller begins to replace a master that is dead",
    "election-decided": "the active controller has chosen a master, and is about to propose that to Raft",
    "elected-master": "the election is applied; no broker knows of it yet",
    "about-to-notify": "the active controller is about to tell a broker who is master",
    "request-taken-up": "a controller has taken up a request that only the active one may answer",
    "request-decided": "the active controller has what it answers, and has not sent it",
    "alter-received": "the active controller has received a proposal to change the SyncStateSet",
    "alter-decided": "the active controller has accepted the change, and is about to propose it to Raft",
    "alter-applied": "the change of the SyncStateSet is applied; the master does not know it yet",
}

_ROLES: Mapping[str, str] = {
    "recovered": "a broker's store has recovered after a start, and serves nobody yet",
    "identity-persisted": "a broker has its id, durably, and has not registered",
    "registered-with-controller": "a broker knows that the controllers have registered it; it has no role yet",
    "no-active-controller": "no controller has named the active one to a broker",
    "poll-failed": "a broker's question to the controllers about its group was not answered",
    "role-due": "a broker has learnt of a newer master epoch; it is still what it was",
    "deposed": "a master's mastership has ended, its slaves and waiting sends do not know yet",
    "about-to-become-master": "a broker named master follows nobody any more, and has not cut its log",
    "promotion-flush-timed-out": "a broker named master could not make its log durable in time, and tries again",
    "about-to-persist-epoch": "a broker named master is about to begin its epoch in the epoch file",
    "epoch-persisted": "the new epoch is durable at the broker named master; it takes no sends yet",
    "became-master": "a broker has taken the role of the master; NameServers do not know it yet",
    "became-slave": "a broker has begun to follow the master",
    "about-to-give-up-mastership": "a broker named master after an unclean stop is about to ask for another election",
    "giving-up-failed": "the controllers did not answer a broker that wants to be master no more",
    "broker-announced": "a NameServer has noted a broker's role and is about to answer",
    "name-server-answered": "a broker has heard from a NameServer that it is registered, or refused",
    "configured-role-taken": "a broker outside of controller mode serves in its role; NameServers do not know it yet",
    "announcement-expired": "a NameServer has forgotten a broker that was silent for too long",
    "left-unannounced": "a broker that stops could not tell a NameServer",
}

_SET: Mapping[str, str] = {
    "looked-at-the-set": "a master's periodic look at its SyncStateSet begins",
    "expand-begins": "a master has found that somebody should join its SyncStateSet",
    "shrink-begins": "a master has found that somebody should leave its SyncStateSet, and nobody should join",
    "alter-proposed": "a master waits for the proposed members as well, and is about to send its proposal",
    "alter-answered": "a master has the controller's word that the set has changed, and not acted upon it",
    "alter-confirmed": "a master has taken over the changed set",
    "alter-refused": "a master's proposal was certainly not applied",
    "alter-outcome-unknown": "a master does not know whether its proposal was applied",
    "alter-withdrawn": "a master is about to withdraw a proposal that may still be under way",
}

_REPLICATION: Mapping[str, str] = {
    "handshake-sent": "a slave has sent its handshake; its log is cut to a message boundary",
    "handshake-received": "a master has read a slave's handshake, and is about to answer",
    "handshake-answered": "a slave knows the master's epochs, and has not compared them with its own",
    "about-to-cut-to-master": "a slave has found that its log reaches beyond what it has in common with the master's",
    "epochs-taken-over": "a slave has the master's epochs durably, as far as both logs are equal",
    "first-ack-received": "a master knows where a slave's log ends, and has sent it nothing yet",
    "about-to-learn-epoch": "a slave is about to write a new epoch of the master's to its epoch file",
    "epoch-learnt": "a slave has the new epoch durably, and not yet its first bytes",
    "batch-received": "a slave has read bytes of the log and not written them",
    "batch-appended": "a slave has written bytes of the log (durably where so configured), and not acknowledged them",
    "ack-sent": "a slave has acknowledged bytes",
    "ack-received": "a master has read an acknowledgement that reaches further, and not counted it",
    "confirm-offset-advanced": "a master has moved its confirm offset; sends that waited are not answered yet",
    "slave-gone": "a master has noticed that a slave's connection ended",
    "about-to-copy-anew": "a slave whose log ends before what its master has left is about to empty it",
    "about-to-begin-log": "a slave knows where queues stood at the place at which its empty log is to begin",
    "log-begun": "a slave's log begins at a place of its master's, and is empty",
    "classic-slave-begun": "a configured master knows where a slave's log ends, and has sent it nothing yet",
    "classic-ack-received": "a configured master has counted an acknowledgement; waiting sends are not answered yet",
    "classic-slave-gone": "a configured master has noticed that a slave's connection ended",
    "surplus-set-aside": "a slave has kept what its master lacks beside its log, durably, and is about to cut it there",
    "topics-copied": "a slave has taken over its master's topics, durably",
    "consumer-offsets-copied": "a slave has taken over how far its master's consumers have read, in memory",
    "copy-failed": "a slave's question for its master's topics and consumers' offsets was not answered",
}

_STORE: Mapping[str, str] = {
    "put-appended": "a master has written a message; no slave was sent it",
    "put-sent-on": "a master has sent a message on to its slaves; it is not acknowledged",
    "put-flushed": "a message is durable at the master that took it (sync flush only)",
    "about-to-deliver": "a master is about to write a message to its topic that has waited in another one",
    "delivery-refused": "a master could not write a message that is due, and will try again",
    "delayed-message-delivered": "a delayed message is confirmed in its topic; the progress of its level is not noted",
    "timer-taken-back": "a message that was due at some time does not come out, for its producer took it back",
    "timer-delivered": "a message that was due at some time is confirmed in its topic, and not noted as done",
    "timers-read-again": "a master's wall clock went back, and it is about to make its wheel of timers anew",
    "about-to-commit-transaction": "a master is about to write a message that its producer commits, and that it has",
    "about-to-end-transaction": "a master is about to write that a transaction has ended without a message",
    "transaction-ended": "the end of a transaction is written, confirmed or not, and about to be answered",
    "producer-asked": "a master has asked a producer how a transaction ends",
    "no-producer-to-ask": "a master has found no producer that it could ask how a transaction ends",
    "put-confirmed": "a send, or what a consumer says of a popped message, is about to be answered with success",
    "put-unconfirmed": "such a request is about to be answered without certainty: not flushed or replicated in time",
    "about-to-answer": "a node is about to answer a request that had to wait",
    "answered": "a node has answered a request that had to wait",
    "answer-undeliverable": "the connection ended before a request could be answered",
    "about-to-flush": "a broker is about to make its log durable",
    "flushed": "a broker's log is durable up to where it was; those who wait for that do not know",
    "about-to-truncate": "a broker is about to cut its log; nothing on its disk has changed yet",
    "checkpoint-lowered": "a broker that cuts its log has lowered its checkpoint, durably; the log is whole",
    "log-cut": "a broker's log is cut, durably; queues, consumer offsets and epochs still reach beyond",
    "truncated": "a broker has cut its log and all that belongs to it",
    "about-to-delete-files": "a broker is about to delete old files of its log; nothing on its disk has changed yet",
    "beginning-noted": "a broker has noted durably where its log will begin; queues and files are as they were",
    "files-deleted": "a broker has deleted old files of its log, and forgotten the epochs of their bytes",
    "about-to-write-checkpoint": "a broker is about to write its checkpoint",
    "checkpoint-written": "a broker's checkpoint is durable",
}

_POP: Mapping[str, str] = {
    "pop-resumed": "a new master has read from the revive log which messages are given out; it gives out none yet",
    "pop-checkpointed": "a master has written the checkpoints of a pop; no slave was sent them",
    "about-to-give-out": "a pop's checkpoints are safe; its messages are not sent to the consumer yet",
    "pop-ack-appended": "a master has written that a popped message is acknowledged; no slave was sent it",
    "pop-renewal-appended": "a master has written another invisible time of a popped message; no slave was sent it",
    "pop-revival-appended": "a master has written where messages will come again, and not put them there",
    "pop-not-revived": "a master could not let popped messages come again that are due, and is about to wait",
    "pop-revived": "a master has put popped messages where they come again; no slave was sent them",
}

_STATIC: Mapping[str, str] = {
    "about-to-change-mapping": "a master is about to write a new state of a static topic's queue; it obeys the old one",
    "mapping-changed": "a master has written a new state of a static topic's queue, and obeys it; no slave was sent it",
}

_OF_GROUPS: Mapping[str, str] = {
    "leader-about-to-serve": "a broker that leads its group has all of its log committed, and is not the master yet",
    "leader-serves": "a broker that leads its group has become the master; NameServers do not know it yet",
    "follower-serves": "a broker that does not lead its group serves as a slave; NameServers do not know it yet",
}

_ANYWHERE = ("recovered", "broker-announced", "name-server-answered", "announcement-expired", "left-unannounced")
_OF_COMMIT_LOGS = (
    *("about-to-truncate", "truncated", "checkpoint-lowered", "log-cut"),
    *("about-to-delete-files", "beginning-noted", "files-deleted", "put-flushed"),
)
OF_DLEDGER: Mapping[str, str] = {
    **{point: _ROLES[point] for point in _ANYWHERE},
    **{point: meaning for point, meaning in _STORE.items() if point not in _OF_COMMIT_LOGS},
    **_POP,
    **_OF_GROUPS,
    **OF_MEMBERS,
}
"""Those that brokers reach whose log a group of DLedger replicates, and members of such groups."""

POINTS: Mapping[str, str] = {
    **RAFT_POINTS,
    **_CONTROLLER,
    **_ROLES,
    **_SET,
    **_REPLICATION,
    **_STORE,
    **_POP,
    **_STATIC,
    **_OF_GROUPS,
}
