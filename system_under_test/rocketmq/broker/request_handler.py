"""What parts of a broker that answer requests have in common."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand, RemotingError
from system_under_test.remoting.server import Peer
from system_under_test.rocketmq.topic import TopicConfig

Answer = RemotingCommand | None | Coroutine[Any, Any, RemotingCommand | None]
"""What answers a request; None if it wants no answer."""
Handlers = Mapping[int, Callable[[RemotingCommand, Peer], Answer]]
"""Request code -> what answers it; it raises RemotingError for whatever is wrong with the request."""


def text_field(command: RemotingCommand, name: str) -> str:
    """Raises RemotingError (INVALID_PARAMETER) unless the header has it."""
    value = command.ext_fields.get(name)
    if not value:
        raise RemotingError(ResponseCode.INVALID_PARAMETER, f"{name} is missing")
    return value


def check_queue(topic: TopicConfig, queue_id: int, queues: int) -> None:
    """Raises RemotingError (INVALID_PARAMETER) unless it is one of the topic's first `queues`."""
    if not 0 <= queue_id < queues:
        raise RemotingError(ResponseCode.INVALID_PARAMETER, f"topic {topic.name} has queues 0 to {queues - 1}")
