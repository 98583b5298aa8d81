"""Clients of a release's brokers: lines of JSON, whom they ask, and what they make of the answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import pytest

from harness.errors import CLIENT_TIMEOUT, CONNECT_FAILED, CONNECTION_LOST, PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from harness.record.facts import Lack
from system_under_test.bookkeeper.partition.position import Position
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed
from workloads.systems.bookkeeper.copies import UNDER_REPLICATED
from workloads.systems.bookkeeper.errors import LEDGER_LOST, NOT_SERVING
from workloads.systems.bookkeeper.original.brokers import Brokers
from workloads.systems.bookkeeper.original.client import OriginalLogClient
from workloads.systems.bookkeeper.original.trial import Original
from workloads.systems.bookkeeper.settings import BookkeeperSettings

Answer = Callable[[str, Mapping[str, Any]], Any]
"""Of a broker to a request: a value that becomes JSON, bytes as they are, or None for none."""
Result = TypeVar("Result")
OFFSET = Position(1, 4).offset


class Connection:
    def __init__(self, broker: str, answer: Answer) -> None:
        self.closed = False
        self._broker, self._answer = broker, answer
        self._left = bytearray()

    def write(self, data: bytes) -> None:
        assert data.endswith(b"\n") and data.count(b"\n") == 1
        answer = self._answer(self._broker, json.loads(data))
        if answer is not None:
            self._left += answer if isinstance(answer, bytes) else json.dumps(answer).encode() + b"\n"

    async def read_exactly(self, count: int) -> bytes:
        if not self._left:
            await asyncio.Event().wait()
        taken = bytes(self._left[:count])
        del self._left[:count]
        if taken == b"\x00":
            raise ConnectionClosed("it ended")
        return taken

    def close(self) -> None:
        self.closed = True


class Host:
    """With brokers of these names, of which the absent refuse connections."""

    def __init__(self, answer: Answer, absent: tuple[str, ...] = ()) -> None:
        self.clock = self.network = self
        self.connected: list[str] = []
        self._answer, self._absent = answer, absent

    async def connect(self, address: str, timeout_s: float) -> Connection:
        broker = address.partition(":")[0]
        if broker in self._absent:
            raise ConnectFailed("refused")
        self.connected.append(broker)
        return Connection(broker, self._answer)

    async def within(self, seconds: float, awaited: Coroutine[Any, Any, Result]) -> Result:
        return await asyncio.wait_for(awaited, 0.05 if seconds < 60 else None)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def invoked(client: OriginalLogClient, f: str, node: str | None = None, **value: Any) -> Operation:
    operation = Operation(time=0, type="invoke", process=0, f=f, key="storm/2", value=value, node=node)
    return asyncio.run(client.invoke(operation))


def client_of(answer: Answer, absent: tuple[str, ...] = ()) -> OriginalLogClient:
    return OriginalLogClient(Host(answer, absent), ("p1", "p2"), 4.0)


def refusing(error: str) -> Answer:
    return lambda broker, request: {"error": error, "detail": "because"}


def test_a_send_gets_the_offset_of_its_entry_from_the_broker_that_owns_the_partition() -> None:
    def answer(broker: str, request: Mapping[str, Any]) -> Any:
        assert request == {"f": "send", "partition": "storm-2", "messages": [7]}
        return {"error": "not-serving"} if broker == "p1" else {"place": 1, "entry": 4}

    done = invoked(client_of(answer), "send", message=7)
    assert (done.type, done.node, done.value) == ("ok", "p2", {"message": 7, "offset": OFFSET})


def test_the_messages_of_a_batch_have_offsets_one_after_the_other() -> None:
    txn = [{"message": 7}, {"message": 8}]
    done = invoked(client_of(lambda broker, request: {"place": 1, "entry": 4}), "send-batch", txn=txn)
    assert done.value == {"txn": [{"message": 7, "offset": OFFSET}, {"message": 8, "offset": OFFSET + 1}]}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refusing("failed"), LEDGER_LOST),
        (refusing("not-serving"), NOT_SERVING),
        (lambda broker, request: None, CLIENT_TIMEOUT),
        (lambda broker, request: b"no JSON\n", CONNECTION_LOST),
        (lambda broker, request: b"[]\n", CONNECTION_LOST),
        (lambda broker, request: b'{"pla\x00', CONNECTION_LOST),
    ],
)
def test_only_what_certainly_was_not_done_is_definite(answer: Answer, error: Any) -> None:
    with pytest.raises(OperationError) as caught:
        invoked(client_of(answer), "send", message=7)
    assert caught.value.error is error


def test_after_an_open_outcome_no_second_broker_is_asked_for_the_same() -> None:
    asked: list[str] = []

    def answer(broker: str, request: Mapping[str, Any]) -> Any:
        asked.append(broker)
        return {"error": "failed"} if broker == "p1" else {"place": 0, "entry": 0}

    client = client_of(answer)
    with pytest.raises(OperationError):
        invoked(client, "send", message=7)
    assert asked == ["p1"]
    assert invoked(client, "send", message=8).node == "p2"


def test_a_broker_that_is_not_there_is_passed_over() -> None:
    assert invoked(client_of(lambda broker, request: {"place": 0, "entry": 0}, ("p1",)), "send", message=1).node == "p2"
    with pytest.raises(OperationError) as caught:
        invoked(client_of(refusing("failed"), ("p1", "p2")), "send", message=1)
    assert caught.value.error is CONNECT_FAILED


def test_what_comes_late_answers_nothing_that_is_asked_later() -> None:
    host = Host(lambda broker, request: None if request["f"] == "send" else {"owns": True})
    brokers = Brokers(host, ("p1",), 4.0)

    async def twice() -> str | None:
        with pytest.raises(OperationError):
            await brokers.ask("p1", f="send")
        return await brokers.owner("storm-0")

    assert asyncio.run(twice()) == "p1"
    assert host.connected == ["p1", "p1"]


def test_polls_go_on_where_the_last_one_ended_and_leave_out_what_came_before_in_an_entry() -> None:
    asked: list[tuple[int, int]] = []

    def answer(broker: str, request: Mapping[str, Any]) -> Any:
        asked.append((request["place"], request["entry"]))
        return {"entries": [[0, 3, [5, 6]], [1, 0, [7]]], "place": 1, "entry": 1, "open": False}

    client = client_of(answer)
    first = invoked(client, "poll")
    assert first.value == {
        "message": None,
        "offset": Position(1, 1).offset,
        "messages": [
            {"offset": Position(0, 3).offset, "message": 5},
            {"offset": Position(0, 3, 1).offset, "message": 6},
            {"offset": Position(1, 0).offset, "message": 7},
        ],
    }
    invoked(client, "poll")
    assert asked == [(0, 0), (1, 1)]
    within = invoked(client, "final-poll", node="b1", offset=Position(0, 3, 1).offset)
    assert [each["message"] for each in within.value["messages"]] == [6, 7]  # type: ignore[index]


def test_a_final_read_ends_the_open_ledger_once_and_then_reads_again() -> None:
    asked: list[str] = []

    def answer(broker: str, request: Mapping[str, Any]) -> Any:
        asked.append(request["f"])
        if request["f"] == "seal":
            return {}
        assert request["bookie"] == "b3:3181"
        entries = [[0, 0, [9]]] if "seal" in asked else []
        return {"entries": entries, "place": 1 if entries else 0, "entry": 0, "open": True}

    done = invoked(client_of(answer), "final-poll", node="b3", offset=0)
    assert asked == ["read-at", "seal", "read-at"]
    assert done.node == "b3"
    assert done.value["messages"] == [{"offset": 0, "message": 9}]  # type: ignore[index]


def test_a_final_read_that_fails_is_one_of_its_bookie() -> None:
    with pytest.raises(OperationError) as caught:
        invoked(client_of(refusing("unread")), "final-poll", node="b3", offset=0)
    assert caught.value.node == "b3"


@pytest.mark.parametrize("shown_by", ["read", "read-at"])
def test_nobody_is_caught_up_while_the_owner_or_the_bookie_shows_more(shown_by: str) -> None:
    def answer(broker: str, request: Mapping[str, Any]) -> Any:
        entries = [[0, 5, [1]]] if request["f"] == shown_by else []
        return {"entries": entries, "place": 0, "entry": 6, "open": False}

    with pytest.raises(OperationError) as caught:
        invoked(client_of(answer), "caught-up", node="b1", offset=Position(0, 5).offset)
    assert caught.value.error is PRECONDITION_FAILED
    nothing = {"entries": [], "place": 0, "entry": 5, "open": False}
    assert invoked(client_of(lambda broker, request: nothing), "caught-up", node="b1", offset=0).type == "ok"


def test_a_bookie_is_let_in_once_its_copies_are_on_others_and_it_lives() -> None:
    acts: list[str] = []

    def answer(broker: str, request: Mapping[str, Any]) -> Any:
        if broker == "p1":
            return None
        acts.append(request["f"])
        return {"lives": acts[-3:] == ["started", "lives", "lives"]}

    async def start(program: Any) -> None:
        acts.append("started")

    settings = BookkeeperSettings(release="4.17.2")
    node = Original().nodes(settings, None)[3]
    words = asyncio.run(Original().grow(settings, Host(answer), node, start))
    assert "b1" in words
    assert acts == ["lives", "replace", "started", "lives", "lives"]


@pytest.mark.parametrize("lack", ["bookie b2:3181 lacks entry 4 of ledger 7", None])
def test_what_copies_lack_is_asked_until_a_broker_answers(lack: str | None) -> None:
    asked: list[str] = []

    def answer(broker: str, request: Mapping[str, Any]) -> Any:
        asked.append(request["f"])
        return {"error": "failed"} if len(asked) < 3 else {"lack": lack}

    found = asyncio.run(Original().lacking(BookkeeperSettings(release="4.17.2"), Host(answer)))
    assert asked == ["lack"] * 3
    assert found == (None if lack is None else Lack(name=UNDER_REPLICATED, because=lack))


def test_nothing_is_lacking_where_no_other_bookie_could_take_copies() -> None:
    settings = BookkeeperSettings(release="4.17.2", bookies=3)
    assert asyncio.run(Original().lacking(settings, Host(refusing("failed")))) is None
