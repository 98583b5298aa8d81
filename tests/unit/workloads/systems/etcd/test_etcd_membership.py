"""How a member of etcd is removed and added: what is asked of whom, and what is made of each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from harness.errors import OperationError
from harness.program import Command
from workloads.systems.etcd.adapter import SYSTEM, EtcdSettings
from workloads.systems.etcd.membership import add, let_go, until_it_follows

Answers = Sequence[Mapping[str, Any]]
LED, LEADERLESS = {"leader": "7", "raftIndex": "40"}, {"raftIndex": "40"}
READ: Mapping[str, Any] = {}
UNHEALTHY = {"code": 14, "message": "etcdserver: unhealthy cluster"}
TIMED_OUT = {"code": 14, "message": "etcdserver: request timed out"}


def listed(*names: str) -> Mapping[str, Any]:
    return {"members": [{"ID": str(10 + int(name[1])), "peerURLs": [f"http://{name}:2380"]} for name in names]}


class Member:
    """`Gateway` that answers so, and says what it was asked."""

    def __init__(self, node: str, answers: Answers) -> None:
        self.node = node
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.is_closed = False
        self._answers = list(answers)

    async def ask(self, path: str, request: Mapping[str, Any]) -> Any:
        from workloads.systems.etcd.errors import Refused, code_of

        self.asked.append((path, request))
        answer = self._answers.pop(0)
        if "code" in answer:
            refused = Refused(answer["code"], answer["message"])
            raise OperationError(code_of(refused), str(refused), node=self.node)
        return answer

    async def close(self) -> None:
        self.is_closed = True


def done(change: Callable[[Any, str], Awaitable[str]], *members: Member) -> str:
    try:
        return asyncio.run(change(members, "e3"))  # type: ignore[arg-type]
    finally:
        assert all(member.is_closed for member in members)


def refusal(change: Callable[[Any, str], Awaitable[str]], *members: Member) -> OperationError:
    with pytest.raises(OperationError) as refused:
        done(change, *members)
    return refused.value


def test_a_member_is_removed_by_the_id_that_it_has_now() -> None:
    member = Member("e1", [LED, READ, listed("e1", "e2", "e3"), {}])
    assert done(let_go, member) == "e3 was removed as member d, by e1"
    paths = [path for path, _ in member.asked]
    assert paths == ["maintenance/status", "kv/range", "cluster/member/list", "cluster/member/remove"]
    assert member.asked[-1][1] == {"ID": "13"}


def test_who_follows_no_leader_or_cannot_read_what_is_committed_is_not_asked_who_is_a_member() -> None:
    cut_off, alone = Member("e1", [LEADERLESS]), Member("e2", [LED, TIMED_OUT])
    error = refusal(let_go, cut_off, alone)
    assert error.error.definite, "nothing was proposed"
    assert "request timed out" in str(error)
    assert [path for path, _ in cut_off.asked] == ["maintenance/status"]


@pytest.mark.parametrize(("answer", "is_definite"), [(UNHEALTHY, True), (TIMED_OUT, False)])
def test_a_refusal_is_definite_only_where_nothing_was_proposed(answer: Mapping[str, Any], is_definite: bool) -> None:
    error = refusal(let_go, Member("e1", [LED, READ, listed("e1", "e2", "e3"), answer]))
    assert error.error.definite is is_definite


@pytest.mark.parametrize(
    ("change", "members", "says"),
    [
        (let_go, ("e1", "e2"), "e3 was no member any more, by e1"),
        (add, ("e1", "e2", "e3"), "e3 had been added"),
    ],
)
def test_what_was_done_before_is_not_done_again(change: Any, members: tuple[str, ...], says: str) -> None:
    assert done(change, Member("e1", [LED, READ, listed(*members)])) == says


@pytest.mark.parametrize(
    ("change", "before", "words"),
    [
        (let_go, ("e1", "e2", "e3"), "etcdserver: member not found"),
        (add, ("e1", "e2"), "etcdserver: Peer URLs already exists"),
    ],
)
def test_what_somebody_else_did_meanwhile_is_done(change: Any, before: tuple[str, ...], words: str) -> None:
    refused = {"code": 9, "message": words}
    done(change, Member("e1", [LED, READ, listed(*before), refused]))


def test_a_newcomer_is_waited_for_until_it_has_applied_what_the_others_had() -> None:
    newcomer = Member(
        "e3", [UNHEALTHY, {"raftAppliedIndex": "9", "leader": "7"}, {"raftAppliedIndex": "41", "leader": "7"}]
    )
    other = Member("e1", [LED])
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    said = asyncio.run(until_it_follows(newcomer, (other,), "e3 was added, by e1", sleep))  # type: ignore[arg-type]
    assert said == "e3 was added, by e1, and has applied 41 entries"
    assert len(slept) == 2


def test_who_joins_is_started_as_a_member_of_a_cluster_that_exists() -> None:
    began, *_ = SYSTEM.nodes(EtcdSettings(), None)
    assert isinstance(began.program, Command)
    assert began.program.argv[began.program.argv.index("--initial-cluster-state") + 1] == "new"
    assert SYSTEM.cluster(EtcdSettings()).elastic == ("members",)
