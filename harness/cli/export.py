"""`stormproof export`: a history of ours as EDN or JSON, for Jepsen's tools."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import click

from harness.cli.exit_code import ExitCode
from harness.cli.options import example
from harness.cli.usage import OneOf
from harness.errors import HarnessError, UsageError
from harness.foreign import Format, export
from harness.history import MalformedHistory, read_history

EXAMPLES = """
stormproof export runs/latest --output history.edn
stormproof export my-history.parquet --format json
"""


@click.command("export", epilog=example(EXAMPLES))
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=OneOf("format", [form.value for form in Format]),
    default=Format.EDN.value,
    show_default=True,
    help="One operation a line, either way.",
)
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="[default: standard output]")
def command(path: Path, form: str, output: Path | None) -> int:
    """Write the history PATH (a run directory, .parquet, .arrows) so that Jepsen's tools read it."""
    try:
        history = read_history(_history_in(path))
    except MalformedHistory as error:
        raise UsageError(str(error)) from None
    try:
        with nullcontext(sys.stdout) if output is None else output.open("w", encoding="utf-8") as file:
            export(history, Format(form), file)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise HarnessError(f"{output or 'standard output'} cannot be written: {error.strerror or error}") from error
    return ExitCode.VALID


def _history_in(path: Path) -> Path:
    candidates = [path / "history.parquet", path / "history.arrows"] if path.is_dir() else [path]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise UsageError(f"there is no run directory and no history {path}; stormproof list shows runs")
