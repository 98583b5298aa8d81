"""How a member asks the others: by remoting, one connection a peer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from system_under_test.dledger.json_fields import MalformedBody
from system_under_test.dledger.message import Answer, AnyAnswer, Code, PushAnswer, Request, VoteAnswer
from system_under_test.dledger.wire import Addressed, decode_answer, encode_request
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.command import RemotingCommand
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host


class RemotePeers:
    def __init__(
        self, host: Host, group: str, node: str, addresses: Mapping[str, str], connect_timeout_s: float
    ) -> None:
        self._host = host
        self._group = group
        self._node = node
        self._addresses = addresses
        self._remoting = RemotingClient(host, connect_timeout_s, on_connected=self._connected)
        self.on_connected: Callable[[str], None] = lambda peer: None
        """Hears each peer to which there is a new connection, before anything is sent there."""

    def _connected(self, address: str) -> None:
        for peer, its_address in self._addresses.items():
            if its_address == address:
                self.on_connected(peer)

    async def ask(self, peer: str, request: Request, timeout_s: float) -> AnyAnswer | None:
        code, body = encode_request(Addressed(group=self._group, to=peer, sender=self._node, request=request))
        command = RemotingCommand.request(code, body=body)
        try:
            answer = await self._remoting.invoke(self._addresses[peer], command, timeout_s)
        except (ConnectFailed, ConnectionClosed, TimeoutError):
            return None
        if answer.code != Code.SUCCESS:
            return None
        try:
            decoded = decode_answer(request, answer.body)
        except MalformedBody as error:
            self._host.log("malformed_answer", peer=peer, reason=str(error))
            return None
        return decoded if isinstance(decoded, Answer | PushAnswer | VoteAnswer) else None

    def close(self) -> None:
        self._remoting.close()
