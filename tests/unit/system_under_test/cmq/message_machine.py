"""A machine with a simulated disk and, one after the other, processes that keep queues' messages on it."""

from __future__ import annotations

from harness.environments.simulated.disk import SimulatedDisk
from system_under_test.cmq.entry import Command, encode
from system_under_test.cmq.message_files import MessageFiles
from system_under_test.cmq.state_machine import NO_QUEUES, CopiedState, QueueGroupState, Result
from tests.references.machine_with_disk import MachineWithDisk

PLACE = "files-0"
FILE_BYTES = 100
"""Five messages of four bytes."""
MAX_QUEUES = 4


class QueueProcess:
    """A group's state on one node, with its files."""

    def __init__(
        self, disk: SimulatedDisk, copied: CopiedState, place: str = PLACE, files: type[MessageFiles] = MessageFiles
    ) -> None:
        self.disk = disk
        self.files = files(disk)
        self.state = QueueGroupState(FILE_BYTES, MAX_QUEUES, self.files.restore(place, copied))

    def apply(self, command: Command) -> Result:
        applied = self.state.apply(encode(command))
        for write in applied.writes:
            self.files.write(write)
        return applied.result

    def messages(self) -> dict[str, dict[int, bytes]]:
        """By queue and number, all that are not acknowledged."""
        return {
            name: {
                number: self.files.read(name, number)
                for number in range(queue.bitmap.base, queue.next_number)
                if not queue.bitmap.is_set(number)
            }
            for name, queue in self.state.queues.items()
        }


class MessageMachine(MachineWithDisk):
    def boot(
        self, copied: CopiedState = NO_QUEUES, place: str = PLACE, files: type[MessageFiles] = MessageFiles
    ) -> QueueProcess:
        return QueueProcess(self.disk(), copied, place, files)
