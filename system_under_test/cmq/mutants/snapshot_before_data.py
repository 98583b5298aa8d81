from __future__ import annotations

from collections.abc import Iterable

from system_under_test.cmq.message_files import MessageFiles
from system_under_test.cmq.parts import CmqParts
from system_under_test.node.mutant import Mutant
from system_under_test.raft.snapshot import SnapshotFile
from system_under_test.runtime.host import Disk


class SyncsLater(MessageFiles):
    def __init__(self, disk: Disk) -> None:
        super().__init__(disk)
        self._named: tuple[SnapshotFile, ...] = ()
        """Those of the snapshot before."""

    async def sync(self, files: Iterable[SnapshotFile]) -> None:
        named, self._named = self._named, tuple(files)
        await super().sync(file for file in named if file.name in self._files)


MUTANT = Mutant(
    name="snapshot-before-data",
    breaks="a snapshot has its messages",
    parts=(CmqParts(files=SyncsLater),),
)
