"""A session of ZooKeeper at one server by kazoo, whose threads are waited for without blocking the harness.

kazoo repeats no request by itself; where the connection is lost, it says so of every request that is under way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from harness.errors import CLIENT_TIMEOUT, CONNECT_FAILED, CONNECTION_LOST, OperationError
from workloads.systems.zookeeper.nodes import PORT

T = TypeVar("T")
ANSWER_TIMEOUT_S = 4.0
CONNECT_TIMEOUT_S = 4.0
SESSION_TIMEOUT_S = 10.0
UNHEARD = logging.Logger("kazoo", logging.CRITICAL + 1)
"""What goes wrong is told by the request that fails."""


async def opened(host: Any, node: str, *, lasts_s: float = SESSION_TIMEOUT_S) -> Session:
    """At this server, as `host` reaches it; `lasts_s` as in `Session`. Raises OperationError."""
    session = Session(node, host.network.reached_at(f"{node}:{PORT}"), lasts_s=lasts_s)
    await session.open()
    return session


class Session:
    def __init__(self, node: str, address: str, *, lasts_s: float) -> None:
        """`address`: where the server is reached from here, `host:port`. `lasts_s`: so long the server keeps it without
        hearing of the client."""
        from kazoo.client import KazooClient

        self.node = node
        self._client = KazooClient(hosts=address, timeout=lasts_s, logger=UNHEARD)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"zookeeper-{node}")

    async def open(self) -> None:
        """Raises OperationError."""
        from kazoo.exceptions import KazooException

        try:
            await self._in_thread(lambda: self._client.start(CONNECT_TIMEOUT_S))
        except (KazooException, self._client.handler.timeout_exception, OSError) as error:
            await self.close()
            raise OperationError(CONNECT_FAILED, _words(error), node=self.node) from error

    async def close(self) -> None:
        """In the background: a server that is gone is not waited for."""
        self._thread.submit(self._end)
        self._thread.shutdown(wait=False)

    def _end(self) -> None:
        from kazoo.exceptions import KazooException

        with suppress(KazooException, self._client.handler.timeout_exception, OSError, RuntimeError):
            self._client.stop()
            self._client.close()

    async def ask(self, request: Callable[[Any], Any], timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
        """What comes of one request, `client -> its future result`. Raises OperationError, and kazoo's exceptions that
        say that the server refused it: NoNodeError, NodeExistsError, BadVersionError; of a change of the ensemble
        NewConfigNoQuorumError, ReconfigInProcessError, BadArgumentsError."""
        from kazoo.exceptions import (
            BadArgumentsError,
            BadVersionError,
            KazooException,
            NewConfigNoQuorumError,
            NodeExistsError,
            NoNodeError,
            ReconfigInProcessError,
        )

        try:
            return await self._in_thread(lambda: request(self._client).get(timeout=timeout_s))
        except (NoNodeError, NodeExistsError, BadVersionError):
            raise
        except (NewConfigNoQuorumError, ReconfigInProcessError, BadArgumentsError):
            raise
        except self._client.handler.timeout_exception as error:
            raise OperationError(CLIENT_TIMEOUT, node=self.node) from error
        except (KazooException, OSError) as error:
            raise OperationError(CONNECTION_LOST, _words(error), node=self.node) from error

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
