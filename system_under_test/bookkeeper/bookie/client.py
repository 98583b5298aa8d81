"""Asks bookies by remoting. Whom an identity means, and where it is, the one that asks has to know."""

from __future__ import annotations

from system_under_test.bookkeeper.bookie.message import BookieAnswer, BookieRequest
from system_under_test.bookkeeper.bookie.wire import MalformedBookieCommand, decode_answer, encode_request
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import ResponseCode
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host


class BookieSilent(Exception):
    """No answer that says anything. `was_sent`: the bookie may have done, or may yet do, what it was asked for."""

    def __init__(self, reason: str, *, was_sent: bool) -> None:
        super().__init__(reason)
        self.was_sent = was_sent


class BookieClient:
    def __init__(self, host: Host) -> None:
        self._remoting = RemotingClient(host)

    async def ask(self, address: str, request: BookieRequest, timeout_s: float) -> BookieAnswer:
        """Raises BookieSilent."""
        try:
            command = await self._remoting.invoke(address, encode_request(request), timeout_s)
        except ConnectFailed as error:
            raise BookieSilent(str(error), was_sent=False) from error
        except (ConnectionClosed, TimeoutError) as error:
            raise BookieSilent(str(error), was_sent=True) from error
        if command.code == ResponseCode.SYSTEM_BUSY:
            raise BookieSilent(f"{address} has too much to do", was_sent=False)
        try:
            return decode_answer(request, command)
        except MalformedBookieCommand as error:
            raise BookieSilent(f"{address}: {error}", was_sent=True) from error

    def close(self) -> None:
        self._remoting.close()
