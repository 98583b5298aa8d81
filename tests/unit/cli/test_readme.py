"""What the README shows is what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from harness.cli import registry, run
from harness.cli.exit_code import ExitCode
from harness.cli.main import group
from harness.cli.suite_file import parse_suite
from harness.scenario import Scenario

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_test_is_the_example_that_runs_and_fits_in_twenty_lines() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    example = (ROOT / "examples" / "test_losing_the_master.py").read_text(encoding="utf-8")
    assert shown in example
    assert len(shown.strip().splitlines()) <= 20


def test_every_command_shown_is_understood() -> None:
    shown = re.findall(r"`stormproof ([^`]+)`", README)
    assert len(shown) >= 7
    for line in shown:
        name, *arguments = shlex.split(line)
        command = group.get_command(click.Context(group), name)
        assert command is not None, line
        if arguments or name in ("list", "doctor", "cleanup"):
            command.make_context(name, arguments).close()


def test_every_run_in_a_block_of_commands_names_what_there_is() -> None:
    runs = [shlex.split(line)[2:] for line in README.splitlines() if line.startswith("stormproof run ")]
    assert len(runs) >= 5
    for words in runs:
        with run.command.make_context("run", words) as context:
            options = context.params
        if options["system"] == "memo":  # the example in examples/, which is not installed here
            continue
        nemesis = run.kinds(options["nemesis"])
        registry.resolve(
            Scenario(system=options["system"], workload=options["workload"], nemesis=nemesis, mutant=options["mutant"])
        )


def test_the_suite_makes_as_many_scenarios_as_it_is_said_to() -> None:
    (shown,) = (block for block in re.findall(r"```toml\n(.*?)```", README, flags=re.DOTALL) if "[[matrix]]" in block)
    (count,) = re.findall(r"runs its (\d+) scenarios", README)
    assert len(parse_suite(shown, "before-merge.toml").scenarios) == int(count)


def test_every_exit_code_is_told() -> None:
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", README, flags=re.MULTILINE)] == sorted(ExitCode)


def test_every_file_it_points_at_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
