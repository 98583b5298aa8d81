"""Redis 7 on trial, alone and under Sentinel. What it may lose, in its vendor's words: `losses.py` beside this."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Annotated

from harness.bounds import Bounds
from harness.client import Client
from harness.errors import UsageError
from harness.record.fault_log import FaultWindow
from harness.system import Declaration, LegalLoss, NodeSpec
from system_under_test.runtime.host import ConnectFailed, Host
from workloads.systems.redis.client import Primary, RedisClient, asked, primary
from workloads.systems.redis.losses import POWER, Fsync, of_disk, of_failover
from workloads.systems.redis.nodes import REPAIR, SENTINEL_PORT, SENTINELS, SERVER_PORT, SERVERS, sentinel, server

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports


class Deployment(Enum):
    SENTINEL = "sentinel"
    ALONE = "alone"


@dataclass(frozen=True, kw_only=True)
class RedisSettings:
    deployment: Deployment = Deployment.SENTINEL
    """A primary, two replicas and three sentinels, or one server."""
    appendfsync: Fsync = Fsync.ALWAYS
    """`appendfsync`: when a server makes its log of writes durable."""
    repair: bool = True
    """Cut the log off where it is broken, by `redis-check-aof --fix` before each start, as an administrator is told to
    do. A server whose log is broken in the middle does not start otherwise."""
    min_replicas_to_write: Annotated[int, Bounds(0, 2)] = 0
    """A primary refuses writes while fewer replicas have answered it lately."""
    min_replicas_max_lag_s: Annotated[int, Bounds(1, 60)] = 10
    """How lately."""
    strict: bool = False
    """Judge as if a failover might lose nothing, and no disk what was not made durable."""

    def __post_init__(self) -> None:
        if self.deployment is Deployment.ALONE and self.min_replicas_to_write:
            raise UsageError(
                f"min_replicas_to_write takes 0 with deployment=alone, which has no replicas, got "
                f"{self.min_replicas_to_write}"
            )

    @property
    def servers(self) -> tuple[str, ...]:
        return SERVERS if self.deployment is Deployment.SENTINEL else SERVERS[:1]

    @property
    def sentinels(self) -> tuple[str, ...]:
        return SENTINELS if self.deployment is Deployment.SENTINEL else ()


class Redis:
    """`System`."""

    name, settings_type, workloads = "redis", RedisSettings, ("register", "set", "list-append")
    mutants: Mapping[str, str] = {}

    def nodes(self, settings: RedisSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        options = {
            "appendfsync": settings.appendfsync.value,
            "min-replicas-to-write": settings.min_replicas_to_write,
            "min-replicas-max-lag": settings.min_replicas_max_lag_s,
        }
        servers = [server(name, options, before=REPAIR if settings.repair else "") for name in settings.servers]
        return (*servers, *map(sentinel, settings.sentinels))

    def cluster(self, settings: RedisSettings) -> Declaration:
        voters = ("sentinels",) if settings.sentinels else ()
        return Declaration(
            groups=("servers", *voters),
            data=("servers",),
            voters=voters,
            roles={"primary": "servers"},
            may_panic=() if settings.repair else tuple(POWER),
        )

    def client(self, workload: str, settings: RedisSettings, host: Host, process: int) -> Client:
        return RedisClient(host, _primary(settings, host, process))

    async def ready(self, settings: RedisSettings, host: Host, workload: str) -> None:
        """All sentinels name one primary and know both replicas, which follow it; or the one server answers."""
        is_ready = _is_followed if settings.sentinels else _has_loaded
        while True:
            with contextlib.suppress(ConnectFailed):
                if await is_ready(host):
                    return
            await host.clock.sleep(0.2)

    async def roles(self, settings: RedisSettings, host: Host) -> Mapping[str, tuple[str, ...]]:
        with contextlib.suppress(ConnectFailed):
            return {"primary": (await _primary(settings, host, 0)(),)}
        return {}

    def legal_loss(self, settings: RedisSettings, struck: tuple[FaultWindow, ...], reports: NodeReports) -> LegalLoss:
        if settings.strict:
            return LegalLoss()
        return of_failover(struck) if settings.sentinels else of_disk(struck, settings.appendfsync)


def _primary(settings: RedisSettings, host: Host, first: int) -> Primary:
    """`first`: the number of the sentinel that is asked first."""
    return partial(primary, host, first) if settings.sentinels else _the_only_one


async def _the_only_one() -> str:
    return SERVERS[0]


async def _is_followed(host: Host) -> bool:
    """Raises ConnectFailed."""
    named = {await primary(host, first) for first in range(len(SENTINELS))}
    role = await asked(host, f"{named.pop()}:{SERVER_PORT}", "ROLE")
    command = ("SENTINEL", "replicas", "redis")
    known = [await asked(host, f"{one}:{SENTINEL_PORT}", *command) for one in SENTINELS]
    return not named and role[0] == "master" and all(len(replicas) == 2 for replicas in (role[2], *known))


async def _has_loaded(host: Host) -> bool:
    """Raises ConnectFailed, also while it loads its log, when it refuses each command on keys."""
    await asked(host, f"{SERVERS[0]}:{SERVER_PORT}", "EXISTS", "ready")
    return True


SYSTEM = Redis()
