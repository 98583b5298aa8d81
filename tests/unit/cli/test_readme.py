"""What the README shows is what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from harness.cli.main import group

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


def test_every_file_it_points_at_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
