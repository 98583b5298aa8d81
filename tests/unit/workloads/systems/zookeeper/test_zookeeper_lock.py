"""Locks of ZooKeeper, against a tree of children in memory: who is first, whose session has ended, and what is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from kazoo.exceptions import NoNodeError

from harness.errors import OperationError
from harness.operation import Operation
from harness.record.node_reports import NoReports
from workloads.systems.zookeeper.adapter import SYSTEM, ZookeeperSettings
from workloads.systems.zookeeper.lock import LockClient


class Tree:
    """Stands for kazoo's client and for a session of it."""

    def __init__(self, *children: str) -> None:
        self.children, self.number = list(children), len(children)

    def create_async(self, path: str, value: bytes, **how: bool) -> Callable[[], str]:
        assert how == {"ephemeral": True, "sequence": True, "makepath": True} and value == b""
        lock, _, prefix = path.rpartition("/")
        name = f"{prefix}{self.number:010d}"
        self.children.append(name)
        self.number += 1
        return lambda: f"{lock}/{name}"

    def get_children_async(self, path: str) -> Callable[[], list[str]]:
        return lambda: list(self.children)

    def delete_async(self, path: str) -> Callable[[], None]:
        name = path.rpartition("/")[2]

        def delete() -> None:
            if name not in self.children:
                raise NoNodeError
            self.children.remove(name)

        return delete

    async def ask(self, request: Callable[[Any], Callable[[], Any]]) -> Any:
        return request(self)()


def client_of(tree: Tree, *, fencing: bool = False) -> LockClient:
    client = LockClient(None, "z1", session_s=2.0, fencing=fencing)
    client._session = tree  # type: ignore[assignment]
    return client


def done(client: LockClient, f: str, token: int | None = None) -> Any:
    operation = Operation(process=0, type="invoke", f=f, key="l0", value={"value": token})
    return asyncio.run(client.invoke(operation)).value["value"]


def test_the_first_child_holds_the_lock_and_its_place_is_the_token() -> None:
    tree = Tree()
    client = client_of(tree)
    assert done(client, "acquire") == 1
    done(client, "release")
    assert tree.children == []
    assert done(client, "acquire") == 2, "tokens grow from holder to holder"


def test_who_is_not_first_takes_its_child_away_again() -> None:
    tree = Tree("held-0000000000")
    with pytest.raises(OperationError) as failed:
        done(client_of(tree), "acquire")
    assert failed.value.error.code == "precondition-failed" and failed.value.error.definite
    assert tree.children == ["held-0000000000"]


@pytest.mark.parametrize("fencing", [False, True])
def test_only_with_fencing_is_a_lock_that_was_lost_told_and_what_others_hold_stays(fencing: bool) -> None:
    tree = Tree()
    client = client_of(tree, fencing=fencing)
    done(client, "acquire")
    tree.children = ["held-0000000001"]  # its session has ended, and somebody else holds the lock
    if fencing:
        with pytest.raises(OperationError) as failed:
            done(client, "release", 1)
        assert failed.value.error.code == "lock-lost"
    else:
        done(client, "release")
    assert tree.children == ["held-0000000001"]


@pytest.mark.parametrize(
    ("settings", "legal"),
    [
        (ZookeeperSettings(), ("nonlinearizable",)),
        (ZookeeperSettings(fencing=True), None),
        (ZookeeperSettings(strict=True), None),
    ],
)
def test_locks_without_tokens_alone_may_be_lost(settings: ZookeeperSettings, legal: tuple[str, ...] | None) -> None:
    assert SYSTEM.legal_loss(settings, (), NoReports()).in_workloads.get("lock") == legal


def test_locks_are_held_for_longer_than_a_session_lasts_unheard_of() -> None:
    assert SYSTEM.advised(ZookeeperSettings(session_s=3.0), "lock") == {"hold_s": 6.0}
    assert SYSTEM.advised(ZookeeperSettings(), "queue") == {}
