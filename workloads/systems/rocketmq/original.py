"""The nodes of Apache RocketMQ itself: its own scripts, with files of its own settings.

What is written is what `nodes` gives our own programs, as far as RocketMQ documents the setting; what it does not know
is left at its default. Names: the deployment guides for controllers and brokers of RocketMQ 5, and the fields of
BrokerConfig, MessageStoreConfig, NettyServerConfig, NamesrvConfig, ControllerConfig and ProxyConfig.

Everything that a node keeps lies below its own directory, as `-Duser.home` says, and nodes are called by their names in
`brokerIP1`, so that the addresses that brokers make known are those that the harness knows.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.program import PLACE_OF_HOME, Command, PythonProgram
from harness.system import NodeSpec
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.admin_client import AdminClient, AdminRefusal
from system_under_test.rocketmq.topic import TopicConfig
from workloads.systems.java import NO_TLS
from workloads.systems.rocketmq.release import DIRECTORY, HEAPS, SCRIPTS, image
from workloads.systems.rocketmq.settings import (
    CONTROLLER_PORT,
    NAMESERVER_PORT,
    RocketmqSettings,
    addresses,
    broker_groups,
    controller_names,
    milliseconds,
    name_server_names,
    topics,
)

MASTER_ID = 0
STOPS_WITHIN_S = 1.0
"""A broker takes ten seconds to leave its group in good order, which nobody waits for once a run is over."""
CONTROLLER_LOG_FILE_BYTES = 16 * 1024 * 1024
"""A gigabyte unless it is set, for a few entries."""
TIMERS_FLUSHED_MS = 10_000
"""How often a broker holds its whole wheel, 38 MB, against its file: each second, it would take a fifth of a
processor."""
LOG_FILE = f"{PLACE_OF_HOME}/logback.xml"
LOGBACK = """<configuration>
  <appender name="FILE" class="ch.qos.logback.core.rolling.RollingFileAppender">
    <file>${{user.home}}/logs/rocketmqlogs/{kind}.log</file>
    <rollingPolicy class="ch.qos.logback.core.rolling.FixedWindowRollingPolicy">
      <fileNamePattern>${{user.home}}/logs/rocketmqlogs/{kind}.%i.log</fileNamePattern>
      <minIndex>1</minIndex>
      <maxIndex>2</maxIndex>
    </rollingPolicy>
    <triggeringPolicy class="ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy">
      <maxFileSize>20MB</maxFileSize>
    </triggeringPolicy>
    <encoder>
      <pattern>%d{{yyyy-MM-dd HH:mm:ss.SSS,GMT+8}} %p %t - %m%n</pattern>
      <charset class="java.nio.charset.Charset">UTF-8</charset>
    </encoder>
  </appender>
  <appender name="LATER" class="ch.qos.logback.classic.AsyncAppender">
    <queueSize>8192</queueSize>
    <discardingThreshold>0</discardingThreshold>
    <appender-ref ref="FILE"/>
  </appender>
  <logger name="RocketmqWaterMark" level="WARN"/>
  <logger name="RocketmqTraffic" level="WARN"/>
  <root level="INFO">
    <appender-ref ref="LATER"/>
  </root>
</configuration>
"""
"""A release's own writes whole seconds into a dozen files, and leaves lines out where many come at once. Where scripts
of a distribution name a file of theirs, that one holds."""
DUAL_WRITE = 2
"""So many replicas, the master among them, have a message before it is acknowledged: one, unless that is set."""
ROUTES_REFRESHED_MS = 20_000

CONFIG = f"{PLACE_OF_HOME}/store/config"
FIRST_TOPICS = f"{PLACE_OF_HOME}/first-topics.json"
"""What a broker begins with, on whose disk no table of topics is yet."""
CONTROLLER_SETTINGS = (
    "controllerDLegerGroup",
    "controllerDLegerSelfId",
    "enableElectUncleanMaster",
    "notifyBrokerRoleChanged",
    "scanInactiveMasterInterval",
)
DOCUMENTED: Mapping[str, tuple[str, ...]] = {
    "nameserver": ("listenPort", "enableControllerInNamesrv", *CONTROLLER_SETTINGS),
    "controller": CONTROLLER_SETTINGS,
    "broker": (
        "brokerName",
        "brokerClusterName",
        "brokerId",
        "brokerRole",
        "listenPort",
        "haListenPort",
        "namesrvAddr",
        "enableControllerMode",
        "controllerAddr",
        "controllerDeployedStandAlone",
        "allAckInSyncStateSet",
        "inSyncReplicas",
        "minInSyncReplicas",
        "asyncLearner",
        "syncFromLastFile",
        "brokerHeartbeatInterval",
        "syncBrokerMetadataPeriod",
        "checkSyncStateSetPeriod",
        "syncControllerMetadataPeriod",
        "haMaxTimeSlaveNotCatchup",
        "haSendHeartbeatInterval",
        "haHousekeepingInterval",
        "flushDiskType",
        "enableBatchPush",
        "mappedFileSizeCommitLog",
        "slaveReadEnable",
        "cleanResourceInterval",
        "cleanFileForciblyEnable",
        "registerNameServerPeriod",
        "channelExpiredTimeout",
        "transactionTimeOut",
        "transactionCheckInterval",
        "transactionCheckMax",
        "timerPrecisionMs",
        "timerRollWindowSlot",
        "lockInStrictMode",
        "loadBalancePollNameServerInterval",
        "enableDLegerCommitLog",
        "dLegerGroup",
        "dLegerPeers",
        "dLegerSelfId",
    ),
    "proxy": (
        "namesrvAddr",
        "rocketMQClusterName",
        "grpcServerPort",
        "minInvisibleTimeMillsForRecv",
        "grpcClientProducerMaxAttempts",
    ),
}


def original_node(spec: NodeSpec, settings: RocketmqSettings) -> NodeSpec:
    """The same node, run by the scripts of the release."""
    assert isinstance(spec.program, PythonProgram)
    kind = spec.program.main.rpartition(":")[2]
    path = f"{PLACE_OF_HOME}/{kind}.conf"
    properties = _properties(kind, spec.program.config, settings)
    options = (
        f"-Duser.home={PLACE_OF_HOME}",
        f"-Drmq.logback.configurationFile={LOG_FILE}",
        NO_TLS,
        HEAPS[kind],
        *_system_properties(kind, spec.program.config),
    )
    place = settings.installed or ("$ROCKETMQ_HOME" if settings.image else DIRECTORY)
    names_file = "-pc" if kind == "proxy" else "-c"
    files = {path: _file(kind, properties), LOG_FILE: LOGBACK.format(kind=kind).replace("${", "$${")}
    begin = ""
    if kind == "broker" and not settings.static_queues:
        files[FIRST_TOPICS] = _first_topics(settings)
        begin = f"mkdir -p {CONFIG}; [ -e {CONFIG}/topics.json ] || cp {FIRST_TOPICS} {CONFIG}/topics.json; "
    command = Command(
        argv=("sh", "-c", f'{begin}exec sh "{place}/bin/{SCRIPTS[kind]}" {names_file} {path}'),
        image=image(settings),
        files=files,
        logs=f"{PLACE_OF_HOME}/logs",
        stops_within_s=STOPS_WITHIN_S,
        environment={
            "JAVA_OPT_EXT": f"{' '.join(options)} {settings.java_options}".strip(),
            **({} if place.startswith("$") else {"ROCKETMQ_HOME": place}),
        },
    )
    return replace(spec, program=command)


async def until_topics_are_made(settings: RocketmqSettings, host: Any) -> None:
    """All groups have the topics of the workloads, with which brokers begin; where NameServers show that they do not
    have them, their masters are asked to make them. With controllers slaves have them as well, which ask their masters
    every ten seconds: one that becomes master before it did so has no topics, and nobody makes them in a storm."""
    admin = AdminClient(host)
    expected = {group.name for group in broker_groups(settings)}
    name_servers = itertools.cycle(addresses(name_server_names(settings), NAMESERVER_PORT))
    left = [TopicConfig.of(name, settings.topic_queues) for name in topics(settings)]
    try:
        while left:
            name_server = next(name_servers)
            for topic in tuple(left):
                with contextlib.suppress(ClientError):
                    if await _makes_topic(admin, name_server, expected, topic, settings.has_controllers):
                        left.remove(topic)
            await host.clock.sleep(0.2)
    finally:
        admin.close()


async def _makes_topic(
    admin: AdminClient, name_server: str, expected: set[str], topic: TopicConfig, on_slaves: bool
) -> bool:
    """Whether all groups are there and have it, with their slaves where that is asked. Raises ClientError."""
    groups = await admin.broker_groups(name_server)
    masters = {group.name: group.brokers.get(MASTER_ID) for group in groups}
    try:
        have = {group.broker_name for group in (await admin.route(name_server, topic.name)).groups}
    except AdminRefusal:
        have = set()
    for name in sorted(expected - have):
        master = masters.get(name)
        if master is not None:
            await admin.put_topic(master, topic)
    if not expected <= have or not on_slaves:
        return expected <= have
    brokers = [address for group in groups for address in group.brokers.values()]
    return all([await admin.has_topic(broker, topic.name) for broker in brokers])


def _properties(kind: str, config: Mapping[str, object], settings: RocketmqSettings) -> dict[str, object]:
    properties = {name: config[name] for name in DOCUMENTED[kind] if name in config}
    if kind == "broker":
        properties |= {
            "brokerIP1": "${name}",
            "brokerIP2": "${name}",
            "storePathRootDir": f"{PLACE_OF_HOME}/store",
            "autoCreateTopicEnable": False,
            "timerFlushIntervalMs": TIMERS_FLUSHED_MS,
        }
        if settings.has_dledger and settings.preferred:
            # The broker's name for what the library calls preferredLeaderIds.
            properties["preferredLeaderId"] = config["preferredLeaderIds"]
        if settings.deployment == "dual-write":
            properties["inSyncReplicas"] = DUAL_WRITE
        if settings.has_controllers:
            properties["controllerHeartBeatTimeoutMills"] = milliseconds(10_000, settings)
    elif kind == "proxy":
        refreshed_s = -(-milliseconds(ROUTES_REFRESHED_MS, settings) // 1_000)
        properties |= {
            "proxyMode": "CLUSTER",
            # Otherwise what asks for less than five seconds is refused, unless its client waits longer.
            "grpcClientConsumerMinLongPollingTimeoutMillis": 1,
            # Clients may come by another port than the proxy's own.
            "useEndpointPortFromRequest": True,
            "topicRouteServiceCacheRefreshSeconds": refreshed_s,
            # The same in 5.1.0.
            "topicRouteServiceCacheExpiredInSeconds": refreshed_s,
        }
    elif "controllerDLegerSelfId" in properties:
        # A controller takes requests on the port of its peers: there is no other setting for one.
        peers = zip(controller_names(settings), addresses(controller_names(settings), CONTROLLER_PORT), strict=True)
        properties["controllerDLegerPeers"] = ";".join(f"{name}-{address}" for name, address in peers)
        properties["controllerStorePath"] = f"{PLACE_OF_HOME}/controller"
        properties["mappedFileSize"] = CONTROLLER_LOG_FILE_BYTES
    return properties


def _first_topics(settings: RocketmqSettings) -> str:
    """A broker's table of topics, as it keeps it itself once it runs."""
    table = {
        name: {
            "topicName": name,
            "perm": 6,
            "readQueueNums": settings.topic_queues,
            "writeQueueNums": settings.topic_queues,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": False,
        }
        for name in topics(settings)
    }
    return json.dumps({"dataVersion": {"counter": 1, "stateVersion": 0, "timestamp": 1}, "topicConfigTable": table})


def _system_properties(kind: str, config: Mapping[str, object]) -> tuple[str, ...]:
    """What RocketMQ has no field for."""
    if kind != "broker":
        return ()
    return (f"-Drocketmq.broker.rebalance.lockMaxLiveTime={config['rebalanceLockMaxLiveTime']}",)


def _file(kind: str, properties: Mapping[str, object]) -> str:
    """Proxies take JSON, all others lines."""
    if kind == "proxy":
        return json.dumps(properties, indent=2) + "\n"
    return "".join(f"{name}={_text(value)}\n" for name, value in properties.items())


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
