"""Compares what nodes report of themselves with what replication promises."""

from checkers.replication.checker import ReplicationChecker

__all__ = ["ReplicationChecker"]
