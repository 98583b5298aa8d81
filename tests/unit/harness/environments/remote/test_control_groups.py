"""Who is limited, and how that is written for both versions of control groups; a folder is the kernel."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness.environments.remote import control_groups


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Version 1; `cgroup.controllers` makes it version 2."""
    (tmp_path / "memory").mkdir()
    monkeypatch.setattr(control_groups, "CGROUPS", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("supervisor", [0, 1])
def test_a_whole_machine_is_never_limited(supervisor: int, groups: Path) -> None:
    with pytest.raises(SystemExit, match="is the whole machine, whose memory is not limited"):
        control_groups.squeeze({"name": "g", "supervisor": supervisor, "bytes": 1})
    assert not (groups / "memory" / "g").exists()


def test_all_beneath_a_supervisor_are_found_and_not_itself() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & wait"], start_new_session=True) as shell:
        try:
            while len(beneath := control_groups._beneath(shell.pid)) < 1:
                assert shell.poll() is None
            assert shell.pid not in beneath and {control_groups._name(pid) for pid in beneath} <= {"sleep", "sh"}
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


def test_version_1_is_limited_with_swap_and_without(groups: Path) -> None:
    group = groups / "memory" / "g"
    group.mkdir()
    for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):
        (group / name).write_text("x")
    (group / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert control_groups.why_not() == "" and control_groups.root() == str(groups / "memory")
    control_groups._limit(str(group), 8_000_000)
    assert {path.read_text() for path in group.glob("memory.*limit*")} == {"8000000"}
    control_groups._limit(str(group), None)
    assert {path.read_text() for path in group.glob("memory.*limit*")} == {"-1"}
    assert control_groups._count(str(group)) == 3


def test_version_2_is_limited_and_has_no_swap(groups: Path) -> None:
    (groups / "cgroup.controllers").write_text("cpu memory\n")
    group = groups / "g"
    group.mkdir()
    for name in ("memory.max", "memory.swap.max"):
        (group / name).write_text("x")
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n")
    assert control_groups.why_not() == "" and control_groups.root() == str(groups)
    control_groups._limit(str(group), 8_000_000)
    assert ((group / "memory.max").read_text(), (group / "memory.swap.max").read_text()) == ("8000000", "0")
    control_groups._limit(str(group), None)
    assert ((group / "memory.max").read_text(), (group / "memory.swap.max").read_text()) == ("max", "max")
    assert control_groups._count(str(group)) == 1
    (groups / "cgroup.controllers").write_text("cpu\n")
    assert control_groups.why_not().endswith("has no limits of memory, so no control group limits it")


def test_a_part_of_a_processor_is_written_for_both_versions_and_gone_in_the_end(
    groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (groups / "cpu").mkdir()
    moved: list[tuple[int, str]] = []
    monkeypatch.setattr(control_groups, "_move", lambda pid, group: bool(moved.append((pid, group)) or pid != 3))
    throttled = {"name": "g", "number": 2, "pids": [3, 4], "share": 0.25}
    assert control_groups.throttle(throttled) == {"pids": [4]}
    group = groups / "cpu" / "g-2"
    assert moved == [(3, str(group)), (4, str(group))]
    assert (group / "cpu.cfs_quota_us").read_text() == "5000"
    assert (group / "cpu.cfs_period_us").read_text() == "20000"
    for file in group.iterdir():  # those of the kernel do not hold their folder
        file.unlink()
    assert control_groups.unthrottle({"name": "g"}) == {"processes": 0} and not group.exists()

    (groups / "cgroup.controllers").write_text("cpu memory\n")
    assert control_groups.throttle({**throttled, "share": 0.0001}) == {"pids": [4]}
    assert (groups / "g-2" / "cpu.max").read_text() == "1000 20000", "no quota is below a millisecond"
    assert (groups / "cgroup.subtree_control").read_text() == "+cpu"
