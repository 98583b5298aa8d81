"""What Patroni says of its cluster, by its REST API (https://patroni.readthedocs.io/en/latest/rest_api.html).

`GET /primary` is what load balancers ask: 200 of a server that is the primary and has the lock of the leader, as far as
it knows; `GET /replica` where they look for one that answers reads. `GET /cluster` is what etcd has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from workloads.systems.postgresql.patroni_nodes import REST_PORT

ANSWER_TIMEOUT_S = 1.0
PRIMARY, REPLICA = "primary", "replica"
LEADER = "leader"
RUNNING = frozenset({"running", "streaming"})
SYNCHRONOUS = "sync_standby"


async def primaries(host: Any, servers: Sequence[str]) -> tuple[str, ...]:
    """The servers that take themselves for the primary; more than one only while the former one does not know yet."""
    async with _asking() as session:
        said = await asyncio.gather(*(_status(session, host, name, "primary") for name in servers))
    return tuple(name for name, status in zip(servers, said, strict=True) if status == 200)


async def replicas(host: Any, servers: Sequence[str]) -> tuple[str, ...]:
    """The servers that follow a primary and answer reads."""
    async with _asking() as session:
        said = await asyncio.gather(*(_status(session, host, name, "replica") for name in servers))
    return tuple(name for name, status in zip(servers, said, strict=True) if status == 200)


async def roles(host: Any, servers: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Role -> servers, as the first one tells that reaches etcd; nothing where none does."""
    return roles_of(await members(host, servers))


async def members(host: Any, servers: Sequence[str]) -> Sequence[Mapping[str, Any]]:
    """What etcd has of each server; none where no server reaches it."""
    import aiohttp

    async with _asking() as session:
        for name in servers:
            try:
                async with session.get(_url(host, name, "cluster")) as answer:
                    known: Sequence[Mapping[str, Any]] = (await answer.json(content_type=None))["members"]
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError, TypeError):
                continue
            return known
    return ()


def roles_of(members: Sequence[Mapping[str, Any]]) -> Mapping[str, tuple[str, ...]]:
    leading = tuple(str(one["name"]) for one in members if one.get("role") == LEADER)
    following = tuple(str(one["name"]) for one in members if one.get("role") != LEADER)
    return {role: names for role, names in ((PRIMARY, leading), (REPLICA, following)) if names}


def is_whole(members: Sequence[Mapping[str, Any]], *, servers: int, synchronous: bool) -> bool:
    """All servers run on one timeline, one of them leads, and one is the synchronous standby where one must be."""
    played = [one.get("role") for one in members]
    return (
        len(members) == servers
        and played.count(LEADER) == 1
        and all(one.get("state") in RUNNING for one in members)
        and len({one.get("timeline") for one in members}) == 1
        and (not synchronous or SYNCHRONOUS in played)
    )


def _asking() -> Any:
    import aiohttp

    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_TIMEOUT_S))


def _url(host: Any, name: str, path: str) -> str:
    return f"http://{host.network.reached_at(f'{name}:{REST_PORT}')}/{path}"


async def _status(session: Any, host: Any, name: str, path: str) -> int | None:
    """None: no answer."""
    import aiohttp

    try:
        async with session.get(_url(host, name, path)) as answer:
            return int(answer.status)
    except (aiohttp.ClientError, OSError, TimeoutError):
        return None
