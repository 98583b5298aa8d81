"""What a cluster's nodes say of themselves, held against what replication promises."""

from checkers.replication.checker import ClusterChecker
from harness.record.node_events import write_node_events

__all__ = ["ClusterChecker", "write_node_events"]
