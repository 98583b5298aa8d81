"""RocketMQ in controller mode, shown to the harness.

Nodes: `controllers` NameServers c1… with an embedded controller each, `brokers` brokers b1… of one group.
Workloads: `log` on the brokers, `register` on the key-value store that the controllers replicate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from harness.bounds import Bounds
from harness.client import Client
from harness.errors import ErrorCode, OperationError, UsageError
from harness.operation import Operation
from harness.record.fault_log import Storm
from harness.system import LegalLoss, NodeSpec
from system_under_test.rocketmq.client.controller_client import ControllerClient
from system_under_test.rocketmq.client.errors import ClientError
from system_under_test.rocketmq.client.key_value_client import KeyValueClient
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.rocketmq.controller.protocol import GroupState
from system_under_test.rocketmq.mutants import mutant as find_mutant
from system_under_test.rocketmq.mutants import mutant_names

BROKER_GROUP = "broker-a"
TOPIC = "storm"
NAMESERVER_PORT, CONTROLLER_PORT, RAFT_PORT = 9876, 9878, 9879
BROKER_PORT, HA_PORT = 10911, 10912
REQUEST_TIMEOUT_S = 3.0
BATCH = 32
QUORUM_OF_THREE = 3
"""Fewer controllers than this cannot lose one."""
SLAVE_READ_SHARE = 0.2
"""Share of polls that ask a random replica instead of the master."""

_CODES = {error.code: error for error in ErrorCode}


@dataclass(frozen=True, kw_only=True)
class RocketmqSettings:
    """RocketMQ's settings by the names used here; `time_scale` shortens all of its periods alike."""

    controllers: Annotated[int, Bounds(1, 50)] = 3
    brokers: Annotated[int, Bounds(1, 100)] = 3
    all_ack: bool = True
    in_sync_replicas: Annotated[int, Bounds(1, 100)] = 1
    min_in_sync_replicas: Annotated[int, Bounds(1, 100)] = 2
    flush: Literal["sync", "async"] = "sync"
    ack_durable: bool = False
    """Slaves acknowledge only what they have fsynced."""
    unclean_election: bool = False
    notify_role_changed: bool = True
    learners: Annotated[int, Bounds(0, 99)] = 0
    """How many of the brokers are asynchronous learners (the last ones)."""
    topic_queues: Annotated[int, Bounds(1, 1_000)] = 16
    segment_bytes: Annotated[int, Bounds(1_024, 1 << 30)] = 64 * 1024 * 1024
    time_scale: Annotated[float, Bounds(0.01, 100)] = 0.3

    def __post_init__(self) -> None:
        if self.learners >= self.brokers:
            raise UsageError(f"learners must be less than brokers ({self.brokers}), got {self.learners}")
        for name in ("min_in_sync_replicas", "in_sync_replicas"):
            if getattr(self, name) > self.brokers - self.learners:
                raise UsageError(
                    f"{name}={getattr(self, name)} can never be met by "
                    f"{self.brokers - self.learners} brokers: every send would be refused; lower it or add brokers"
                )


def _controller_names(settings: RocketmqSettings) -> list[str]:
    return [f"c{i + 1}" for i in range(settings.controllers)]


def _broker_names(settings: RocketmqSettings) -> list[str]:
    return [f"b{i + 1}" for i in range(settings.brokers)]


def _addresses(names: list[str], port: int) -> list[str]:
    return [f"{name}:{port}" for name in names]


def _milliseconds(default_ms: int, settings: RocketmqSettings) -> int:
    return max(1, round(default_ms * settings.time_scale))


@dataclass(frozen=True)
class Rocketmq:
    name: str = "rocketmq"
    settings_type: type = RocketmqSettings
    workloads: tuple[str, ...] = ("log", "register")

    @property
    def mutants(self) -> Mapping[str, str]:
        return {name: find_mutant(name).breaks for name in mutant_names()}

    def nodes(self, settings: RocketmqSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        if mutant is not None:
            find_mutant(mutant)
        planted = {"mutant": mutant} if mutant else {}
        controllers = _controller_names(settings)
        peers = ";".join(f"{name}-{name}:{RAFT_PORT}" for name in controllers)

        def ms(default_ms: int) -> int:
            return _milliseconds(default_ms, settings)

        nodes = [
            NodeSpec(
                name=name,
                groups=("controllers",),
                main="system_under_test.rocketmq.node:nameserver",
                ports=(NAMESERVER_PORT, CONTROLLER_PORT),
                config={
                    "listenPort": NAMESERVER_PORT,
                    "enableControllerInNamesrv": True,
                    "controllerPort": CONTROLLER_PORT,
                    "controllerDLegerGroup": "controllers",
                    "controllerDLegerPeers": peers,
                    "controllerDLegerSelfId": name,
                    "controllerStorePath": "controller",
                    "enableElectUncleanMaster": settings.unclean_election,
                    "notifyBrokerRoleChanged": settings.notify_role_changed,
                    "brokerHeartbeatTimeout": ms(10_000),
                    "scanInactiveMasterInterval": ms(5_000),
                    "raftHeartbeatInterval": 200,
                    "raftMinElectionTimeout": 1_000,
                    "raftMaxElectionTimeout": 2_000,
                    **planted,
                },
            )
            for name in controllers
        ]
        brokers = _broker_names(settings)
        for position, name in enumerate(brokers):
            nodes.append(
                NodeSpec(
                    name=name,
                    groups=("brokers",),
                    main="system_under_test.rocketmq.node:broker",
                    ports=(BROKER_PORT,),
                    replica=True,
                    config={
                        "brokerName": BROKER_GROUP,
                        "brokerClusterName": "stormproof",
                        "listenPort": BROKER_PORT,
                        "haListenPort": HA_PORT,
                        "namesrvAddr": ";".join(_addresses(controllers, NAMESERVER_PORT)),
                        "enableControllerMode": True,
                        "controllerAddr": ";".join(_addresses(controllers, CONTROLLER_PORT)),
                        "allAckInSyncStateSet": settings.all_ack,
                        "inSyncReplicas": settings.in_sync_replicas,
                        "minInSyncReplicas": settings.min_in_sync_replicas,
                        "flushDiskType": "SYNC_FLUSH" if settings.flush == "sync" else "ASYNC_FLUSH",
                        "ackAfterFlush": settings.ack_durable,
                        "asyncLearner": position >= len(brokers) - settings.learners,
                        "mappedFileSizeCommitLog": settings.segment_bytes,
                        "topics": {TOPIC: settings.topic_queues},
                        "brokerHeartbeatInterval": ms(1_000),
                        "syncBrokerMetadataPeriod": ms(5_000),
                        "checkSyncStateSetPeriod": ms(5_000),
                        "syncControllerMetadataPeriod": ms(10_000),
                        "haMaxTimeSlaveNotCatchup": ms(15_000),
                        "haSendHeartbeatInterval": ms(5_000),
                        "haHousekeepingInterval": ms(20_000),
                        "registerNameServerPeriod": ms(30_000),
                        **planted,
                    },
                )
            )
        return tuple(nodes)

    def client(self, workload: str, settings: RocketmqSettings, host: Any, process: int) -> Client:
        if workload == "log":
            return LogClient(host, settings)
        if workload == "register":
            return RegisterClient(host, settings, process)
        raise UsageError(f"rocketmq has no client for workload {workload!r}; it has {', '.join(self.workloads)}")

    async def ready(self, settings: RocketmqSettings, host: Any, workload: str) -> None:
        controllers = ControllerClient(host, _addresses(_controller_names(settings), CONTROLLER_PORT), 1.0)
        try:
            while True:
                try:
                    if workload == "register":
                        await controllers.find_active()
                        return
                    replicas = await controllers.get_replica_info(BROKER_GROUP)
                    voters = settings.brokers - settings.learners
                    if replicas.master_id is not None and len(replicas.sync_state_set.members) == voters:
                        break
                except ClientError:
                    pass
                await host.clock.sleep(0.1)
        finally:
            controllers.close()
        client = _message_client(host, settings)
        try:
            while True:
                try:
                    if any(group.master for group in (await client.route(TOPIC)).groups):
                        return
                except ClientError:
                    pass
                await host.clock.sleep(0.1)
        finally:
            client.close()

    async def roles(self, settings: RocketmqSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        controllers = ControllerClient(host, _addresses(_controller_names(settings), CONTROLLER_PORT), 1.5)
        roles: dict[str, tuple[str, ...]] = {}
        try:
            active = _node(await controllers.find_active())
            roles["active-controller"] = (active,)
            if settings.controllers >= QUORUM_OF_THREE:
                roles["dispensable"] = (active,)
            group = (await controllers.sync_state_data([BROKER_GROUP])).get(BROKER_GROUP)
            if group is not None and group.info.master_address:
                roles["primary"] = (_node(group.info.master_address),)
                roles["dispensable"] = (*roles.get("dispensable", ()), *_dispensable_broker(settings, group))
        except ClientError:
            pass
        finally:
            controllers.close()
        return roles

    def legal_loss(self, settings: RocketmqSettings, storm: Storm) -> LegalLoss:
        return legal_loss(settings, storm)


def _dispensable_broker(settings: RocketmqSettings, group: GroupState) -> tuple[str, ...]:
    """A broker without which the group must go on: the master, where another member of the SyncStateSet lives."""
    needed = max(settings.min_in_sync_replicas, 1 if settings.all_ack else settings.in_sync_replicas)
    if settings.brokers - settings.learners - 1 < needed:
        return ()
    heirs = [replica for replica in group.in_sync if replica.is_alive and replica.broker_id != group.info.master_id]
    if heirs and group.info.master_address:
        return (_node(group.info.master_address),)
    return tuple(_node(replica.address) for replica in group.not_in_sync[:1])


LOSS = (
    "lost-write",
    "unseen",
    "dirty-read",
    "inconsistent-offsets",
    "nonmonotonic-send",
    "nonmonotonic-poll",
    "poll-skip",
    "consumer-offset-skip",
    "confirmed-lost",
    "rewritten-log",
)
"""What a client sees where acknowledged messages may be lost: their offsets are then given out again."""
DIRTY = ("dirty-read", "inconsistent-offsets")


def legal_loss(settings: RocketmqSettings, storm: Storm) -> LegalLoss:
    """The row of the table of legal losses for this configuration, cut down to the storm that struck."""
    kinds = set(storm.kinds)
    power = "power" in kinds
    if settings.unclean_election and kinds & {"kill", "power", "partition", "pause"}:
        return LegalLoss(
            anomalies=(*LOSS, "fenced-write"), reason="unclean election is on: a replica that lags may be elected"
        )
    if settings.brokers - settings.learners == 1:
        if settings.flush == "async" and power:
            return LegalLoss(anomalies=LOSS, reason="one broker with asynchronous flush lost power")
        return LegalLoss()
    if settings.all_ack:
        if power and (storm.power_several or storm.power_overlapped):
            return LegalLoss(anomalies=LOSS, reason="several replicas lost power together, or one under another fault")
        if power and settings.min_in_sync_replicas == 1 and settings.flush == "async":
            return LegalLoss(anomalies=LOSS, reason="minInSyncReplicas 1 with asynchronous flush under power loss")
        return LegalLoss()
    if not kinds & {"kill", "power", "partition", "pause"}:
        return LegalLoss()
    voters = settings.brokers - settings.learners
    if settings.in_sync_replicas == 1:
        return LegalLoss(anomalies=LOSS, reason="inSyncReplicas 1: sends are acknowledged before they are replicated")
    if settings.in_sync_replicas < voters:
        return LegalLoss(
            anomalies=LOSS,
            reason=f"inSyncReplicas {settings.in_sync_replicas} of {voters}: a laggard of the set may be elected",
        )
    if power and (settings.flush == "async" or storm.power_several or storm.power_overlapped):
        return LegalLoss(
            anomalies=LOSS, reason="every replica acknowledges, and power losses overlapped or flush is asynchronous"
        )
    return LegalLoss()


def _node(address: str) -> str:
    return address.rpartition(":")[0]


def _message_client(host: Any, settings: RocketmqSettings) -> MessageClient:
    return MessageClient(host, _addresses(_controller_names(settings), NAMESERVER_PORT), REQUEST_TIMEOUT_S)


def _operation_error(error: ClientError) -> OperationError:
    code = _CODES.get(error.code)
    if code is None or code.definite != error.definite:
        code = ErrorCode.SERVICE_NOT_AVAILABLE if error.definite else ErrorCode.OUTCOME_UNKNOWN
    return OperationError(code, error.detail, node=_node(error.node) if error.node else None)


class LogClient:
    """Sends, and polls as one consumer that goes on where its group's committed offset says."""

    def __init__(self, host: Any, settings: RocketmqSettings) -> None:
        self._host = host
        self._client = _message_client(host, settings)
        self._brokers = _broker_names(settings)
        self._group = f"consumers-{host.name}"
        self._positions: dict[str, int] = {}
        self._committed: dict[str, int] = {}

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._client.close()

    async def invoke(self, operation: Operation) -> Operation:
        try:
            if operation.f == "send":
                return await self._send(operation)
            if operation.f == "poll":
                return await self._poll(operation)
            if operation.f == "final-poll":
                return await self._final_poll(operation)
            if operation.f == "caught-up":
                return await self._caught_up(operation)
        except ClientError as error:
            raise _operation_error(error) from error
        raise UsageError(f"the log client knows send, poll, final-poll and caught-up, not {operation.f!r}")

    async def _send(self, operation: Operation) -> Operation:
        assert operation.value is not None
        message: int = operation.value["message"]
        sent = await self._client.send(TOPIC, _queue(operation), b"%d" % message)
        value = {"message": message, "offset": sent.queue_offset, "messages": None}
        return operation._replace(type="ok", value=value, node=_node(sent.broker))

    async def _poll(self, operation: Operation) -> Operation:
        queue = _queue(operation)
        key = str(queue)
        position = self._positions.get(key)
        resumed = None
        if position is None:
            resumed = position = await self._client.query_offset(self._group, TOPIC, queue) or 0
        elif position != self._committed.get(key):
            await self._commit(queue, position)
        address = None
        if self._host.random.random() < SLAVE_READ_SHARE:
            address = f"{self._host.random.choice(self._brokers)}:{BROKER_PORT}"
        pulled = await self._client.pull(TOPIC, queue, position, BATCH, self._group, address)
        if pulled.messages:
            position = pulled.messages[-1][0] + 1
        self._positions[key] = position
        value = _polled(position, pulled.messages) | {"group": self._group, "resumed": resumed}
        return operation._replace(type="ok", value=value, node=_node(pulled.broker))

    async def _commit(self, queue: int, position: int) -> None:
        """What earlier polls have returned: nobody may ever see what this one will.

        A commit that fails means redelivery, which is legal.
        """
        try:
            await self._client.update_offset(self._group, TOPIC, queue, position)
        except ClientError:
            return
        self._committed[str(queue)] = position

    async def _final_poll(self, operation: Operation) -> Operation:
        assert operation.value is not None and operation.node is not None
        position: int = operation.value["offset"]
        pulled = await self._client.pull(
            TOPIC, _queue(operation), position, BATCH, "final", f"{operation.node}:{BROKER_PORT}"
        )
        if pulled.messages:
            position = pulled.messages[-1][0] + 1
        return operation._replace(type="ok", value=_polled(position, pulled.messages))

    async def _caught_up(self, operation: Operation) -> Operation:
        """Ok only if the position is the end of the queue at the master and at this replica alike."""
        assert operation.value is not None and operation.node is not None
        queue, position = _queue(operation), operation.value["offset"]
        master = await self._client.pull(TOPIC, queue, position, 1, "final", None)
        replica = await self._client.pull(TOPIC, queue, position, 1, "final", f"{operation.node}:{BROKER_PORT}")
        if master.messages or replica.messages or master.max_offset != position or replica.max_offset != position:
            raise OperationError(
                ErrorCode.PRECONDITION_FAILED,
                f"read to {position}, the master ends at {master.max_offset}, {operation.node} at {replica.max_offset}",
            )
        return operation._replace(type="ok")


def _queue(operation: Operation) -> int:
    assert operation.key is not None
    return int(operation.key.rpartition("/")[2])


def _polled(position: int, messages: tuple[tuple[int, bytes], ...]) -> dict[str, Any]:
    return {
        "message": None,
        "offset": position,
        "messages": [{"offset": offset, "message": int(body)} for offset, body in messages],
    }


class RegisterClient:
    """A register by key in the controllers' store. Each process keeps to one controller unless told of the leader."""

    def __init__(self, host: Any, settings: RocketmqSettings, process: int) -> None:
        names = _controller_names(settings)
        prefer = f"{names[process % len(names)]}:{CONTROLLER_PORT}"
        self._client = KeyValueClient(host, _addresses(names, CONTROLLER_PORT), REQUEST_TIMEOUT_S, prefer=prefer)

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._client.close()

    async def invoke(self, operation: Operation) -> Operation:
        assert operation.key is not None and operation.value is not None
        value = operation.value
        try:
            if operation.f == "read":
                read = await self._client.get(operation.key)
                return operation._replace(type="ok", value={"value": read, "expected": None})
            if operation.f == "write":
                await self._client.put(operation.key, value["value"])
                return operation._replace(type="ok")
            if operation.f == "cas":
                await self._client.compare_and_set(operation.key, value["expected"], value["value"])
                return operation._replace(type="ok")
        except ClientError as error:
            raise _operation_error(error) from error
        raise UsageError(f"the register client knows read, write and cas, not {operation.f!r}")


SYSTEM = Rocketmq()
