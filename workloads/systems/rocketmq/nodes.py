"""The nodes of a RocketMQ cluster: which program each runs, with which of RocketMQ's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness.program import PythonProgram
from harness.record.scenario import SettingValue
from harness.system import NodeSpec
from system_under_test.dledger.config import FIRST_VERSION
from workloads.systems.dledger.nodes import ANSWERED_WITHIN_MS, TIMES_MS
from workloads.systems.rocketmq.settings import (
    BORDERING_MESSAGE_BYTES,
    BROKER_PORT,
    CONTROLLER_PORT,
    DLEDGER_PORT,
    HA_PORT,
    NAMESERVER_PORT,
    NEWEST_VERSION,
    PROXY_PORT,
    RAFT_PORT,
    BrokerGroup,
    RocketmqSettings,
    addresses,
    broker_groups,
    controller_names,
    group_of,
    lone_name_servers,
    milliseconds,
    name_server_names,
    proxy_names,
    raft_milliseconds,
    topics,
)

TIMERS: Mapping[str, int] = {"timerPrecisionMs": 100, "timerWheelSlots": 160, "timerRollWindowSlot": 40}
"""A small wheel: what is due in more than four seconds rolls."""


CLUSTER = "stormproof"
CHECK_MAX = 1_000
"""Transactions are asked about as long as a run lasts: what was put aside would be missed."""
VANISHED_MS, RENEWED_MS = 2_000, 4_000
"""A client of a proxy is taken for gone after this time, and what it holds is renewed for that long."""


def node_specs(settings: RocketmqSettings, planted: Mapping[str, str]) -> tuple[NodeSpec, ...]:
    """Controllers, NameServers without one, brokers, then proxies. `planted` is added to the settings of each: the
    mutant, where there is one."""
    controllers = (_controller(name, settings, planted) for name in controller_names(settings))
    name_servers = (_name_server(name, planted) for name in lone_name_servers(settings))
    brokers = (_broker(name, group, settings, planted) for group in broker_groups(settings) for name in group.brokers)
    proxies = (_proxy(name, settings, planted) for name in proxy_names(settings))
    if settings.begins_as_version != NEWEST_VERSION:
        name_servers, brokers = (
            (_beginning_as(settings.begins_as_version, node) for node in nodes) for nodes in (name_servers, brokers)
        )
    if settings.becomes_learner:
        brokers = (_becoming_learner(node, settings) for node in brokers)
    nodes = (*controllers, *name_servers, *brokers, *proxies)
    return tuple(_on_its_machine(node, settings.machines) for node in nodes) if settings.machines else nodes


def _on_its_machine(node: NodeSpec, machines: int) -> NodeSpec:
    """Nodes are numbered from 1 behind a letter, which is that of their kind."""
    return replace(node, machine=f"m{(int(node.name[1:]) - 1) % machines + 1}")


def _beginning_as(version: int, node: NodeSpec) -> NodeSpec:
    """The node as one of an older version, with itself as what it is upgraded to."""
    assert isinstance(node.program, PythonProgram)
    config = {**node.program.config, "behavesAsVersion": version}
    if "enableDLegerCommitLog" in config:
        config |= {"version": FIRST_VERSION, "enableBatchPush": False}
    return replace(node, program=replace(node.program, config=config), upgraded=node.program)


def _becoming_learner(node: NodeSpec, settings: RocketmqSettings) -> NodeSpec:
    """The broker with itself as a learner as what it is upgraded to, if it is to become one."""
    assert isinstance(node.program, PythonProgram)
    group = group_of(settings, node.name)
    if node.name not in set(group.voters) - set(group.lasting):
        return node
    return replace(node, upgraded=replace(node.program, config={**node.program.config, "asyncLearner": True}))


def _controller(name: str, settings: RocketmqSettings, planted: Mapping[str, str]) -> NodeSpec:
    """A controller, in a NameServer or alone."""
    config = {
        "controllerPort": CONTROLLER_PORT,
        "controllerDLegerGroup": "controllers",
        "controllerDLegerPeers": ";".join(f"{peer}-{peer}:{RAFT_PORT}" for peer in controller_names(settings)),
        "controllerDLegerSelfId": name,
        "controllerStorePath": "controller",
        "enableElectUncleanMaster": settings.unclean_election,
        "notifyBrokerRoleChanged": settings.notify_role_changed,
        "brokerHeartbeatTimeout": milliseconds(10_000, settings),
        "scanInactiveMasterInterval": milliseconds(5_000, settings),
        "raftHeartbeatInterval": raft_milliseconds(400 if settings.sparse_heartbeats else 200, settings),
        "raftMinElectionTimeout": raft_milliseconds(1_000, settings),
        "raftMaxElectionTimeout": raft_milliseconds(2_000, settings),
        "raftSnapshotThreshold": settings.snapshot_threshold,
        **planted,
    }
    if settings.controllers_alone:
        program = PythonProgram(main="system_under_test.rocketmq.node:controller", config=config)
        return NodeSpec(name=name, groups=("controllers",), program=program, ports=(CONTROLLER_PORT,))
    config = {"listenPort": NAMESERVER_PORT, "enableControllerInNamesrv": True, **config}
    program = PythonProgram(main="system_under_test.rocketmq.node:nameserver", config=config)
    return NodeSpec(name=name, groups=("controllers",), program=program, ports=(NAMESERVER_PORT, CONTROLLER_PORT))


def _name_server(name: str, planted: Mapping[str, str]) -> NodeSpec:
    config = {"listenPort": NAMESERVER_PORT, **planted}
    program = PythonProgram(main="system_under_test.rocketmq.node:nameserver", config=config)
    return NodeSpec(name=name, groups=("name-servers",), program=program, ports=(NAMESERVER_PORT,))


def _proxy(name: str, settings: RocketmqSettings, planted: Mapping[str, str]) -> NodeSpec:
    config = {
        "namesrvAddr": ";".join(addresses(name_server_names(settings), NAMESERVER_PORT)),
        "rocketMQClusterName": CLUSTER,
        "grpcServerPort": PROXY_PORT,
        "minInvisibleTimeMillsForRecv": 1,
        "grpcClientProducerMaxAttempts": 1,
        **_at_borders_of_proxies(settings),
        **planted,
    }
    program = PythonProgram(main="system_under_test.rocketmq.node:proxy", config=config)
    return NodeSpec(name=name, groups=("proxies",), program=program, ports=(PROXY_PORT,))


def _broker(name: str, group: BrokerGroup, settings: RocketmqSettings, planted: Mapping[str, str]) -> NodeSpec:
    if settings.has_dledger:
        roles = _of_dledger(name, group, settings)
    else:
        roles = _elected(name, group, settings) if settings.has_controllers else _configured(name, group, settings)
    is_synchronous = settings.flush == "sync" and not settings.has_dledger
    return NodeSpec(
        name=name,
        groups=("brokers",),
        program=PythonProgram(
            main="system_under_test.rocketmq.node:broker",
            config={
                "brokerName": group.name,
                "brokerClusterName": CLUSTER,
                "listenPort": BROKER_PORT,
                "haListenPort": HA_PORT,
                "namesrvAddr": ";".join(addresses(name_server_names(settings), NAMESERVER_PORT)),
                **roles,
                "flushDiskType": "SYNC_FLUSH" if is_synchronous else "ASYNC_FLUSH",
                "ackAfterFlush": settings.ack_durable,
                "enableBatchPush": settings.batch_push,
                "mappedFileSizeCommitLog": settings.file_bytes,
                "syncFromLastFile": settings.sync_from_last_file,
                "slaveReadEnable": True,
                "readUnCommitted": settings.read_uncommitted,
                **_cleaning(settings),
                "maxHashSlotNum": 1_000,
                "maxIndexNum": 4_000,
                # A static topic is made by an administrator.
                "topics": {} if settings.static_queues else dict.fromkeys(topics(settings), settings.topic_queues),
                "haSendHeartbeatInterval": milliseconds(5_000, settings),
                "haHousekeepingInterval": milliseconds(20_000, settings),
                "slaveSynchronizePeriod": milliseconds(10_000, settings),
                "registerNameServerPeriod": milliseconds(30_000, settings),
                "channelExpiredTimeout": milliseconds(120_000, settings),
                "scanNotActiveChannelInterval": milliseconds(10_000, settings),
                "loadBalancePollNameServerInterval": milliseconds(30_000, settings),
                "rebalanceLockMaxLiveTime": milliseconds(60_000, settings),
                "lockInStrictMode": settings.strict_locks,
                "totalReplicas": len(group.brokers),
                "transactionTimeOut": milliseconds(6_000, settings),
                "transactionCheckInterval": milliseconds(10_000, settings),
                "transactionCheckMax": CHECK_MAX,
                "scheduleDeliveryMode": settings.delay_delivery.upper(),
                **TIMERS,
                **_at_borders(settings),
                **planted,
            },
        ),
        ports=(BROKER_PORT, DLEDGER_PORT) if settings.has_dledger else (BROKER_PORT,),
        replica=True,
    )


def _at_borders(settings: RocketmqSettings) -> Mapping[str, SettingValue]:
    """How many requests a broker works on, and how large a message may be."""
    places = {"serverAsyncSemaphoreValue": settings.request_places} if settings.request_places else {}
    return {**places, **({"maxMessageSize": BORDERING_MESSAGE_BYTES} if settings.values == "bordering" else {})}


def _at_borders_of_proxies(settings: RocketmqSettings) -> Mapping[str, SettingValue]:
    """The same of a proxy; and clients that vanish are to be missed while a storm lasts."""
    places = {"grpcThreadPoolQueueCapacity": settings.request_places} if settings.request_places else {}
    if settings.values == "ordinary":
        return places
    return {
        **places,
        "maxMessageSize": BORDERING_MESSAGE_BYTES,
        "grpcClientIdleTimeMills": VANISHED_MS,
        "defaultInvisibleTimeMills": RENEWED_MS,
        "renewSliceTimeMillis": RENEWED_MS // 4,
    }


def _cleaning(settings: RocketmqSettings) -> Mapping[str, SettingValue]:
    """When files of the log are deleted: at any hour once they have expired, if they ever do."""
    cleaning: dict[str, SettingValue] = {
        "cleanResourceInterval": milliseconds(10_000, settings),
        "cleanFileForciblyEnable": settings.clean_when_full,
        "copyAnewWhenExpired": True,
        # Files are small here: RocketMQ's ten at a time would be fewer than are written meanwhile.
        "deleteFileBatchMax": 1_000,
    }
    if settings.retention_s:
        cleaning["fileReservedTimeMillis"] = milliseconds(round(settings.retention_s * 1000), settings)
        cleaning["deleteWhen"] = ";".join(f"{hour:02}" for hour in range(24))
    return cleaning


def _elected(name: str, group: BrokerGroup, settings: RocketmqSettings) -> Mapping[str, object]:
    return {
        "enableControllerMode": True,
        "controllerAddr": ";".join(addresses(controller_names(settings), CONTROLLER_PORT)),
        "controllerDeployedStandAlone": settings.controllers_alone,
        "allAckInSyncStateSet": settings.all_ack,
        "inSyncReplicas": settings.in_sync_replicas,
        "minInSyncReplicas": settings.min_in_sync_replicas,
        "asyncLearner": name not in group.voters,
        "brokerHeartbeatInterval": milliseconds(3_000 if settings.sparse_heartbeats else 1_000, settings),
        "syncBrokerMetadataPeriod": milliseconds(5_000, settings),
        "checkSyncStateSetPeriod": milliseconds(5_000, settings),
        "syncControllerMetadataPeriod": milliseconds(10_000, settings),
        "haMaxTimeSlaveNotCatchup": milliseconds(15_000, settings),
    }


def _of_dledger(name: str, group: BrokerGroup, settings: RocketmqSettings) -> Mapping[str, object]:
    """Members are called by their nodes' names."""
    preferred = {"preferredLeaderIds": group.brokers[settings.preferred - 1]} if settings.preferred else {}
    return {
        "enableDLegerCommitLog": True,
        "dLegerGroup": group.name,
        "dLegerPeers": ";".join(f"{broker}-{broker}:{DLEDGER_PORT}" for broker in group.brokers),
        "dLegerSelfId": name,
        "ackDurable": settings.ack_durable,
        **_times_of_dledger(settings),
        **preferred,
    }


def _times_of_dledger(settings: RocketmqSettings) -> Mapping[str, int]:
    """RocketMQ's own brokers have the library's, so those beside them do as well."""
    if settings.is_original:
        return {**TIMES_MS, **ANSWERED_WITHIN_MS}
    return {
        **{key: milliseconds(default_ms, settings) for key, default_ms in TIMES_MS.items()},
        # What has to outlast a round trip shrinks as Raft's periods do.
        **{key: raft_milliseconds(default_ms, settings) for key, default_ms in ANSWERED_WITHIN_MS.items()},
    }


def _configured(name: str, group: BrokerGroup, settings: RocketmqSettings) -> Mapping[str, object]:
    """The first broker of a group is its master."""
    place = group.brokers.index(name)
    master = "SYNC_MASTER" if settings.deployment == "dual-write" else "ASYNC_MASTER"
    return {"enableControllerMode": False, "brokerRole": "SLAVE" if place else master, "brokerId": place}
