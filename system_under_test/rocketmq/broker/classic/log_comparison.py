"""Whether a slave's log is a part of its master's, and up to where, before the slave follows it.

RocketMQ's transfer says nothing of that: a master that lost the end of its log, with its power or its disk, and wrote
other messages there, would go on to send to a slave whose log holds what was lost, and the two would differ for ever.
So the slave asks its master, by a request beside the transfer, for checksums of parts of its log.

Two logs of one group are equal up to some offset and differ from there on, for a slave writes only what its master
sent; and a message bears its offset and the time at which it was stored. So a part that is equal at both and in which a
message begins shows that all before it is equal as well. The place where they part is found by looking at the end, then
farther and farther back, then forward from there (`common_end`): a few questions, whatever the size of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from zlib import crc32

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.ha.replication import Replication
from system_under_test.rocketmq.broker.request_handler import Handlers
from system_under_test.storage.message import MESSAGE_MAGIC, offset_in_header
from system_under_test.storage.message_store import MessageStore

FIRST_PART_BYTES = 1024
LARGEST_PART_BYTES = 1024 * 1024
"""No part is larger: a master reads it while others wait."""

_MAGIC = MESSAGE_MAGIC.to_bytes(4, "big")

Part = tuple[int, int]
"""[start, end) of a log."""


class NotComparable(Exception):
    """Who was asked is no master, or answers what makes no sense."""


class Expired(Exception):
    """The master has deleted all that the slave has, and what followed it."""

    def __init__(self, master_begin: int) -> None:
        super().__init__(f"the master has deleted all before {master_begin}")
        self.master_begin = master_begin


class QuestionUnknown(Exception):
    """Who was asked is of a version that compares nothing."""


@dataclass(frozen=True, slots=True)
class Extent:
    """What a log holds: [start, end)."""

    start: int
    end: int


def common_end(own: Extent, theirs: Extent, tells: Callable[[Part], bool]) -> Generator[Part, bool, int | None]:
    """Up to where both logs are equal; None if no part of them is. Yields parts to compare, and is sent whether they
    are equal; `tells` says whether that of a part says anything of what is before it."""
    start, end = max(own.start, theirs.start), min(own.end, theirs.end)
    if start >= end:
        return None
    equal_until, size = end, FIRST_PART_BYTES
    while equal_until > start:
        part = max(start, equal_until - size), equal_until
        if tells(part) and (yield part):
            break
        equal_until, size = part[0], min(2 * size, LARGEST_PART_BYTES)
    while equal_until < end:
        part = equal_until, min(end, equal_until + LARGEST_PART_BYTES)
        if not (yield part):
            equal_until = yield from _within(part)
            break
        equal_until = part[1]
    # Of different messages the first bytes may be equal.
    return equal_until if tells((start, min(equal_until, start + LARGEST_PART_BYTES))) else None


def _within(part: Part) -> Generator[Part, bool, int]:
    """How far the beginning of a part, which is not equal as a whole, is equal."""
    start, low, high = part[0], part[0], part[1] - 1
    while low < high:
        middle = (low + high + 1) // 2
        if (yield start, middle):
            low = middle
        else:
            high = middle - 1
    return low


class LogComparison:
    """A master's answers."""

    def __init__(self, store: MessageStore, ha: Replication) -> None:
        self._store = store
        self._ha = ha

    @property
    def handlers(self) -> Handlers:
        return {RequestCode.COMPARE_LOG: self._compare}

    def _compare(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        if self._ha.mastership is None:
            raise RemotingError(ResponseCode.NOT_MASTER, "this broker is not the master")
        fields = command.ext_fields
        try:
            start, end = int(fields.get("start", "0")), int(fields.get("end", "0"))
        except ValueError as error:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, f"not a part of a log: {error}") from error
        if not 0 <= start <= end or end - start > LARGEST_PART_BYTES:
            raise RemotingError(
                ResponseCode.INVALID_PARAMETER,
                f"expected a part of at most {LARGEST_PART_BYTES} bytes, got {start} to {end}",
            )
        answer = {
            "minOffset": str(self._store.min_offset),
            "maxOffset": str(self._store.max_offset),
            "checksum": str(checksum(self._store, (start, end))),
        }
        return RemotingCommand.response(ResponseCode.SUCCESS, answer)


def checksum(store: MessageStore, part: Part) -> int:
    """Of these bytes as far as the log holds them."""
    position, end = part
    result = 0
    while position < end:
        data = store.read_for_transfer(position, end - position)
        if not data:
            break
        result = crc32(data, result)
        position += len(data)
    return result


def holds_the_begin_of_a_message(store: MessageStore, part: Part) -> bool:
    """With its offset and the time at which it was stored."""
    start, end = part
    data = store.read_for_transfer(start, end - start)
    found = data.find(_MAGIC)
    while found >= 0:
        message = found - 4
        if message >= 0 and offset_in_header(data, message) == start + message:
            return True
        found = data.find(_MAGIC, found + 1)
    return False


async def end_in_common(store: MessageStore, remoting: RemotingClient, master: str, timeout_s: float) -> int | None:
    """Up to where the own log and the master's are equal; None if no part of them is, unless the own one is empty.

    Raises ConnectFailed, ConnectionClosed, TimeoutError, NotComparable, QuestionUnknown, Expired.
    """
    own = Extent(store.min_offset, store.max_offset)
    theirs, _ = await _ask(remoting, master, (0, 0), timeout_s)
    if own.start == own.end:
        return own.end
    if own.end <= theirs.start:
        raise Expired(theirs.start)
    search = common_end(own, theirs, partial(holds_the_begin_of_a_message, store))
    is_equal: bool | None = None
    while True:
        try:
            part = next(search) if is_equal is None else search.send(is_equal)
        except StopIteration as found:
            end: int | None = found.value
            return end
        _, their_checksum = await _ask(remoting, master, part, timeout_s)
        is_equal = their_checksum == checksum(store, part)


async def _ask(remoting: RemotingClient, master: str, part: Part, timeout_s: float) -> tuple[Extent, int]:
    fields = {"start": str(part[0]), "end": str(part[1])}
    answer = await remoting.invoke(master, RemotingCommand.request(RequestCode.COMPARE_LOG, fields), timeout_s)
    if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
        raise QuestionUnknown(answer.remark)
    if answer.code != ResponseCode.SUCCESS:
        raise NotComparable(answer.remark)
    try:
        found = {name: int(answer.ext_fields[name]) for name in ("minOffset", "maxOffset", "checksum")}
    except (KeyError, ValueError) as error:
        raise NotComparable(f"malformed answer: {error!r}") from error
    return Extent(found["minOffset"], found["maxOffset"]), found["checksum"]
