"""Requests about queues of static topics: they name queues and offsets of the whole, and become requests about a
segment of this group; what is answered is put back into offsets of the whole.

Each group answers for its own segments. A reader that comes to the end of a frozen one is led on to where the next one
begins, as soon as that is decided; one that asks for what lies on another group is refused, and finds that group in the
topic's mapping. How far groups of consumers have come is kept with the segment in which they are.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.broker.request_handler import Answer, Handlers
from system_under_test.rocketmq.broker.topics.static_topics import StaticTopics, not_here
from system_under_test.rocketmq.message_protocol import PullAnswer, PullRequest, QueueRequest, TimeQuery, whole_number
from system_under_test.rocketmq.static_topic.logic_queue import LogicQueue, Segment

Ordinary = Callable[[RemotingCommand, Peer], Answer]
OfQueue = Callable[[LogicQueue, RemotingCommand, Ordinary, Peer], Answer]

UNFIT = (
    RequestCode.POP_MESSAGE,
    RequestCode.PEEK_MESSAGE,
    RequestCode.NOTIFICATION,
    RequestCode.POLLING_INFO,
    RequestCode.QUERY_MESSAGE,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
)
"""What is not done with static topics."""


class LogicQueues:
    """`handlers` takes those of ordinary topics, and gives the same for topics of both kinds."""

    def __init__(self, topics: StaticTopics, group: str) -> None:
        self._topics = topics
        self._group = group

    def handlers(self, ordinary: Handlers) -> Handlers:
        of_queues: dict[int, OfQueue] = {
            RequestCode.PULL_MESSAGE: self._pull,
            RequestCode.GET_MAX_OFFSET: self._max_offset,
            RequestCode.GET_MIN_OFFSET: self._min_offset,
            RequestCode.QUERY_CONSUMER_OFFSET: self._query_progress,
            RequestCode.UPDATE_CONSUMER_OFFSET: self._update_progress,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self._offset_at_time,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self._earliest_time,
        }
        changed: dict[int, Ordinary] = {
            code: self._either(ordinary[code], of_queue) for code, of_queue in of_queues.items()
        }
        refused: dict[int, Ordinary] = {code: self._only_ordinary(ordinary[code]) for code in UNFIT}
        return {**ordinary, **changed, **refused}

    def _either(self, ordinary: Ordinary, of_queue: OfQueue) -> Ordinary:
        def handle(command: RemotingCommand, peer: Peer) -> Answer:
            name = command.ext_fields.get("topic")
            if name is None or self._topics.get(name) is None:
                return ordinary(command, peer)
            queue = self._topics.queue(name, whole_number(command.ext_fields, "queueId"))
            assert queue is not None
            return of_queue(queue, command, ordinary, peer)

        return handle

    def _only_ordinary(self, ordinary: Ordinary) -> Ordinary:
        def handle(command: RemotingCommand, peer: Peer) -> Answer:
            name = command.ext_fields.get("topic")
            if name is not None and self._topics.get(name) is not None:
                raise RemotingError(
                    ResponseCode.INVALID_PARAMETER, f"topic {name} is static: it is read by pulling, queue by queue"
                )
            return ordinary(command, peer)

        return handle

    # reading

    def _pull(self, queue: LogicQueue, command: RemotingCommand, ordinary: Ordinary, peer: Peer) -> Answer:
        request = PullRequest.decode(command)
        segment = self._own(queue.at(request.queue_offset), command)
        committed = None if request.commit_offset is None else self._committed_in(queue, segment, request.commit_offset)
        asked = replace(
            request,
            queue_id=segment.queue_id,
            queue_offset=segment.physical(request.queue_offset),
            commit_offset=committed,
        )
        answer = ordinary(asked.encode(), peer)
        if isinstance(answer, RemotingCommand):
            return self._pulled(request, segment, answer)
        assert answer is not None
        return self._pulled_later(request, segment, answer)

    async def _pulled_later(
        self, request: PullRequest, segment: Segment, answer: Coroutine[Any, Any, RemotingCommand | None]
    ) -> RemotingCommand:
        pulled = await answer
        assert pulled is not None
        return self._pulled(request, segment, pulled)

    def _pulled(self, request: PullRequest, segment: Segment, answer: RemotingCommand) -> RemotingCommand:
        """In offsets of the whole; where the segment has ended, on to the next one."""
        pulled = PullAnswer.decode(answer)
        queue = self._topics.queue(request.topic, request.queue_id)
        assert queue is not None
        now, following = queue.segments[segment.generation], queue.after(segment)
        reached = pulled.next_offset if not pulled.data else now.physical(request.queue_offset)
        if now.is_frozen and reached >= self._topics.end(request.topic, now):
            pulled = replace(pulled, data=b"")
            if following is None:
                next_offset, code = request.queue_offset, ResponseCode.PULL_NOT_FOUND
            else:
                next_offset, code = following.logic_offset, ResponseCode.PULL_RETRY_IMMEDIATELY
        else:
            is_same = pulled.next_offset == segment.physical(request.queue_offset)
            next_offset = request.queue_offset if is_same else segment.logic(pulled.next_offset)
            code = ResponseCode(answer.code)
        return replace(
            pulled,
            next_offset=next_offset,
            min_offset=segment.logic(pulled.min_offset),
            max_offset=segment.logic(pulled.max_offset),
            offset_delta=segment.logic(0),
        ).encode(code)

    def _max_offset(self, queue: LogicQueue, command: RemotingCommand, ordinary: Ordinary, peer: Peer) -> Answer:
        segment = self._own(queue.decided[-1], command)
        return _offset(segment.logic(self._of_segment(segment, command, ordinary, peer)))

    def _min_offset(self, queue: LogicQueue, command: RemotingCommand, ordinary: Ordinary, peer: Peer) -> Answer:
        """Of the segments that lie here; where all messages of one have expired, of those behind it."""
        own = self._own_segments(queue, command)
        for segment in own:
            least = self._of_segment(segment, command, ordinary, peer)
            if not segment.is_frozen or least < segment.end_offset:
                return _offset(segment.logic(least))
        return _offset(own[-1].logic(own[-1].end_offset))

    def _offset_at_time(self, queue: LogicQueue, command: RemotingCommand, ordinary: Ordinary, peer: Peer) -> Answer:
        """In the first segment that lies here and has a message so late; without any, the end of the last one."""
        TimeQuery.decode(command)
        own = self._own_segments(queue, command)
        for segment in own:
            found = self._of_segment(segment, command, ordinary, peer)
            if segment is own[-1] or not segment.is_frozen or found < segment.end_offset:
                return _offset(segment.logic(found))
        raise AssertionError("a group has a last segment")

    def _earliest_time(self, queue: LogicQueue, command: RemotingCommand, ordinary: Ordinary, peer: Peer) -> Answer:
        return ordinary(_in_queue(command, self._own_segments(queue, command)[0].queue_id), peer)

    # progress of groups of consumers

    def _query_progress(self, queue: LogicQueue, command: RemotingCommand, ordinary: Ordinary, peer: Peer) -> Answer:
        """In the newest segment that the group is known to have come to here."""
        request = QueueRequest.decode(command)
        for segment in reversed(self._own_segments(queue, command)):
            asked = replace(request, queue_id=segment.queue_id, is_zero_if_unknown=False)
            try:
                answer = ordinary(asked.encode(RequestCode.QUERY_CONSUMER_OFFSET), peer)
            except RemotingError as error:
                if error.code != ResponseCode.QUERY_NOT_FOUND:
                    raise
                continue
            assert isinstance(answer, RemotingCommand)
            return _offset(segment.logic(whole_number(answer.ext_fields, "offset")))
        raise RemotingError(ResponseCode.QUERY_NOT_FOUND, "the group has reported no offset for this queue here")

    def _update_progress(self, queue: LogicQueue, command: RemotingCommand, ordinary: Ordinary, peer: Peer) -> Answer:
        request = QueueRequest.decode(command)
        if request.commit_offset is None:
            raise RemotingError(ResponseCode.INVALID_PARAMETER, "commitOffset is missing")
        segment = self._own(queue.at(request.commit_offset), command)
        asked = replace(request, queue_id=segment.queue_id, commit_offset=segment.physical(request.commit_offset))
        return ordinary(asked.encode(RequestCode.UPDATE_CONSUMER_OFFSET), peer)

    def _committed_in(self, queue: LogicQueue, segment: Segment, offset: int) -> int | None:
        """With a pull only what lies in the segment that is pulled from can be committed."""
        return segment.physical(offset) if offset >= 0 and queue.at(offset) == segment else None

    # segments

    def _own(self, segment: Segment, command: RemotingCommand) -> Segment:
        """Raises RemotingError (NOT_LEADER_FOR_QUEUE) unless it lies here."""
        if segment.broker_name != self._group:
            raise self._elsewhere(command)
        return segment

    def _own_segments(self, queue: LogicQueue, command: RemotingCommand) -> tuple[Segment, ...]:
        """Oldest first, one at least. Raises RemotingError."""
        own = queue.of(self._group)
        if not own:
            raise self._elsewhere(command)
        return own

    def _elsewhere(self, command: RemotingCommand) -> RemotingError:
        return not_here(command.ext_fields["topic"], whole_number(command.ext_fields, "queueId"), self._group)

    def _of_segment(self, segment: Segment, command: RemotingCommand, ordinary: Ordinary, peer: Peer) -> int:
        """The offset that is answered for the segment's queue."""
        answer = ordinary(_in_queue(command, segment.queue_id), peer)
        assert isinstance(answer, RemotingCommand)
        return whole_number(answer.ext_fields, "offset")


def _in_queue(command: RemotingCommand, queue_id: int) -> RemotingCommand:
    return RemotingCommand.request(command.code, {**command.ext_fields, "queueId": str(queue_id)})


def _offset(offset: int) -> RemotingCommand:
    return RemotingCommand.response(ResponseCode.SUCCESS, {"offset": str(offset)})
