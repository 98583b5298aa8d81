"""Debian's zookeeper 3.8: three servers of an ensemble."""

from __future__ import annotations

from harness.program import Command, DebianPackages, Listening
from harness.system import NodeSpec

SERVERS = ("z1", "z2", "z3")
PORT = 2181
IMAGE = DebianPackages(("zookeeper",))
# Debian's file names the jars, but for one that logs; a small heap and no just-in-time threads of a server's size, for
# three on one machine.
START = """. /etc/zookeeper/conf/environment
exec java -Xmx96m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dzookeeper.admin.enableServer=false \\
  -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Dorg.slf4j.simpleLogger.showDateTime=true -Dzookeeper.forceSync=$0 \\
  -Dzookeeper.snapshot.trust.empty=$1 \\
  -cp "$CLASSPATH:/usr/share/java/slf4j-simple.jar" org.apache.zookeeper.server.quorum.QuorumPeerMain /etc/start.cfg
"""
CONFIG = """tickTime=500
initLimit=20
syncLimit=6
dataDir=${{home}}/zookeeper
clientPort={port}
quorumListenOnAllIPs=true
4lw.commands.whitelist=srvr
{servers}
"""


def server(name: str, *, force_sync: bool, trust_empty: bool) -> NodeSpec:
    listed = "\n".join(f"server.{number}={one}:2888:3888" for number, one in enumerate(SERVERS, 1))
    command = Command(
        argv=("sh", "-c", START, "yes" if force_sync else "no", "true" if trust_empty else "false"),
        image=IMAGE,
        files={
            "/etc/start.cfg": CONFIG.format(port=PORT, servers=listed),
            "${home}/zookeeper/myid": str(SERVERS.index(name) + 1),
        },
        ready=Listening(PORT),
    )
    return NodeSpec(name=name, groups=("servers",), program=command, ports=(PORT,))
