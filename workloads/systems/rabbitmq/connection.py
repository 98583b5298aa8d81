"""Connections to RabbitMQ by aio-pika, without those that it renews by itself: how requests end, and what they leave.

aiormq, which aio-pika stands on, makes futures for the message of a get, for the confirm of a publish and for what has
been sent. Where a request is given up, or its connection ends before it gets to wait for them, they are failed together
with all others of the connection, and nobody looks at them: asyncio complains about each when it is collected. Here
each is looked at where it was made, for the request itself has reported what happened.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from harness.errors import (
    CLIENT_TIMEOUT,
    CONNECT_FAILED,
    CONNECTION_LOST,
    OUTCOME_UNKNOWN,
    SERVICE_NOT_AVAILABLE,
    OperationError,
)
from workloads.systems.rabbitmq.nodes import PORT

T = TypeVar("T")
ANSWER_TIMEOUT_S = 4.0
CONNECT_TIMEOUT_S = 3.0
CLOSING_TIMEOUT_S = 0.5
UNHEARD = logging.NullHandler()
"""Drops what the libraries log: that a request was given up, or that a connection ended, is in the history."""


async def connected(host: Any, node: str) -> Any:
    """A connection that nothing renews. Raises OperationError."""
    import aio_pika
    from aio_pika.connection import make_url

    for name in ("aiormq", "aio_pika"):
        logging.getLogger(name).addHandler(UNHEARD)
    address = host.network.reached_at(f"{node}:{PORT}")
    connection = aio_pika.Connection(make_url(f"amqp://guest:guest@{address}/?heartbeat=10"))
    try:
        await answered(connection.connect(), CONNECT_TIMEOUT_S)
    except OperationError as error:
        await ended(connection)
        raise OperationError(CONNECT_FAILED, error.detail, node=node) from error
    return connection


async def channel_at(host: Any, node: str) -> tuple[Any, Any]:
    """A connection, and a channel of it. Raises OperationError, and leaves neither."""
    connection, channel = await connected(host, node), None
    try:
        channel = await answered(opened_channel(connection), ANSWER_TIMEOUT_S)
    except OperationError as error:
        raise OperationError(error.error, error.detail, node=node) from error
    finally:
        if channel is None:  # also where nobody waits any more
            await ended(connection)
    return connection, channel


async def opened_channel(connection: Any) -> Any:
    """A channel with confirms, of which no future is left that nobody has looked at."""
    channel = await connection.channel(publisher_confirms=True)
    underlying = await channel.get_underlay_channel()
    make = underlying.create_future

    def looked_at() -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = make()
        future.add_done_callback(_look_at)
        return future

    underlying.create_future = looked_at
    return channel


async def ended(connection: Any) -> None:
    """Close it, or give it up where the node does not answer."""
    with suppress(OperationError):
        await answered(connection.close(), CLOSING_TIMEOUT_S)
    closed = connection.closed()
    if not closed.done():
        # It would close itself again when it is collected, even where no loop runs any more.
        closed.set_result(True)


async def answered(asked: Coroutine[Any, Any, T], timeout_s: float) -> T:
    """What comes of a request. Raises OperationError, also where the library drops it with its connection."""
    from aio_pika.exceptions import AMQPError, DeliveryError, PublishError

    work = asyncio.ensure_future(asked)
    work.add_done_callback(_look_at)
    try:
        done, _ = await asyncio.wait({work}, timeout=timeout_s)
    finally:
        work.cancel()
    if not done:
        raise OperationError(CLIENT_TIMEOUT)
    try:
        return work.result()
    except PublishError as error:  # it came back: no queue took it
        raise OperationError(SERVICE_NOT_AVAILABLE, _words(error)) from error
    except DeliveryError as error:  # a negative confirm: some may have taken it
        raise OperationError(OUTCOME_UNKNOWN, _words(error)) from error
    except (AMQPError, OSError, TimeoutError, RuntimeError, asyncio.CancelledError) as error:
        raise OperationError(CONNECTION_LOST, _words(error)) from error


def _look_at(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
