"""Tells every NameServer, each by a task of its own, who this broker is: when its role changes, and periodically.

NameServers know nothing of each other, so one that is cut off must not hold up what the others are sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import ResponseCode
from system_under_test.rocketmq.nameserver.registration import Registration, unregistration
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host


def contented(answer: Mapping[str, str]) -> bool:
    """Of who has nothing to learn from the answer to its registration."""
    return True


class NameServerRegistrations:
    """`registration` gives what holds now, or None while there is nothing to register. `answered` is given the fields
    of each NameServer's answer, and says whether that will do until the next period."""

    def __init__(
        self,
        host: Host,
        name_servers: tuple[str, ...],
        registration: Callable[[], Registration | None],
        *,
        period_s: float,
        timeout_s: float,
        retry_s: float,
        answered: Callable[[Mapping[str, str]], bool] = contented,
        compresses: bool,
    ) -> None:
        self._host = host
        self._registration = registration
        self._period_s = period_s
        self._timeout_s = timeout_s
        self._retry_s = retry_s
        self._answered = answered
        self._compresses = compresses
        self._remoting = RemotingClient(host, timeout_s)
        self._due = {name_server: asyncio.Event() for name_server in name_servers}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [
            self._host.spawn(self._keep_registered(name_server, due), f"registration with {name_server}")
            for name_server, due in self._due.items()
        ]

    async def stop(self) -> None:
        """Take leave of all NameServers, for at most a second: those that do not hear it see the connection end."""
        for task in self._tasks:
            task.cancel()
        registration = self._registration()
        if registration is not None and self._due:
            leaving = [self._host.spawn(self._leave(address, registration), "leave") for address in self._due]
            await asyncio.wait(leaving)
        self._remoting.close()

    def changed(self) -> None:
        """There is something new to tell."""
        for due in self._due.values():
            due.set()

    async def _keep_registered(self, name_server: str, due: asyncio.Event) -> None:
        wait_s = self._period_s
        while True:
            with suppress(TimeoutError):
                await self._host.clock.within(wait_s, due.wait())
            due.clear()
            registration = self._registration()
            wait_s = self._period_s
            if registration is not None and not await self._register(name_server, registration):
                wait_s = self._retry_s

    async def _register(self, name_server: str, registration: Registration) -> bool:
        try:
            request = registration.encode_compressed() if self._compresses else registration.encode()
            answer = await self._remoting.invoke(name_server, request, self._timeout_s)
        except (ConnectFailed, ConnectionClosed, TimeoutError):
            return False
        self._host.reached("name-server-answered")
        # Refused: somebody with a newer claim has this id there; the role will change soon.
        return answer.code == ResponseCode.SUCCESS and self._answered(answer.ext_fields)

    async def _leave(self, name_server: str, registration: Registration) -> None:
        try:
            await self._remoting.invoke(name_server, unregistration(registration), min(self._timeout_s, 1.0))
        except (ConnectFailed, ConnectionClosed, TimeoutError):
            self._host.reached("left-unannounced")
