"""Streams of JetStream as logs: what is asked for, what is shown, and which replica a final read is made at."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from harness.errors import CLIENT_TIMEOUT, NOT_FOUND, OperationError, UsageError
from harness.operation import Operation
from harness.program import Command
from workloads.log import LogSettings, queue_key
from workloads.systems.nats.adapter import SYSTEM, NatsSettings
from workloads.systems.nats.log import NatsLogClient


class Clock:
    def __init__(self) -> None:
        self.now_ns = 0

    def monotonic_ns(self) -> int:
        self.now_ns += 100_000_000
        return self.now_ns


class Host:
    def __init__(self) -> None:
        self.clock = Clock()


class FakeJetstream:
    """A stream whose replicas hold what they are given, and which puts readers on its servers in turn."""

    def __init__(self, replicas: Mapping[str, Mapping[int, bytes]], leader: str) -> None:
        self.replicas, self.leader = replicas, leader
        self.placed, self.deleted = list(replicas), 0
        self.readers: dict[str, tuple[str, int]] = {}
        self.answering: list[str] = [leader]
        """Who answers direct gets, one after the other, the last one for ever; an empty name does not answer."""

    async def publish(self, subject: str, data: bytes) -> int:
        assert subject == "queue.0"
        return max(self.replicas[self.leader], default=0) + 1

    async def next_stored(self, stream: str, place: int) -> tuple[int, bytes] | None:
        name = self.answering.pop(0) if len(self.answering) > 1 else self.answering[0]
        if not name:
            raise OperationError(CLIENT_TIMEOUT)
        return _from(self.replicas[name], place)

    async def ask(self, subject: str, request: Mapping[str, Any] | None = None) -> Any:
        what = subject.rpartition(".")[0] if subject.startswith("CONSUMER.DELETE") else subject
        if what == "CONSUMER.CREATE.Q0":
            assert request is not None
            name, node = f"r{len(self.readers)}", self.placed[len(self.readers) % len(self.placed)]
            self.readers[name] = (node, request["config"]["opt_start_seq"])
            return {"name": name, "cluster": {"leader": node}}
        if what == "CONSUMER.DELETE.Q0":
            self.deleted += 1
            return {"success": True}
        held = self.replicas[self.leader]
        if what == "STREAM.INFO.Q0":
            return {"state": {"last_seq": max(held, default=0)}}
        assert what == "STREAM.MSG.GET.Q0" and request is not None
        if (found := _from(held, request["seq"])) is None:
            raise OperationError(NOT_FOUND)
        return {"message": {"seq": found[0]}}

    async def pulled(self, stream: str, consumer: str, most: int) -> list[tuple[int, bytes]]:
        node, place = self.readers[consumer]
        return [(at, body) for at, body in sorted(self.replicas[node].items()) if at >= place][:most]

    async def close(self) -> None:
        self.answering = ["closed"]


def _from(held: Mapping[int, bytes], place: int) -> tuple[int, bytes] | None:
    return min(((at, body) for at, body in held.items() if at >= place), default=None)


def client_of(stream: FakeJetstream) -> NatsLogClient:
    client = NatsLogClient(Host(), "n1")
    client._jetstream = stream  # type: ignore[assignment]
    return client


def invoked(client: NatsLogClient, f: str, value: Any = None, node: str | None = None) -> Mapping[str, Any]:
    operation = Operation(type="invoke", f=f, process=0, time=0, key=queue_key(0), value=value, node=node)
    return asyncio.run(client.invoke(operation)).value or {}


def test_a_send_gets_the_place_that_jetstream_answers() -> None:
    stream = FakeJetstream({"n1": {1: b"7"}}, "n1")
    assert invoked(client_of(stream), "send", {"message": 8, "offset": None, "messages": None})["offset"] == 2


def test_polls_go_on_where_the_last_one_ended_and_show_what_came_before_a_failure() -> None:
    stream = FakeJetstream({"n1": {1: b"7", 2: b"8", 4: b"9"}}, "n1")
    stream.answering = ["n1", ""]
    client = client_of(stream)
    assert invoked(client, "poll") == {"message": None, "offset": 2, "messages": [{"offset": 1, "message": 7}]}
    stream.answering = ["n1"]
    later = invoked(client, "poll")
    assert [(one["offset"], one["message"]) for one in later["messages"]] == [(2, 8), (4, 9)]
    assert invoked(client, "poll") == {"message": None, "offset": 5, "messages": []}


def test_a_poll_of_which_nothing_came_fails() -> None:
    stream = FakeJetstream({"n1": {}}, "n1")
    stream.answering = [""]
    with pytest.raises(OperationError):
        invoked(client_of(stream), "poll")


def test_final_polls_show_the_copy_of_the_server_that_they_name() -> None:
    replicas = {"n1": {1: b"7", 2: b"8"}, "n2": {1: b"7"}, "n3": {1: b"7", 2: b"9"}}
    stream = FakeJetstream(replicas, "n1")
    shown = {
        node: invoked(client_of(stream), "final-poll", {"offset": 0, "message": None, "messages": None}, node)
        for node in replicas
    }
    assert {node: [one["message"] for one in value["messages"]] for node, value in shown.items()} == {
        "n1": [7, 8],
        "n2": [7],
        "n3": [7, 9],
    }
    assert [value["offset"] for value in shown.values()] == [3, 2, 3]
    assert stream.deleted == len(stream.readers), "readers are left behind"


def test_a_final_poll_is_not_answered_by_another_server() -> None:
    stream = FakeJetstream({"n1": {1: b"7"}, "n2": {1: b"7"}}, "n1")
    stream.placed = ["n1"]
    with pytest.raises(OperationError, match="no reader was put on n2"):
        invoked(client_of(stream), "final-poll", {"offset": 0, "message": None, "messages": None}, "n2")


@pytest.mark.parametrize(
    ("held", "position", "caught_up"),
    [
        ({}, 0, True),
        ({1: b"7", 2: b"8"}, 3, True),
        ({1: b"7", 2: b"8"}, 2, False),
        ({1: b"7", 2: b"8"}, 0, False),
        ({1: b"7"}, 3, False),
    ],
    ids=["empty", "at the end", "before it", "at the beginning", "further than the leader"],
)
def test_a_replica_is_caught_up_at_the_leaders_end(held: Mapping[int, bytes], position: int, caught_up: bool) -> None:
    client = client_of(FakeJetstream({"n1": held}, "n1"))
    value = {"offset": position, "message": None, "messages": None}
    if caught_up:
        invoked(client, "caught-up", value, "n2")
        return
    with pytest.raises(OperationError, match=r"read to \d, the leader ends at \d"):
        invoked(client, "caught-up", value, "n2")


@pytest.mark.parametrize(
    ("settings", "of_log", "words"),
    [
        (NatsSettings(), LogSettings(tags=2), "setting tags of log takes 0 on nats"),
        (NatsSettings(), LogSettings(batch_share=0.5), "setting batch_share of log takes 0 on nats"),
        (NatsSettings(), LogSettings(move_share=0.1), "setting move_share of log takes 0 on nats"),
        (NatsSettings(servers=5), LogSettings(), r"servers \(5\), got 3; add --set replicas=5"),
        (NatsSettings(), LogSettings(queues=5), "setting queues on nats takes at most 4, got 5"),
    ],
)
def test_logs_that_jetstream_does_not_keep_are_refused(settings: NatsSettings, of_log: LogSettings, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        SYSTEM.require_fitting(settings, of_log)


def test_a_server_gets_no_more_memory_than_it_may_and_is_read_in_the_end() -> None:
    nodes = SYSTEM.nodes(NatsSettings(servers=5, replicas=5), None)
    assert [node.name for node in nodes if node.replica] == ["n1", "n2", "n3", "n4", "n5"]
    commands = [node.program.argv[-1] for node in nodes if isinstance(node.program, Command)]
    assert len(commands) == 5
    assert all(command.startswith("ulimit -v 4194304 && exec nats-server") for command in commands)
