"""A message at the tail that was not written to its end stays, also when its replica becomes a slave.

Recovery cuts behind it and not before it, and a slave shakes hands with the log as it is: its end goes into the
truncation point and into the first ack, so nobody ever sends these bytes again. Broken rule: a log ends with a whole
message before it is compared with another.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.storage.commit_log import CommitLog
from system_under_test.storage.message import peek_size
from system_under_test.storage.message_store import MessageStore
from system_under_test.storage.record_format import BLANK_BYTES
from system_under_test.storage.store_config import StorageParts


class TailKept(CommitLog):
    def recovered_end(self, whole_end: int) -> int:
        claimed = peek_size(self.read(whole_end, BLANK_BYTES), 0)
        room = self.segment_bytes - whole_end % self.segment_bytes
        return min(whole_end + claimed, self.max_offset) if 0 < claimed <= room else whole_end


async def as_it_is(store: MessageStore) -> None:
    return


MUTANT = Mutant(
    name="boundary-not-cut",
    breaks="replicas hold the same bytes at the same offset",
    parts=(BrokerParts(storage=StorageParts(commit_log=TailKept), cut_before_following=as_it_is),),
)
