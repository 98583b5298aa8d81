"""Servers are taken out of the ensemble and let in again by dynamic reconfiguration, which the others agree on
(https://zookeeper.apache.org/doc/r3.8.0/zookeeperReconfig.html).

To take out one that is out already, or let in one that is in, is a change like any other, which the others agree on as
well: so it is done for certain once it is answered, whatever came of those before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from harness.errors import ErrorCode, OperationError
from workloads.systems.zookeeper.nodes import SERVERS, entry, number_of
from workloads.systems.zookeeper.session import opened

REFUSED = ErrorCode("refused", definite=True)
LOOK_EVERY_S = 0.3


async def let_go(host: Any, node: str) -> str:
    """Raises OperationError."""
    by = await _reconfigured(host, node, joining=None, leaving=str(number_of(node)))
    return f"{node} was taken out, by {by}"


async def let_in(host: Any, node: str, mode: Callable[[], Awaitable[str]]) -> str:
    """Once it follows the others without a vote. Raises OperationError."""
    while await mode() not in ("observer", "follower", "leader"):
        await host.clock.sleep(LOOK_EVERY_S)
    by = await _reconfigured(host, node, joining=entry(node), leaving=None)
    while await mode() not in ("follower", "leader"):
        await host.clock.sleep(LOOK_EVERY_S)
    return f"{node} was let in, and has a vote, by {by}"


async def _reconfigured(host: Any, node: str, *, joining: str | None, leaving: str | None) -> str:
    """By whom of the others. Raises OperationError, definite where nobody was asked, or all who were refused."""
    from kazoo.exceptions import BadArgumentsError, NewConfigNoQuorumError, ReconfigInProcessError

    refusal = "none of the others can be reached"
    for other in (name for name in SERVERS if name != node):
        try:
            session = await opened(host, other)
        except OperationError as error:
            refusal = str(error)
            continue
        try:
            await session.ask(lambda client: client.reconfig_async(joining, leaving, None, -1))
            return other
        except (NewConfigNoQuorumError, ReconfigInProcessError, BadArgumentsError) as error:
            raise OperationError(REFUSED, f"{type(error).__name__}: {error}", node=other) from error
        finally:
            await session.close()
    raise OperationError(REFUSED, refusal)
