"""The key-value store of a Raft group, as its nodes serve it: only the leader answers.

A change is answered once it is applied; a read once a majority has confirmed, after it was asked for, that this node
is still the leader.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from system_under_test.raft.driver import NotLeader, RaftNode
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Answer
from system_under_test.replicated import key_value
from system_under_test.replicated.answers import Answers
from system_under_test.replicated.key_value import KeyValueStore, MalformedCommand, Result
from system_under_test.replicated.read_barrier import ReadBarrier, read_index
from system_under_test.runtime.host import Host

_COMMANDS = frozenset(
    {RequestCode.KEY_VALUE_PUT, RequestCode.KEY_VALUE_COMPARE_AND_SET, RequestCode.KEY_VALUE_TRANSACTION}
)

ReadTransaction = Callable[[Host, KeyValueStore, bytes], Awaitable[Result]]
"""(host, store, a transaction that only reads), once the applied state may be read."""


async def read_at_once(host: Host, store: KeyValueStore, command: bytes) -> Result:
    """All of it at one moment."""
    return store.apply(command)


@dataclass(frozen=True, kw_only=True)
class KeyValueParts:
    read_barrier: ReadBarrier = read_index
    transaction_barrier: ReadBarrier = read_index
    """Comes before a transaction that only reads."""
    read_transaction: ReadTransaction = read_at_once


class KeyValueService:
    """`propose` appends a command of the store to the group's log; what applying it gave is what it returns."""

    def __init__(
        self,
        host: Host,
        raft: RaftNode,
        store: KeyValueStore,
        answers: Answers,
        propose: Callable[[bytes], Awaitable[Result]],
        parts: KeyValueParts,
    ) -> None:
        self._host = host
        self._raft = raft
        self._store = store
        self._answers = answers
        self._propose = propose
        self._parts = parts

    def handle(self, command: RemotingCommand) -> Answer | Coroutine[Any, Any, Answer] | None:
        """None for a code that is no request of the store. Raises MalformedCommand."""
        if command.code == RequestCode.KEY_VALUE_GET:
            return self._get(command.ext_fields.get("key"))
        if command.code not in _COMMANDS:
            return None
        key_value.check(command.body)
        if command.code == RequestCode.KEY_VALUE_TRANSACTION and key_value.only_reads(command.body):
            return self._read(command.body)
        # Most clients ask a follower first; no task is needed to turn them away.
        return self._change(command.body) if self._raft.is_active else self._answers.not_leader(self._raft.leader)

    def _get(self, key: str | None) -> Answer | Coroutine[Any, Any, Answer]:
        if not key:
            raise MalformedCommand("field 'key' is missing")
        serial = self._answers.take_up()
        try:
            barrier = self._parts.read_barrier(self._raft)
        except NotLeader as error:
            return self._answers.not_leader(error.leader)
        return self._get_behind(barrier, serial, key)

    async def _get_behind(self, barrier: Awaitable[None], serial: int, key: str) -> RemotingCommand:
        refusal = await self._answers.within_time(barrier, serial)
        return refusal or _answer(self._store.get(key))

    async def _read(self, command: bytes) -> RemotingCommand:
        refusal = await self._answers.wait(self._parts.transaction_barrier, self._raft)
        return refusal or _answer((await self._parts.read_transaction(self._host, self._store, command)).value)

    async def _change(self, command: bytes) -> RemotingCommand:
        result = await self._answers.wait(self._propose, command)
        if isinstance(result, RemotingCommand):
            return result
        return _answer(
            result.value, ResponseCode.SUCCESS if result.succeeded else ResponseCode.KEY_VALUE_PRECONDITION_FAILED
        )


def _answer(value: Any, code: ResponseCode = ResponseCode.SUCCESS) -> RemotingCommand:
    return RemotingCommand.response(code, body=json.dumps(value).encode())
