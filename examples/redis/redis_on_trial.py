"""Debian's redis-server on trial: a primary, two replicas and three sentinels, each in a container of its own.

    pip install -e examples/redis
    stormproof run redis --environment docker --workload register --nemesis 'isolate primary every 30 for 15'

is INVALID: the primary that is cut off goes on acknowledging writes, and they are lost when it comes back as a replica
of the one that was elected meanwhile. README.md has the figures, also with `min_replicas_to_write`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import stormproof
from stormproof import Client, ConnectFailed, Connection, ConnectionClosed, Host, NodeSpec, Operation, OperationError

SERVERS, SENTINELS = ("r1", "r2", "r3"), ("s1", "s2", "s3")
PORTS, ANSWER_TIMEOUT_S = {"servers": 6379, "sentinels": 26379}, 2.0
IMAGE = stormproof.DebianPackages(("redis-server", "redis-sentinel"))
# Redis and Sentinel rewrite their own configuration; what they wrote stays when they are killed.
COPY = "test -e ${home}/redis.conf || cp /etc/start.conf ${home}/redis.conf; exec $0 ${home}/redis.conf"
START = ("sh", "-c", COPY)
SERVER = """protected-mode no
dir ${home}
appendonly yes
appendfsync always
repl-diskless-sync-delay 0
replica-announce-ip ${name}
"""
FOLLOW = "replicaof r1 6379\n"
SENTINEL = """protected-mode no
dir ${home}
sentinel resolve-hostnames yes
sentinel announce-hostnames yes
sentinel announce-ip ${name}
sentinel monitor redis r1 6379 2
sentinel down-after-milliseconds redis 2000
sentinel failover-timeout redis 10000
"""
CAS = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end redis.call('set', KEYS[1], ARGV[2]) return 1"
# Answered before the command is carried out, so it certainly did not happen.
REFUSALS = {word: stormproof.ErrorCode(word.lower(), definite=True) for word in ("READONLY", "NOREPLICAS", "LOADING")}


class Refused(Exception):
    """An error that Redis answered: its first word is its code."""


UNKNOWN = {Refused: stormproof.OUTCOME_UNKNOWN, TimeoutError: stormproof.CLIENT_TIMEOUT}


async def ask(connection: Connection, *words: str | int) -> Any:
    """The answer to a command in RESP: https://redis.io/docs/latest/develop/reference/protocol-spec/"""
    encoded = [str(word).encode() for word in words]
    connection.write(b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded))
    return await answer(connection)


async def answer(connection: Connection) -> Any:
    line = bytearray()
    while not line.endswith(b"\r\n"):
        line += await connection.read_exactly(1)
    kind, rest = chr(line[0]), line[1:-2].decode()
    if kind == "-":
        raise Refused(rest)
    if kind == "*":
        return [await answer(connection) for _ in range(int(rest))]
    if kind == "$":
        return None if rest == "-1" else (await connection.read_exactly(int(rest) + 2))[:-2].decode()
    return int(rest) if kind == ":" else rest


async def asked(host: Host, address: str, *words: str) -> Any:
    """The answer to one command, over a connection of its own. Raises ConnectFailed."""
    connection = await host.network.connect(address, ANSWER_TIMEOUT_S)
    try:
        return await host.clock.within(ANSWER_TIMEOUT_S, ask(connection, *words))
    except (Refused, ConnectionClosed, TimeoutError) as error:
        raise ConnectFailed(f"{address}: {error}") from error
    finally:
        connection.close()


async def primary(host: Host, first: int) -> str:
    """The primary as a sentinel knows it, asked in turn from the first on. Raises ConnectFailed."""
    for turn in range(len(SENTINELS)):
        sentinel = f"{SENTINELS[(first + turn) % len(SENTINELS)]}:{PORTS['sentinels']}"
        with contextlib.suppress(ConnectFailed):
            return str((await asked(host, sentinel, "SENTINEL", "get-master-addr-by-name", "redis"))[0])
    raise ConnectFailed("no sentinel answers")


class RedisClient:
    """Asks a sentinel for the primary and stays with it until an error, as clients of Sentinel do."""

    def __init__(self, host: Host, process: int) -> None:
        self._host, self._process, self._node = host, process, ""
        self._connection: Connection | None = None

    async def open(self) -> None:
        try:
            self._node = await primary(self._host, self._process)
            self._connection = await self._host.network.connect(f"{self._node}:{PORTS['servers']}", ANSWER_TIMEOUT_S)
        except ConnectFailed as error:
            raise OperationError(stormproof.CONNECT_FAILED, str(error)) from error

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def invoke(self, operation: Operation) -> Operation:
        if self._connection is None:
            await self.open()
        assert self._connection is not None
        try:
            value = await self._host.clock.within(ANSWER_TIMEOUT_S, carry_out(self._connection, operation))
        except (Refused, ConnectionClosed, TimeoutError) as error:
            await self.close()
            code = REFUSALS.get(str(error).partition(" ")[0], UNKNOWN.get(type(error), stormproof.CONNECTION_LOST))
            raise OperationError(code, str(error), node=self._node) from error
        return operation._replace(type="ok", value=value, node=self._node)


async def carry_out(connection: Connection, operation: Operation) -> Mapping[str, Any]:
    """The value of the completion. Keys of registers begin with r, of sets with s."""
    key, value = operation.key or "", dict(operation.value or {})
    if operation.f == "add":
        await ask(connection, "SADD", key, value["value"])
    elif operation.f == "read" and "values" in value:
        value["values"] = sorted(map(int, await ask(connection, "SMEMBERS", key)))
    elif operation.f == "read":
        value["value"] = (shown := await ask(connection, "GET", key)) and int(shown)
    elif operation.f == "write":
        await ask(connection, "SET", key, value["value"])
    elif not await ask(connection, "EVAL", CAS, 1, key, value["expected"], value["value"]):
        raise OperationError(stormproof.PRECONDITION_FAILED)
    return value


@dataclass(frozen=True, kw_only=True)
class RedisSettings:
    min_replicas_to_write: Annotated[int, stormproof.Bounds(0, 2)] = 0
    min_replicas_max_lag: Annotated[int, stormproof.Bounds(1, 60)] = 10


class RedisOnTrial:
    name, settings_type, workloads = "redis", RedisSettings, ("register", "set")
    mutants: Mapping[str, str] = {}

    def nodes(self, settings: RedisSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        server = f"{SERVER}min-replicas-to-write {settings.min_replicas_to_write}\n"
        server += f"min-replicas-max-lag {settings.min_replicas_max_lag}\n"
        servers = [_node(name, "servers", server + ("" if name == "r1" else FOLLOW)) for name in SERVERS]
        return (*servers, *(_node(name, "sentinels", SENTINEL) for name in SENTINELS))

    def cluster(self, settings: RedisSettings) -> stormproof.Declaration:
        groups = ("servers", "sentinels")
        return stormproof.Declaration(groups=groups, data=groups[:1], voters=groups[1:], roles={"primary": "servers"})

    def client(self, workload: str, settings: RedisSettings, host: Host, process: int) -> Client:
        return RedisClient(host, process)

    async def ready(self, settings: RedisSettings, host: Host, workload: str) -> None:
        """All sentinels name one primary and know both replicas, which follow it."""
        while True:
            with contextlib.suppress(ConnectFailed):
                named = {await primary(host, first) for first in range(len(SENTINELS))}
                role = await asked(host, f"{named.pop()}:{PORTS['servers']}", "ROLE")
                command = ("SENTINEL", "replicas", "redis")
                known = [await asked(host, f"{one}:{PORTS['sentinels']}", *command) for one in SENTINELS]
                if not named and role[0] == "master" and all(len(replicas) == 2 for replicas in (role[2], *known)):
                    return
            await host.clock.sleep(0.2)

    async def roles(self, settings: RedisSettings, host: Host) -> Mapping[str, tuple[str, ...]]:
        with contextlib.suppress(ConnectFailed):
            return {"primary": (await primary(host, 0),)}
        return {}

    def legal_loss(
        self, settings: RedisSettings, struck: tuple[stormproof.FaultWindow, ...], reports: stormproof.NodeReports
    ) -> stormproof.LegalLoss:
        return stormproof.LegalLoss()


def _node(name: str, group: str, config: str) -> NodeSpec:
    argv = (*START, "redis-server" if group == "servers" else "redis-sentinel")
    command = stormproof.Command(
        argv=argv, image=IMAGE, files={"/etc/start.conf": config}, ready=stormproof.Listening(PORTS[group])
    )
    return NodeSpec(name=name, groups=(group,), program=command, ports=(PORTS[group],))


SYSTEM = RedisOnTrial()
