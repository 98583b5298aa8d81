"""What a cluster's nodes say of themselves, held against what replication promises."""

from checkers.replication.checker import ClusterChecker

__all__ = ["ClusterChecker"]
