"""Locks of etcd, against a gateway in memory: what is asked, and what is made of each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from harness.errors import CONNECT_FAILED, OUTCOME_UNKNOWN, OperationError
from harness.operation import Operation
from workloads.systems.etcd.gateway import packed
from workloads.systems.etcd.lock import LockClient

LEASE, TAKEN = {"ID": "77"}, {"succeeded": True, "header": {"revision": "41"}}


class Answering:
    """In the place of a `Gateway`."""

    node = "e1"

    def __init__(self, *answers: Mapping[str, Any] | OperationError) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Any]] = []
        self.closed = False

    async def ask(self, path: str, request: Mapping[str, Any]) -> Any:
        self.asked.append((path, request))
        answer = self.answers.pop(0)
        if isinstance(answer, OperationError):
            raise answer
        return answer

    async def close(self) -> None:
        self.closed = True


def carried_out(gateway: Answering, *invocations: tuple[str, int | None], fencing: bool = False) -> list[Operation]:
    """Raises OperationError."""

    async def all_of_them() -> list[Operation]:
        client = LockClient(gateway, Answering(), lease_s=60, fencing=fencing)  # type: ignore[arg-type]
        try:
            return [
                await client.invoke(Operation(process=0, type="invoke", f=f, key="l0", value={"value": value}))
                for f, value in invocations
            ]
        finally:
            await client.close()

    return asyncio.run(all_of_them())


def test_a_lock_is_taken_only_where_nobody_has_it_and_its_token_is_the_revision() -> None:
    gateway = Answering(LEASE, TAKEN)
    (completion,) = carried_out(gateway, ("acquire", None))
    assert (completion.type, completion.value, completion.node) == ("ok", {"value": 41}, "e1")
    (granted, _), (path, request) = gateway.asked
    assert (granted, path) == ("lease/grant", "kv/txn")
    assert request["compare"] == [
        {"key": packed("lock/l0"), "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
    ]
    assert request["success"] == [{"request_put": {"key": packed("lock/l0"), "value": "", "lease": "77"}}]
    assert gateway.closed


@pytest.mark.parametrize(
    ("answers", "code", "definite"),
    [
        ((LEASE, {}), "precondition-failed", True),
        ((OperationError(OUTCOME_UNKNOWN),), "no-lease", True),
        ((LEASE, OperationError(OUTCOME_UNKNOWN)), "outcome-unknown", False),
        ((LEASE, OperationError(CONNECT_FAILED)), "connect-failed", True),
    ],
    ids=["somebody else has it", "there is no lease", "nobody knows", "nothing was sent"],
)
def test_a_lock_was_certainly_not_taken_only_where_it_was_not_asked_for(
    answers: tuple[Any, ...], code: str, definite: bool
) -> None:
    with pytest.raises(OperationError) as failed:
        carried_out(Answering(*answers), ("acquire", None))
    assert (failed.value.error.code, failed.value.error.definite) == (code, definite)


def test_without_tokens_a_lock_that_was_lost_is_released_as_any_other_and_what_others_hold_stays() -> None:
    gateway = Answering(LEASE, TAKEN, {})
    _, released = carried_out(gateway, ("acquire", None), ("release", None))
    assert released.type == "ok"
    (own,) = gateway.asked[-1][1]["compare"]
    assert (own["target"], own["lease"]) == ("LEASE", "77")


@pytest.mark.parametrize("succeeded", [True, False])
def test_by_its_token_a_lock_is_released_only_while_it_is_held(succeeded: bool) -> None:
    gateway = Answering(LEASE, TAKEN, {"succeeded": True} if succeeded else {})
    invocations = (("acquire", None), ("release", 41))
    if succeeded:
        assert carried_out(gateway, *invocations, fencing=True)[1].type == "ok"
    else:
        with pytest.raises(OperationError) as failed:
            carried_out(gateway, *invocations, fencing=True)
        assert (failed.value.error.code, failed.value.error.definite) == ("lock-lost", True)
    (own,) = gateway.asked[-1][1]["compare"]
    assert (own["target"], own["create_revision"]) == ("CREATE", "41")
