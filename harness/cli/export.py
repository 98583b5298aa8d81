"""`stormproof export`: a history of ours as EDN or JSON, for Jepsen's tools."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.candidates import one_or_a_file, run_directories
from harness.cli.console import remark
from harness.cli.exit_code import ExitCode
from harness.cli.options import example
from harness.cli.output_file import STANDARD_OUTPUT, require_writable, write
from harness.cli.usage import OneOf
from harness.errors import UsageError
from harness.foreign import Format, exported
from harness.history import History, MalformedHistory, read_history

EXAMPLES = """
stormproof export runs/latest --output history.edn
stormproof export my-history.parquet --format json
"""


@click.command("export", epilog=example(EXAMPLES))
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path), shell_complete=one_or_a_file(run_directories))
@click.option(
    "--format",
    "form",
    type=OneOf("format", [form.value for form in Format]),
    default=Format.EDN.value,
    show_default=True,
    help="One operation a line, either way.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    default=STANDARD_OUTPUT,
    metavar="FILE",
    help="[default: -, standard output]",
)
def command(path: Path, form: str, output: Path) -> int:
    """Write the history PATH (a run directory, .parquet, .arrows) so that Jepsen's tools read it.

    Of a history that is torn, because its run was killed or its file was cut, what is whole is written, and how many
    bytes were not is said.

    Exit codes: 0 all of it was written, 2 what is whole of a torn history was written, 254 wrong usage or no history,
    255 the harness failed. Of these, only after 0 and 2 is there a file.
    """
    require_writable(output)
    try:
        history = read_history(_history_in(path))
    except MalformedHistory as error:
        raise UsageError(str(error)) from None
    if not history.complete and not history.operations:
        raise UsageError(f"{history.path}: nothing of it is whole{_dropped(history)}; run the test again")
    write(output, exported(history, Format(form)))
    if history.complete:
        return ExitCode.VALID
    remark(f"{history.path} is torn: {history.operations} operations exported{_dropped(history)}")
    return ExitCode.UNKNOWN


def _dropped(history: History) -> str:
    return f", {history.dropped_bytes} torn bytes dropped" if history.dropped_bytes else ""


def _history_in(path: Path) -> Path:
    """Of a run that was killed the stream, though `check` has closed what is whole of it."""
    candidates = [path / "history.arrows", path / "history.parquet"] if path.is_dir() else [path]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise UsageError(f"there is no run directory and no history {path}; stormproof list shows runs")
