"""Controllers are removed and added as an administrator does it: by requests to the active one (decision 0086).

Whether one belongs to the others is taken only from a controller that has just shown, by a read that the others had to
confirm, that it leads; one that is cut off may have missed that the controller was added again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.errors import OUTCOME_UNKNOWN, OperationError
from harness.membership import Start
from harness.program import PythonProgram
from harness.system import NodeSpec
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.controller_client import ControllerClient
from workloads.systems.rocketmq.clients.connect import operation_error
from workloads.systems.rocketmq.settings import (
    CONTROLLER_PORT,
    RAFT_PORT,
    RocketmqSettings,
    addresses,
    controller_names,
)

ANSWER_TIMEOUT_S = 3.0
ADDED_TIMEOUT_S = 6.0
"""A controller answers that another one was added once that one votes, or after five seconds."""
LOOK_EVERY_S = 0.1
JOINS_SHARE = 0.5


async def let_go(settings: RocketmqSettings, host: Any, controller: str) -> str:
    """Raises OperationError."""
    client = _client(settings, host, ANSWER_TIMEOUT_S)
    try:
        active = await client.find_active()
        await client.sync_state_data(())  # behind a read barrier, at the active one
        metadata = await client.metadata(active)
        listed = metadata.controllers
        if listed is not None and f"{controller}:{CONTROLLER_PORT}" not in listed.addresses:
            return f"{controller} was no controller any more, by {active}"
        if not any(peer.partition("-")[0] == controller for peer in metadata.peers.split(";")):
            raise OperationError(OUTCOME_UNKNOWN, f"the removal of {controller} is not committed yet")
        await client.remove_controller(controller)
        return f"{controller} was removed, by {active}"
    except ClientError as error:
        raise operation_error(error) from error
    finally:
        client.close()


async def let_in(settings: RocketmqSettings, host: Any, controller: NodeSpec, start: Start) -> str:
    """It has to be there before it is added, and votes once it has caught up. Sometimes it is not told that it
    joins others: it is configured as one of those that begin together. Raises OperationError."""
    assert isinstance(controller.program, PythonProgram)
    joins = host.random.random() < JOINS_SHARE
    await start(replace(controller.program, config={**controller.program.config, "controllerJoinsGroup": joins}))
    client = _client(settings, host, ADDED_TIMEOUT_S)
    name = controller.name
    try:
        while not await _answers(client, f"{name}:{CONTROLLER_PORT}"):
            await host.clock.sleep(LOOK_EVERY_S)
        await client.add_controller(name, f"{name}:{RAFT_PORT}")
        return f"{name} was added, and votes, by {client.active}"
    except ClientError as error:
        raise operation_error(error) from error
    finally:
        client.close()


def _client(settings: RocketmqSettings, host: Any, timeout_s: float) -> ControllerClient:
    return ControllerClient(host, addresses(controller_names(settings), CONTROLLER_PORT), timeout_s)


async def _answers(client: ControllerClient, controller: str) -> bool:
    try:
        await client.metadata(controller)
    except ClientError:
        return False
    return True
