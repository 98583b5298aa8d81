"""What BookKeeper's adapter shows the harness: its nodes with their settings, points, roles, and legal losses."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

import system_under_test.bookkeeper
import system_under_test.metadata
import system_under_test.raft
from harness.errors import UsageError
from harness.program import PythonProgram
from harness.record.fault_log import FaultWindow
from harness.record.node_reports import NoReports
from harness.system import LegalLoss
from harness.watch import BOOTED, CUT, ENDED, PAUSED
from system_under_test.bookkeeper.bookie.config import BookieConfig
from system_under_test.bookkeeper.ledger.metadata import Placement
from system_under_test.bookkeeper.partition.config import BrokerConfig
from system_under_test.metadata.config import MetadataConfig
from system_under_test.node.settings import read_config
from system_under_test.storage import flush
from tests.references.points_in_code import points_in
from workloads.log import LogSettings
from workloads.systems.bookkeeper.adapter import DEPLOYMENTS, EXPLORED, PACES, SYSTEM
from workloads.systems.bookkeeper.legal_loss import NOT_WHOLE, legal_loss
from workloads.systems.bookkeeper.points import POINTS
from workloads.systems.bookkeeper.settings import BookkeeperSettings
from workloads.systems.bookkeeper.watch import BookkeeperWatch

PACKAGES = (system_under_test.bookkeeper, system_under_test.metadata, system_under_test.raft)
SECOND_NS = 1_000_000_000


def test_the_points_declared_are_those_of_the_code() -> None:
    files = [file for package in PACKAGES for file in sorted(Path(package.__path__[0]).rglob("*.py"))]
    assert set(points_in([*files, Path(flush.__file__)])) == set(POINTS)
    assert len(set(POINTS.values())) == len(POINTS)


def test_nodes_take_whatever_settings_a_storm_draws() -> None:
    fitting, explored = 0, {**EXPLORED, **PACES}
    for deployment, *values in product(DEPLOYMENTS, *((None, *each) for each in explored.values())):
        drawn = {name: value for name, value in zip(explored, values, strict=True) if value is not None}
        drawn |= deployment
        drawn |= {"placement": Placement(drawn.get("placement", "fragment"))}
        try:
            settings = BookkeeperSettings(**drawn)  # type: ignore[arg-type]
        except UsageError:
            continue
        fitting += 1
        for node in SYSTEM.nodes(settings, None):
            assert isinstance(node.program, PythonProgram)
            config = node.program.config
            if node.groups == ("metadata",):
                metadata = read_config(MetadataConfig, config)
                assert metadata.self_id == node.name and metadata.port in node.ports
                assert metadata.session_timeout_s == settings.session_timeout_s
            elif node.groups == ("bookies",):
                assert read_config(BookieConfig, config).port in node.ports and node.replica
            else:
                broker = read_config(BrokerConfig, config)
                assert broker.quorums == settings.quorums and broker.placement is settings.placement
                assert len(broker.partitions) == settings.partitions
                assert broker.explicit_lac_s == settings.explicit_lac_s
                assert broker.bookie_timeout_s == 2.0 * settings.time_scale
    assert fitting > 20


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"ack_quorum": 4}, "ack quorum of 4 is more than the write quorum of 3"),
        ({"write_quorum": 4}, "write quorum of 4 is more than the ensemble of 3"),
        ({"bookies": 2}, "takes at least 3, as many as the ensemble has, got 2"),
    ],
)
def test_settings_that_do_not_fit_each_other_are_refused(settings: dict[str, int], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        BookkeeperSettings(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [("queues", 2), ("tags", 1), ("move_share", 0.1)])
def test_what_partitions_do_not_have_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"setting {name} of log"):
        SYSTEM.require_fitting(BookkeeperSettings(), LogSettings(**{"queues": 1, name: value}))  # type: ignore[arg-type]


def lost(kind: str, *nodes: str, at_s: float = 1) -> FaultWindow:
    return FaultWindow(kind=kind, nodes=nodes, start_ns=round(at_s * SECOND_NS), stop_ns=2 * SECOND_NS)


@pytest.mark.parametrize(
    ("settings", "struck", "reason"),
    [
        ({}, (lost("kill", "b1", "b2", "b3", "b4", "b5"),), ""),
        ({}, (lost("power", "b1", "b2", "b3", "b4", "b5"),), ""),
        ({}, (lost("lost-disk", "b1"), lost("bit-rot", "b1")), ""),
        ({}, (lost("lost-disk", "b1"), lost("old-disk", "b2", at_s=1.5)), "2 bookies were damaged at once"),
        ({"ack_quorum": 3}, (lost("lost-disk", "b1", "b2"),), ""),
        ({"ack_quorum": 1}, (lost("lost-disk", "b1"),), "1 bookies were damaged at once"),
        ({"journal_sync": False}, (lost("power", "b1", "b2"),), ""),
        ({}, (lost("lost-disk", "p1", "p2"),), ""),
        ({}, (lost("shrink", "b1"), lost("wipe", "b2", at_s=2.5)), ""),
        ({}, (lost("shrink", "b1"), lost("wipe", "b2", at_s=1.5)), "2 bookies were damaged at once"),
        ({}, (lost("wipe", "b1"), lost("bit-rot", "b2", at_s=1.5)), "2 bookies were damaged at once"),
    ],
)
def test_ledgers_need_not_become_whole_again_after_damage_to_an_ack_quorum_of_disks_at_once(
    settings: dict[str, int], struck: tuple[FaultWindow, ...], reason: str
) -> None:
    loss = legal_loss(BookkeeperSettings(**settings), struck, NoReports())  # type: ignore[arg-type]
    assert reason in loss.reason and bool(loss.reason) is bool(reason)
    assert loss.anomalies == (NOT_WHOLE if reason else ()) and not loss.anything


def test_of_bookies_that_report_nothing_an_ack_quorum_of_lost_disks_excuses_all_from_then_on() -> None:
    release = BookkeeperSettings(release="4.17.2")
    both = (lost("lost-disk", "b1"), lost("wipe", "b2", at_s=1.5))
    loss = legal_loss(release, both, NoReports())
    assert loss.anything.startswith("2 bookies were damaged at once") and loss.anything_from_ns == 1.5 * SECOND_NS
    assert legal_loss(release, both[:1], NoReports()) == LegalLoss()
    power = (lost("power", "b1", "b2"),)
    assert not legal_loss(release, power, NoReports()).anything
    assert legal_loss(replace(release, journal_sync=False), power, NoReports()).anything


def test_nothing_is_promised_once_the_metadata_store_has_forgotten_votes() -> None:
    loss = legal_loss(BookkeeperSettings(), (lost("lost-disk", "m2", at_s=1.5), lost("bit-rot", "m1")), NoReports())
    assert loss.anything == "the metadata store forgot votes (m1, bit-rot at 1.0 s)"
    assert loss.anything_from_ns == SECOND_NS
    assert not legal_loss(BookkeeperSettings(), (lost("power", "m1", "m2"),), NoReports()).anything


def test_the_watch_knows_who_owns_and_who_leads() -> None:
    watch = BookkeeperWatch(BookkeeperSettings())
    for node in ("m1", "b1", "p1", "p2"):
        watch.saw(node, BOOTED, {})
    watch.saw("m1", "leader", {"term": 1})
    watch.saw("b1", "auditor", {"elected": True})
    watch.saw("p1", "owner", {"partition": "storm-0"})
    watch.saw("p1", "ledger_listed", {"partition": "storm-0", "ledger": 1, "length": 1})
    watch.saw("b1", "willing", {"state": "writable"})
    watch.saw("c1", BOOTED, {})
    assert watch.roles() == {"owner": ("p1",), "metadata-leader": ("m1",), "auditor": ("b1",)}
    assert set(watch.state()) >= {"broker writes", "broker", "metadata leads", "bookie writable"}
    watch.saw("p1", PAUSED, {})
    watch.saw("p2", "owner", {"partition": "storm-0"})
    watch.saw("p1", CUT, {"to": "b1"})
    watch.saw("b1", ENDED, {"how": "killed"})
    assert watch.roles()["owner"] == ("p2",)
    assert set(watch.state()) >= {"broker(paused) writes", "broker owns", "bookie(killed)", "cut broker>bookie"}
