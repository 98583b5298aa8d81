"""What RocketMQ's public client gets through a proxy: messages sent, then received and acknowledged, each exactly once.

A NameServer, one broker and one proxy run as processes on loopback; the client runs unmodified in processes of its own,
which send with so many sends under way at once, and then receive and acknowledge in so many threads. Every message is a
number, and is counted where it comes. Memory and open files of broker and proxy are sampled meanwhile.

python benchmarks/rocketmq/public_client.py [--count 1000000] [--processes N] [--at-once N]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from loopback import BROKER, NAME_SERVER, PROXY, Processes, free_ports, processor_s

TOPIC, GROUP, CLUSTER = "load", "readers", "bench"
QUEUES = 16
BODY_BYTES = 100
TIMEOUT_S = 60
"""Of a call: a machine that is busy makes no copies."""
INVISIBLE_S = 12 * 3600
RECEIVED_AT_ONCE = 32
GIVEN_UP_S = 120.0
"""After so long without anything received, what is missing is missing."""
SAMPLES = 10
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True, kw_only=True)
class Phase:
    """What sending or receiving all took."""

    name: str
    seconds: float
    processor_s: Mapping[str, float]
    counts: np.ndarray
    """How often each message came; empty where it was sent."""

    def line(self, count: int) -> str:
        shares = ", ".join(f"{who} {spent:.1f}" for who, spent in self.processor_s.items())
        return f"{self.name:8} {count / self.seconds:8,.0f}/s in {self.seconds:,.1f} s; processor seconds: {shares}"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Of one process."""

    mib: float
    files: int

    @classmethod
    def of(cls, pid: int) -> Sample:
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
        return cls(mib=pages * PAGE_MIB, files=len(os.listdir(f"/proc/{pid}/fd")))


class Nodes(Processes):
    """A NameServer, a broker and a proxy."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        name_server, broker, ha, proxy = free_ports(4)
        self.endpoints = f"127.0.0.1:{proxy}"
        names = {"namesrvAddr": f"127.0.0.1:{name_server}"}
        of_broker = {"brokerClusterName": CLUSTER, "listenPort": broker, "haListenPort": ha, "topics": {TOPIC: QUEUES}}
        of_broker |= {"brokerAddr": f"127.0.0.1:{broker}", "flushDiskType": "ASYNC_FLUSH"}
        of_proxy = {"rocketMQClusterName": CLUSTER, "grpcServerPort": proxy}
        self.start("NameServer", NAME_SERVER, {"listenPort": name_server})
        self.start("broker", BROKER, {**names, **of_broker})
        self.start("proxy", PROXY, {**names, **of_proxy})
        self.sampled = {name: self.pid(name) for name in ("broker", "proxy")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--processes", type=int, default=2, help="of the client")
    parser.add_argument("--at-once", type=int, default=32, help="sends, or receiving threads, of each of these")
    arguments = parser.parse_args()
    with TemporaryDirectory() as directory:
        os.environ["HOME"] = directory  # where the client logs
        nodes = Nodes(Path(directory))
        try:
            measure(nodes, arguments.count, arguments.processes, arguments.at_once)
        finally:
            nodes.stop()


def measure(nodes: Nodes, count: int, processes: int, at_once: int) -> None:
    sent = phase("sent", sending, nodes, count, processes, at_once)
    print(sent.line(count), flush=True)
    received = phase("received", receiving, nodes, count, processes, at_once)
    print(received.line(count), flush=True)
    missing, again = int((received.counts == 0).sum()), int((received.counts > 1).sum())
    print(f"of {count:,} messages {missing} are missing and {again} came more than once")
    for one in (sent, received):
        busiest = max(one.processor_s, key=lambda who: one.processor_s[who] / (processes if who == "client" else 1))
        spent = sum(one.processor_s.values())
        print(
            f"{one.name:8} the {busiest} is the busiest, for {one.processor_s[busiest] / one.seconds:.0%} of the time; "
            f"all together used {spent / one.seconds:.2f} of {os.cpu_count()} processors"
        )


def phase(
    name: str,
    work: Callable[..., np.ndarray],
    nodes: Nodes,
    count: int,
    processes: int,
    at_once: int,
) -> Phase:
    context = multiprocessing.get_context("spawn")
    done: Synchronized[int] = context.Value("q", 0)
    before_s = {who: processor_s(pid) for who, pid in nodes.sampled.items()}
    with context.Pool(processes, initializer=_share, initargs=(done,)) as pool:
        began_s = time.monotonic()
        shares = [(nodes.endpoints, number, processes, count, at_once) for number in range(processes)]
        working = pool.starmap_async(work, shares)
        watch(name, nodes, done, count, working)
        results = working.get()
        seconds = time.monotonic() - began_s
    spent = {who: processor_s(pid) - before_s[who] for who, pid in nodes.sampled.items()}
    return Phase(
        name=name,
        seconds=seconds,
        processor_s={"client": sum(used for used, _ in results), **spent},
        counts=np.sum([counts for _, counts in results], axis=0),
    )


def watch(name: str, nodes: Nodes, done: Synchronized[int], count: int, working: Any) -> None:
    """Print what broker and proxy hold each time another tenth is done."""
    for tenth in range(1, SAMPLES + 1):
        while done.value < count * tenth // SAMPLES and not working.ready():
            working.wait(0.5)
        held = {who: Sample.of(pid) for who, pid in nodes.sampled.items()}
        words = ", ".join(f"{who} {one.mib:.0f} MiB and {one.files} files" for who, one in held.items())
        print(f"{done.value:10,} {name}: {words}", flush=True)


_done: Synchronized[int]
"""In each process of the client: how many messages all of them are through with."""


def _share(done: Synchronized[int]) -> None:
    global _done
    _done = done


def sending(endpoints: str, number: int, processes: int, count: int, at_once: int) -> tuple[float, np.ndarray]:
    """Send every message of this process's share; returns its processor seconds."""
    from rocketmq import ClientConfiguration, Credentials, Message, Producer

    producer = Producer(ClientConfiguration(endpoints, Credentials(), request_timeout=TIMEOUT_S), (TOPIC,))
    until_started(producer)
    free = threading.Semaphore(at_once)
    failures: list[BaseException] = []

    def ended(future: Any) -> None:
        free.release()
        if (failure := future.exception()) is not None:
            failures.append(failure)
        with _done.get_lock():
            _done.value += 1

    for value in range(number, count, processes):
        free.acquire()
        message = Message()
        message.topic, message.body = TOPIC, (b"%d" % value).ljust(BODY_BYTES)
        producer.send_async(message).add_done_callback(ended)
        if failures:
            raise failures[0]
    for _ in range(at_once):
        free.acquire()
    used_s = time.process_time()
    producer.shutdown()
    return used_s, np.zeros(count, np.int32)


def receiving(endpoints: str, number: int, processes: int, count: int, at_once: int) -> tuple[float, np.ndarray]:
    """Receive and acknowledge until all messages came to some process; returns processor seconds and counts."""
    from rocketmq import ClientConfiguration, Credentials, FilterExpression, SimpleConsumer

    configuration = ClientConfiguration(endpoints, Credentials(), request_timeout=TIMEOUT_S)
    consumer = SimpleConsumer(configuration, GROUP, {TOPIC: FilterExpression()}, await_duration=1)
    until_started(consumer)
    counts, lock = np.zeros(count, np.int32), threading.Lock()

    def receive(_: int) -> None:
        heard_s = time.monotonic()
        while _done.value < count and time.monotonic() < heard_s + GIVEN_UP_S:
            messages = consumer.receive(RECEIVED_AT_ONCE, INVISIBLE_S)
            for message in messages:
                consumer.ack(message)
            if messages:
                heard_s = time.monotonic()
                with lock:
                    np.add.at(counts, [int(message.body) for message in messages], 1)
                with _done.get_lock():
                    _done.value += len(messages)

    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(receive, range(at_once)))
    used_s = time.process_time()
    consumer.shutdown()
    return used_s, counts


def until_started(client: Any) -> None:
    """Broker and proxy may not have found each other yet."""
    client.startup()
    while True:
        try:
            client._retrieve_topic_route_data(TOPIC)
            return
        except Exception:  # noqa: BLE001 - the client raises plain ones
            time.sleep(0.5)


if __name__ == "__main__":
    main()
