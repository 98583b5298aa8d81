from __future__ import annotations

from system_under_test.cmq.bitmap import Bitmap
from system_under_test.cmq.parts import CmqParts
from system_under_test.cmq.state_machine import QueueGroupState
from system_under_test.node.mutant import Mutant


class SharesBits(QueueGroupState):
    def copy_bits(self, bitmap: Bitmap) -> bytes | bytearray:
        return bitmap.bits


MUTANT = Mutant(
    name="snapshot-torn",
    breaks="a snapshot is the state as it was at its index",
    parts=(CmqParts(state=SharesBits),),
)
