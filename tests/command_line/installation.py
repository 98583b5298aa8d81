"""What an installation by pip leaves, without pip: metadata beside modules, and a path to them."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


def installed_as(name: str, points: Mapping[str, Mapping[str, str]], site: Path) -> Path:
    """What an installation leaves: its metadata beside its modules."""
    metadata = site / f"{name}-0.1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
        for group, entries in points.items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(groups))
    return site


def installed_from(project: Path, site: Path) -> Path:
    """As `pip install -e` of a project that has its package in its own folder."""
    described = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    return installed_as(described["name"].replace("-", "_"), described["entry-points"], site)


def environment_with(*places: Path) -> dict[str, str]:
    """Variables with which Python finds what lies in these places, and Stormproof."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*places, ROOT)))}
