"""`stormproof`: the command. Each subcommand has a file of its own, read only when it is asked for.

Exit codes: 0 valid, 1 invalid, 2 unknown, 254 wrong usage, 255 the harness failed or was interrupted. Whatever goes
wrong ends in one line on standard error that says what was expected, what came and what to do; `--debug` adds the
traceback.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from harness.arrow import start_arrow
from harness.errors import HarnessError, UsageError
from harness.lifetime import interruption
from harness.nearest import unknown
from stormproof.cli.compiling import announce_compiling
from stormproof.cli.console import remark, remark_at_once, remark_traceback, settle
from stormproof.cli.exit_code import ExitCode
from stormproof.cli.program import ASKED_TO_COMPLETE, PROGRAM
from stormproof.cli.usage import in_words, refuse_empty

_SECTIONS = {
    "Storms": {
        "run": "Put a system through a storm; did it keep its promises?",
        "suite": "Run many scenarios from a TOML file, to one verdict.",
        "explore": "Search for storms that a system does not withstand.",
        "replay": "Run the same seed again and compare.",
        "bisect": "Find the commit since which a storm fails.",
    },
    "A system of your own": {
        "new": "Write the skeleton of its adapter, which runs at once.",
    },
    "Histories": {
        "check": "Check stored or foreign histories again.",
        "verify": "Hold a certificate against its history, by a program of its own.",
        "export": "Write a history for Jepsen's tools.",
    },
    "This machine": {
        "list": "Show what can be run, and what was.",
        "doctor": "Say what this machine has, and what that makes possible.",
        "cleanup": "Remove what a killed run left behind.",
        "completion": "Print the script that makes bash, zsh or fish complete all of this.",
    },
}
_COMMANDS = {name: about for section in _SECTIONS.values() for name, about in section.items()}
_WITH_ARRAYS = ("suite", "export", "verify")
"""Modules of these import pyarrow; those of the others do so only once there is something to do."""
_TYPE_FIRST = (
    ("stormproof run rocketmq --nemesis partition,kill", "one storm, one verdict"),
    ("stormproof list", "what can be run"),
    ("stormproof check runs/latest", "judge it again"),
    ("stormproof COMMAND --help", "options and examples"),
)


class _Commands(click.Group):
    """Imports a subcommand's module only when that command is asked for, so that help comes at once."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            refuse_empty(args)
            args = args or ["--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS and not ctx.resilient_parsing:
            raise click.UsageError(unknown("command", args[0], _COMMANDS), ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        if cmd_name in _WITH_ARRAYS:
            start_arrow()
        command = importlib.import_module(f"stormproof.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        names = [CompletionItem(name, help=about) for name, about in _COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _tell(interruption.described())
            return ExitCode.HARNESS_FAILED

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Type first"):
            formatter.write_dl(_TYPE_FIRST, col_max=max(len(typed) for typed, _ in _TYPE_FIRST))
        width = max(map(len, _COMMANDS))
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), about) for name, about in commands.items()])
        click.Command.format_options(self, ctx, formatter)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option("--debug", is_flag=True, help="Show the traceback when something fails.")
@click.version_option(package_name="stormproof")
def group(debug: bool) -> None:
    """Puts distributed systems through storms and decides on Spark whether they kept their promises.

    Exit codes: 0 valid, 1 invalid, 2 unknown, 254 wrong usage, 255 the harness failed or was interrupted.
    """
    if debug:
        os.environ["STORMPROOF_DEBUG"] = "1"


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script; also what a shell's script asks how to go on."""
    if ASKED_TO_COMPLETE in os.environ:
        from stormproof.cli.completion import answer

        sys.exit(answer(group))
    _open_closed_streams()
    interruption.install(remark_at_once)
    announce_compiling(remark)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what a terminal's encoding lacks ends no command
    code = run(sys.argv[1:] if arguments is None else arguments)
    settle()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    interruption.finish()
    sys.exit(code)


def _open_closed_streams() -> None:
    """Standard output and error that were closed (`2>&-`) lead nowhere, lest the next file that is opened take their
    number, and what is meant for them."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def run(arguments: Sequence[str]) -> int:
    """Carry a command line out; returns the exit code."""
    interruption.forget_words()
    try:
        code = group.main(args=list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.UsageError as error:
        _tell(in_words(error))
        return ExitCode.WRONG_USAGE
    except click.Abort:
        _tell(interruption.described())
        return ExitCode.HARNESS_FAILED
    except UsageError as error:
        _tell(str(error))
        return ExitCode.WRONG_USAGE
    except (HarnessError, click.ClickException) as error:
        _tell(str(error) if isinstance(error, HarnessError) else error.format_message())
        return ExitCode.HARNESS_FAILED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.HARNESS_FAILED
    except Exception as error:  # noqa: BLE001  # the outermost boundary: a failure of ours is 255, never 1
        _tell(f"the harness failed: {_in_words(error)}")
        return ExitCode.HARNESS_FAILED
    return code if isinstance(code, int) else ExitCode.VALID


def _in_words(error: Exception) -> str:
    if type(error).__module__.startswith("checkers."):
        return str(error)
    words = str(error).strip().partition("\n")[0]
    kind = type(error).__name__
    hint = "" if "STORMPROOF_DEBUG" in os.environ else " (stormproof --debug … shows where)"
    return f"{kind}: {words}{hint}" if words else f"{kind}{hint}"


def _tell(line: str) -> None:
    if "STORMPROOF_DEBUG" in os.environ:
        remark_traceback()
    remark(line)


if __name__ == "__main__":
    main()
