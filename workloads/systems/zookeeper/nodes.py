"""Three servers of an ensemble: Debian's zookeeper 3.8, or a release as Maven has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.program import Command, DebianPackages, Image, JavaRelease, Listening, MavenArtifacts
from harness.system import NodeSpec

SERVERS = ("z1", "z2", "z3")
GROUP = "servers"
PORT = 2181
DEBIANS = DebianPackages(("zookeeper",))
DEBIANS_ENVIRONMENT = "/etc/zookeeper/conf/environment"
DIRECTORY = "/opt/zookeeper"
ENVIRONMENT = f"CLASSPATH=$(echo {DIRECTORY}/lib/*.jar | tr ' ' ':'):{DIRECTORY}/conf\n"
"""The environment of a release: where its jars are, and how they log."""
LOGBACK = """<configuration>
  <appender name="CONSOLE" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %p %t - %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="CONSOLE"/></root>
</configuration>
"""
PROVIDED = ("io.dropwizard.metrics:metrics-core:4.1.12.1", "org.xerial.snappy:snappy-java:1.1.10.5")
"""What a server needs and a release leaves to its distribution."""
OTHERWISE = "leave release out, which is Debian's ZooKeeper 3.8"
# Debian's file names the jars, but for one that logs; a small heap and no just-in-time threads of a server's size, for
# three on one machine.
START = """. $3
exec java -Xmx96m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dzookeeper.admin.enableServer=false \\
  -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Dorg.slf4j.simpleLogger.showDateTime=true -Dzookeeper.forceSync=$0 \\
  -Dzookeeper.snapshot.trust.empty=$2 \\
  -cp "$CLASSPATH:/usr/share/java/slf4j-simple.jar" org.apache.zookeeper.server.quorum.QuorumPeerMain $1
"""
CONFIG = """tickTime=500
maxSessionTimeout=120000
initLimit=20
syncLimit=6
dataDir=${{home}}/zookeeper
clientPort={port}
quorumListenOnAllIPs=true
4lw.commands.whitelist=srvr
{servers}
"""
CONFIG_FILE, DYNAMIC_FILE = "/etc/start.cfg", "${home}/conf/start.cfg"
DYNAMIC_START = f"""mkdir -p ${{home}}/conf
[ -f $1 ] || cp {CONFIG_FILE} $1
{START.replace("exec java", "exec java -Dzookeeper.skipACL=yes")}"""
"""The file it is started with changes: servers write beside it what they have agreed on, and name that in it."""
DYNAMIC_CONFIG = """tickTime=500
maxSessionTimeout=120000
initLimit=20
syncLimit=6
dataDir=${{home}}/zookeeper
quorumListenOnAllIPs=true
4lw.commands.whitelist=srvr
standaloneEnabled=false
reconfigEnabled=true
{servers}
"""


def entry(name: str, role: str = "participant") -> str:
    """A server as the others know it."""
    return f"server.{number_of(name)}={name}:2888:3888:{role};{PORT}"


def number_of(name: str, servers: Sequence[str] = SERVERS) -> int:
    return servers.index(name) + 1


def image(release: str) -> Image:
    """Of a release by its number; empty: Debian's."""
    if not release:
        return DEBIANS
    return JavaRelease(
        content=MavenArtifacts(
            coordinates=(f"org.apache.zookeeper:zookeeper:{release}", *PROVIDED), otherwise=OTHERWISE
        ),
        directory=DIRECTORY,
        files=(("conf/environment", ENVIRONMENT), ("conf/logback.xml", LOGBACK)),
    )


def dynamic_server(
    name: str, *, force_sync: bool, trust_empty: bool = False, joins: bool = False, release: str = ""
) -> NodeSpec:
    """One of an ensemble whose servers come and go. `joins`: it has nothing on its disk, and follows the others without
    a vote until they let it in."""
    fixed = server(name, force_sync=force_sync, trust_empty=trust_empty, release=release)
    assert isinstance(fixed.program, Command)
    listed = "\n".join(entry(one, "observer" if joins and one == name else "participant") for one in SERVERS)
    program = replace(
        fixed.program,
        argv=("sh", "-c", DYNAMIC_START, *_argued(force_sync, DYNAMIC_FILE, trust_empty, release)),
        files={**fixed.program.files, CONFIG_FILE: DYNAMIC_CONFIG.format(servers=listed)},
    )
    return replace(fixed, program=program)


def server(
    name: str,
    *,
    force_sync: bool,
    trust_empty: bool = False,
    release: str = "",
    servers: Sequence[str] = SERVERS,
    group: str = GROUP,
) -> NodeSpec:
    listed = "\n".join(f"server.{number}={one}:2888:3888" for number, one in enumerate(servers, 1))
    command = Command(
        argv=("sh", "-c", START, *_argued(force_sync, CONFIG_FILE, trust_empty, release)),
        image=image(release),
        files={
            CONFIG_FILE: CONFIG.format(port=PORT, servers=listed),
            "${home}/zookeeper/myid": str(number_of(name, servers)),
        },
        ready=Listening(PORT),
    )
    return NodeSpec(name=name, groups=(group,), program=command, ports=(PORT,))


def _argued(force_sync: bool, config: str, trust_empty: bool, release: str) -> tuple[str, str, str, str]:
    """What the script that starts a server knows as $0, $1, $2 and $3."""
    environment = f"{DIRECTORY}/conf/environment" if release else DEBIANS_ENVIRONMENT
    return "yes" if force_sync else "no", config, "true" if trust_empty else "false", environment
