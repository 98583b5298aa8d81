"""What nodes report of themselves, held against what replication promises."""

from checkers.replication.checker import ReplicationChecker

__all__ = ["ReplicationChecker"]
