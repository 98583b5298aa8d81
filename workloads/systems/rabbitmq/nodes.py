"""Debian's rabbitmq-server 3.10: three nodes of one cluster; the second and the third join the first."""

from __future__ import annotations

from harness.program import Command, DebianPackages, Listening
from harness.system import NodeSpec

NODES = ("q1", "q2", "q3")
PORT = 5672
IMAGE = DebianPackages(("rabbitmq-server",))
HOME = "${home}/rabbitmq"
COOKIE = "storm"
# Erlang reads its cookie from a file that nobody else may read, and keeps who belongs to the cluster beside its data.
# Where all nodes are new at once, one may fail to copy the tables of another that is joining a third
# (`system_limit … none_active`). So the first looks for nobody, and the others wait for it when they start for the
# first time, and join it.
FIRST_WITHIN_S = 25
START = f"""set -e
mkdir -p {HOME}
if [ "$RABBITMQ_NODENAME" != rabbit@{NODES[0]} ] && [ ! -e {HOME}/mnesia ]; then
  timeout {FIRST_WITHIN_S} bash -c 'until (: </dev/tcp/{NODES[0]}/{PORT}) 2>/dev/null; do sleep 0.2; done' || true
fi
rm -f {HOME}/.erlang.cookie
printf {COOKIE} >{HOME}/.erlang.cookie
chmod 400 {HOME}/.erlang.cookie
export HOME={HOME}
exec /usr/lib/rabbitmq/bin/rabbitmq-server
"""
ENVIRONMENT = {
    "RABBITMQ_NODENAME": "rabbit@${name}",
    "RABBITMQ_MNESIA_BASE": f"{HOME}/mnesia",
    "RABBITMQ_LOG_BASE": f"{HOME}/log",
    "RABBITMQ_LOGS": "-",
    "RABBITMQ_PID_FILE": f"{HOME}/pid",
    "RABBITMQ_CONFIG_FILE": "/etc/start",
    "RABBITMQ_ENABLED_PLUGINS_FILE": "/etc/plugins",
    # One processor is enough for each of its schedulers; idle ones are not to spin on a small machine.
    "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none",
}
CONFIG = """listeners.tcp.default = {port}
loopback_users = none
log.console = true
log.console.level = warning
net_ticktime = {net_tick_s}
cluster_partition_handling = {partition_handling}
cluster_formation.peer_discovery_backend = classic_config
{nodes}
"""

DEFINITIONS = """{"vhosts": [{"name": "/"}],
 "users": [{"name": "guest", "password": "guest", "tags": "administrator"}],
 "permissions": [{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
 "policies": [{"vhost": "/", "name": "mirrors", "pattern": "^storm", "apply-to": "queues", "priority": 0,
   "definition": {"ha-mode": "all", "ha-sync-mode": "automatic"}}]}
"""
"""Queues have a mirror at every node. Where definitions are loaded there is no user but those that they name."""


def node(name: str, *, is_mirrored: bool, partition_handling: str, net_tick_s: int) -> NodeSpec:
    listed = f"cluster_formation.classic_config.nodes.1 = rabbit@{NODES[0]}"
    config = CONFIG.format(port=PORT, net_tick_s=net_tick_s, partition_handling=partition_handling, nodes=listed)
    files = {"/etc/start.conf": config, "/etc/plugins": "[].\n"}
    if is_mirrored:
        files["/etc/start.conf"] += "load_definitions = /etc/definitions.json\n"
        files["/etc/definitions.json"] = DEFINITIONS
    command = Command(
        argv=("sh", "-c", START),
        image=IMAGE,
        files=files,
        environment=ENVIRONMENT,
        ready=Listening(PORT),
    )
    return NodeSpec(name=name, groups=("nodes",), program=command, ports=(PORT,))
