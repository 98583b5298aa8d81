"""What DLedger's adapter shows the harness: members with their settings, points, and what a group cannot do."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

import system_under_test.dledger
from harness.errors import UsageError
from harness.program import PythonProgram
from harness.record.fault_log import FaultWindow
from harness.record.node_reports import NoReports
from harness.system import LegalLoss, NodeSpec
from system_under_test.dledger.config import MemberConfig
from system_under_test.node.settings import read_config
from tests.references.points_in_code import points_in
from workloads.log import LogSettings
from workloads.systems.dledger.adapter import EXPLORED, SELDOM, SYSTEM
from workloads.systems.dledger.nodes import members
from workloads.systems.dledger.points import POINTS
from workloads.systems.dledger.settings import DledgerSettings, Store

MOST_WORDS = 30


def config_of(node: NodeSpec, *, upgraded: bool = False) -> MemberConfig:
    program = node.upgraded if upgraded else node.program
    assert isinstance(program, PythonProgram)
    return read_config(MemberConfig, {key: value for key, value in program.config.items() if key != "mutant"})


def test_the_points_declared_are_those_of_the_code_each_in_one_place() -> None:
    found = points_in(sorted(Path(system_under_test.dledger.__path__[0]).rglob("*.py")))
    assert set(found) == set(POINTS)
    assert {point: count for point, count in found.items() if count > 1} == {}


def test_every_point_says_in_a_line_what_it_means() -> None:
    for point, meaning in POINTS.items():
        assert 3 < len(meaning.split()) < MOST_WORDS, point
    assert len(set(POINTS.values())) == len(POINTS)


def test_members_take_whatever_settings_a_storm_draws() -> None:
    drawn = [dict(zip(EXPLORED, each, strict=True)) for each in product(*EXPLORED.values())]
    alone = [{name: value} for one in drawn for name, value in one.items()]
    for values in ({}, *alone, *({**one, "ack_durable": False} for one in drawn), *SELDOM):
        settings = DledgerSettings(**{**values, "store": Store(values.get("store", "file"))})  # type: ignore[arg-type]
        nodes = members(settings, None)
        assert [node.name for node in nodes] == list(settings.names)
        for node in nodes:
            config = config_of(node)
            core, _, _ = config.core(), config.times(), config.sizes()
            assert core.node == node.name and core.members == settings.names and node.replica
            assert core.ack_durable is settings.ack_durable
            assert bool(core.preferred) is bool(settings.preferred)
            assert config.store_type.name == settings.store.name


def test_times_of_the_protocol_are_multiplied_and_a_planted_bug_is_passed_on() -> None:
    (node, *_) = members(DledgerSettings(time_scale=0.5), "minority-commit")
    assert config_of(node).core().silence_ns == 3_000_000_000
    assert isinstance(node.program, PythonProgram) and node.program.config["mutant"] == "minority-commit"
    assert "mutant" not in members(DledgerSettings(), None)[0].program.config  # type: ignore[union-attr]


def test_the_preferred_leader_is_named_by_its_number() -> None:
    assert config_of(members(DledgerSettings(preferred=2), None)[0]).preferred == "n2"


def test_older_members_know_no_batches_and_become_members_that_do() -> None:
    assert all(node.upgraded is None for node in members(DledgerSettings(), None))
    for node in members(DledgerSettings(begins_as_version=1, batch_push=True), None):
        older, newer = config_of(node).core(), config_of(node, upgraded=True).core()
        assert not older.understands_batches and not older.batch_bytes
        assert newer.understands_batches and newer.batch_bytes


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"members": 4}, "takes 3 or 5, got 4"),
        ({"preferred": 4}, "takes 0 to 3, got 4"),
        ({"store": Store.MEMORY, "ack_durable": True}, "nothing in it is ever durable"),
    ],
    ids=str,
)
def test_settings_that_no_group_can_have_are_refused(wanted: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        DledgerSettings(**wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [("queues", 2), ("batch_share", 0.1), ("tags", 1), ("move_share", 0.1)])
def test_what_a_log_of_one_queue_cannot_do_is_refused(name: str, value: float) -> None:
    fitting = {"queues": 1, "batch_share": 0.0, "tags": 0, "move_share": 0.0}
    SYSTEM.require_fitting(DledgerSettings(), SimpleNamespace(**fitting))
    with pytest.raises(UsageError, match=f"setting {name} of log takes"):
        SYSTEM.require_fitting(DledgerSettings(), SimpleNamespace(**{**fitting, name: value}))
    advised = SYSTEM.advised(DledgerSettings(), "log")
    SYSTEM.require_fitting(DledgerSettings(), LogSettings(**advised))  # type: ignore[arg-type]


def test_a_lost_disk_is_no_lasting_damage_for_its_member_gets_all_from_its_leader() -> None:
    declared = SYSTEM.cluster(DledgerSettings())
    assert "lost-disk" not in declared.lasting_damage and "old-disk" not in declared.lasting_damage
    assert set(declared.lasting_damage) < set(declared.may_panic)


def test_nothing_may_be_lost_where_it_is_judged_strictly() -> None:
    struck = (FaultWindow(kind="lost-disk", nodes=("n1",), start_ns=1, stop_ns=2),)
    assert SYSTEM.legal_loss(DledgerSettings(strict=True), struck, NoReports()) == LegalLoss()
    assert SYSTEM.legal_loss(DledgerSettings(), struck, NoReports()) != LegalLoss()


def test_who_is_preferred_plays_a_role_where_there_is_one() -> None:
    assert SYSTEM.cluster(DledgerSettings()).roles == {"leader": "members"}
    assert SYSTEM.cluster(DledgerSettings(preferred=1)).roles == {"leader": "members", "preferred": "members"}
