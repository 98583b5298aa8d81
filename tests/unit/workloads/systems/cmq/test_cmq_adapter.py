"""What CMQ's adapter shows the harness: its nodes with their settings, roles, and the cluster's abstract state."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

import system_under_test.cmq
import system_under_test.raft
from harness.errors import UsageError
from harness.program import PythonProgram
from harness.watch import BOOTED, CUT, ENDED, HEALED, PAUSED
from system_under_test.cmq.config import CmqConfig
from system_under_test.cmq.routing import group_of
from system_under_test.node.settings import read_config
from tests.references.points_in_code import points_in
from workloads.systems.cmq.adapter import DEPLOYMENTS, EXPLORED, PACES, SYSTEM
from workloads.systems.cmq.points import POINTS
from workloads.systems.cmq.settings import CmqSettings, queue_name
from workloads.systems.cmq.watch import CmqWatch


def test_the_points_declared_are_those_of_the_code_and_each_has_a_meaning_of_its_own() -> None:
    packages = (system_under_test.cmq, system_under_test.raft)
    files = [file for package in packages for file in sorted(Path(package.__path__[0]).rglob("*.py"))]
    assert set(points_in(files)) == set(POINTS)
    assert len(set(POINTS.values())) == len(POINTS)


def test_nodes_take_whatever_two_settings_a_storm_draws() -> None:
    choices = [(name, value) for name, values in {**EXPLORED, **PACES}.items() for value in values]
    for deployment, *drawn in product(DEPLOYMENTS, choices, choices):
        settings = CmqSettings(**{**deployment, **dict(drawn)})  # type: ignore[arg-type]
        node = SYSTEM.nodes(settings, None)[-1]
        assert isinstance(node.program, PythonProgram) and node.replica
        config = read_config(CmqConfig, node.program.config)
        assert config.self_id == node.name and config.port in node.ports
        assert len(config.peers) == settings.nodes and config.groups == settings.groups
        assert config.visibility_s == settings.invisible_ms / 1_000
        assert config.min_election_timeout_s == settings.election_s
        assert config.max_election_timeout_s == settings.election_s * settings.election_spread


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"nodes": 4}, "setting nodes of cmq takes 3 or 5, got 4"),
        ({"election_s": 0.19}, "setting election_s of cmq takes at least 0.2, two of heartbeat_s, got 0.19"),
        ({"file_bytes": 256, "message_bytes": 256}, "setting file_bytes of cmq takes at least 272, a message"),
        (
            {"most_queues": 2},
            "setting most_queues of cmq takes at least 3, for so many of 4 queues come together in gr",
        ),
    ],
)
def test_settings_that_do_not_fit_each_other_are_refused(wanted: dict[str, int], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        SYSTEM.require_fitting(CmqSettings(**wanted), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("workload", SYSTEM.workloads)
@pytest.mark.parametrize("groups", [1, 2, 3, 4, 16])
def test_queues_are_spread_over_the_groups_by_their_names(workload: str, groups: int) -> None:
    placed = [group_of(name, groups) for name in CmqSettings(groups=groups).queue_names(workload)]
    assert set(placed) <= set(range(1, groups + 1)) and (len(set(placed)) > 1 or groups == 1)
    assert [group_of(queue_name(0, "queue"), number) for number in (1, 2, 3, 4)] == [1, 1, 3, 1], "it never changes"


def watch_of(settings: CmqSettings, *leads: tuple[str, str]) -> CmqWatch:
    watch = CmqWatch(settings)
    for node in settings.names:
        watch.saw(node, BOOTED, {})
    for node, group in leads:
        watch.saw(node, "leader", {"group": group, "term": 1, "start": 0})
    return watch


def test_the_watch_knows_who_leads_each_group() -> None:
    watch = watch_of(CmqSettings(groups=2), ("n1", "g1"), ("n2", "g2"))
    assert watch.roles() == {"leader": ("n1",), "leader-2": ("n2",), "spare": ("n1",)}
    watch.saw("n3", "leader", {"group": "g1", "term": 2, "start": 5})
    assert watch.roles()["leader"] == ("n3",), "of two who say so, the one of the newer term"
    watch.saw("n3", ENDED, {"how": "killed"})
    assert watch.roles()["leader"] == ("n1",)
    watch.saw("n1", "follower", {"group": "g1", "term": 2})
    assert watch.roles() == {"leader-2": ("n2",)}
    watch.saw("n2", PAUSED, {})
    assert watch.roles() == {"leader-2": ("n2",)}


def test_the_state_is_the_same_for_clusters_that_differ_in_names_and_heights_alone() -> None:
    settings = CmqSettings(groups=2)
    one, other = watch_of(settings, ("n1", "g1"), ("n2", "g2")), watch_of(settings, ("n3", "g2"), ("n2", "g1"))
    assert one.state() == other.state() == watch_of(settings, ("n3", "g2"), ("n1", "g1")).state()
    assert watch_of(settings, ("n1", "g1"), ("n1", "g2")).state() != one.state() or settings.spread
    for node in settings.names:
        other.saw(node, "written", {"log": "g1", "start": 0, "end": 1, "checksum": 1})
    assert one.state() == other.state()
    other.saw("n1", "written", {"log": "g1", "start": 1, "end": 2, "checksum": 1})
    assert one.state() != other.state(), "two lag"


def test_the_state_shows_who_needs_the_leaders_snapshot_and_who_is_no_voter() -> None:
    watch = watch_of(CmqSettings(groups=1), ("n1", "g1"))
    for node in ("n1", "n2"):
        watch.saw(node, "written", {"log": "g1", "start": 0, "end": 9, "checksum": 1})
    watch.saw("n2", "deleted", {"log": "g1", "to": 8, "forced": False})
    assert watch.state()[0].count("needs a snapshot") == 0, "it is not the leader"
    watch.saw("n1", "deleted", {"log": "g1", "to": 8, "forced": False})
    assert watch.state()[0].count("needs a snapshot") == 1
    watch.saw("n3", "deleted", {"log": "g1", "to": 8, "forced": False})
    assert watch.state()[0].count("needs a snapshot") == 0
    watch.saw("n1", "membership", {"group": "g1", "index": 9, "voters": ["n1", "n2"], "learners": []})
    assert watch.state()[0].count("out, follows") == 1
    watch.saw("n1", "membership", {"group": "g1", "index": 10, "voters": ["n1", "n2"], "learners": ["n3"]})
    watch.saw("n2", "membership", {"group": "g1", "index": 9, "voters": ["n1", "n2"], "learners": []})
    assert watch.state()[0].count("learns, follows") == 1, "an older membership says nothing new"


def test_the_state_shows_cuts_lives_and_what_is_cut() -> None:
    watch = watch_of(CmqSettings(groups=1), ("n1", "g1"))
    before = watch.state()
    watch.saw("n1", CUT, {"to": "n2"})
    assert watch.state() == (*before, "cut leader>follower")
    watch.saw("n1", HEALED, {"to": "n2"})
    watch.saw("n2", "truncated", {"log": "g1", "to": 0})
    assert watch.state() != before
    watch.saw("n2", "written", {"log": "g1", "start": 0, "end": 0, "checksum": 1})
    assert watch.state() == before
    watch.saw("n2", ENDED, {"how": "killed"})
    assert "killed" in watch.state()
    watch.saw("client", CUT, {"to": "n1"})
    assert not any("client" in word for word in watch.state())
