"""Members are removed and added as an administrator does it: by a request to the others.

A member is known by its peers' address; each life of one that was added anew has another id
(https://etcd.io/docs/v3.4/op-guide/runtime-configuration/). A member that answers is first asked to read what is
committed, so that its list of members is not older than that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from harness.errors import ErrorCode, OperationError
from workloads.systems.etcd.gateway import Gateway, packed
from workloads.systems.etcd.nodes import peer_url

Gateways = Sequence[Gateway]
"""Those of all members but the one that is removed or added; closed by the function that gets them."""
REFUSED = ErrorCode("refused", definite=True)
UNHEALTHY = "etcdserver: unhealthy cluster"
TOO_FEW = "etcdserver: re-configuration failed due to not enough started members"
"""The vendor's own client tells these two by their words as well: their code alone may be that of a time-out."""
NO_MEMBER, ADDED_BEFORE = "etcdserver: member not found", "etcdserver: Peer URLs already exists"
LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class _Members:
    """As the one who answered knows them."""

    gateway: Gateway
    """The gateway of the member that answered."""
    ids: Mapping[str, str]
    """Peer address -> id of the member."""


async def let_go(others: Gateways, node: str) -> str:
    """Raises OperationError."""
    async with _closing(others):
        members = await _members(others)
        member = members.ids.get(peer_url(node))
        if member is None:
            return f"{node} was no member any more, by {members.gateway.node}"
        await _change(members.gateway, "cluster/member/remove", {"ID": member}, already=NO_MEMBER)
        return f"{node} was removed as member {int(member):x}, by {members.gateway.node}"


async def add(others: Gateways, node: str) -> str:
    """Of what was done, in words. Raises OperationError."""
    async with _closing(others):
        members = await _members(others)
        if peer_url(node) in members.ids:
            return f"{node} had been added"
        wanted = {"peerURLs": [peer_url(node)]}
        await _change(members.gateway, "cluster/member/add", wanted, already=ADDED_BEFORE)
        return f"{node} was added, by {members.gateway.node}"


async def until_it_follows(
    newcomer: Gateway, others: Gateways, added: str, sleep: Callable[[float], Awaitable[None]]
) -> str:
    """Wait until it has applied all that the others had, and has a leader. Raises OperationError."""
    async with _closing((newcomer, *others)):
        committed = 0
        for other in others:
            try:
                committed = max(committed, int((await other.ask("maintenance/status", {})).get("raftIndex", 0)))
            except OperationError:
                continue
        while True:
            try:
                status = await newcomer.ask("maintenance/status", {})
                applied = int(status.get("raftAppliedIndex", 0))
                if int(status.get("leader", 0)) and applied >= committed > 0:
                    return f"{added}, and has applied {applied} entries"
            except OperationError:
                pass
            await sleep(LOOK_EVERY_S)


async def _members(others: Gateways) -> _Members:
    """By the first of them that follows a leader. Raises OperationError: nothing was changed."""
    refusal = "nobody follows a leader"
    for gateway in others:
        try:
            if not int((await gateway.ask("maintenance/status", {})).get("leader", 0)):
                continue
            await gateway.ask("kv/range", {"key": packed("\0")})
            listed = (await gateway.ask("cluster/member/list", {}))["members"]
        except OperationError as error:
            refusal = str(error)
            continue
        return _Members(gateway, {url: one["ID"] for one in listed for url in one["peerURLs"]})
    raise OperationError(REFUSED, refusal)


async def _change(gateway: Gateway, path: str, request: Mapping[str, Any], *, already: str) -> None:
    """Raises OperationError; `already`: what is answered where it was done before."""
    try:
        await gateway.ask(path, request)
    except OperationError as error:
        if error.detail == already:
            return
        if error.detail in (UNHEALTHY, TOO_FEW):
            raise OperationError(REFUSED, error.detail, node=gateway.node) from error
        raise


def _closing(gateways: Gateways) -> AsyncExitStack:
    stack = AsyncExitStack()
    for gateway in gateways:
        stack.push_async_callback(gateway.close)
    return stack
