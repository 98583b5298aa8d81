"""What a published RocketMQ is made into an image of: its jars by Maven with start scripts, or a distribution as it is.

The scripts have the names and take the arguments of those of a distribution. The classes of each program are laid out
once when the image is made (class-data sharing), so that six virtual machines on two processors start in seconds.
"""

from __future__ import annotations

from pathlib import Path

from harness.program import Image, Installed, JavaRelease, MavenArtifacts, NamedImage
from workloads.systems.java import NO_TLS, OPTIONS
from workloads.systems.rocketmq.settings import RocketmqSettings

DIRECTORY = "/opt/rocketmq"
GROUP = "org.apache.rocketmq"
ARTIFACTS = ("broker", "namesrv", "controller", "tools")
PROXY = "proxy"
MAIN = {
    "mqnamesrv": "org.apache.rocketmq.namesrv.NamesrvStartup",
    "mqcontroller": "org.apache.rocketmq.controller.ControllerStartup",
    "mqbroker": "org.apache.rocketmq.broker.BrokerStartup",
    "mqproxy": "org.apache.rocketmq.proxy.ProxyStartup",
    "mqadmin": "org.apache.rocketmq.tools.command.MQAdminStartup",
}
SCRIPTS = {"nameserver": "mqnamesrv", "controller": "mqcontroller", "broker": "mqbroker", "proxy": "mqproxy"}
OTHER_WAYS = (
    "name a distribution that is here (distribution=FOLDER or ARCHIVE), an image that has one (image=NAME), or the "
    "directory where it is installed on the nodes (installed=/opt/rocketmq)"
)
SCRIPT = """#!/bin/sh
exec java -XX:SharedArchiveFile="$ROCKETMQ_HOME/{name}.jsa" -Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off \\
    {options} $JAVA_OPT_EXT -cp "$(cat "$ROCKETMQ_HOME/classpath")" {main} "$@"
"""
PLAIN_ACL = ("conf/plain_acl.yml", "globalWhiteRemoteAddresses: []\naccounts: []\n")
"""Without this file of accounts, which are none, proxies before 5.3.0 do not start."""
HEAPS = {
    "nameserver": "-Xms48m -Xmx160m -XX:MaxDirectMemorySize=128m",
    "controller": "-Xms48m -Xmx160m -XX:MaxDirectMemorySize=128m",
    "broker": "-Xms96m -Xmx320m -XX:MaxDirectMemorySize=1g",
    "proxy": "-Xms64m -Xmx256m -XX:MaxDirectMemorySize=128m",
}
"""Three controllers and three brokers of a test run in 2 GB; a distribution's own scripts would take 8 for a broker. Of
direct memory every thread of a broker that writes messages takes the longest message's 4 MB once: at 256 MB pops and
their revival end in OutOfMemoryError, and messages seem to be lost."""
PREPARE = """set -e
echo {directory}/lib/*.jar | tr ' ' ':' >classpath
export ROCKETMQ_HOME={directory} CLASSPATH="$(cat classpath)"
place=$(mktemp -d)
cat >$place/mqnamesrv.conf <<END
listenPort=9876
enableControllerInNamesrv=true
controllerDLegerGroup=g
controllerDLegerPeers=c1-127.0.0.1:9878
controllerDLegerSelfId=c1
controllerStorePath=$place/controller
END
cat >$place/mqcontroller.conf <<END
controllerDLegerGroup=g
controllerDLegerPeers=c1-127.0.0.1:9879
controllerDLegerSelfId=c1
controllerStorePath=$place/alone
END
cat >$place/mqbroker.conf <<END
brokerName=a
brokerClusterName=c
brokerIP1=127.0.0.1
listenPort=10911
haListenPort=10912
namesrvAddr=127.0.0.1:9876
enableControllerMode=true
controllerAddr=127.0.0.1:9878
storePathRootDir=$place/store
mappedFileSizeCommitLog=1048576
END
laid_out() {{ # name, main class, seconds: runs for so long, and leaves its classes laid out
    java -XX:ArchiveClassesAtExit=$1.jsa -Xlog:cds=off -Xlog:cds+dynamic=off {options} -Xmx256m {no_tls} \\
        -Duser.home=$place -cp "$CLASSPATH" $2 -c $place/$1.conf >$place/$1.log 2>&1 &
    eval "pid_$1=$!"
}}
ended() {{
    eval "pid=\\$pid_$1"
    kill $pid 2>/dev/null || true
    wait $pid || true
    test -s $1.jsa || {{ echo "$1 left no class archive; its starts take longer" >&2; tail -n 3 $place/$1.log >&2; }}
}}
laid_out mqcontroller {controller}
laid_out mqnamesrv {namesrv}
laid_out mqbroker {broker}
for step in $(seq 60); do
    sleep 1
    java -XX:TieredStopAtLevel=1 -Xmx64m -Duser.home=$place -cp "$CLASSPATH" {admin} \\
        clusterList -n 127.0.0.1:9876 2>/dev/null | grep -q 10911 && break
done
ended mqbroker
ended mqnamesrv
ended mqcontroller
rm -rf $place
"""


def image(settings: RocketmqSettings) -> Image:
    """Of all nodes. Raises UsageError for a distribution that is not here."""
    if settings.image:
        return NamedImage(settings.image)
    if settings.distribution:
        return JavaRelease(content=Path(settings.distribution).expanduser().absolute(), directory=DIRECTORY)
    if not settings.release:
        return Installed()
    artifacts = (*ARTIFACTS, PROXY) if settings.has_proxies else ARTIFACTS
    coordinates = tuple(f"{GROUP}:rocketmq-{artifact}:{settings.release}" for artifact in artifacts)
    mains = {name: main for name, main in MAIN.items() if name != "mqproxy" or settings.has_proxies}
    return JavaRelease(
        content=MavenArtifacts(coordinates=coordinates, otherwise=OTHER_WAYS),
        directory=DIRECTORY,
        files=(
            *((f"bin/{name}", SCRIPT.format(name=name, options=OPTIONS, main=main)) for name, main in mains.items()),
            *([PLAIN_ACL] if settings.has_proxies else []),
        ),
        prepare=PREPARE.format(
            directory=DIRECTORY,
            options=OPTIONS,
            no_tls=NO_TLS,
            controller=MAIN["mqcontroller"],
            namesrv=MAIN["mqnamesrv"],
            broker=MAIN["mqbroker"],
            admin=MAIN["mqadmin"],
        ),
    )
