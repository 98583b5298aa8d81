"""With `requests=public` the harness's clients send nothing that another RocketMQ would not know, and a verdict needs
nothing that nodes report of themselves."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from harness.errors import UsageError
from harness.record.run_directory import NODE_EVENTS
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.judge import check_run
from stormproof.session.run import run_scenario
from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.server import Peer, RemotingServer

OWN = range(20_000, 20_200)
"""Request codes that only the RocketMQ of this project knows."""
Counts = Counter[tuple[str, int]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """(`client`, `observer` or a node's name, code) -> how many requests of it came to any server."""
    counts: Counts = Counter()
    handle = RemotingServer._handle

    def counting(self: RemotingServer, request: RemotingCommand, connection: Peer) -> None:
        counts[connection.remote.partition(":")[0].partition("-")[0], int(request.code)] += 1
        handle(self, request, connection)

    monkeypatch.setattr(RemotingServer, "_handle", counting)
    return counts


def scenario(workload: str, **settings: str) -> Scenario:
    return Scenario(
        system="rocketmq",
        workload=workload,
        nemesis=("partition",),
        concurrency=10,
        rate=150.0,
        time_limit_s=12.0,
        recovery_s=5.0,
        seed=3,
        settings={"longest_fault_s": 3.0, **settings},
    )


def own_codes(asked: Counts) -> dict[str, set[int]]:
    """Who asked -> the codes that it sent of our own."""
    found: dict[str, set[int]] = {}
    for who, code in asked:
        if code in OWN:
            found.setdefault(who, set()).add(code)
    return found


def test_only_public_requests_are_sent_and_no_event_of_a_node_is_needed(tmp_path: Path, asked: Counts) -> None:
    workload = "log+queue+delayed+transactional+pop"
    outcome = run_scenario(scenario(workload, requests="public"), runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert own_codes(asked) == {}
    assert asked["client", RequestCode.SEND_MESSAGE_V2] + asked["client", RequestCode.SEND_MESSAGE] > 100
    assert asked["observer", RequestCode.GET_ROUTEINFO_BY_TOPIC]

    for node in (outcome.directory / "nodes").iterdir():
        shutil.rmtree(node)
    (outcome.directory / NODE_EVENTS).unlink()
    again = check_run(outcome.directory, options=HERE)
    assert again.verdict is Verdict.VALID, again.words()


def test_a_workload_that_needs_our_own_requests_sends_them_and_is_refused_where_they_are_not_wanted(
    tmp_path: Path, asked: Counts
) -> None:
    run_scenario(scenario("register"), runs=tmp_path, options=HERE)
    assert RequestCode.KEY_VALUE_GET in own_codes(asked)["client"]
    with pytest.raises(UsageError, match="no public request reaches"):
        run_scenario(scenario("register", requests="public"), runs=tmp_path, options=HERE)
