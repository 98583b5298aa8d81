"""`rocketmq-admin`: the command. What can go wrong ends in one line on standard error and an exit code (`session`)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from harness.nearest import unknown
from workloads.systems.rocketmq.admin import brokers, controllers, static_topics, topics
from workloads.systems.rocketmq.admin.session import PROGRAM, ExitCode, cannot_go_on, remark


class _Commands(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not ctx.resilient_parsing:
            raise click.UsageError(unknown("command", args[0], self.commands), ctx)
        return super().resolve_command(ctx, args)


group = _Commands(
    PROGRAM,
    {
        str(one.name): one
        for one in (*controllers.COMMANDS, *brokers.COMMANDS, *topics.COMMANDS, *static_topics.COMMANDS)
    },
    help="Ask and change a running RocketMQ system, with the commands and options of mqadmin.",
    epilog="Exit codes: 0 done; 1 not done; 2 unknown whether it was done; 254 wrong usage; 255 interrupted, or the "
    "command itself failed.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def run(arguments: Sequence[str]) -> int:
    """The exit code."""
    try:
        return int(group.main([*arguments] or ["--help"], prog_name=PROGRAM, standalone_mode=False) or 0)
    except click.UsageError as error:
        asked = error.ctx.command_path if error.ctx else PROGRAM
        remark(f"{' '.join(error.format_message().split())} (see: {asked} --help)")
        return ExitCode.WRONG_USAGE
    except (click.Abort, KeyboardInterrupt):
        remark("interrupted")
        return ExitCode.FAILED
    except OSError as error:  # while help was printed
        return cannot_go_on(error)


def main() -> None:
    sys.exit(run(sys.argv[1:]))
