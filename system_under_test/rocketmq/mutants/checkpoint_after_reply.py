"""A pop is answered at once, and its checkpoint is written a moment later.

Who is killed in between has moved the group past messages that no checkpoint stands for: nobody acknowledges them, and
they do not come again. Broken rule: a message is given out only when its checkpoint is as safe as an acknowledged send,
and no offset of the group passes it before.
"""

from __future__ import annotations

from collections.abc import Sequence

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.acknowledgement import send_on
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.broker.pop.queue_read import QueueRead
from system_under_test.rocketmq.broker.pop.service import PopService
from system_under_test.rocketmq.pop_protocol import PopAnswer, PopRequest

LATER_S = 0.5


class HastyPops(PopService):
    def _give_out(self, request: PopRequest, reads: Sequence[QueueRead]) -> tuple[PopAnswer, int]:
        answer = self._answer(request, reads, self._free_pop_time([]))
        for read in reads:
            self._store.consumer_offsets.commit(*read.key, read.next_offset)
            self._positions.move(read.key, read.next_offset)
        self._host.spawn(self._write_later(request, reads, answer.pop_time_ms), "late checkpoints")
        return answer, self._store.max_offset

    async def _write_later(self, request: PopRequest, reads: Sequence[QueueRead], pop_time_ms: int) -> None:
        await self._host.clock.sleep(LATER_S)
        if not self.mastership.ended:
            for read in reads:
                checkpoint = self._checkpoint(
                    read.key, read.start_offset, read.offsets, pop_time_ms, request.invisible_ms
                )
                put = self._append_checkpoint(checkpoint, None)
                send_on(self._host, self.mastership, put.end_offset)


MUTANT = Mutant(
    name="checkpoint-after-reply",
    breaks="a popped message comes until it is acknowledged",
    parts=(BrokerParts(pop_service=HastyPops),),
)
