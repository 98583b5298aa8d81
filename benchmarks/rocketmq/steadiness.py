"""Whether nodes stay as they are: resident memory and open files of each process while clients come, work and go.

A master, its slave, a NameServer with its controller, and a proxy run as processes on loopback. A round is: clients
that are all new send messages (1 KiB), members of a group, new as well, consume them, and other clients send, receive
and acknowledge some by gRPC through the proxy; then all of them go, half of them without a word. After each round the
kernel is asked for each node's resident memory and file descriptors.

Brokers keep 20 bytes of each message in memory by design, the entry of its consume queue, and for a message with keys
(all that come through the proxy have one) those of the index; of popped messages they know what is held. A NameServer
and a proxy have nothing to keep. What is told is the growth over the second half of the rounds, by message, when caches
are warm and pools of memory have their size.

python benchmarks/rocketmq/steadiness.py [--rounds N] [--sends N] [--calls N] [--clients N]
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loopback import BODY, PROXY, QUEUES, Cluster, Group, free_ports, running, sender

from system_under_test.grpc.client import GrpcClient
from system_under_test.grpc.protobuf import Message
from system_under_test.rocketmq.client.consumer.config import ConsumerConfig, Outcome
from system_under_test.rocketmq.client.consumer.process_queue import ConsumerMessage
from system_under_test.rocketmq.client.consumer.push_consumer import PushConsumer
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.rocketmq.consumer_protocol import ConsumeFromWhere
from system_under_test.rocketmq.proxy.v2 import (
    SERVICE,
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    Code,
    Duration,
    MessageQueue,
    MessageType,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    Resource,
    SendMessageRequest,
    SendMessageResponse,
    SystemProperties,
    UserMessage,
)
from system_under_test.runtime.real import RealHost

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
POPPED, READ = "popped", "load-steady"
GROUP = Group(name="steady", slaves=1, settings={"allAckInSyncStateSet": True, "topics": {READ: QUEUES, POPPED: 4}})
MEMBERS = 4
TIMEOUT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Size:
    resident_bytes: int
    files: int

    @classmethod
    def of(cls, pid: int) -> Size:
        pages = int(Path(f"/proc/{pid}/statm").read_text("utf-8").split()[1])
        return cls(resident_bytes=pages * PAGE_BYTES, files=len(os.listdir(f"/proc/{pid}/fd")))


@dataclass(frozen=True, kw_only=True)
class Work:
    """Of one round."""

    sends: int
    calls: int
    """Messages that go through the proxy."""
    clients: int


class Round:
    """Clients that are all new."""

    def __init__(self, cluster: Cluster, proxy: str, number: int, work: Work) -> None:
        self._host = RealHost(f"round-{number}", cluster.directory / f"round-{number}")
        self._name_servers = (cluster.name_server,)
        self._proxy = proxy
        self._number = number
        self._work = work
        self._consumed = 0
        self._all_consumed = asyncio.Event()

    async def run(self) -> None:
        work = self._work
        members = [self._member(number) for number in range(MEMBERS)]
        for member in members:
            member.start()
        each = range(work.clients)
        await asyncio.gather(*(self._produce(number) for number in each), *(self._call(number) for number in each))
        await asyncio.wait_for(self._all_consumed.wait(), TIMEOUT_S)
        for member in members[: MEMBERS // 2]:
            await member.shutdown()
        for member in members[MEMBERS // 2 :]:
            member.close()
        await self._host.close()

    def _member(self, number: int) -> PushConsumer:
        config = ConsumerConfig(
            nameservers=self._name_servers,
            group=f"readers-{self._number % 2}",
            client_id=f"{self._number}-{number}",
            subscriptions={READ: "*"},
            from_where=ConsumeFromWhere.FIRST_OFFSET,
            pull_batch=256,
        )
        return PushConsumer(self._host, config, self._listen)

    async def _listen(self, messages: tuple[ConsumerMessage, ...]) -> Outcome:
        self._consumed += len(messages)
        if self._consumed >= self._work.sends:
            self._all_consumed.set()
        return Outcome.SUCCESS

    async def _produce(self, number: int) -> None:
        client = MessageClient(self._host, self._name_servers, TIMEOUT_S)
        for message in range(number, self._work.sends, self._work.clients):
            await client.send(READ, message % QUEUES, BODY)
        client.close()

    async def _call(self, number: int) -> None:
        client = GrpcClient(self._host, TIMEOUT_S)
        caller = Caller(client, self._proxy, f"{self._number}-{number}")
        for _ in range(number, self._work.calls, self._work.clients):
            await caller.send_and_receive()
        client.close()


class Caller:
    """A client of the proxy, with its id."""

    def __init__(self, client: GrpcClient, proxy: str, client_id: str) -> None:
        self._client = client
        self._proxy = proxy
        self._client_id = client_id
        self._sent = 0

    async def send_and_receive(self) -> None:
        """Whatever message comes is acknowledged."""
        self._sent += 1
        system = SystemProperties(message_id=f"{self._client_id}-{self._sent}", message_type=MessageType.NORMAL)
        topic, group = Resource(name=POPPED), Resource(name="poppers")
        message = UserMessage(topic=topic, body=BODY, system_properties=system)
        for data in await self._ask("SendMessage", SendMessageRequest(messages=[message])):
            assert SendMessageResponse.decode(data).status.code == Code.OK
        wanted = ReceiveMessageRequest(
            group=group,
            message_queue=MessageQueue(topic=topic, id=-1),
            batch_size=4,
            invisible_duration=Duration(seconds=60),
        )
        answers = [ReceiveMessageResponse.decode(data) for data in await self._ask("ReceiveMessage", wanted)]
        held = [answer.message.system_properties for answer in answers if answer.message is not None]
        entries = [AckMessageEntry(message_id=one.message_id, receipt_handle=one.receipt_handle) for one in held]
        if entries:
            request = AckMessageRequest(group=group, topic=topic, entries=entries)
            for data in await self._ask("AckMessage", request):
                assert AckMessageResponse.decode(data).status.code == Code.OK

    async def _ask(self, method: str, request: Message) -> list[bytes]:
        metadata = {"x-mq-client-id": self._client_id}
        return await self._client.call_for_all(self._proxy, SERVICE + method, request.encode(), TIMEOUT_S, metadata)


async def sizes_by_round(cluster: Cluster, proxy: str, rounds: int, work: Work) -> list[dict[str, Size]]:
    """Node → its size before the first round and after each."""
    sizes = [{name: Size.of(process.pid) for name, process in cluster.processes.items()}]
    show_head(list(sizes[0]))
    show(0, sizes[0])
    for number in range(1, rounds + 1):
        await Round(cluster, proxy, number, work).run()
        sizes.append({name: Size.of(process.pid) for name, process in cluster.processes.items()})
        show(number * (work.sends + work.calls), sizes[-1])
    return sizes


def show_head(names: Sequence[str]) -> None:
    print(f"{'messages':>9} " + " ".join(f"{name:>20}" for name in names))


def show(messages: int, sizes: dict[str, Size]) -> None:
    shown = (f"{size.resident_bytes / 2**20:9.1f} MiB {size.files:3} fds" for size in sizes.values())
    print(f"{messages:9,} " + " ".join(f"{one:>20}" for one in shown), flush=True)


def show_growth(sizes: Sequence[dict[str, Size]], work: Work) -> None:
    first = len(sizes) // 2
    messages = (len(sizes) - 1 - first) * (work.sends + work.calls)
    for name, last in sizes[-1].items():
        grown = last.resident_bytes - sizes[first][name].resident_bytes
        print(
            f"{name}: {grown / 1024:+,.0f} KiB over the last {messages:,} messages, {grown / messages:+.1f} bytes "
            f"each; {last.files - sizes[first][name].files:+} files"
        )


async def measure(cluster: Cluster, proxy: str, rounds: int, work: Work) -> None:
    async with sender(cluster) as sending:
        await sending.make_ready(GROUP)
    show_growth(await sizes_by_round(cluster, proxy, rounds, work), work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--sends", type=int, default=20_000, help="a round")
    parser.add_argument("--calls", type=int, default=500, help="messages through the proxy, a round")
    parser.add_argument("--clients", type=int, default=20)
    chosen = parser.parse_args()
    work = Work(sends=chosen.sends, calls=chosen.calls, clients=chosen.clients)
    with running([GROUP]) as cluster:
        (port,) = free_ports(1)
        cluster.start("proxy", PROXY, {"namesrvAddr": cluster.name_server, "grpcServerPort": port})
        cluster.wait_for("proxy", "running")
        asyncio.run(measure(cluster, f"127.0.0.1:{port}", chosen.rounds, work))


if __name__ == "__main__":
    main()
