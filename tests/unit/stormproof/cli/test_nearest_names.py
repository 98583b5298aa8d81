"""For a name misspelt on the command line or in a suite the nearest is shown, whatever kind of name it is."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from stormproof.cli import main

Stormproof = Callable[..., int]


@pytest.fixture
def stormproof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stormproof:
    monkeypatch.chdir(tmp_path)
    Path("history.edn").write_text("")
    return lambda *arguments: main.run(arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("rnu rocketmq", "unknown command 'rnu'; did you mean run? Known are: run, suite, explore, replay, "),
        ("run rocketmq --nemsis kill", "No such option '--nemsis'; did you mean --nemesis"),
        ("run rocketmq --quit", "No such option '--quit'; did you mean --quiet"),
        ("run rockketmq", "unknown system 'rockketmq'; did you mean rocketmq? Known are: "),
        ("run rocketmq --workload regster", "did you mean register or rw-register? Known are: "),
        ("run rocketmq --nemesis kill,partitoin", "unknown nemesis 'partitoin'; did you mean partition? Known are: "),
        ("run rocketmq --nemesis 'kil all every 8 for 2'", "did you mean 'kill all every 8 for 2'?"),
        ("run rocketmq --environment dokcer", "unknown environment 'dokcer'; did you mean docker? Known are: docker, "),
        ("run rocketmq --mutant flush-lies", "unknown mutant 'flush-lies' of rocketmq; did you mean flush-lie? Known "),
        ("run rocketmq --set brokrs=3", "unknown setting 'brokrs'; did you mean brokers"),
        ("run rocketmq --set intervall_s=3 --nemesis kill", "unknown setting 'intervall_s'; did you mean interval_s"),
        ("run rocketmq --engine inproces", "unknown engine 'inproces'; did you mean inprocess? Known are: "),
        ("suite nightli", "; did you mean nightly?"),
        ("list mutant", "unknown kind of list 'mutant'; did you mean mutants? Known are: systems, "),
        ("export x --format jsn", "unknown format 'jsn'; did you mean json? Known are: edn, json"),
        ("check history.edn --model regster", "unknown model 'regster'; did you mean register"),
        ("check history.edn --workload list-apend", "unknown workload 'list-apend'; did you mean list-append"),
        ("check history.edn --workload queue --set ordr=fifo", "'ordr' of workload queue; did you mean order? Known "),
        ("check history.edn --workload log --set queus=1", "'queus' of workload log; did you mean queues? Known are: "),
        (
            "check history.edn --workload list-append --consistency-model serialisable",
            "unknown consistency model 'serialisable'; did you mean serializable",
        ),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(
    stormproof: Stormproof, capsys: pytest.CaptureFixture[str], arguments: str, words: str
) -> None:
    assert stormproof(*shlex.split(arguments)) == 254
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("systm", "rocketmq", "unknown key 'systm' of defaults; did you mean system"),
        ("system", "roketmq", "unknown system 'roketmq'; did you mean rocketmq"),
        ("workload", "lgo", "unknown workload 'lgo'; did you mean log"),
        ("nemesis", "pusae", "unknown nemesis 'pusae'; did you mean pause"),
        ("environment", "simulate", "unknown environment 'simulate'; did you mean simulated"),
        ("mutant", "local-raed", "unknown mutant 'local-raed' of rocketmq; did you mean local-read"),
    ],
)
def test_a_misspelt_name_in_a_suite_is_answered_with_the_nearest(
    stormproof: Stormproof, capsys: pytest.CaptureFixture[str], key: str, value: str, words: str
) -> None:
    keys = {"system": "rocketmq", "workload": "log", key: value}
    Path("mine.toml").write_text("[defaults]\n" + "".join(f'{name} = "{text}"\n' for name, text in keys.items()))
    assert stormproof("suite", "mine.toml", "--engine", "inprocess") == 254
    assert f"mine.toml: {words}" in capsys.readouterr().err


def test_a_misspelt_setting_in_a_suite_is_answered_with_the_nearest(
    stormproof: Stormproof, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.toml").write_text('[defaults]\nsystem = "rocketmq"\nworkload = "log"\nsettings = { flsh = "async" }\n')
    assert stormproof("suite", "mine.toml", "--engine", "inprocess") == 254
    assert "mine.toml: unknown setting 'flsh'; did you mean flush" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_says_what_to_type_first_and_groups_the_commands(
    stormproof: Stormproof, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert stormproof(*arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.index("Type first:") < out.index("stormproof run rocketmq") < out.index("Storms:")
    assert out.index("Storms:") < out.index("Histories:") < out.index("This machine:")
    for name in main.group.list_commands(click.Context(main.group)):
        assert f"\n  {name} " in out
    assert len(out.splitlines()) <= 40
    assert max(map(len, out.splitlines())) <= 110
