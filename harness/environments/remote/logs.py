"""What a node leaves comes home: out of its container or machine, into the run's directory, on the harness's clock."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from harness.environments.remote import agent, capture
from harness.environments.remote.shell import Shell
from harness.errors import HarnessError
from harness.record.run_directory import ABOUT_LOGS, ABOUT_PACKETS, EVENTS, NODE_LOG, NODE_LOGS, PACKETS

MOST_LOG_BYTES = 64 << 20
PACK = """import os, sys, tarfile
folder, left = sys.argv[1], int(sys.argv[2])
found = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
found = [path for path in found if os.path.isfile(path) and not os.path.islink(path)]
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as packed:
    for path in sorted(found, key=os.path.getmtime, reverse=True):
        if (size := os.path.getsize(path)) <= left:
            left -= size
            packed.add(path, os.path.relpath(path, folder))
"""
"""The newest files of a folder first, as long as they fit."""
WALL_CLOCK_AHEAD = "import time; print(time.time_ns() - time.monotonic_ns())"


def bring_home(shell: Shell, directory: Path, *, zero_ns: int, logs: str = "") -> None:
    """Write `node.log` and `events.jsonl` of the node into `directory`, which is made unless it is there; its packets,
    if they were captured; and below `logs` the files of the directory of that name, of which a program that fills
    more than MOST_LOG_BYTES keeps the newest, with what the node's wall clock is ahead.

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
    if logs:
        _bring_logs(shell, logs, directory / NODE_LOGS)
        ahead = shell.run(["python3", "-I", "-S", "-c", WALL_CLOCK_AHEAD])
        if ahead.exit_code == 0:
            about = {"wall_at_zero_ns": int(ahead.output) + zero_ns}
            (directory / ABOUT_LOGS).write_text(json.dumps(about) + "\n", encoding="utf-8")
    if shell.fetch(agent.CAPTURE):
        _bring_packets(shell, directory, zero_ns=zero_ns)


def _bring_logs(shell: Shell, source: str, target: Path) -> None:
    """Raises HarnessError, OSError."""
    packed = shell.run(["python3", "-I", "-S", "-c", PACK, source, str(MOST_LOG_BYTES)])
    try:
        with tarfile.open(fileobj=io.BytesIO(packed.output)) as archive:
            archive.extractall(target, filter="data")
    except tarfile.TarError as error:
        words = packed.errors.decode(errors="replace").strip().rpartition("\n")[2] or str(error)
        raise HarnessError(f"the logs below {source} of {target.parent.name} could not be collected: {words}") from None


def _bring_packets(shell: Shell, directory: Path, *, zero_ns: int) -> None:
    """A packet of the 12th second of the run has 12 s as its time. Raises HarnessError, OSError."""
    collected = shell.run(["python3", "-I", "-S", agent.CAPTURE, "collect", "{}"])
    try:
        about = json.loads(collected.output)
    except ValueError:
        words = collected.errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise HarnessError(f"packets of {directory.name} could not be collected: {words}") from None
    with (directory / PACKETS).open("wb") as file:
        file.write(capture.HEADER)
        for at_ns, length, data in capture.records(io.BytesIO(shell.fetch(about.pop("place")))):
            if at_ns >= zero_ns:
                capture.write(file, at_ns - zero_ns, length, data)
    (directory / ABOUT_PACKETS).write_text(json.dumps(about) + "\n", encoding="utf-8")
