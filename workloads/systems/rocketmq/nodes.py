"""The nodes of a RocketMQ cluster: which program each runs, with which of RocketMQ's own settings."""

from __future__ import annotations

from collections.abc import Mapping

from harness.program import PythonProgram
from harness.system import NodeSpec
from workloads.systems.rocketmq.settings import (
    BROKER_GROUP,
    BROKER_PORT,
    CONTROLLER_PORT,
    HA_PORT,
    NAMESERVER_PORT,
    RAFT_PORT,
    TOPIC,
    RocketmqSettings,
    addresses,
    broker_names,
    controller_names,
    milliseconds,
    raft_milliseconds,
)

TIMERS: Mapping[str, int] = {"timerPrecisionMs": 100, "timerWheelSlots": 160, "timerRollWindowSlot": 40}
"""A small wheel: what is due in more than four seconds rolls."""


CHECK_MAX = 1_000
"""Transactions are asked about as long as a run lasts: what was put aside would be missed."""


def node_specs(settings: RocketmqSettings, planted: Mapping[str, str]) -> tuple[NodeSpec, ...]:
    """Controllers, then brokers. `planted` is added to the settings of each: the mutant, where there is one."""
    controllers = (_controller(name, settings, planted) for name in controller_names(settings))
    brokers = (_broker(name, settings, planted) for name in broker_names(settings))
    return (*controllers, *brokers)


def _controller(name: str, settings: RocketmqSettings, planted: Mapping[str, str]) -> NodeSpec:
    """A NameServer with an embedded controller."""
    return NodeSpec(
        name=name,
        groups=("controllers",),
        program=PythonProgram(
            main="system_under_test.rocketmq.node:nameserver",
            config={
                "listenPort": NAMESERVER_PORT,
                "enableControllerInNamesrv": True,
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
            },
        ),
        ports=(NAMESERVER_PORT, CONTROLLER_PORT),
    )


def _broker(name: str, settings: RocketmqSettings, planted: Mapping[str, str]) -> NodeSpec:
    controllers = controller_names(settings)
    learners = broker_names(settings)[settings.brokers - settings.learners :]
    return NodeSpec(
        name=name,
        groups=("brokers",),
        program=PythonProgram(
            main="system_under_test.rocketmq.node:broker",
            config={
                "brokerName": BROKER_GROUP,
                "brokerClusterName": "stormproof",
                "listenPort": BROKER_PORT,
                "haListenPort": HA_PORT,
                "namesrvAddr": ";".join(addresses(controllers, NAMESERVER_PORT)),
                "enableControllerMode": True,
                "controllerAddr": ";".join(addresses(controllers, CONTROLLER_PORT)),
                "allAckInSyncStateSet": settings.all_ack,
                "inSyncReplicas": settings.in_sync_replicas,
                "minInSyncReplicas": settings.min_in_sync_replicas,
                "flushDiskType": "SYNC_FLUSH" if settings.flush == "sync" else "ASYNC_FLUSH",
                "ackAfterFlush": settings.ack_durable,
                "asyncLearner": name in learners,
                "mappedFileSizeCommitLog": settings.segment_bytes,
                "topics": {TOPIC: settings.topic_queues},
                "brokerHeartbeatInterval": milliseconds(3_000 if settings.sparse_heartbeats else 1_000, settings),
                "syncBrokerMetadataPeriod": milliseconds(5_000, settings),
                "checkSyncStateSetPeriod": milliseconds(5_000, settings),
                "syncControllerMetadataPeriod": milliseconds(10_000, settings),
                "haMaxTimeSlaveNotCatchup": milliseconds(15_000, settings),
                "haSendHeartbeatInterval": milliseconds(5_000, settings),
                "haHousekeepingInterval": milliseconds(20_000, settings),
                "slaveSynchronizePeriod": milliseconds(10_000, settings),
                "registerNameServerPeriod": milliseconds(30_000, settings),
                "transactionTimeOut": milliseconds(6_000, settings),
                "transactionCheckInterval": milliseconds(10_000, settings),
                "transactionCheckMax": CHECK_MAX,
                "scheduleDeliveryMode": settings.delay_delivery.upper(),
                **TIMERS,
                **planted,
            },
        ),
        ports=(BROKER_PORT,),
        replica=True,
    )
