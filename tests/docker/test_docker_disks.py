"""Disks of ours in containers: each fault really strikes the node whose disk it is, and only that one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from probe_cluster import Cluster, MakeCluster, probe

from harness.environments.impairment import (
    Corruption,
    DiskErrors,
    FailingFsync,
    FullDisk,
    LostDisk,
    MisdirectedWrites,
    NodeImpairment,
    OldDisk,
    ShortFiles,
    SlowDisk,
)

pytestmark = pytest.mark.docker

NAMES = ("p1", "p2")


@pytest.fixture(scope="module")
def disks(make_cluster: MakeCluster, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Two probes with disks of ours; each test leaves them running."""
    cluster = make_cluster(frozenset(("power",)))
    cluster.do(cluster.environment.start([probe(name) for name in NAMES], tmp_path_factory.mktemp("nodes")))
    cluster.do(cluster.until_serving(*NAMES))
    return cluster


def lose_power(disks: Cluster, *nodes: str) -> str:
    effect = disks.do(disks.environment.power_off(nodes))
    assert effect.happened
    assert disks.do(disks.environment.boot(nodes)).happened
    disks.do(disks.until_serving(*nodes))
    return effect.evidence


def test_what_was_fsynced_survives_a_loss_of_power_and_the_rest_is_torn(disks: Cluster) -> None:
    lost = []
    for number in range(6):
        path = f"log-{number}"
        assert disks.ask("p1", "append", path=path, text="durable", fsync=True) == ""
        assert disks.ask("p1", "append", path=path, text="x" * 1000, fsync=False) == ""
        evidence = lose_power(disks, "p1")
        content = disks.ask("p1", "content", path=path)
        assert content.startswith("durable") and set(content[7:]) <= {"x", "\0"}
        lost.append(1000 - content.count("x"))
        assert f"{lost[-1]} unsynced bytes" in evidence, "the effect says what was lost"
    assert any(lost), "in six losses of power nothing was lost"


def test_where_no_fault_of_clocks_may_come_programs_read_the_true_time_by_themselves(disks: Cluster) -> None:
    """What makes clocks wrong breaks how some programs sleep."""
    effect = disks.do(disks.environment.set_clock("p1", offset_s=500.0, rate=1.0))
    assert not effect.happened and "has not loaded libfaketime" in effect.evidence
    disks.do(disks.environment.set_clock("p1", offset_s=0.0, rate=1.0))


def test_a_node_without_power_says_nothing_until_it_is_booted(disks: Cluster) -> None:
    assert disks.ask("p2", "hold", to="p1")
    disks.do(disks.environment.power_off(["p1"]))
    assert disks.ask("p2", "is_held", to="p1", timeout_s=1.0) == "held"
    assert disks.ask("p2", "reach", to=["p1"]) == {"p1": "silence"}
    disks.do(disks.environment.boot(["p1"]))
    disks.do(disks.until_serving("p1"))
    assert disks.ask("p2", "reach", to=["p1"]) == {"p1": "reached"}


def test_a_killed_program_leaves_what_it_wrote(disks: Cluster) -> None:
    assert disks.ask("p1", "append", path="killed", text="written", fsync=False) == ""
    disks.do(disks.environment.kill(["p1"]))
    disks.do(disks.environment.boot(["p1"]))
    disks.do(disks.until_serving("p1"))
    assert disks.ask("p1", "content", path="killed") == "written"


def test_an_fsync_that_fails_says_so_and_its_bytes_are_gone_with_the_power(disks: Cluster) -> None:
    failing = FailingFsync(most=1)
    assert disks.do(disks.environment.impair(["p1"], failing)).happened
    assert disks.ask("p1", "append", path="failing", text="lost", fsync=True) == "DiskError"
    assert disks.ask("p1", "append", path="failing", text="durable", fsync=True) == ""
    relieved = disks.do(disks.environment.relieve(["p1"], failing))
    assert relieved.happened and "1 calls failed: fsync failing 4 bytes" in relieved.evidence
    lose_power(disks, "p1")
    assert disks.ask("p1", "content", path="failing") == "\0\0\0\0durable"


def test_a_full_disk_takes_no_more_than_there_is_room_for(disks: Cluster) -> None:
    full = FullDisk(room_bytes=10)
    disks.do(disks.environment.impair(["p1"], full))
    assert disks.ask("p1", "append", path="full", text="x" * 10, fsync=True) == ""
    assert disks.ask("p1", "append", path="full", text="x", fsync=True) == "DiskFull"
    assert disks.ask("p2", "append", path="full", text="x" * 20, fsync=True) == ""
    assert "calls failed" in disks.do(disks.environment.relieve(["p1"], full)).evidence
    assert disks.ask("p1", "append", path="full", text="x", fsync=True) == ""


def test_reads_fail_also_of_what_the_kernel_had_in_memory(disks: Cluster) -> None:
    assert disks.ask("p1", "append", path="read", text="text", fsync=True) == ""
    assert disks.ask("p1", "content", path="read") == "text"
    errors = DiskErrors(reads=1.0, writes=0.0)
    disks.do(disks.environment.impair(["p1"], errors))
    assert disks.ask("p1", "content", path="read") == "DiskError"
    disks.do(disks.environment.relieve(["p1"], errors))
    assert disks.ask("p1", "content", path="read") == "text"


def test_a_slow_disk_fsyncs_late(disks: Cluster) -> None:
    slow = SlowDisk(factor=500)
    disks.do(disks.environment.impair(["p1"], slow))
    before_ns = disks.ask("p1", "time")["monotonic_ns"]
    assert disks.ask("p1", "append", path="slow", text="x", fsync=True) == ""
    assert disks.ask("p1", "time")["monotonic_ns"] - before_ns >= 0.9e9
    disks.do(disks.environment.relieve(["p1"], slow))


def test_a_misdirected_write_takes_the_place_of_the_one_before_it(disks: Cluster) -> None:
    misdirected = MisdirectedWrites(one_in=1, draw=7)
    disks.do(disks.environment.impair(["p1"], misdirected))
    for node in NAMES:
        for text in ("one!", "two!"):
            assert disks.ask(node, "append", path="records", text=text, fsync=True) == ""
    seen = [disks.ask(node, "content", path="records") for node in NAMES]
    assert seen == ["two!\0\0\0\0", "one!two!"]
    relieved = disks.do(disks.environment.relieve(["p1"], misdirected))
    assert re.search(r"1 writes misdirected: write \S*records 4\+4 to 0", relieved.evidence), relieved.evidence


def test_bits_are_flipped_in_just_the_files_that_a_pattern_names(disks: Cluster) -> None:
    text = "x" * 1000
    for path in ("store/a.blk", "store/deep/b.blk", "store/c.idx"):
        assert disks.ask("p1", "append", path=path, text=text, fsync=True) == ""
    rot = Corruption(pattern="store/**/*.blk", bytes_per_bit=100, draw=7)
    effect = disks.do(disks.environment.impair(["p1"], rot))
    assert effect.happened and "20 bits in 2000 bytes of 2 files" in effect.evidence
    struck = [disks.ask("p1", "content", path=path) for path in ("store/a.blk", "store/deep/b.blk", "store/c.idx")]
    assert struck[2] == text
    assert all(len(content) == 1000 for content in struck)
    assert sum(content != text for content in struck) in (1, 2), "they are seen while the program runs"
    nowhere = Corruption(pattern="*.none", bytes_per_bit=100, draw=7)
    assert not disks.do(disks.environment.impair(["p1"], nowhere)).happened


def damaged(disks: Cluster, impairment: NodeImpairment) -> str:
    effect = disks.do(disks.environment.impair(["p1"], impairment))
    assert effect.happened
    disks.do(disks.environment.relieve(["p1"], impairment))
    disks.do(disks.until_serving("p1"))
    return effect.evidence


def test_files_lose_their_ends(disks: Cluster) -> None:
    damaged(disks, LostDisk())
    disks.ask("p1", "append", path="short", text="x" * 1000, fsync=True)
    evidence = damaged(disks, ShortFiles(files=1, draw=3))
    length = len(disks.ask("p1", "content", path="short"))
    assert f"short lost {1000 - length} of 1000 bytes" in evidence


def test_an_older_copy_of_the_disk_is_put_back(disks: Cluster) -> None:
    disks.ask("p1", "append", path="old", text="before", fsync=True)
    old = OldDisk(after_s=600)
    disks.do(disks.environment.impair(["p1"], old))
    disks.ask("p1", "append", path="old", text=" after", fsync=True)
    disks.ask("p1", "append", path="new", text="after", fsync=True)
    assert "in the place of" in disks.do(disks.environment.relieve(["p1"], old)).evidence
    disks.do(disks.until_serving("p1"))
    assert [disks.ask("p1", "content", path=path) for path in ("old", "new")] == ["before", None]


def test_a_lost_disk_is_empty(disks: Cluster) -> None:
    disks.ask("p1", "append", path="gone", text="x", fsync=True)
    damaged(disks, LostDisk())
    assert disks.ask("p1", "content", path="gone") is None
    assert disks.ask("p1", "append", path="gone", text="y", fsync=True) == ""
    lose_power(disks, "p1")
    assert disks.ask("p1", "content", path="gone") == "y"


def test_a_loss_of_power_leaves_other_nodes_and_logs_alone(disks: Cluster, tmp_path: Path) -> None:
    assert disks.ask("p2", "append", path="other", text="written", fsync=False) == ""
    lose_power(disks, "p1")
    assert disks.ask("p2", "content", path="other") == "written"
