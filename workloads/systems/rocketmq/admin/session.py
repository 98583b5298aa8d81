"""One command from its words to its exit code: clients on sockets, a bounded wait, every failure in one line.

Exit codes: 0 done; 1 not done: refused, or nobody was reached; 2 unknown whether it was done (only commands that change
something); 254 wrong usage; 255 interrupted, or the command itself failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import TypeVar, cast

from harness.lifetime import scratch
from harness.printable import printable
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import ResponseCode
from system_under_test.rocketmq.client.admin_client import AdminClient, BrokerGroup
from system_under_test.rocketmq.client.controller_client import ControllerClient
from system_under_test.runtime.host import Host
from system_under_test.runtime.real import RealHost
from workloads.systems.rocketmq.admin.report import Report, Row

T = TypeVar("T")

PROGRAM = "rocketmq-admin"
STANDARD_OUTPUT = 1


class ExitCode(IntEnum):
    DONE = 0
    NOT_DONE = 1
    UNKNOWN = 2
    WRONG_USAGE = 254
    FAILED = 255


class NotFound(ClientError):
    """What was asked about is not there."""

    def __init__(self, detail: str) -> None:
        super().__init__("not-found", True, detail)


@dataclass
class Session:
    """What one round of a command asks with, and the failures that did not end it."""

    host: Host
    timeout_s: float
    errors: list[ClientError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.admin = AdminClient(self.host, self.timeout_s)
        self._controllers: list[ControllerClient] = []

    def close(self) -> None:
        self.admin.close()
        for client in self._controllers:
            client.close()

    def controllers(self, addresses: Sequence[str]) -> ControllerClient:
        client = ControllerClient(self.host, addresses, self.timeout_s)
        self._controllers.append(client)
        return client

    async def of_each(self, nodes: Sequence[str], ask: Callable[[str], Awaitable[Sequence[Row]]]) -> list[Row]:
        """The rows of those that answer; what went wrong with the others is noted."""
        rows: list[Row] = []
        for node in nodes:
            try:
                rows += await ask(node)
            except ClientError as error:
                self.errors.append(error)
        return rows

    async def of_any(self, name_servers: Sequence[str], ask: Callable[[str], Awaitable[T]]) -> T:
        """What the first NameServer says that has an answer. Raises the last one's ClientError where none has."""
        failure: ClientError | None = None
        for name_server in name_servers:
            try:
                return await ask(name_server)
            except ClientError as error:
                failure = error
        assert failure is not None, "at least one NameServer was given"
        raise failure

    async def groups(
        self, name_servers: Sequence[str], *, cluster: str | None = None, broker_name: str | None = None
    ) -> list[BrokerGroup]:
        """Raises NotFound where none fits."""
        known = await self.of_any(name_servers, self.admin.broker_groups)
        found = [group for group in known if cluster in (None, group.cluster) and broker_name in (None, group.name)]
        if not found and (cluster is not None or broker_name is not None):
            there = ", ".join(f"{group.name} of {group.cluster}" for group in known) or "none"
            wanted = f"cluster {cluster!r}" if broker_name is None else f"broker group {broker_name!r}"
            raise NotFound(f"no NameServer knows a {wanted}; known broker groups: {there}")
        return found

    async def masters(self, name_servers: Sequence[str], cluster: str) -> list[str]:
        """Their addresses; groups without one are noted as failures. Raises NotFound."""
        masters = []
        for group in await self.groups(name_servers, cluster=cluster):
            if 0 in group.brokers:
                masters.append(group.brokers[0])
            else:
                self.errors.append(NotFound(f"broker group {group.name!r} has no master now"))
        return masters


Ask = Callable[[Session], Awaitable[Sequence[Row]]]


@dataclass(frozen=True, kw_only=True)
class Command:
    name: str
    columns: tuple[str, ...]
    changes: bool
    """Something in the system: then a lost answer leaves open whether it did."""
    as_json: bool
    timeout_s: float
    interval_s: float | None
    """Ask again and again until interrupted."""


def carry_out(command: Command, ask: Ask) -> ExitCode:
    try:
        with scratch.directory() as nowhere:
            return asyncio.run(_rounds(command, ask, nowhere))
    except KeyboardInterrupt:
        if command.interval_s is not None:
            return ExitCode.DONE
        remark("interrupted" + ("; what was asked for may have been done, or may yet be" if command.changes else ""))
        return ExitCode.FAILED
    except OSError as error:
        return cannot_go_on(error)


async def _rounds(command: Command, ask: Ask, directory: Path) -> ExitCode:
    host = RealHost(PROGRAM, directory)
    try:
        while True:
            code = await _round(command, ask, cast(Host, host))
            if command.interval_s is None:
                return code
            await host.clock.sleep(command.interval_s)
    finally:
        await host.close()


async def _round(command: Command, ask: Ask, host: Host) -> ExitCode:
    session = Session(host, command.timeout_s)
    rows: Sequence[Row] = ()
    try:
        rows = await ask(session)
    except ClientError as error:
        session.errors.append(error)
    finally:
        session.close()
    _show(command, Report(command=command.name, columns=command.columns, rows=rows, errors=session.errors))
    if not session.errors:
        return ExitCode.DONE
    in_doubt = command.changes and any(not error.definite for error in session.errors)
    return ExitCode.UNKNOWN if in_doubt else ExitCode.NOT_DONE


def _show(command: Command, report: Report) -> None:
    if command.as_json:
        print(report.as_json(), flush=True)
    elif report.rows or not report.errors:
        print("\n".join([*report.as_table(), *([""] if command.interval_s is not None else [])]), flush=True)
    for error in report.errors:
        remark(in_words(error, changes=command.changes))


def in_words(error: ClientError, *, changes: bool) -> str:
    """Who did not do what was asked, why, and what is certain."""
    who = "" if error.node is None else f"{error.node}: "
    response_code = getattr(error, "response_code", None)
    if response_code is not None:
        known = {code.value: code.name for code in ResponseCode}
        how = "refused" if error.definite else "answered"
        why = f"{how}, {known.get(response_code, 'an unknown code')} ({error.detail})"
    else:
        detail = error.detail.removeprefix(f"{error.node}: ")
        why = f"{error.code}: {detail}" if detail else error.code
    if not changes:
        return f"{who}{why}"
    return f"{who}{why}; {'nothing was changed there' if error.definite else 'it may have been done, or may yet be'}"


def cannot_go_on(error: OSError) -> ExitCode:
    """Standard output cannot be written, as a rule."""
    with contextlib.suppress(OSError):
        remark(f"cannot go on: {error}")
    # What is left in the buffer would fail again when Python ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), STANDARD_OUTPUT)
    return ExitCode.FAILED


def remark(line: str) -> None:
    """One line on standard error."""
    print(f"{PROGRAM}: {printable(line)}", file=sys.stderr, flush=True)
