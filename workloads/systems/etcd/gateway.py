"""etcd's gateway, which takes its requests of gRPC as JSON over HTTP (https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/).

A request is a POST, which nothing here, in aiohttp or in the gateway sends twice.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from harness.errors import CLIENT_TIMEOUT, CONNECT_FAILED, CONNECTION_LOST, OperationError
from workloads.systems.etcd.errors import Refused, code_of

ANSWER_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 2.0


def packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def unpacked(data: str) -> str:
    return base64.b64decode(data).decode()


def below(prefix: str) -> dict[str, str]:
    """As a request names all keys that begin so."""
    return {"key": packed(prefix), "range_end": packed(prefix[:-1] + chr(ord(prefix[-1]) + 1))}


class Gateway:
    """One member's, over one connection."""

    def __init__(self, node: str, address: str, *, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        """`address`: where the member is reached from here, `host:port`."""
        import aiohttp

        self.node = node
        self._url = f"http://{address}/v3"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=1),
            timeout=aiohttp.ClientTimeout(total=answer_timeout_s, sock_connect=CONNECT_TIMEOUT_S),
        )

    async def ask(self, path: str, request: Mapping[str, Any]) -> Any:
        """The answer. Raises OperationError."""
        async with self._speaking(), self._session.post(f"{self._url}/{path}", json=request) as answer:
            return _result(await answer.json(content_type=None))

    async def stream(self, path: str, request: Mapping[str, Any]) -> AsyncIterator[Mapping[str, Any]]:
        """What is answered one after the other, over a connection of its own, as long as the member keeps it open.
        Raises OperationError."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)
        async with (
            self._speaking(),
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(f"{self._url}/{path}", json=request) as answer,
        ):
            begun = b""
            async for chunk in answer.content.iter_any():
                *lines, begun = (begun + chunk).split(b"\n")
                for line in filter(None, lines):
                    yield _result(json.loads(line))["result"]

    @asynccontextmanager
    async def _speaking(self) -> AsyncIterator[None]:
        """Every way in which a request fails, as OperationError."""
        import aiohttp

        try:
            yield
        except Refused as error:
            raise OperationError(code_of(error), str(error), node=self.node) from error
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise OperationError(CONNECT_FAILED, str(error), node=self.node) from error
        except TimeoutError as error:
            raise OperationError(CLIENT_TIMEOUT, node=self.node) from error
        except (aiohttp.ClientError, OSError, ValueError, TypeError, KeyError) as error:  # half an answer among them
            raise OperationError(CONNECTION_LOST, str(error), node=self.node) from error

    async def close(self) -> None:
        await self._session.close()


def _result(answer: Any) -> Any:
    """What was answered. Raises Refused."""
    if "code" in answer:
        raise Refused(int(answer["code"]), str(answer.get("message", answer.get("error", ""))))
    if "error" in answer and "result" not in answer:
        error = answer["error"]
        raise Refused(int(error.get("grpc_code", 2)), str(error.get("message", error)))
    return answer
