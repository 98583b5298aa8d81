"""The program that runs a node: how it starts, stops, and dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

NODE = """
import asyncio

async def main(host, config):
    if "greeting" not in config:
        raise ValueError("greeting: expected text, got nothing")
    file = host.disk.open("state/greeting")
    file.append(config["greeting"].encode())
    await file.fsync()
    if config.get("mistake"):
        host.spawn(make_mistake(), "mistaken")
    host.log("ready", files=list(host.disk.list("state")))
    try:
        await asyncio.Event().wait()
    finally:
        await host.clock.sleep(0.01)
        host.log("cleaned_up")

async def make_mistake():
    raise RuntimeError("a planted mistake")
"""


class Program:
    """One run of the program in a process of its own."""

    def __init__(self, directory: Path, config: Mapping[str, Any] | str, main: str = "node_of_this_test:main") -> None:
        (directory / "node_of_this_test.py").write_text(NODE)
        self._data = directory / "data"
        file = directory / "config.json"
        file.write_text(json.dumps({"name": "n", "data": str(self._data), "config": config}))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "system_under_test.runtime.real", main, str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(directory), *sys.path))},
        )

    def wait_for(self, event: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = json.loads(line)
            if found["event"] == event:
                return found
        raise AssertionError(f"the program ended before {event}: {self.process.communicate(timeout=600)[1]}")

    def end(self) -> tuple[int, str]:
        """Exit code and what it said on stderr."""
        _, errors = self.process.communicate(timeout=600)
        return self.process.returncode, errors

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self._data / "events.jsonl").read_text().splitlines()]


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    started: list[Program] = []
    yield started
    for program in started:
        if program.process.poll() is None:
            program.process.kill()
        program.process.communicate(timeout=600)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(tmp_path, programs, number):
    programs.append(program := Program(tmp_path, {"greeting": "hello"}))
    assert program.wait_for("ready")["files"] == ["state/greeting"]
    program.process.send_signal(number)
    assert program.end() == (0, "")
    assert [event["event"] for event in program.events()] == ["started", "ready", "stopping", "cleaned_up", "stopped"]
    assert (tmp_path / "data" / "disk" / "state" / "greeting").read_text() == "hello"


def test_a_kill_leaves_the_events_that_came_before_it(tmp_path, programs):
    programs.append(program := Program(tmp_path, {"greeting": "hello"}))
    program.wait_for("ready")
    program.process.kill()
    assert program.end()[0] == -signal.SIGKILL
    assert [event["event"] for event in program.events()] == ["started", "ready"]


def test_a_panic_ends_it_at_once_with_the_traceback_in_the_log(tmp_path, programs):
    programs.append(program := Program(tmp_path, {"greeting": "hello", "mistake": True}))
    code, errors = program.end()
    assert code == 70
    assert "a planted mistake" in errors
    last = program.events()[-1]
    assert (last["event"], last["task"]) == ("panic", "mistaken")
    assert "a planted mistake" in last["traceback"]


def test_settings_may_be_lines_of_a_file(tmp_path, programs):
    (tmp_path / "node.conf").write_text("# of this test\ngreeting = good morning\nmistake = false\n")
    programs.append(program := Program(tmp_path, str(tmp_path / "node.conf")))
    program.wait_for("ready")
    program.process.send_signal(signal.SIGTERM)
    assert program.end() == (0, "")
    assert (tmp_path / "data" / "disk" / "state" / "greeting").read_text() == "good morning"


def test_a_file_that_is_no_properties_is_refused_in_one_line(tmp_path, programs):
    (tmp_path / "node.conf").write_text("greeting = \\u12\n")
    programs.append(program := Program(tmp_path, str(tmp_path / "node.conf")))
    assert program.end() == (64, "bad config: ValueError: expected four hexadecimal digits behind \\u\n")


def test_a_bad_config_is_refused_in_one_line(tmp_path, programs):
    programs.append(program := Program(tmp_path, {}))
    assert program.end() == (64, "bad config: greeting: expected text, got nothing\n")


def test_an_unknown_main_is_refused_in_one_line(tmp_path, programs):
    programs.append(program := Program(tmp_path, {}, main="no_such_module:main"))
    code, errors = program.end()
    assert code == 64
    assert errors.count("\n") == 1
    assert "no_such_module" in errors


def test_wrong_arguments_are_refused_in_one_line():
    done = subprocess.run(
        [sys.executable, "-m", "system_under_test.runtime.real"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 64
    assert done.stderr.count("\n") == 1
