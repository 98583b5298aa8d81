"""A group as a log of one queue: an append is answered with the entry's index, and readers ask by index.

Sends go to the leader, as far as the client knows who that is. Polls go to the member that is the client's own, which
shows what it knows to be committed, and after one that it does not answer to the next member; final reads go to each.
Members of the public library answer no PULL: in a group of these alone the leader is read by GET, entry by entry, and
shows whatever its log holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

from harness.errors import CLIENT_TIMEOUT, CONNECT_FAILED, CONNECTION_LOST, PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from system_under_test.dledger.client_message import (
    AppendAnswer,
    AppendRequest,
    ClientRequest,
    EntriesAnswer,
    GetRequest,
    MetadataAnswer,
    MetadataRequest,
    PullRequest,
)
from system_under_test.dledger.entry import Entry
from system_under_test.dledger.json_fields import MalformedBody
from system_under_test.dledger.message import Code
from system_under_test.dledger.wire import Addressed, decode_answer, encode_request
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.command import RemotingCommand
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed
from workloads.systems.dledger.errors import NOT_LEADER, OUT_OF_RANGE, error_of
from workloads.systems.dledger.nodes import GROUP, PORT

PATIENCE_S = 4.0
"""How long a client waits for an answer."""
_METADATA = MetadataRequest()
UNREACHED = (CLIENT_TIMEOUT, CONNECT_FAILED, CONNECTION_LOST)
FINAL_READS = ("final-poll", "caught-up")
MOST_GETS = 32
"""So many requests a poll makes at most, where each one may bring one entry."""
A = TypeVar("A", AppendAnswer, EntriesAnswer, MetadataAnswer)


class MemberClient:
    """Asks members of a group by their names."""

    def __init__(self, host: Any, patience_s: float, *, group: str = GROUP, port: int = PORT) -> None:
        self._remoting = RemotingClient(host)
        self._patience_s = patience_s
        self._group, self._port = group, port

    async def ask(self, node: str, request: ClientRequest, kind: type[A]) -> A:
        """Raises OperationError, also where the member refuses."""
        code, body = encode_request(Addressed(group=self._group, to=node, request=request))
        command = RemotingCommand.request(code, body=body)
        try:
            answer = await self._remoting.invoke(f"{node}:{self._port}", command, self._patience_s)
            decoded = decode_answer(request, answer.body)
        except ConnectFailed as error:
            raise OperationError(CONNECT_FAILED, str(error), node=node) from error
        except (ConnectionClosed, MalformedBody) as error:
            raise OperationError(CONNECTION_LOST, str(error), node=node) from error
        except TimeoutError as error:
            raise OperationError(CLIENT_TIMEOUT, str(error), node=node) from error
        assert isinstance(decoded, kind)
        if decoded.code is not Code.SUCCESS:
            leader = f"; it takes {decoded.leader} for the leader" if decoded.leader else ""
            raise OperationError(error_of(decoded.code), f"{decoded.code.name}{leader}", node=node)
        return decoded

    async def leader(self, nodes: tuple[str, ...]) -> str | None:
        """Who says that it leads, if anyone does."""
        for node in nodes:
            try:
                answer = await self.ask(node, _METADATA, MetadataAnswer)
            except OperationError:
                continue
            if answer.leader == node:
                return node
        return None

    async def leaders(self, nodes: tuple[str, ...]) -> Mapping[str, str | None]:
        """Whom each that answers takes for the leader, if anyone."""
        leaders: dict[str, str | None] = {}
        for node in nodes:
            with suppress(OperationError):
                leaders[node] = (await self.ask(node, _METADATA, MetadataAnswer)).leader
        return leaders

    async def agreed(self, nodes: tuple[str, ...]) -> bool:
        """Whether all that answer take the same member for the leader."""
        leaders = set((await self.leaders(nodes)).values())
        return len(leaders) == 1 and None not in leaders

    def close(self) -> None:
        self._remoting.close()


class LogClient:
    """`Client` of one process. As a consumer it begins at the first entry."""

    def __init__(
        self, host: Any, nodes: tuple[str, ...], process: int, patience_s: float, public: tuple[str, ...] = ()
    ) -> None:
        """`public`: those of the nodes that run the public library."""
        self._members = MemberClient(host, patience_s)
        self._nodes = nodes
        self._leader = nodes[process % len(nodes)]
        self._homes = [node for node in nodes if node not in public]
        self._home = self._homes[process % len(self._homes)] if self._homes else None
        self._next = 0

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._members.close()

    async def invoke(self, operation: Operation) -> Operation:
        actions = {
            "send": self._send,
            "poll": self._poll,
            "final-poll": self._final_poll,
            "caught-up": self._caught_up,
        }
        try:
            node, value = await actions[operation.f](operation)
        except OperationError as error:
            if operation.f not in FINAL_READS:
                raise
            # The place that is read is the member's own or nobody's, not that of the leader which refused.
            raise OperationError(error.error, error.detail, node=operation.node) from error
        return operation._replace(type="ok", value=value, node=node)

    async def _send(self, operation: Operation) -> tuple[str | None, Mapping[str, Any]]:
        value = dict(operation.value or {})
        node, answer = await self._at_leader(AppendRequest((b"%d" % value["message"],)), AppendAnswer)
        return node, {**value, "offset": answer.index}

    async def _at_leader(self, request: ClientRequest, kind: type[A]) -> tuple[str, A]:
        """Who answered, and what."""
        node = self._leader
        try:
            answer = await self._members.ask(node, request, kind)
        except OperationError as error:
            found = await self._members.leader(self._nodes)
            self._leader = found or self._nodes[(self._nodes.index(node) + 1) % len(self._nodes)]
            if error.error not in (NOT_LEADER, CONNECT_FAILED) or found in (None, node):
                raise
            node = self._leader
            answer = await self._members.ask(node, request, kind)
        return node, answer

    async def _poll(self, operation: Operation) -> tuple[str | None, Mapping[str, Any]]:
        home = self._home
        try:
            found = await self._read(home, self._next)
        except OperationError as error:
            if home is not None and error.error in UNREACHED:
                self._home = self._homes[(self._homes.index(home) + 1) % len(self._homes)]
            raise
        self._next = found["offset"]
        return home, found

    async def _final_poll(self, operation: Operation) -> tuple[str | None, Mapping[str, Any]]:
        assert operation.value is not None
        return operation.node, await self._read(operation.node, operation.value["offset"])

    async def _read(self, node: str | None, begin: int) -> dict[str, Any]:
        """At this member, or at the leader. Entries that no client has appended are passed over."""
        if node is None:
            entries = await self._entries_of_leader(begin)
        else:
            entries = (await self._members.ask(node, PullRequest("", begin), EntriesAnswer)).entries
        messages = [{"offset": entry.index, "message": int(entry.body)} for entry in entries if entry.body]
        return {"message": None, "offset": entries[-1].index + 1 if entries else begin, "messages": messages}

    async def _entries_of_leader(self, begin: int) -> tuple[Entry, ...]:
        found: tuple[Entry, ...] = ()
        for _ in range(MOST_GETS):
            try:
                _, answer = await self._at_leader(GetRequest(begin=begin), EntriesAnswer)
            except OperationError as error:
                if error.error is not OUT_OF_RANGE:
                    raise
                break
            if not answer.entries:
                break
            found += answer.entries
            begin = found[-1].index + 1
        return found

    async def _caught_up(self, operation: Operation) -> tuple[str | None, Mapping[str, Any]]:
        """Ok only if neither this member nor the leader shows anything from the position on."""
        assert operation.value is not None
        begin = operation.value["offset"]
        leader = await self._members.leader(self._nodes)
        if leader is None:
            raise OperationError(NOT_LEADER, "nobody says that it leads", node=operation.node)
        self._leader = leader
        shown = (await self._read(None, begin))["messages"]
        if operation.node is not None:
            shown += (await self._read(operation.node, begin))["messages"]
        if shown:
            raise OperationError(PRECONDITION_FAILED, f"there is more behind {begin}", node=operation.node)
        return operation.node, operation.value
