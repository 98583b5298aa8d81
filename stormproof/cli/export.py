"""`stormproof export`: a history of ours as EDN or JSON, for Jepsen's tools."""

from __future__ import annotations

from pathlib import Path

import click

from harness.errors import UsageError
from harness.jepsen import Format, exported
from harness.lifetime.scratch import directory
from harness.record.history import History, MalformedHistory, read_history
from harness.record.run_directory import RunDirectory
from stormproof.cli.candidates import one_or_a_file, run_directories
from stormproof.cli.console import remark
from stormproof.cli.exit_code import ExitCode
from stormproof.cli.options import example
from stormproof.cli.usage import OneOf
from stormproof.session.foreign_history import Form, is_there, locate_history
from stormproof.session.output_file import STANDARD_OUTPUT, require_writable, write

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
    """Write the history PATH (a run directory, Parquet, an Arrow stream) so that Jepsen's tools read it.

    PATH may be a pipe, or - for standard input. Of a history that is torn, because its run was killed or its file was
    cut, what is whole is written, and how many bytes were not is said.

    Exit codes: 0 all of it was written, 2 what is whole of a torn history was written, 254 wrong usage or no history,
    255 the harness failed. Of these, only after 0 and 2 is there a file.
    """
    require_writable(output)
    with directory() as scratch:
        source = locate_history(history_in(path), scratch)
        if source.form is Form.TEXT:
            raise UsageError(f"{source.path} is no history of ours: neither Parquet nor an Arrow stream")
        try:
            history = read_history(source.file)
        except MalformedHistory as error:
            raise UsageError(str(error.of(source.path))) from None
        if not history.complete and not history.operations:
            raise UsageError(f"{source.path}: nothing of it is whole{_dropped(history)}; run the test again")
        write(output, exported(history, Format(form)))
    if history.complete:
        return ExitCode.VALID
    remark(f"{source.path} is torn: {history.operations} operations exported{_dropped(history)}")
    return ExitCode.UNKNOWN


def _dropped(history: History) -> str:
    return f", {history.dropped_bytes} torn bytes dropped" if history.dropped_bytes else ""


def history_in(path: Path) -> Path:
    """The history at a path. For a run that was killed it is the stream, even if `check` has closed its whole part."""
    is_directory = is_there(path) and path.is_dir()
    candidates = [path]
    if is_directory:
        directory = RunDirectory(path)
        candidates = [directory.history_stream, directory.history]
    for candidate in candidates:
        if is_there(candidate):
            return candidate
    raise UsageError(f"there is no run directory and no history {path}; stormproof list shows runs")
