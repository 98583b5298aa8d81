from __future__ import annotations

from system_under_test.bookkeeper.bookie.bookie import Bookie
from system_under_test.bookkeeper.bookie.message import AddRequest, BookieAnswer, Code
from system_under_test.bookkeeper.parts import BookieParts
from system_under_test.node.mutant import Mutant

_LONGEST_QUEUE_S = 0.1


class LooksForTheFenceFirst(Bookie):
    async def add(self, request: AddRequest) -> BookieAnswer:
        entry = self._sent(request.data)
        refusal = Code.CORRUPT if entry is None else self._refusal(entry.ledger, request.is_recovery)
        if entry is None or refusal is not None:
            return await self._refused(refusal or Code.CORRUPT)
        # In the queue of those that write: a fence may come meanwhile, and the reads that follow it.
        await self._host.clock.sleep(self._host.random.uniform(0, _LONGEST_QUEUE_S))
        added = self._write(entry, request)
        return await self._refused(added) if isinstance(added, Code) else await self._acknowledged(added)


MUTANT = Mutant(
    name="fence-race",
    breaks="an add comes before the fence, and recovery finds it, or after it, and is refused",
    parts=(BookieParts(bookie=LooksForTheFenceFirst),),
)
