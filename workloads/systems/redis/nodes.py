"""Debian's redis-server: a primary, two replicas and three sentinels, each a node of its own."""

from __future__ import annotations

from collections.abc import Mapping

from harness.program import Command, DebianPackages, Listening
from harness.system import NodeSpec

SERVERS, SENTINELS = ("r1", "r2", "r3"), ("s1", "s2", "s3")
SERVER_PORT, SENTINEL_PORT = 6379, 26379
IMAGE = DebianPackages(("redis-server", "redis-sentinel"))
# Redis and Sentinel rewrite their own configuration; what they wrote stays when they are killed.
# It is made durable first, as an administrator does who installs a server: a loss of power may come at once.
COPY = (
    "test -s ${home}/redis.conf || { cp /etc/start.conf ${home}/new.conf && sync ${home}/new.conf "
    "&& mv ${home}/new.conf ${home}/redis.conf && sync ${home}; }; "
)
REPAIR = 'log=${home}/appendonlydir/appendonly.aof.manifest; ! test -e "$log" || yes | redis-check-aof --fix "$log"; '
"""It asks whether it may. What comes of it, Redis itself says when it starts."""
RUN = "exec $0 ${home}/redis.conf"
SERVER = """protected-mode no
dir ${home}
appendonly yes
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


def server(name: str, options: Mapping[str, str | int], *, before: str = "") -> NodeSpec:
    """`options`: of its configuration; `before`: what a shell does before each start."""
    config = SERVER + "".join(f"{option} {value}\n" for option, value in options.items())
    config += "" if name == SERVERS[0] else FOLLOW
    return _node(name, "servers", "redis-server", SERVER_PORT, config, before)


def sentinel(name: str) -> NodeSpec:
    return _node(name, "sentinels", "redis-sentinel", SENTINEL_PORT, SENTINEL, "")


def _node(name: str, group: str, program: str, port: int, config: str, before: str) -> NodeSpec:
    argv = ("sh", "-c", COPY + before + RUN, program)
    command = Command(argv=argv, image=IMAGE, files={"/etc/start.conf": config}, ready=Listening(port))
    return NodeSpec(name=name, groups=(group,), program=command, ports=(port,))
