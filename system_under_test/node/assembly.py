"""How the process of a node is put together: settings, parts, and the services that run in it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

from system_under_test.node.mutant import Mutant, P, find_mutant, mutant_names
from system_under_test.node.settings import WatchedConfig
from system_under_test.runtime.host import Host


class Service(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None:
        """A clean stop; also after a `start` that failed or was cancelled."""


class Listening(Protocol):
    async def start(self, port: int) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class AtPort:
    """`Service` of what listens on a port."""

    server: Listening
    port: int

    async def start(self) -> None:
        """Raises OSError if the port is taken."""
        await self.server.start(self.port)

    async def stop(self) -> None:
        self.server.close()


class Assembly:
    def __init__(self, host: Host, config: Mapping[str, Any], *mutants: ModuleType) -> None:
        """`config` may name a planted bug of one of the packages `mutants` as `mutant`. Raises ValueError."""
        self._host = host
        self.config = WatchedConfig(config)
        self._mutant = _mutant(self.config.get("mutant"), mutants)

    def parts(self, kind: type[P]) -> P:
        return kind() if self._mutant is None else self._mutant.parts_of(kind)

    async def run(self, services: Sequence[Service]) -> None:
        """Start in order, then wait; when cancelled stop in the opposite order, those that were still starting too.

        Raises ValueError, before anything is started, for a setting that nobody has read.
        """
        self.config.refuse_unknown()
        begun: list[Service] = []
        try:
            for service in services:
                begun.append(service)
                await service.start()
            self._host.log("running")
            await asyncio.Event().wait()
        finally:
            for service in reversed(begun):
                await service.stop()


def _mutant(name: object, packages: Sequence[ModuleType]) -> Mutant | None:
    if name is None:
        return None
    if not isinstance(name, str):
        raise ValueError(f"mutant: expected a name, got {name!r}")
    try:
        return find_mutant(next((one for one in packages if name in mutant_names(one)), packages[0]), name)
    except ValueError as error:
        raise ValueError(f"mutant: {error}") from error
