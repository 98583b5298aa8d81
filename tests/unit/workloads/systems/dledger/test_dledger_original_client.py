"""Clients of members that answer no PULL: the leader is read in their place, one entry after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

from harness.errors import PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from system_under_test.dledger.client_message import (
    AppendAnswer,
    AppendRequest,
    ClientRequest,
    EntriesAnswer,
    GetRequest,
    PullRequest,
)
from system_under_test.dledger.entry import Entry
from system_under_test.dledger.message import Code
from workloads.systems.dledger.client import MOST_GETS, LogClient
from workloads.systems.dledger.errors import NOT_LEADER, error_of

A = TypeVar("A")
NODES = ("n1", "n2", "n3")


class Members:
    """A group of which n2 leads, with what it answers."""

    def __init__(self, bodies: Sequence[bytes], pulled: Sequence[bytes] = ()) -> None:
        self.log = [Entry(index, 1, 0, body) for index, body in enumerate(bodies)]
        self.pulled = [Entry(index, 1, 0, body) for index, body in enumerate(pulled)]
        self.leads = "n2"

    async def ask(self, node: str, request: ClientRequest, kind: type[A]) -> A:
        answer: object
        if isinstance(request, PullRequest):
            found = tuple(entry for entry in self.pulled[request.begin :] if entry.body)
            answer = EntriesAnswer(code=Code.SUCCESS, term=1, leader="n2", entries=found)
        elif node != self.leads:
            raise OperationError(NOT_LEADER, "it takes n2 for the leader", node=node)
        elif isinstance(request, AppendRequest):
            answer = AppendAnswer(code=Code.SUCCESS, term=1, leader="n2", index=len(self.log), position=0)
        else:
            assert isinstance(request, GetRequest)
            if not 0 <= request.begin < len(self.log):
                raise OperationError(error_of(Code.INDEX_OUT_OF_RANGE), "", node=node)
            answer = EntriesAnswer(code=Code.SUCCESS, term=1, leader="n2", entries=(self.log[request.begin],))
        assert isinstance(answer, kind)
        return answer

    async def leader(self, nodes: tuple[str, ...]) -> str | None:
        return "n2"


def client_of(members: Members, process: int = 0, public: tuple[str, ...] = NODES) -> LogClient:
    found = LogClient(object(), NODES, process, 1.0, public)
    found._members = members  # type: ignore[assignment]
    return found


def done(client: LogClient, f: str, **fields: Any) -> Operation:
    value = {"message": None, "offset": 0, "messages": None, **fields.pop("value", {})}
    return asyncio.run(client.invoke(Operation(type="invoke", f=f, value=value, process=0, time=0, **fields)))


def messages(operation: Operation) -> list[tuple[int, int]]:
    assert operation.value is not None
    return [(one["offset"], one["message"]) for one in operation.value["messages"]]


def test_a_poll_reads_at_the_leader_until_its_log_ends_and_goes_on_from_there() -> None:
    members = Members([b"7", b"", b"8"])
    consumer = client_of(members)
    first = done(consumer, "poll")
    assert (messages(first), first.value and first.value["offset"], first.node) == ([(0, 7), (2, 8)], 3, None)
    members.log.append(Entry(3, 1, 0, b"9"))
    assert messages(done(consumer, "poll")) == [(3, 9)]


def test_a_poll_asks_so_many_times_and_not_oftener() -> None:
    members = Members([b"%d" % number for number in range(2 * MOST_GETS)])
    assert len(messages(done(client_of(members, process=1), "poll"))) == MOST_GETS


def test_the_end_is_where_the_leader_shows_no_message_any_more() -> None:
    members = Members([b"7", b""])
    assert done(client_of(members), "caught-up", value={"offset": 1}).type == "ok"
    with pytest.raises(OperationError) as refused:
        done(client_of(members), "caught-up", value={"offset": 0})
    assert refused.value.error is PRECONDITION_FAILED


@pytest.mark.parametrize(("f", "node"), [("final-poll", None), ("caught-up", None), ("caught-up", "n3")])
def test_a_final_read_that_fails_is_not_one_of_the_member_that_refused(f: str, node: str | None) -> None:
    members = Members([b"7"])
    members.leads = "nobody"
    with pytest.raises(OperationError) as refused:
        done(client_of(members, public=("n1", "n2")), f, node=node)
    assert refused.value.node == node
    with pytest.raises(OperationError) as refused:
        done(client_of(members), "poll")
    assert refused.value.node in NODES


def test_members_of_ours_are_read_themselves() -> None:
    members = Members([b"7", b"8"], pulled=[b"7"])
    for process in range(3):
        poll = done(client_of(members, process=process, public=("n1", "n2")), "poll")
        assert (messages(poll), poll.node) == ([(0, 7)], "n3")
    final = done(client_of(members, public=("n1", "n2")), "final-poll", node="n3")
    assert (messages(final), final.node) == ([(0, 7)], "n3")
    with pytest.raises(OperationError):
        done(client_of(members, public=("n1", "n2")), "caught-up", node="n3", value={"offset": 1})


def test_a_send_that_another_member_refused_goes_to_the_leader() -> None:
    sent = done(client_of(Members([b"7"])), "send", value={"message": 8})
    assert (sent.node, sent.value and sent.value["offset"]) == ("n2", 1)
