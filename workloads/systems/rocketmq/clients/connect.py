"""How clients reach the brokers and the controllers, and what their errors say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from harness.errors import OUTCOME_UNKNOWN, SERVICE_NOT_AVAILABLE, OperationError, UsageError
from harness.operation import Operation
from system_under_test.remoting.client_error import ClientError
from system_under_test.replicated.key_value_client import KeyValueClient
from system_under_test.rocketmq.client.message_client import MessageClient
from workloads.systems.rocketmq.clients.borders import BorderingMessages
from workloads.systems.rocketmq.errors import CODES
from workloads.systems.rocketmq.settings import (
    CONTROLLER_PORT,
    NAMESERVER_PORT,
    RocketmqSettings,
    addresses,
    controller_names,
    name_server_names,
    node_of,
)

REQUEST_TIMEOUT_S, SCALED_TIMEOUT_S = 3.0, 5.0
"""Usually, and at a time scale of 1 below the usual one."""


def request_timeout_s(settings: RocketmqSettings) -> float:
    """Below the usual time scale shorter than an election: clients that all wait for an answer of a node that is cut
    off see nothing of what it would tell others."""
    is_quick = settings.time_scale < RocketmqSettings.time_scale
    return SCALED_TIMEOUT_S * settings.time_scale if is_quick else REQUEST_TIMEOUT_S


def message_client(host: Any, settings: RocketmqSettings, timeout_s: float | None = None) -> MessageClient:
    limit_s = request_timeout_s(settings) if timeout_s is None else timeout_s
    nameservers = addresses(name_server_names(settings), NAMESERVER_PORT)
    if settings.values == "ordinary":
        return MessageClient(host, nameservers, limit_s)
    client = BorderingMessages(host, nameservers, limit_s)
    client.settings = settings
    return client


def waiting_in_the_end(client: MessageClient, operation: Operation) -> None:
    """Nothing is quick that the final reads ask: over slow links an answer may take longer than clients wait in a storm
    of short periods, and what is not read counts as not there."""
    if operation.f.startswith("final-") or operation.f == "caught-up":
        client.wait_at_least(REQUEST_TIMEOUT_S)


def key_value_client(host: Any, settings: RocketmqSettings, process: int) -> KeyValueClient:
    """Each process asks one controller first, leader or not; so clients see all of them."""
    names = controller_names(settings)
    prefer = f"{names[process % len(names)]}:{CONTROLLER_PORT}"
    return KeyValueClient(host, addresses(names, CONTROLLER_PORT), request_timeout_s(settings), prefer=prefer)


def operation_error(error: ClientError) -> OperationError:
    code = CODES.get(error.code)
    if code is None or code.definite != error.definite:
        code = SERVICE_NOT_AVAILABLE if error.definite else OUTCOME_UNKNOWN
    return OperationError(code, error.detail, node=node_of(error.node) if error.node else None)


async def carry_out(
    requests: Mapping[str, Callable[[Operation], Awaitable[Operation]]], operation: Operation
) -> Operation:
    """By the request for its `f`. Raises OperationError for what the system answers, UsageError for another `f`."""
    request = requests.get(operation.f)
    if request is None:
        raise UsageError(f"this client knows {', '.join(requests)}, not {operation.f!r}")
    try:
        return await request(operation)
    except ClientError as error:
        raise operation_error(error) from error
