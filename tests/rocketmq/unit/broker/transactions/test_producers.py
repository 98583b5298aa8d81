"""Which producers a broker may ask: those that it has heard of lately, over connections that live."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.broker.transactions.producers import EXPIRES_S, Producers


@dataclass(eq=False)
class Line:
    remote: str = "p"
    closed: bool = False

    def write(self, data: bytes) -> None:
        raise AssertionError("nothing is sent")

    def close(self) -> None:
        self.closed = True


class Broker:
    def __init__(self) -> None:
        self.now_ns = 0
        host: Any = SimpleNamespace(clock=SimpleNamespace(monotonic_ns=lambda: self.now_ns))
        self.producers = Producers(host)

    def hear(self, line: Line, client: str, *groups: str) -> None:
        body = {"clientID": client, "producerDataSet": [{"groupName": group} for group in groups]}
        self.producers.heard(json.dumps(body).encode(), line)


def test_producers_of_a_group_take_turns() -> None:
    broker, a, b = Broker(), Line(), Line()
    broker.hear(a, "a", "g", "h")
    broker.hear(b, "b", "g")
    assert [broker.producers.one_of("g") for _ in range(4)] == [a, b, a, b]
    assert [broker.producers.one_of("h") for _ in range(2)] == [a, a]
    assert broker.producers.one_of("other") is None


def test_one_that_comes_back_is_asked_over_its_new_connection() -> None:
    broker, old, new = Broker(), Line(), Line()
    broker.hear(old, "a", "g")
    broker.hear(new, "a", "g")
    broker.producers.closed(old)
    assert broker.producers.one_of("g") is new


def test_who_is_gone_silent_or_has_said_goodbye_is_not_asked() -> None:
    for leave in (
        lambda broker, line: line.close(),
        lambda broker, line: broker.producers.closed(line),
        lambda broker, line: setattr(broker, "now_ns", int((EXPIRES_S + 1) * 1e9)),
        lambda broker, _: broker.producers.unregister(
            RemotingCommand.request(RequestCode.UNREGISTER_CLIENT, {"clientID": "a", "producerGroup": "g"})
        ),
    ):
        broker, line = Broker(), Line()
        broker.hear(line, "a", "g")
        assert broker.producers.one_of("g") is line
        leave(broker, line)
        assert broker.producers.one_of("g") is None
