from __future__ import annotations

from dataclasses import replace

from system_under_test.cmq.parts import CmqParts
from system_under_test.node.mutant import Mutant
from system_under_test.raft.snapshot import Snapshot
from system_under_test.raft.storage import RaftStorage


class KeepsNoMembers(RaftStorage):
    def _write_snapshot(self, snapshot: Snapshot) -> None:
        super()._write_snapshot(replace(snapshot, membership=None))


MUTANT = Mutant(
    name="snapshot-without-config",
    breaks="who belongs to a group is agreed on",
    parts=(CmqParts(raft_storage=KeepsNoMembers),),
)
