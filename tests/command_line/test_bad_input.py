"""Whatever is wrong ends in one line that says what was expected, what came and what to do, and in its exit code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.spark import java
from tests.command_line.answers import Answer, Stormproof

WRONG_USAGE, HARNESS_FAILED = 254, 255


def message_of(answer: Answer) -> str:
    """The one line on standard error, beside those that say every ten seconds what a slow machine is at."""
    (line,) = (line for line in answer.err.splitlines() if not re.match(r" +\d+\.\d s  ", line))
    assert line.startswith("stormproof: ")
    assert "Traceback" not in answer.err
    return line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("run kafka", "unknown system 'kafka'; known are: "),
        (
            "run rocketmq --nemesis asteroid",
            "unknown nemesis 'asteroid'; known are: administration, clients, clock, corrupting-links, disk, ",
        ),
        ("run rocketmq --set colour=red", "unknown setting 'colour'; known are: ack_durable, all_ack, "),
        ("run rocketmq --set flush=maybe", "setting flush takes one of sync, async, got 'maybe'"),
        ("run rocketmq --set brokers=many", "setting brokers takes a whole number from 1 to 100, got 'many'"),
        (
            "run rocketmq --engine flink",
            "known are: auto, spark, inprocess (see: stormproof run --help)",
        ),
        ("run rocketmq --nemesis reset", "environment 'simulated' cannot apply 'reset'"),
        ("run rocketmq --nemesis corrupting-links", "environment 'simulated' cannot apply 'corrupting-links'"),
        ("run rocketmq --time-limit nan", "time_limit_s takes a number from 0 to 604800, got nan"),
        ("run rocketmq --max-outage -1", "max_outage_s takes a number from 0 to 604800, got -1.0"),
        ("run rocketmq --liveness 61", "liveness_s is a part of the storm, so at most time_limit_s (60), got 61"),
        ("run rocketmq --runs /proc/nowhere --engine inprocess", "cannot write into /proc/nowhere: "),
        ("suite nowhere.toml", "no suite file nowhere.toml; give a TOML file, or one of: nightly, "),
        ("check nowhere", "nowhere is no run directory and no history; stormproof list shows runs"),
        ("replay nowhere", "nowhere is not a run directory: it has no scenario.json"),
    ],
)
def test_wrong_usage_is_254_and_nothing_is_run(stormproof: Stormproof, arguments: str, words: str) -> None:
    answer = stormproof(*arguments.split())
    assert answer.code == WRONG_USAGE
    assert words in message_of(answer)
    assert not Path("runs").exists()


def test_an_unknown_shape_of_a_fault_is_answered_with_near_ones(stormproof: Stormproof) -> None:
    answer = stormproof("run", "rocketmq", "--nemesis", "isolate primery every 10 for 5")
    assert answer.code == WRONG_USAGE
    assert "'primery' is no target that can follow 'isolate'" in message_of(answer)
    assert message_of(answer).endswith("; did you mean 'isolate primary every 10 for 5'?")
    answer = stormproof("run", "rocketmq", "--nemesis", "isolate primary every 5 for 10")
    assert answer.code == WRONG_USAGE
    assert "a fault of 10 s is not over when the next interval begins" in message_of(answer)
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "mine.toml: not TOML"),
        ('[[matrix]]\nsystem = "rocketmq"', "mine.toml: matrix 1 lacks 'workload'"),
        ('[[matrix]]\nsystem = "rocketmq"\nworkload = "chat"', "mine.toml: unknown workload 'chat'"),
        (
            '[[matrix]]\nsystem = "rocketmq"\nworkload = "log"\nnemesis = "reset"',
            "mine.toml: environment 'simulated' cannot apply 'reset'",
        ),
    ],
)
def test_what_is_wrong_in_a_suite_is_named_before_anything_is_run(
    stormproof: Stormproof, text: str, words: str
) -> None:
    Path("mine.toml").write_text(text)
    answer = stormproof("suite", "mine.toml")
    assert answer.code == WRONG_USAGE
    assert words in message_of(answer)
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda whole: os.urandom(4_000), "not a Parquet file, or a part of one"),
        (lambda whole: b"", "Parquet file size is 0 bytes"),
        (lambda whole: whole[: len(whole) // 2], "not a Parquet file, or a part of one"),
    ],
    ids=["noise", "empty", "truncated"],
)
def test_a_history_that_is_none_is_254(
    stormproof: Stormproof, stored_run: Path, damage: Iterator[bytes], words: str
) -> None:
    broken = Path("broken.parquet")
    broken.write_bytes(damage((stored_run / "history.parquet").read_bytes()))  # type: ignore[operator]
    answer = stormproof("check", broken, "--workload", "log", "--engine", "inprocess")
    assert answer.code == WRONG_USAGE
    assert words in message_of(answer)
    assert "broken.parquet: " in message_of(answer)


def test_a_malformed_row_is_named(stormproof: Stormproof, stored_run: Path) -> None:
    table = pq.read_table(stored_run / "history.parquet")
    index = table["index"].to_numpy().copy()
    index[17] = 99
    pq.write_table(table.set_column(0, table.schema.field("index"), pa.array(index)), "odd.parquet")
    answer = stormproof("check", "odd.parquet", "--workload", "log", "--engine", "inprocess")
    assert answer.code == WRONG_USAGE
    assert "odd.parquet: row 17: " in message_of(answer)


def old_java(home: Path, version: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    executable.chmod(0o755)
    return home


@pytest.mark.parametrize("command", ["run rocketmq", "suite smoke", "check nowhere", "replay STORED"])
def test_this_process_and_a_master_contradict_each_other(
    stormproof: Stormproof, stored_run: Path, command: str
) -> None:
    words = command.replace("STORED", str(stored_run)).split()
    answer = stormproof(*words, "--engine", "inprocess", "--master", "local[2]")
    assert answer.code == WRONG_USAGE
    assert "--engine inprocess checks in this process, --master local[2] on Spark: leave one" in message_of(answer)
    assert not Path("runs").exists()


@pytest.mark.parametrize(("version", "what"), [(None, "there is none"), ("11.0.2", "there is only Java 11 at ")])
@pytest.mark.parametrize("command", ["run rocketmq", "suite smoke", "check nowhere", "replay STORED"])
@pytest.mark.parametrize("asked", ["--engine spark", "--master local[2]"])
def test_without_a_java_that_is_new_enough_spark_is_refused_before_anything_is_run(
    stormproof: Stormproof,
    stored_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str | None,
    what: str,
    command: str,
    asked: str,
) -> None:
    home = old_java(tmp_path / "java", version) if version else tmp_path / "is-not-there"
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", "/usr/bin" if version is None and not Path("/usr/bin/java").exists() else str(tmp_path))
    monkeypatch.setattr(java, "CHECKOUT_JDKS", tmp_path / "no-jdks")
    monkeypatch.setattr(java.find_java, "__defaults__", (os.environ, tmp_path / "no-jdks"))
    answer = stormproof(*f"{command} {asked}".replace("STORED", str(stored_run)).split())
    assert answer.code == HARNESS_FAILED
    line = message_of(answer)
    assert f"Spark needs Java 17 or newer, and {what}" in line
    assert "apt-get install openjdk-17-jre-headless" in line
    assert "--engine inprocess" in line
    assert not Path("runs").exists()


def test_without_a_docker_engine_a_run_in_containers_is_255(
    stormproof: Stormproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    answer = stormproof("run", "rocketmq", "--environment", "docker", "--engine", "inprocess")
    assert answer.code == HARNESS_FAILED
    assert "no Docker engine answers" in message_of(answer)
    assert "use --environment simulated" in message_of(answer)
    assert stormproof("cleanup").code == HARNESS_FAILED  # what containers are left could not be looked at


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB."""
    if os.geteuid() != 0:
        pytest.skip("not run: only root can mount a small disk")
    place = tmp_path / "small-disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"not run: no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_disk_that_fills_up_ends_a_run_with_what_is_safe_and_with_room_it_gets_a_verdict(
    stormproof: Stormproof, small_disk: Path
) -> None:
    long = ["--time-limit", "600", "--rate", "400", "--engine", "inprocess", "--seed", "3"]
    answer = stormproof("run", "rocketmq", *long, "--runs", small_disk)
    assert answer.code == HARNESS_FAILED
    assert "No space left on device; the first " in message_of(answer)
    assert "operations are safe there, make room and `check` them" in message_of(answer)
    check = ["check", small_disk / "latest", "--engine", "inprocess"]
    full = stormproof(*check)
    assert full.code == HARNESS_FAILED
    assert "No space left on device" in message_of(full)
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    roomy = stormproof(*check)
    assert roomy.code == 2
    assert "the run was cut short: " in roomy.out


def test_the_exit_code_of_the_process_is_that_of_the_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "stormproof.cli.main", "run", "kafka"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (WRONG_USAGE, "")
    assert re.fullmatch("stormproof: unknown system 'kafka'; known are: .*rocketmq.*\n", ran.stderr)
