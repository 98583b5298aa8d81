"""Redis 7 under Sentinel on trial. What it may lose, in its vendor's words, is in `losses.py` beside this."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from harness.bounds import Bounds
from harness.client import Client
from harness.record.fault_log import FaultWindow
from harness.system import Declaration, LegalLoss, NodeSpec
from system_under_test.runtime.host import ConnectFailed, Host
from workloads.systems.redis.client import RedisClient, asked, primary
from workloads.systems.redis.losses import legal_loss
from workloads.systems.redis.nodes import SENTINEL_PORT, SENTINELS, SERVER_PORT, SERVERS, sentinel, server

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports


@dataclass(frozen=True, kw_only=True)
class RedisSettings:
    min_replicas_to_write: Annotated[int, Bounds(0, 2)] = 0
    """A primary refuses writes while fewer replicas have answered it lately."""
    min_replicas_max_lag_s: Annotated[int, Bounds(1, 60)] = 10
    """How lately."""
    strict: bool = False
    """Judge as if a failover might lose nothing."""


class Redis:
    """`System`."""

    name, settings_type, workloads = "redis", RedisSettings, ("register", "set", "list-append")
    mutants: Mapping[str, str] = {}

    def nodes(self, settings: RedisSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        servers = [
            server(
                name,
                min_replicas_to_write=settings.min_replicas_to_write,
                min_replicas_max_lag_s=settings.min_replicas_max_lag_s,
            )
            for name in SERVERS
        ]
        return (*servers, *map(sentinel, SENTINELS))

    def cluster(self, settings: RedisSettings) -> Declaration:
        groups = ("servers", "sentinels")
        return Declaration(groups=groups, data=groups[:1], voters=groups[1:], roles={"primary": "servers"})

    def client(self, workload: str, settings: RedisSettings, host: Host, process: int) -> Client:
        return RedisClient(host, process)

    async def ready(self, settings: RedisSettings, host: Host, workload: str) -> None:
        """All sentinels name one primary and know both replicas, which follow it."""
        while True:
            with contextlib.suppress(ConnectFailed):
                named = {await primary(host, first) for first in range(len(SENTINELS))}
                role = await asked(host, f"{named.pop()}:{SERVER_PORT}", "ROLE")
                command = ("SENTINEL", "replicas", "redis")
                known = [await asked(host, f"{one}:{SENTINEL_PORT}", *command) for one in SENTINELS]
                if not named and role[0] == "master" and all(len(replicas) == 2 for replicas in (role[2], *known)):
                    return
            await host.clock.sleep(0.2)

    async def roles(self, settings: RedisSettings, host: Host) -> Mapping[str, tuple[str, ...]]:
        with contextlib.suppress(ConnectFailed):
            return {"primary": (await primary(host, 0),)}
        return {}

    def legal_loss(self, settings: RedisSettings, struck: tuple[FaultWindow, ...], reports: NodeReports) -> LegalLoss:
        return LegalLoss() if settings.strict else legal_loss(struck)


SYSTEM = Redis()
