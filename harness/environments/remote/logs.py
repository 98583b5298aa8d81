"""A node's logs come home: out of its container or machine, into the run's directory, on the harness's clock."""

from __future__ import annotations

import json
from pathlib import Path

from harness.environments.remote import agent
from harness.environments.remote.shell import Shell
from harness.record.run_directory import EVENTS, NODE_LOG


def bring_home(shell: Shell, directory: Path, *, zero_ns: int) -> None:
    """Write `node.log` and `events.jsonl` of the node into `directory`, which is made unless it is there.

    `zero_ns`: what CLOCK_MONOTONIC was in the node when the harness's clock was 0. Raises HarnessError, OSError.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / NODE_LOG).write_bytes(shell.fetch(agent.LOG))
    with (directory / EVENTS).open("w", encoding="utf-8") as file:
        for line in shell.fetch(f"{agent.NODE}/data/events.jsonl").decode(errors="replace").splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue  # torn by a kill
            event["time"] -= zero_ns
            file.write(json.dumps(event) + "\n")
