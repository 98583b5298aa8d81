"""What holds while this broker's member leads the DLedger group and takes appends.

A message is replicated once the group has committed its entry, and stays then. What is not committed in time may stay
or go; what is refused, because too many wait already, was never written: two answers with codes of their own, where
RocketMQ gives one for both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from system_under_test.dledger.driver import GroupMember
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.broker.ha.waiting_puts import WaitingPuts, never_replicated


class DledgerMastership:
    """`AnyMastership` of one term, or of a part of it: a leader that hands over in vain begins another one."""

    def __init__(self, member: GroupMember, max_pending: int, confirm_offset: int) -> None:
        self.master_epoch = member.term
        self.ended = False
        self.confirm_offset = confirm_offset
        self.confirm_moved = asyncio.Event()
        self.on_end: list[Callable[[], None]] = []
        self._member = member
        self._max_pending = max_pending
        self._waiting = WaitingPuts()

    @property
    def in_sync(self) -> int:
        return self._member.in_sync

    def require_writable(self) -> None:
        if self._member.pending >= self._max_pending:
            raise RemotingError(ResponseCode.SYSTEM_BUSY, f"{self._member.pending} messages wait for a majority")

    def enough_in_sync(self) -> bool:
        return True

    def slave_available(self) -> bool:
        return True

    def advance(self) -> None:
        """The group alone decides what is confirmed."""

    def committed(self, offset: int) -> None:
        """The group has committed all before it."""
        self.confirm_offset = offset
        self._waiting.release(offset)

    def replicated(self, end_offset: int) -> asyncio.Future[bool]:
        if self.ended:
            return never_replicated()
        future = self._waiting.add(end_offset)
        self._waiting.release(self.confirm_offset)
        return future

    def tell_confirm_offset(self) -> None:
        """Members tell each other what is committed."""

    def housekeep(self) -> None:
        """Members look after each other."""

    def end(self) -> None:
        self.ended = True
        self._waiting.give_up()
        for call in self.on_end:
            call()
