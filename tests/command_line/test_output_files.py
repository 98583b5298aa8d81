"""Files that a user asks for: written where they point, never in the place of a device or a link, and said if not."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.command_line.answers import Answer, Stormproof
from tests.own_devices import full_device

IN_PROCESS = ("--engine", "inprocess")
WRITE = "{:process 0 :type :invoke :f :write :value 1}\n{:process 0 :type :ok :f :write :value 1}\n"
SUITE = """
[[matrix]]
system = "rocketmq"
workload = "log"
nemesis = "none"
time_limit_s = 2
recovery_s = 5
seeds = [1]
"""

Writes = Callable[[Path | str], Answer]


@pytest.fixture(params=["export", "certify", "junit"])
def writes(request: pytest.FixtureRequest, stormproof: Stormproof, stored_run: Path) -> Writes:
    """Each command that writes a file where it is asked to."""
    Path("h.edn").write_text(WRITE)
    Path("s.toml").write_text(SUITE)
    commands: dict[str, tuple[str | Path, ...]] = {
        "export": ("export", stored_run, "--output"),
        "certify": ("check", "h.edn", "--model", "register", *IN_PROCESS, "--certify"),
        "junit": ("suite", "s.toml", *IN_PROCESS, "--junit"),
    }
    return lambda path: stormproof(*commands[request.param], path)


def test_a_device_without_room_stays_a_device_and_the_failure_is_printed_in_one_line(
    writes: Writes, tmp_path: Path
) -> None:
    full = full_device(tmp_path / "full")
    answer = writes(full)
    assert answer.code == 255
    assert answer.err == f"stormproof: cannot write {full}: No space left on device\n"
    assert full.is_char_device()


def test_a_link_stays_and_its_target_is_replaced(writes: Writes) -> None:
    Path("target").write_text("old")
    Path("target").chmod(0o600)
    Path("link").symlink_to("target")
    writes("link")
    assert Path("link").is_symlink()
    assert Path("target").read_text() not in ("", "old")
    assert Path("target").stat().st_mode & 0o777 == 0o600
    assert [name for name in os.listdir() if "unfinished" in name] == []


def test_a_named_pipe_is_written_and_stays_one(writes: Writes) -> None:
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text()))
    reader.start()
    writes("pipe")
    reader.join()
    assert Path("pipe").is_fifo()
    assert read != [""]


@pytest.mark.parametrize("path", [".", "h.edn/below", "/proc/nobody-makes-this", "n" * 256])
def test_what_cannot_be_written_is_refused_before_the_work(writes: Writes, path: str) -> None:
    answer = writes(path)
    assert answer.code == 254
    assert answer.err.startswith(f"stormproof: cannot write {path}: ")
    assert answer.err.count("\n") == 1
    assert not Path("runs").exists()


def test_a_dash_is_standard_output_and_lines_for_people_go_beside_it(stormproof: Stormproof, stored_run: Path) -> None:
    Path("h.edn").write_text(WRITE)
    Path("s.toml").write_text(SUITE)
    exported = stormproof("export", stored_run, "--output", "-", "--format", "json")
    assert exported.out == stormproof("export", stored_run, "--format", "json").out
    assert {"process", "type", "f"} <= json.loads(exported.out.splitlines()[0]).keys()
    certified = stormproof("check", "h.edn", "--model", "register", "--certify", "-", *IN_PROCESS)
    assert json.loads(certified.out.splitlines()[-1]) == {"key": "", "order": [0]}
    assert "verdict   " in certified.err
    judged = stormproof("suite", "s.toml", "--junit", "-", *IN_PROCESS)
    assert ElementTree.fromstring(judged.out).tag == "testsuites"
    assert "verdict   " in judged.err
    assert not Path("-").exists()


def test_standard_output_holds_one_thing(stormproof: Stormproof) -> None:
    Path("h.edn").write_text(WRITE)
    for arguments in (
        ("check", "h.edn", "--model", "register", "--certify", "-", "--json"),
        ("suite", "smoke", "--junit", "-", "--json"),
    ):
        answer = stormproof(*arguments)
        assert (answer.code, answer.out) == (254, "")
        assert "standard output holds what --json prints or the file -, not both" in answer.err


def test_what_a_suite_found_is_printed_also_where_its_file_cannot_be_written(
    stormproof: Stormproof, tmp_path: Path
) -> None:
    Path("s.toml").write_text(SUITE)
    answer = stormproof("suite", "s.toml", "--junit", full_device(tmp_path / "full"), "--json", *IN_PROCESS)
    assert (answer.code, answer.json["verdict"], answer.json["junit"]) == (255, "valid", None)
