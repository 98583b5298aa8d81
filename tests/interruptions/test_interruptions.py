"""Each kind of interruption once or twice; `make interruptions` makes hundreds, at moments drawn from a seed."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM

import pytest

from stormproof.cli.main import run
from tests.interruptions.attempt import TOKEN, Attempt, World, carry_out, signals_are_heard
from tests.interruptions.campaign import drawn, table
from tests.interruptions.commands import STORM, SUITE, Commands
from tests.interruptions.leftovers import marked

LONG = ["--time-limit", "3000", "--engine", "inprocess"]
"""Nothing that is interrupted here would have ended by itself."""
LATEST_S = 2.5
SIGNALS = [(SIGINT,), (SIGHUP, SIGINT), (SIGTERM,), (SIGKILL,)]


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    with signals_are_heard():
        yield


def interrupted(
    attempt: Attempt, place: Path, arguments: list[str], *, begun: Callable[[], bool] = lambda: True
) -> None:
    print(attempt)
    result = carry_out(attempt, place, lambda _: arguments, begun=begun)
    assert result.problems == [], result.output
    assert result.code == (-SIGKILL if attempt.kills else 255), result.output
    assert set(result.checked) <= {0, 1, 2, 254}


@pytest.mark.slow
@pytest.mark.parametrize("signals", SIGNALS, ids=lambda signals: "+".join(one.name for one in signals))
def test_a_simulated_run_ends_at_any_moment_and_can_be_checked(
    signals: tuple[signal.Signals, ...], tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(2**31)
    print(f"seed {seed}")
    draw = random.Random(seed)
    attempt = Attempt(
        world=World.SIMULATED,
        name="run",
        signals=signals,
        delay_s=draw.uniform(0, LATEST_S),
        gap_s=draw.uniform(0, 0.2),
    )
    interrupted(attempt, tmp_path, ["run", "rocketmq", *STORM, *LONG, "--runs", str(tmp_path / "runs")])


@pytest.mark.slow
@pytest.mark.parametrize("number", [pytest.param(SIGTERM, marks=pytest.mark.gate), SIGKILL])
def test_the_processes_of_a_suite_end_with_it(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(SUITE.replace("time_limit_s = 10", "time_limit_s = 3000"))
    attempt = Attempt(world=World.SIMULATED, name="suite", signals=(number,), delay_s=0.5)
    options = ["--jobs", "2", "--engine", "inprocess", "--runs", str(tmp_path / "runs")]
    arguments = ["suite", str(tmp_path / "suite.toml"), *options]
    interrupted(attempt, tmp_path, arguments, begun=partial(has_process, tmp_path, "spawn_main"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signals", "seen"),
    [
        ((SIGTERM,), "supervisor.py"),
        pytest.param((SIGINT, SIGTERM), "SparkSubmit", marks=pytest.mark.gate),
        ((SIGKILL,), "SparkSubmit"),
    ],
)
def test_sparks_jvm_ends_with_a_check_that_is_interrupted_while_it_starts(
    signals: tuple[signal.Signals, ...], seen: str, tmp_path: Path, stored_for_checks: Path
) -> None:
    attempt = Attempt(world=World.SPARK, name="check", signals=signals, delay_s=0.0)
    arguments = ["check", str(stored_for_checks), "--engine", "spark", "--master", "local[2]"]
    interrupted(attempt, tmp_path, arguments, begun=partial(has_process, tmp_path, seen))


@pytest.mark.slow
def test_a_wait_for_sparks_jvm_prints_nothing_when_the_jvm_is_gone(tmp_path: Path, stored_for_checks: Path) -> None:
    attempt = Attempt(world=World.SPARK, name="check", signals=(SIGTERM,), delay_s=0.5)
    arguments = ["check", str(stored_for_checks), "--engine", "spark", "--master", "local[2]"]
    place = tmp_path / "tmp"
    interrupted(attempt, tmp_path, arguments, begun=lambda: any(place.glob("stormproof-*/listening")))


def has_process(place: Path, words: str) -> bool:
    """Whether the command has one whose command line holds these words."""
    return any(words in one for one in marked(TOKEN, str(place)))


@pytest.fixture
def stored_for_checks(tmp_path: Path) -> Path:
    """A run that is short, but enough to start Spark for."""
    brief = ["--time-limit", "1", "--recovery", "1", "--seed", "11", "--engine", "inprocess", "--quiet"]
    run(["run", "rocketmq", *brief, "--runs", str(tmp_path / "runs")])
    return (tmp_path / "runs" / "latest").resolve()


@pytest.mark.docker
@pytest.mark.gate
def test_a_closed_terminal_leaves_nothing_in_docker_and_logs_come_home(tmp_path: Path) -> None:
    attempt = Attempt(world=World.DOCKER, name="run", signals=(SIGHUP, SIGTERM), delay_s=1.0, gap_s=0.3)
    options = ["--environment", "docker", "--set", "brokers=2", "--set", "controllers=1"]
    recorded = tmp_path / "runs" / "latest" / "history.arrows"
    interrupted(
        attempt,
        tmp_path,
        ["run", "rocketmq", *STORM, *LONG, *options, "--runs", str(tmp_path / "runs")],
        begun=lambda: recorded.exists() and recorded.stat().st_size > 0,
    )
    for node in ("b1", "b2", "c1"):
        assert (tmp_path / "runs" / "latest" / "nodes" / node / "events.jsonl").stat().st_size


def test_moments_follow_from_the_seed_and_every_signal_comes_once_and_twice() -> None:
    commands = Commands(stored=Path("nowhere"))
    durations = {(World.SIMULATED, name): 10.0 for name in commands.of(World.SIMULATED)}
    first, again = (list(drawn(7, [(World.SIMULATED, 16)], commands, durations)) for _ in range(2))
    assert first == again
    assert {(one.signals[-1] if one.kills else one.signals[0], len(one.signals)) for one in first} == {
        (number, times) for number in (SIGINT, SIGTERM, SIGHUP, SIGKILL) for times in (1, 2)
    }
    assert table([]).startswith("environment")
