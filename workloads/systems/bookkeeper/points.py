"""The points that the nodes of BookKeeper reach: moments at which faults may strike."""

from __future__ import annotations

from collections.abc import Mapping

from workloads.systems.raft_points import RAFT_POINTS

POINTS: Mapping[str, str] = {
    **RAFT_POINTS,
    "metadata-changed": "a node of the metadata store has applied a change, and has not answered yet",
    "session-silent": "the leader of the metadata store is about to end a session of which it heard nothing",
    "session-ended": "a session is over, and its keys are gone",
    "session-lost": "a process has learned that its session is over",
    "entry-journaled": "a bookie has written an entry to its journal, and has not acknowledged it",
    "fence-written": "a bookie has written a fence, which is not durable yet",
    "fence-durable": "a bookie's fence is durable, and not answered yet",
    "about-to-flush": "a bookie is about to make its journal durable",
    "flushed": "a bookie's journal is durable, and nobody has heard of it",
    "checkpoint-written": "a bookie's entry logs are durable, and its older journals may go",
    "turned-read-only": "a bookie has said that its disk is full",
    "ensemble-chosen": "a writer has chosen the bookies of a new ledger, which is not in the metadata yet",
    "about-to-change-ensemble": "a writer has chosen another ensemble, which is not in the metadata yet",
    "ensemble-published": "a changed ensemble is in the metadata, and nothing was sent to it again",
    "entry-acknowledged": "a writer knows that Qa bookies have an entry, and nobody else does",
    "acknowledgement-held": "Qa bookies have an entry, and its writer has to wait, for the ensemble is changing",
    "about-to-mark-recovery": "a process is about to mark a ledger as being recovered",
    "recovery-marked": "a ledger is marked as being recovered, and nobody is fenced yet",
    "about-to-close": "the last entry of a ledger is found, and it is not closed yet",
    "ledger-closed": "a ledger is closed, and nobody has gone on yet",
    "became-owner": "a broker has got the owner's key of a partition, and has not ended its last ledger yet",
    "lost-ownership": "a broker has learned that it owns a partition no more",
    "list-changed": "the list of a partition's ledgers has got a new one, and nothing is written there yet",
    "ledger-rolled": "a broker has closed a ledger that was full, and the next one is not listed yet",
    "auditor-elected": "a bookie's process is the auditor, and has marked nothing yet",
    "auditor-over": "a former auditor has learned that its session is over",
    "ledger-marked": "a ledger that lacks copies is marked, and nobody has looked at it yet",
    "ledger-locked": "a bookie's process is about to repair a ledger, and has not looked at it yet",
    "fragment-copied": "a fragment's entries are copied, and its ensemble is not in the metadata yet",
    "fragment-published": "the ensemble of a repaired fragment is in the metadata, and the ledger is still marked",
    "ledger-unmarked": "nothing lacks in a ledger any more, and it is still locked",
    "limbo-left": "a bookie in limbo has back what it lost of a ledger, and says so from now on",
    "ledger-lost": "an owner has found that its ledger takes no entries any more",
}
