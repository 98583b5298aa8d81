"""JetStream's API, over one connection to one server.

Source: https://docs.nats.io/reference/reference-protocols/nats_api_reference.

Every call is one request; nats-py neither repeats it nor connects anew, for it was told not to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.errors import CLIENT_TIMEOUT, CONNECT_FAILED, CONNECTION_LOST, SERVICE_NOT_AVAILABLE, OperationError
from workloads.systems.nats.errors import Refused, code_of
from workloads.systems.nats.nodes import CLIENT_PORT

ANSWER_TIMEOUT_S = 2.0
CONNECT_TIMEOUT_S = 2
NO_MESSAGES = ("404", "408")
"""Statuses: nothing is there, or no more than came already."""


class Jetstream:
    def __init__(self, node: str, connection: Any) -> None:
        self.node, self._connection = node, connection

    async def ask(self, subject: str, request: Mapping[str, Any] | None = None) -> Any:
        """The answer of the API. Raises OperationError."""
        data = b"" if request is None else json.dumps(request).encode()
        return self._require_success(json.loads((await self._request(f"$JS.API.{subject}", data)).data))

    async def publish(self, subject: str, data: bytes) -> int:
        """The place of the message in its stream. Raises OperationError."""
        return int(self._require_success(json.loads((await self._request(subject, data)).data))["seq"])

    async def next_message(self, stream: str, consumer: str) -> tuple[bytes, str] | None:
        """What comes next for a consumer, and where to acknowledge it; None where nothing is there.

        Raises OperationError.
        """
        wanted = b'{"batch": 1, "no_wait": true}'
        # With an inbox of its own: the message that answers bears the subject under which it was published.
        message = await self._request(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", wanted, own_inbox=True)
        status = (message.headers or {}).get("Status")
        if status is not None:
            self._require_empty(status)
            return None
        return message.data, message.reply

    async def next_stored(self, stream: str, place: int) -> tuple[int, bytes] | None:
        """(place, message) of the first message at `place` or behind it, from whichever replica answers; None where
        that one has none.

        Raises OperationError.
        """
        wanted = {"seq": place, "next_by_subj": ">"}
        message = await self._request(f"$JS.API.DIRECT.GET.{stream}", json.dumps(wanted).encode())
        headers = message.headers or {}
        if (status := headers.get("Status")) is not None:
            self._require_empty(status)
            return None
        return int(headers["Nats-Sequence"]), message.data

    async def pulled(self, stream: str, consumer: str, most: int) -> list[tuple[int, bytes]]:
        """(place, message) of what comes next for a consumer that keeps its place by itself. Raises OperationError."""
        import nats.errors

        found: list[tuple[int, bytes]] = []
        wanted = b'{"batch": %d, "no_wait": true}' % most
        inbox = self._connection.new_inbox()
        try:
            answers = await self._connection.subscribe(inbox)
            await self._connection.publish(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", wanted, reply=inbox)
            while len(found) < most:
                message = await answers.next_msg(timeout=ANSWER_TIMEOUT_S)
                if (status := (message.headers or {}).get("Status")) is not None:
                    self._require_empty(status)
                    break
                found.append((message.metadata.sequence.stream, message.data))
            await answers.unsubscribe()
        except (nats.errors.TimeoutError, TimeoutError) as error:
            raise OperationError(CLIENT_TIMEOUT, f"after {len(found)} messages", node=self.node) from error
        except (nats.errors.Error, OSError) as error:
            raise OperationError(CONNECTION_LOST, str(error), node=self.node) from error
        return found

    async def acknowledge(self, reply: str) -> None:
        """Wait until it is known. Raises OperationError."""
        await self._request(reply, b"+ACK")

    async def close(self) -> None:
        await self._connection.close()

    def _require_empty(self, status: str) -> None:
        """Raises OperationError where this status says something else."""
        if status not in NO_MESSAGES:
            raise OperationError(code_of(Refused(int(status), "")), f"status {status}", node=self.node)

    def _require_success(self, answer: Any) -> Any:
        if "error" in answer:
            error = Refused(int(answer["error"].get("err_code", 0)), str(answer["error"].get("description", "")))
            raise OperationError(code_of(error), str(error), node=self.node)
        return answer

    async def _request(self, subject: str, data: bytes, *, own_inbox: bool = False) -> Any:
        import nats.errors

        try:
            return await self._connection.request(subject, data, timeout=ANSWER_TIMEOUT_S, old_style=own_inbox)
        except nats.errors.NoRespondersError as error:  # nobody took it
            raise OperationError(SERVICE_NOT_AVAILABLE, str(error), node=self.node) from error
        except (nats.errors.TimeoutError, TimeoutError) as error:
            raise OperationError(CLIENT_TIMEOUT, node=self.node) from error
        except (nats.errors.Error, OSError) as error:
            raise OperationError(CONNECTION_LOST, str(error), node=self.node) from error


async def connected(host: Any, node: str) -> Jetstream:
    """To this server. Raises OperationError."""
    import nats
    import nats.errors

    async def ignored(_: Exception) -> None:
        """Told by the request that fails."""

    address = host.network.reached_at(f"{node}:{CLIENT_PORT}")
    try:
        connection = await nats.connect(
            f"nats://{address}", allow_reconnect=False, connect_timeout=CONNECT_TIMEOUT_S, error_cb=ignored
        )
    except (nats.errors.Error, OSError, TimeoutError) as error:
        raise OperationError(CONNECT_FAILED, str(error), node=node) from error
    return Jetstream(node, connection)
