"""Options that several commands have, and how a function that asks becomes a command."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import click

from workloads.systems.rocketmq.admin.report import Row
from workloads.systems.rocketmq.admin.session import Command, Session, carry_out

MAX_SHOWN = 100
MAX_SECONDS = 86_400.0
Asking = Callable[..., Awaitable[Sequence[Row]]]
"""(session, the command's own options by name) → rows."""


class Text(click.ParamType[str]):
    """Anything but nothing: an empty value is a variable of the shell that is not set."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.strip() or "\0" in value:
            self.fail(f"expected text, got {value[:MAX_SHOWN]!r}", param, ctx)
        return str(value.strip())


class Addresses(click.ParamType[tuple[str, ...]]):
    """`name:port`, several with semicolons between."""

    name = "host:port;…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        addresses = tuple(part.strip() for part in value.split(";") if part.strip())
        wrong = next((one for one in addresses if not _is_address(one)), None)
        if wrong is not None or not addresses:
            shown = value if wrong is None else wrong
            self.fail(f"expected host:port, several with semicolons between, got {shown[:MAX_SHOWN]!r}", param, ctx)
        return addresses


class Address(click.ParamType[str]):
    name = "host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not _is_address(value):
            self.fail(f"expected host:port, got {value[:MAX_SHOWN]!r}", param, ctx)
        return str(value)


class Seconds(click.ParamType[float]):
    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not 0.05 <= seconds <= MAX_SECONDS:
            self.fail(f"expected seconds from 0.05 to {MAX_SECONDS:.0f}, got {str(value)[:MAX_SHOWN]!r}", param, ctx)
        return seconds


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    if not host or not text.isprintable() or any(character.isspace() for character in text):
        return False
    return port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536


NAME_SERVERS = click.option(
    "-n",
    "--namesrvAddr",
    "name_servers",
    type=Addresses(),
    envvar="NAMESRV_ADDR",
    required=True,
    help="NameServers, all of them; or NAMESRV_ADDR in the environment.",
)
NAME_SERVERS_IF_NEEDED = click.option(
    "-n",
    "--namesrvAddr",
    "name_servers",
    type=Addresses(),
    envvar="NAMESRV_ADDR",
    help="NameServers, to find brokers by -c; or NAMESRV_ADDR in the environment.",
)
CONTROLLERS = click.option(
    "-a", "--controllerAddress", "controllers", type=Addresses(), required=True, help="Controllers, one or more."
)
CLUSTER = click.option("-c", "--clusterName", "cluster", type=Text(), help="A cluster.")


def needed(value: Any, option: str, because: str) -> Any:
    """Raises click.UsageError where an option is missing that only some uses of a command need."""
    if not value:
        raise click.UsageError(f"Missing option {option}: {because}", click.get_current_context())
    return value


def either(first: Any, second: Any, options: str) -> None:
    """Raises click.UsageError unless exactly one of two options was given."""
    if (first is None) == (second is None):
        raise click.UsageError(f"expected exactly one of {options}", click.get_current_context())


def admin_command(
    name: str, columns: tuple[str, ...], *, changes: bool | str = False, repeats: bool = False
) -> Callable[[Asking], click.Command]:
    """A command with the options of its function's decorators, --json, --timeout, and where it `repeats` also -i.

    `changes`: whether it changes something, or the name of the option with which alone it does.
    """

    def make(asking: Asking) -> click.Command:
        def callback(as_json: bool, timeout_s: float, interval_s: float | None = None, **options: Any) -> int:
            command = Command(
                name=name,
                columns=columns,
                changes=bool(options[changes] if isinstance(changes, str) else changes),
                as_json=as_json,
                timeout_s=timeout_s,
                interval_s=interval_s,
            )

            def ask(session: Session) -> Awaitable[Sequence[Row]]:
                return asking(session, **options)

            return carry_out(command, ask)

        params: list[click.Parameter] = [*reversed(getattr(asking, "__click_params__", []))]
        if repeats:
            params.append(
                click.Option(
                    ["-i", "--interval", "interval_s"], type=Seconds(), help="Ask again at this pace, until Ctrl-C."
                )
            )
        params.append(click.Option(["--json", "as_json"], is_flag=True, help="One JSON object a line."))
        params.append(
            click.Option(
                ["--timeout", "timeout_s"],
                type=Seconds(),
                default=10.0,
                show_default=True,
                help="How long to wait for each answer.",
            )
        )
        return click.Command(
            name,
            callback=callback,
            params=params,
            help=asking.__doc__,
            short_help=(asking.__doc__ or "").partition(":")[0].partition(".")[0],
            epilog=f"Columns, and names in the rows of --json: {', '.join(columns)}.",
            context_settings={"help_option_names": ["-h", "--help"]},
        )

    return make
