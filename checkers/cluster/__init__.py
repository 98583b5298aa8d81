"""What a cluster's nodes say of themselves, held against what replication promises."""

from checkers.cluster.checker import ClusterChecker
from checkers.cluster.node_events import write_node_events

__all__ = ["ClusterChecker", "write_node_events"]
