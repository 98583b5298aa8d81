"""Nodes are removed and added as an administrator does it: by requests to the leader of each group in its turn.

Whether a node belongs to a group is taken only from a leader that has shown meanwhile, by a read that the others had to
confirm, that it leads; one that is cut off may have missed that the node was added again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

from harness.errors import OUTCOME_UNKNOWN, OperationError
from harness.membership import Start
from harness.program import PythonProgram
from harness.system import NodeSpec
from system_under_test.cmq import wire
from system_under_test.cmq.routing import group_of
from workloads.systems.cmq.access import GroupsClient, Status, leaders_of
from workloads.systems.cmq.errors import UNFIT_CHANGE, UNKNOWN_QUEUE
from workloads.systems.cmq.nodes import address
from workloads.systems.cmq.settings import CmqSettings, queue_name

REMOVED_WITHIN_S = 4.0
UNFIT_WITHIN_S = 1.0
"""So long a removal is asked for again that does not fit: another node may just be leaving."""
ADDED_WITHIN_S = 6.0
"""A leader answers that a node was added once that one votes."""
IMPATIENT_SHARE, IMPATIENT_S = 0.5, (0.02, 0.5)
"""So often an administrator asks again before the answer has come, after a time between these two."""
LOOK_EVERY_S = 0.1


async def let_go(settings: CmqSettings, host: Any, node: str) -> str:
    """Raises OperationError, which is definite only where nothing was changed in any group."""
    access = GroupsClient(host, settings.names, settings.groups)
    is_changed = False
    try:
        for group in range(1, settings.groups + 1):
            try:
                await _let_go_of(group, access, settings, host, node)
            except OperationError as error:
                if is_changed:
                    raise OperationError(OUTCOME_UNKNOWN, f"group {group}: {error}", node=error.node) from error
                raise
            is_changed = True
    finally:
        access.close()
    return f"{node} belongs to none of {settings.groups} groups any more"


async def _let_go_of(group: int, access: GroupsClient, settings: CmqSettings, host: Any, node: str) -> None:
    """Raises OperationError, which is definite only where nothing was changed."""
    until_ns = host.clock.monotonic_ns() + int(UNFIT_WITHIN_S * 1e9)
    while True:
        try:
            await access.ask_group(group, wire.remove(group, node), REMOVED_WITHIN_S)
        except OperationError as error:
            if error.error is not UNFIT_CHANGE:
                raise
            if node in await _members(access, settings, group):
                if host.clock.monotonic_ns() >= until_ns:
                    raise
                await host.clock.sleep(LOOK_EVERY_S)
                continue
        return


async def let_in(settings: CmqSettings, host: Any, node: NodeSpec, start: Start) -> str:
    """It has to be there before it is added, and votes once it has caught up. Raises OperationError."""
    assert isinstance(node.program, PythonProgram)
    await start(replace(node.program, config={**node.program.config, "joins": True}))
    access = GroupsClient(host, settings.names, settings.groups)
    name = node.name
    try:
        while not await _answers(access, name):
            await host.clock.sleep(LOOK_EVERY_S)
        for group in range(1, settings.groups + 1):
            adding = wire.add(group, name, address(name))
            if host.random.random() < IMPATIENT_SHARE:
                with suppress(OperationError):
                    await access.ask_group(group, adding, host.random.uniform(*IMPATIENT_S))
            await access.ask_group(group, adding, ADDED_WITHIN_S)
    finally:
        access.close()
    return f"{name} was added, and votes in each of {settings.groups} groups"


async def _answers(access: GroupsClient, node: str) -> bool:
    return bool(await access.statuses([node]))


async def _members(access: GroupsClient, settings: CmqSettings, group: int) -> set[str]:
    """As its leader has them, which led all the while. Raises OperationError."""
    statuses = await access.statuses(settings.names)
    leader = leaders_of(statuses).get(group)
    if leader is None:
        raise OperationError(OUTCOME_UNKNOWN, f"nobody says that it leads group {group}")
    before = _of_group(statuses[leader], group)
    try:
        await access.ask_node(leader, wire.pull(_no_queue_of(group, settings), 1, 0), REMOVED_WITHIN_S)
    except OperationError as error:
        if error.error is not UNKNOWN_QUEUE:
            raise OperationError(OUTCOME_UNKNOWN, str(error), node=leader) from error
    after = _of_group(await access.status(leader), group)
    if not after["leads"] or before["term"] != after["term"] or before["membershipIndex"] is None:
        raise OperationError(OUTCOME_UNKNOWN, f"the leader of group {group} has changed, or its members", node=leader)
    return {*before["members"], *before["learners"]}


def _of_group(statuses: Sequence[Status], group: int) -> Status:
    return next(one for one in statuses if one["group"] == group)


def _no_queue_of(group: int, settings: CmqSettings) -> str:
    """A name that belongs to the group, and that nobody creates: its leader reads what is agreed on before it says
    so."""
    names = (queue_name(number, "nobody") for number in count())
    return next(name for name in names if group_of(name, settings.groups) == group)
