from __future__ import annotations

from dataclasses import replace
from zlib import crc32

from system_under_test.cmq.message_files import MessageFiles, pieces
from system_under_test.cmq.parts import CmqParts
from system_under_test.cmq.record import HEAD_BYTES
from system_under_test.cmq.state_machine import CopiedQueue, CopiedState, FileState, file_name
from system_under_test.node.mutant import Mutant


class KeepsAll(MessageFiles):
    def reset(self, copied: CopiedState) -> CopiedState:
        """Go on with what the files have."""
        queues = {queue.name: queue for queue in copied.queues}
        for name in self.names_on_disk():
            queue, first = name.rsplit(".", 1)
            known = queues.get(queue) or CopiedQueue(queue, 0, 0, (), b"")
            queues[queue] = self._extended(known, int(first))
        return CopiedState(tuple(queues.values()))

    def _extended(self, queue: CopiedQueue, first: int) -> CopiedQueue:
        """By the messages of a file that it does not have."""
        name = file_name(queue.name, first)
        file = self._opened(name)
        number, checksum, size, crc = first, queue.checksum, 0, 0
        for data, ends in pieces(file, file.size, first):
            for begin in (0, *ends[:-1]):
                if number >= queue.next_number:
                    checksum = crc32(data[begin : begin + HEAD_BYTES], checksum)
                number += 1
            size, crc = size + len(data), crc32(data, crc)
        if number <= queue.next_number:
            return queue
        files = (*(file for file in queue.files if file.first != first), FileState(first, size, crc))
        return replace(queue, next_number=number, checksum=checksum, files=files)


MUTANT = Mutant(
    name="apply-twice",
    breaks="each entry is applied once",
    parts=(CmqParts(files=KeepsAll),),
)
