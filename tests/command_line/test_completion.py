"""What a shell offers when Tab is pressed: asked through click's protocol, and once from a real bash."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from stormproof.cli.completion import Bash, answer
from stormproof.cli.main import group
from stormproof.cli.program import ASKED_TO_COMPLETE
from stormproof.session.suite_file import shipped
from tests.command_line.answers import Stormproof

HEAVY = ("numba", "pandas", "plotly", "pyarrow", "pyspark")
PATIENCE_S = 120

Offered = Callable[[str], list[str]]


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Offered:
    """What follows a command line that ends where the cursor is, as bash would ask."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(ASKED_TO_COMPLETE, "bash_complete")

    def ask(line: str) -> list[str]:
        before, quote, quoted = line.partition("'")
        words = before.replace("=", " = ").split()
        if quote or line.endswith(" "):
            words.append(quote + quoted)
        monkeypatch.setenv("COMP_WORDS", "\n".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        capfd.readouterr()
        assert answer(group) == 0
        out, err = capfd.readouterr()
        assert err == ""
        return [item.removeprefix("plain,") for item in out.splitlines() if item]

    return ask


@pytest.mark.parametrize(
    ("line", "among"),
    [
        ("stormproof ", ["run", "suite", "check", "export", "replay", "list", "doctor", "cleanup", "completion"]),
        ("stormproof ch", ["check"]),
        ("stormproof n", ["new"]),
        ("stormproof new my-store --", ["--directory", "--command"]),
        ("stormproof run ", ["redis", "rocketmq"]),
        ("stormproof run rocketmq --work", ["--workload"]),
        ("stormproof run rocketmq --workload ", ["log", "register"]),
        ("stormproof run rocketmq --environment d", ["docker"]),
        ("stormproof run rocketmq --nemesis ", ["partition", "kill", "pause", "clock", "power", "none"]),
        ("stormproof run rocketmq --nemesis p", ["partition", "pause", "power"]),
        ("stormproof run rocketmq --nemesis kill,pa", ["kill,partition", "kill,pause"]),
        ("stormproof run rocketmq --nemesis=kill,cl", ["kill,clock"]),
        ("stormproof run rocketmq --nemesis=", ["kill", "none"]),
        ("stormproof run rocketmq --nemesis 'isolate ", ["isolate primary", "isolate b1", "isolate one"]),
        ("stormproof run rocketmq --nemesis 'isolate active", ["isolate active-controller"]),
        ("stormproof run rocketmq --nemesis 'kill,cut link primary to c", ["kill,cut link primary to c3"]),
        ("stormproof run rocketmq --nemesis 'kill all ", ["kill all every", "kill all and"]),
        ("stormproof run rocketmq --nemesis 'kill all and res", ["kill all and restart"]),
        ("stormproof run rocketmq --nemesis 'kill all every 10 ", ["kill all every 10 for"]),
        ("stormproof run rocketmq --set brokers=5 --nemesis 'kill b", ["kill b5", "kill brokers"]),
        ("stormproof run rocketmq --mutant ", ["flush-lie", "vote-not-durable", "none"]),
        ("stormproof run rocketmq --set ", ["brokers=", "flush=", "queues="]),
        ("stormproof run rocketmq --workload register --set ", ["brokers=", "keys="]),
        ("stormproof run rocketmq --set brokers=3 --nemesis kill --set int", ["interval_s="]),
        ("stormproof run rocketmq --engine in", ["inprocess"]),
        ("stormproof suite ", ["nightly", "smoke", "soak"]),
        ("stormproof check --model cas", ["cas-register"]),
        ("stormproof check --workload li", ["list-append"]),
        ("stormproof check x --workload list-append --consistency-model snap", ["snapshot-isolation"]),
        ("stormproof check x --workload queue --set ", ["delivery=", "order="]),
        ("stormproof check x --workload log --set ", ["queues="]),
        ("stormproof list mu", ["mutants"]),
        ("stormproof completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_names_are_offered_where_they_can_stand(offered: Offered, line: str, among: list[str]) -> None:
    names = offered(line)
    assert set(among) <= set(names)
    begun = line.partition("'")[2] or line.rpartition(" ")[2].rpartition("=")[2]
    assert all(name.startswith(begun) for name in names)


@pytest.mark.parametrize("command", group.list_commands(click.Context(group)))
def test_all_options_of_all_commands_are_offered(offered: Offered, command: str) -> None:
    known = group.get_command(click.Context(group), command)
    assert known is not None
    names = {name for param in known.params if isinstance(param, click.Option) for name in param.opts}
    assert {name for name in names if name.startswith("--")} <= set(offered(f"stormproof {command} --"))


@pytest.mark.parametrize("command", ["check", "replay", "export"])
def test_run_directories_are_offered_the_newest_first(offered: Offered, command: str) -> None:
    for name in ("runs/rocketmq-log/20260101T000000Z-1", "runs/memo-register/20260102T000000Z-2"):
        Path(name).mkdir(parents=True)
        (Path(name) / "scenario.json").write_text("{}")
    Path("runs/latest").symlink_to("memo-register/20260102T000000Z-2")
    newest_first = ["runs/memo-register/20260102T000000Z-2", "runs/rocketmq-log/20260101T000000Z-1"]
    assert offered(f"stormproof {command} ") == ["runs/latest", *newest_first]
    assert offered(f"stormproof {command} runs/r") == newest_first[1:]
    assert offered(f"stormproof {command} histor") == ["file,histor"]


def test_suites_of_this_folder_are_offered_beside_the_shipped_ones(offered: Offered) -> None:
    Path("mine.toml").touch()
    assert set(offered("stormproof suite ")) == {*shipped(), "mine.toml"}


@pytest.mark.parametrize(
    "line",
    [
        "stormproof bogus --mutant ",
        "stormproof run rocketmq --workload nothing --set x",
        "stormproof run rocketmq --nemesis meteor --set int",
        "stormproof run rocketmq --nodes many --rate fast --nemesis meteor,",
        "stormproof check x --workload nothing --set ",
        "stormproof run 'unclosed --nemesis ",
        "stormproof run rocketmq -- --nemesis ",
        "stormproof = = =",
    ],
)
def test_nothing_is_printed_where_what_was_typed_is_wrong(offered: Offered, line: str) -> None:
    offered(line)


def test_a_plugin_that_cannot_be_imported_offers_nothing_and_says_nothing(
    offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> None:
        os.write(2, b"Traceback (most recent call last)")
        raise ImportError(name)

    monkeypatch.setattr("stormproof.session.registry.system", broken)
    assert offered("stormproof run rocketmq --mutant f") == []
    assert offered("stormproof run rocketmq --set f") == []


@pytest.mark.parametrize(
    "line",
    [
        "",
        "run ",
        "run rocketmq --",
        "run rocketmq --nemesis k",
        "run rocketmq --mutant f",
        "list mu",
        "replay --",
        "completion z",
    ],
)
def test_nothing_heavy_is_imported_to_complete_a_name(line: str, tmp_path: Path) -> None:
    program = (
        "import sys\nfrom stormproof.cli import main\nfrom stormproof.cli.completion import answer\n"
        f"answer(main.group)\nprint('heavy', *(name for name in {HEAVY!r} if name in sys.modules))"
    )
    words = ["stormproof", *line.split(" ")]
    asked = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1), ASKED_TO_COMPLETE: "bash_complete"}
    finished = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **asked}, cwd=tmp_path, capture_output=True, text=True
    )
    assert finished.stderr == ""
    *names, heavy = finished.stdout.splitlines()
    assert names
    assert heavy == "heavy"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(stormproof: Stormproof, shell: str) -> None:
    answered = stormproof("completion", shell)
    assert answered.code == 0
    assert f"{ASKED_TO_COMPLETE}={shell}_complete" in answered.out
    assert answered.err == ""


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_answered_alike(
    shell: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(ASKED_TO_COMPLETE, f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "stormproof run rocketmq --nemesis kill,cl")
    monkeypatch.setenv("COMP_CWORD", {"zsh": "4", "fish": "kill,cl"}[shell])
    assert answer(group) == 0
    out, err = capfd.readouterr()
    assert "kill,clock" in out
    assert err == ""


def test_words_that_bash_takes_apart_at_equals_signs_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*words: str) -> tuple[list[str], str]:
        monkeypatch.setenv("COMP_WORDS", "\n".join(("stormproof", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return Bash(group, {}, "stormproof", ASKED_TO_COMPLETE).get_completion_args()

    assert read("run", "--nemesis", "=", "ki") == (["run"], "--nemesis=ki")
    assert read("run", "--nemesis", "=") == (["run"], "--nemesis=")
    assert read("run", "--nemesis", "=", "kill", "") == (["run", "--nemesis=kill"], "")
    assert read("--set", "a", "=", "1", "--set", "b", "=", "2", "--js") == (["--set", "a=1", "--set", "b=2"], "--js")


@contextmanager
def bash(folder: Path) -> Iterator[Callable[[str, str], str]]:
    """An interactive bash on a terminal of its own: press keys (^U empties the line), read until something is there."""
    child, terminal = pty.fork()
    if child == 0:
        environment = {"PATH": f"{folder}:{os.environ['PATH']}", "PS1": "$ ", "TERM": "dumb", "HOME": str(folder)}
        os.execve(shutil.which("bash") or "bash", ["bash", "--norc", "--noprofile", "-i"], environment)

    def typed(keys: str, until: str) -> str:
        os.write(terminal, keys.encode())
        seen, deadline = "", time.monotonic() + PATIENCE_S
        while until not in seen.replace("\r\n", "\n"):
            ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no {until!r} in {seen!r}"
            seen += os.read(terminal, 4096).decode(errors="replace")
        return seen

    try:
        yield typed
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_a_real_bash_completes_commands_options_nemeses_and_settings(tmp_path: Path) -> None:
    command = tmp_path / "stormproof"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m stormproof.cli.main "$@"\n')
    command.chmod(0o755)
    with bash(tmp_path) as typed:
        typed(f"cd {shlex.quote(str(tmp_path))}; source <(stormproof completion bash); echo rea''dy\n", "\nready\n")
        typed("stormproof clea\t", "stormproof cleanup ")
        typed("\x15stormproof run rocketmq --mutant fl\t", "--mutant flush-lie ")
        typed("\x15stormproof run rocketmq --nemesis kill,clo\t", "--nemesis kill,clock ")
        typed("\x15stormproof run rocketmq --nemesis=kill,clo\t", "--nemesis=kill,clock ")
        typed("\x15stormproof run rocketmq --set brok\tX", "--set brokers=X")
        typed("\x15stormproof run rocketmq --nemesis 'isolate act\t", "--nemesis 'isolate active-controller")
