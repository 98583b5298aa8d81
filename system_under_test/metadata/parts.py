"""What a node of the metadata store is made of, where a planted bug may put something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from system_under_test.metadata.store import MetadataStore
from system_under_test.raft.core import Raft
from system_under_test.raft.storage import RaftStorage
from system_under_test.replicated.read_barrier import ReadBarrier, read_index
from system_under_test.runtime.host import Disk


@dataclass(frozen=True, kw_only=True)
class MetadataParts:
    raft_core: type[Raft] = Raft
    raft_storage: Callable[[Disk, str], RaftStorage] = RaftStorage
    store: type[MetadataStore] = MetadataStore
    read_barrier: ReadBarrier = read_index
