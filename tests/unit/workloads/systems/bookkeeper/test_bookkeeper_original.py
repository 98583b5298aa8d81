"""A release of BookKeeper on trial: which nodes run it, with which settings, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.program import Command, JavaRelease, MavenArtifacts
from harness.system import NodeSpec
from workloads.systems.bookkeeper.adapter import DEPLOYMENTS, SYSTEM
from workloads.systems.bookkeeper.original import nodes
from workloads.systems.bookkeeper.settings import BookkeeperSettings

RELEASE = "4.17.2"


def nodes_of(**settings: Any) -> dict[str, NodeSpec]:
    return {node.name: node for node in SYSTEM.nodes(BookkeeperSettings(release=RELEASE, **settings), None)}


def settings_file(node: NodeSpec) -> str:
    assert isinstance(node.program, Command)
    return node.program.files[nodes.SETTINGS_FILE]


def properties(node: NodeSpec) -> dict[str, str]:
    return dict(line.split("=", 1) for line in settings_file(node).splitlines())


def test_all_nodes_are_of_releases_and_bookies_are_the_replicas() -> None:
    found = nodes_of(bookies=4, brokers=1)
    assert list(found) == ["m1", "m2", "m3", "b1", "b2", "b3", "b4", "p1"]
    assert [name for name, node in found.items() if node.replica] == ["b1", "b2", "b3", "b4"]
    coordinates = {}
    for name, node in found.items():
        assert isinstance(node.program, Command) and isinstance(node.program.image, JavaRelease)
        assert isinstance(node.program.image.content, MavenArtifacts)
        coordinates[name] = node.program.image.content.coordinates[0]
    assert {coordinates[name] for name in found if name[0] != "m"} == {f"{nodes.LIBRARY}:{RELEASE}"}
    assert {coordinates[name] for name in found if name[0] == "m"} == {
        f"org.apache.zookeeper:zookeeper:{nodes.ZOOKEEPER}"
    }


def test_bookies_and_brokers_are_set_as_ours_are() -> None:
    found = nodes_of(
        bookies=4,
        ensemble=4,
        write_quorum=3,
        ack_quorum=2,
        partitions=2,
        roll_entries=7,
        journal_sync=False,
        session_timeout_s=9.0,
        open_grace_s=2.5,
        time_scale=1.5,
    )
    bookie, broker = properties(found["b2"]), json.loads(settings_file(found["p2"]))
    assert bookie["advertisedAddress"] == "b2"
    assert (bookie["journalSyncData"], bookie["autoRecoveryDaemonEnabled"]) == ("false", "true")
    assert (bookie["zkTimeout"], bookie["openLedgerRereplicationGracePeriod"]) == ("9000", "2500")
    assert bookie["metadataServiceUri"] == "zk+hierarchical://m1:2181;m2:2181;m3:2181/ledgers"
    assert broker == {
        "name": "p2",
        "metadataServers": "m1:2181,m2:2181,m3:2181",
        "sessionTimeout": 9000,
        "brokerPort": 6650,
        "bookieTimeout": 3,
        "partitions": ["storm-0", "storm-1"],
        "ensembleSize": 4,
        "writeQuorum": 3,
        "ackQuorum": 2,
        "rollEntries": 7,
    }


def test_each_setting_that_a_broker_is_given_is_read_by_its_program() -> None:
    text = "".join(path.read_text() for path in nodes.SOURCES)
    assert set(re.findall(r'settings\.get\("(\w+)"\)', text)) == set(json.loads(settings_file(nodes_of()["p1"])))


def test_what_is_started_is_among_what_is_compiled() -> None:
    compiled = {path.stem for path in nodes.SOURCES}
    for node in nodes_of().values():
        assert isinstance(node.program, Command)
        if node.groups != ("metadata",):
            assert re.search(r"-cp \S+ (\w+) ", node.program.argv[-1])[1] in compiled  # type: ignore[index]
    assert all(Path(path).suffix == ".java" for path in nodes.SOURCES)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"release": "newest"}, r"release of BookKeeper, as 4\.17\.2, got 'newest'"),
        ({"release": RELEASE, "check_entries_s": 5.0}, "check_entries_s is no setting of the public BookKeeper"),
        ({"release": RELEASE, "explicit_lac_s": 1.0}, "explicit_lac_s is no setting of the public BookKeeper"),
    ],
)
def test_what_a_release_has_not_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        BookkeeperSettings(**settings)


def test_nothing_is_planted_beside_a_release() -> None:
    with pytest.raises(UsageError, match="nothing is planted beside the public BookKeeper"):
        SYSTEM.nodes(BookkeeperSettings(release=RELEASE), "lac-is-lap")


def test_storms_draw_no_settings_that_a_release_has_not() -> None:
    assert "placement" in SYSTEM.cluster(BookkeeperSettings()).explored
    declared = SYSTEM.cluster(BookkeeperSettings(release=RELEASE))
    for name, values in (*declared.explored.items(), *declared.paces.items()):
        for value in values:
            given: dict[str, Any] = {name: value}
            assert BookkeeperSettings(release=RELEASE, **given)
    assert declared.deployments == DEPLOYMENTS
    assert "auditor" not in declared.roles
    assert "register" in declared.unserved
