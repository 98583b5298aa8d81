"""How a node's program is started where it runs: words, environment variables and files, with all names filled in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.environments.remote import agent
from harness.system import NodeSpec

RUNNER = "system_under_test.runtime.real"
"""Runs a Python program on a real `Host`: `python3 -m RUNNER package.module:function CONFIG`. Named as text, as the
simulator's seam is: the harness imports nothing of the system."""
CONFIG = f"{agent.NODE}/config.json"


@dataclass(frozen=True, kw_only=True)
class Launch:
    argv: tuple[str, ...]
    files: Mapping[str, bytes]
    """Written before each boot, by absolute paths."""
    environment: Mapping[str, str] = field(default_factory=dict)


def launch_of(spec: NodeSpec) -> Launch:
    program = spec.program
    config = {"name": spec.name, "data": f"{agent.NODE}/data", "config": dict(program.config)}
    return Launch(argv=("python3", "-m", RUNNER, program.main, CONFIG), files={CONFIG: json.dumps(config).encode()})
