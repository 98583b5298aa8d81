"""How a node's program is started where it runs: words, environment variables and files, with all names filled in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.environments.remote import agent
from harness.environments.remote.sources import sources
from harness.program import Command, Probe, Program, PythonProgram, Succeeding, filled, places

RUNNER = "system_under_test.runtime.real"
"""Runs a Python program on a real `Host`: `python3 -m RUNNER package.module:function CONFIG`. Named as text, as the
simulator's seam is: the harness imports nothing of the system."""
CONFIG = f"{agent.NODE}/config.json"


def python_files(program: PythonProgram) -> Mapping[str, bytes]:
    """What the program and its runner import, by path. Raises HarnessError."""
    return sources((program.main.partition(":")[0], RUNNER), program.requirements)


@dataclass(frozen=True, kw_only=True)
class Launch:
    argv: tuple[str, ...]
    files: Mapping[str, bytes]
    """Written before each boot, by absolute paths."""
    environment: Mapping[str, str] = field(default_factory=dict)
    ready: Probe | None = None
    logs: str = ""
    """Absolute; empty where its output is all."""


def launch_of(name: str, program: Program, addresses: Mapping[str, str]) -> Launch:
    """How the node of this name starts a program. `addresses`: node -> where other nodes reach it.

    Raises UsageError for a text that names what is not there.
    """
    match program:
        case PythonProgram(main=main, config=config, logs=logs):
            settings = {"name": name, "data": f"{agent.NODE}/data", "config": dict(config)}
            return Launch(
                argv=("python3", "-m", RUNNER, main, CONFIG),
                files={CONFIG: json.dumps(settings).encode()},
                logs=f"{agent.DISK}/{logs}" if logs else "",
            )
        case Command() as command:
            names = places(name, addresses, agent.NODE)
            ready = command.ready
            if isinstance(ready, Succeeding):
                ready = Succeeding(tuple(filled(word, names) for word in ready.argv))
            return Launch(
                argv=tuple(filled(word, names) for word in command.argv),
                files={filled(path, names): filled(text, names).encode() for path, text in command.files.items()},
                environment={name: filled(text, names) for name, text in command.environment.items()},
                ready=ready,
                logs=filled(command.logs, names),
            )
