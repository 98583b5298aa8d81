"""Processes of nodes on loopback, as several benchmarks start them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE_S = 60.0


class Processes:
    """Each with its directory below `directory`, until `stop`. With `profile` each leaves its profile there."""

    def __init__(self, directory: Path, profile: Path | None = None) -> None:
        self.directory = directory
        self._profile = profile
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self, name: str, main: str, config: Mapping[str, Any], addresses: Mapping[str, str] | None = None
    ) -> None:
        """`addresses`: where others are reached from there."""
        path = self.directory / f"{name}.json"
        settings = {"name": name, "data": str(self.directory / name), "bind": "127.0.0.1", "config": config}
        path.write_text(json.dumps({**settings, "addresses": addresses or {}}), "utf-8")
        profiler = () if self._profile is None else ("-m", "cProfile", "-o", str(self._profile / name))
        command = [sys.executable, *profiler, "-m", "system_under_test.runtime.real", main, str(path)]
        environment = {**os.environ, "PYTHONPATH": str(HERE)}
        self._processes[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=HERE, env=environment)

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            process.wait()

    def processor_s(self, names: Iterable[str] | None = None) -> float:
        """User and system, of these or of all."""
        ticks = 0
        for name in self._processes if names is None else names:
            fields = Path(f"/proc/{self._processes[name].pid}/stat").read_text("utf-8").rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS

    def resident_bytes(self, name: str) -> int:
        pages = Path(f"/proc/{self._processes[name].pid}/statm").read_text("utf-8").split()[1]
        return int(pages) * PAGE_BYTES

    def wait_for(self, name: str, event: str) -> None:
        """Until the node has said so. Raises SystemExit if it ended before, or did not in a long time."""
        events = self.directory / name / "events.jsonl"
        end_s = time.monotonic() + PATIENCE_S
        while not (events.exists() and f'"event": "{event}"' in events.read_text("utf-8")):
            if self._processes[name].poll() is not None or time.monotonic() > end_s:
                raise SystemExit(f"{name} did not come to the event {event!r}")
            time.sleep(0.05)


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
