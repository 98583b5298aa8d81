"""Debian's nats-server 2.9 with JetStream: three servers, or five, in one cluster."""

from __future__ import annotations

from harness.program import Command, DebianPackages, Listening
from harness.system import NodeSpec

SERVERS = ("n1", "n2", "n3", "n4", "n5")
CLIENT_PORT, ROUTE_PORT = 4222, 6222
MOST_MEMORY_KIB = 4 * 1024 * 1024
"""How much memory a server may address, of which Go reserves more than it uses. After a loss of power a server was seen
to take 24 GB, until the kernel ended it, and might have ended others."""
IMAGE = DebianPackages(("nats-server",))
CONFIG = """server_name: ${{name}}
listen: "0.0.0.0:{client}"
jetstream: {{ store_dir: "${{home}}/jetstream", max_memory_store: 67108864, max_file_store: 4294967296 }}
cluster: {{ name: storm, listen: "0.0.0.0:{route}", routes: [{routes}] }}
"""


def server(name: str, servers: tuple[str, ...]) -> NodeSpec:
    """`servers`: all of the cluster."""
    routes = ", ".join(f'"nats-route://{one}:{ROUTE_PORT}"' for one in servers)
    command = Command(
        argv=("sh", "-c", f"ulimit -v {MOST_MEMORY_KIB} && exec nats-server --config /etc/start.conf"),
        image=IMAGE,
        files={"/etc/start.conf": CONFIG.format(client=CLIENT_PORT, route=ROUTE_PORT, routes=routes)},
        ready=Listening(CLIENT_PORT),
    )
    return NodeSpec(name=name, groups=("servers",), program=command, ports=(CLIENT_PORT,), replica=True)
