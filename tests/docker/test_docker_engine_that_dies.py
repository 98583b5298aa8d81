"""An engine that is gone in the midst of a run ends it with one line; what was left goes once there is one again."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.environments.docker import engine
from tests.interruptions.leftovers import containers_of

pytestmark = [pytest.mark.docker, pytest.mark.gate]

ENGINE = "/var/run/docker.sock"
PATIENCE_S = 300.0
RUN = ["run", "rocketmq", "--environment", "docker", "--set", "brokers=2", "--set", "controllers=1", "--seed", "1"]
STORM = ["--nemesis", "pause one of brokers every 3 for 1", "--time-limit", "3000", "--engine", "inprocess"]


class Passage:
    """The way to the engine, a socket of its own, until it is closed with all that goes through it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ends: list[socket.socket] = []
        self._open = True
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while self._open:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(ENGINE)
            self._ends += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    @staticmethod
    def _pass_on(one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def close(self) -> None:
        self._open = False
        self.path.unlink()
        self._listening.close()
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.fixture
def passage(tmp_path: Path) -> Iterator[Passage]:
    made = Passage(tmp_path / "engine.sock")
    yield made
    if made.path.exists():
        made.close()


def test_an_engine_that_is_gone_ends_the_run_with_one_line(passage: Passage, tmp_path: Path) -> None:
    environment = {**os.environ, "DOCKER_HOST": f"unix://{passage.path}"}
    command = [sys.executable, "-m", "stormproof.cli.main"]
    runs = tmp_path / "runs"
    with subprocess.Popen(
        [*command, *RUN, *STORM, "--runs", str(runs)], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            history = runs / "latest" / "history.arrows"
            deadline = time.monotonic() + PATIENCE_S
            while not (history.exists() and history.stat().st_size > 10_000):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
            passage.close()
            _, said = process.communicate(timeout=PATIENCE_S)
        finally:
            process.send_signal(signal.SIGKILL)
    assert process.returncode == 255, said
    assert "Traceback" not in said
    *_, last = said.splitlines()
    assert last.startswith("stormproof: ") and "Docker" in last, said
    assert containers_of(process.pid), "nothing was left that an engine could be asked to remove"
    checked = subprocess.run(
        [*command, "check", str(runs / "latest"), "--engine", "inprocess"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 2, checked.stderr
    assert subprocess.run([*command, "cleanup"], capture_output=True, check=False).returncode == 0
    assert containers_of(process.pid) == []
    with engine() as client:
        assert client.ping()
