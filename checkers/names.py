"""What histories can be judged as, by name: for help texts and completion, which import no checker."""

from __future__ import annotations

MODELS = (
    "register",
    "cas-register",
    "multi-register",
    "map",
    "set",
    "mutex",
    "fenced-lock",
    "leased-lock",
    "counter",
    "fifo-queue",
    "unordered-queue",
    "priority-queue",
    "stack",
    "append-log",
    "echo",
)
TRANSACTIONAL = ("list-append", "rw-register")
"""Workloads that are judged for a consistency model of transactions."""
ASSUMPTIONS = ("wfr-keys", "sequential-keys", "linearizable-keys")
