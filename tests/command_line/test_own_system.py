"""A system that comes from somebody else's package is found, run and judged without a change here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

MEMO = Path(__file__).parents[2] / "examples" / "memo"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """What an installation of the example leaves: its metadata beside its module."""
    project = tomllib.loads((MEMO / "pyproject.toml").read_text())["project"]
    metadata = tmp_path / "site" / f"{project['name']}-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(points))
    return metadata.parent


def stormproof(installed: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    ran = subprocess.run(
        [sys.executable, "-m", "harness.cli.main", *arguments, "--json"],
        cwd=installed.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), str(MEMO), str(MEMO.parents[1])])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout, ran.stderr
    return ran.returncode, json.loads(ran.stdout)


@pytest.mark.parametrize(("keep", "code"), [("disk", 0), ("memory", 1)])
def test_the_example_is_judged_by_what_it_keeps(installed: Path, keep: str, code: int) -> None:
    nemesis = "kill all every 8 for 2" if keep == "memory" else "kill all every 8 for 2,power off all every 9 for 2"
    run = ["run", "memo", "--workload", "register", "--nemesis", nemesis, "--set", f"keep={keep}"]
    ended, told = stormproof(installed, *run, "--time-limit", "40", "--seed", "1", "--engine", "inprocess")
    assert (ended, told["exit_code"]) == (code, code), told
    assert bool(told["anomalies"]["linearizable"]) is (keep == "memory")


def test_it_is_listed_beside_our_own(installed: Path) -> None:
    _, listed = stormproof(installed, "list", "systems")
    assert [entry["name"] for entry in listed["systems"]] == ["memo", "rocketmq"]
    assert listed["systems"][0]["settings"] == {"keep": "disk"}
