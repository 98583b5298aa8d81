"""A variable that is not set turns no gate green: nothing where a value should be is wrong usage, everywhere alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest

from harness.errors import UsageError
from harness.record.scenario import Scenario, nemesis_names
from stormproof import log, rocketmq, storm
from stormproof.cli import main
from stormproof.cli.main import group
from stormproof.session import registry
from stormproof.session.check_spec import checker_for
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario
from stormproof.session.suite_file import parse_suite

Stormproof = Callable[..., int]
COMMANDS = group.list_commands(click.Context(group))


def options(name: str) -> list[tuple[str, str]]:
    """The options of a command that take a value."""
    command = group.get_command(click.Context(group), name)
    assert command is not None
    taking = [param for param in command.params if isinstance(param, click.Option) and not param.is_flag]
    return [(name, param.opts[0]) for param in taking]


@pytest.fixture
def stormproof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stormproof:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: main.run(arguments)


@pytest.mark.parametrize(("command", "option"), [pair for name in COMMANDS for pair in options(name)])
@pytest.mark.parametrize("value", ["", " "])
def test_no_option_of_any_command_takes_an_empty_value(
    stormproof: Stormproof, capsys: pytest.CaptureFixture[str], command: str, option: str, value: str
) -> None:
    for written in ([option, value], [f"{option}={value}"]):
        assert stormproof(command, "rocketmq", *written) == 254
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"stormproof: what follows {option} is empty (a variable that is not set?)")
    assert not list(Path().iterdir())


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("doctor", "cleanup")])
def test_no_argument_of_any_command_is_empty(
    stormproof: Stormproof, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert stormproof(command, "") == 254
    assert f"what follows {command} is empty" in capsys.readouterr().err


@pytest.mark.parametrize("nemesis", ["", ",", " , ", "kill,", ",kill", "kill,,pause"])
def test_an_empty_nemesis_is_wrong_usage_that_says_how_to_ask_for_no_faults(
    stormproof: Stormproof, capsys: pytest.CaptureFixture[str], nemesis: str
) -> None:
    assert stormproof("run", "rocketmq", "--nemesis", nemesis, "--engine", "inprocess") == 254
    assert "none" in capsys.readouterr().err
    suite = Path("mine.toml")
    suite.write_text(f'[defaults]\nsystem = "rocketmq"\nworkload = "log"\nnemesis = "{nemesis}"\n')
    assert stormproof("suite", str(suite), "--engine", "inprocess") == 254
    words = capsys.readouterr().err
    assert "mine.toml: empty nemesis in" in words
    assert "for a run without faults say none" in words
    with pytest.raises(UsageError, match="empty nemesis"):
        run_scenario(Scenario(system="rocketmq", workload="log", nemesis=tuple(nemesis.split(","))), options=HERE)
    assert not Path("runs").exists()


@pytest.mark.parametrize("nemesis", ["none,kill", "kill, none", "none,none"])
def test_none_stands_alone(stormproof: Stormproof, capsys: pytest.CaptureFixture[str], nemesis: str) -> None:
    assert stormproof("run", "rocketmq", "--nemesis", nemesis) == 254
    assert "none means no faults and stands alone" in capsys.readouterr().err


def test_none_alone_means_no_faults_and_no_planted_bug() -> None:
    assert nemesis_names("none") == nemesis_names(" none ") == ()
    assert registry.resolve(Scenario(system="rocketmq", workload="log", nemesis=("none",))).packages == ()
    text = '[defaults]\nsystem = "rocketmq"\nworkload = "log"\nnemesis = "none"\nmutant = ["none", "flush-lie"]\n'
    healthy, ill = parse_suite(text, "mine.toml").scenarios
    assert (healthy.nemesis, healthy.mutant, ill.mutant) == ((), None, "flush-lie")


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("system", "empty name of a system; known are: "),
        ("workload", "empty name of a workload; known are: bank, causal"),
        ("environment", "empty name of an environment; known are: docker, simulated"),
        ("mutant", "empty name of a mutant of rocketmq; known are: "),
        ("name", "name must be text, got ''"),
    ],
)
def test_an_empty_text_in_a_suite_is_refused(
    stormproof: Stormproof, capsys: pytest.CaptureFixture[str], key: str, words: str
) -> None:
    keys = {"system": "rocketmq", "workload": "log"} | ({} if key == "name" else {key: ""})
    named = 'name = ""\n' if key == "name" else ""
    Path("mine.toml").write_text(
        named + "[defaults]\n" + "".join(f'{name} = "{value}"\n' for name, value in keys.items())
    )
    assert stormproof("suite", "mine.toml", "--engine", "inprocess") == 254
    assert f"mine.toml: {words}" in capsys.readouterr().err


def test_a_setting_without_a_value_is_refused() -> None:
    with pytest.raises(UsageError, match="the value of 'flush' is empty"):
        registry.parse_setting("flush=")
    with pytest.raises(UsageError, match="the value of 'flush' is empty"):
        registry.parse_setting(" flush = ")


@pytest.mark.parametrize("assumed", ["", ",", "realtime,"])
def test_an_empty_word_in_a_list_of_assumptions_is_refused(assumed: str) -> None:
    with pytest.raises(UsageError, match=r"setting assume takes some of|the value of 'assume' is empty"):
        checker_for("rw-register", {"assume": assumed})


def test_a_nemesis_that_is_a_text_is_not_taken_for_its_letters() -> None:
    with pytest.raises(UsageError, match="takes a list of names"):
        storm(system=rocketmq(), workload=log(), nemesis="")
    with pytest.raises(UsageError, match="nemesis takes a list"):
        Scenario(system="rocketmq", workload="log", nemesis="")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="nemesis takes a list"):
        Scenario.from_json({"system": "rocketmq", "workload": "log", "nemesis": ""})


def test_beats_that_are_one_however_they_are_written_are_named_once() -> None:
    both = ("kill all every 8 for 2", "kill all every 8.0 for 2")
    with pytest.raises(UsageError, match="named twice"):
        registry.resolve(Scenario(system="rocketmq", workload="log", nemesis=both))
