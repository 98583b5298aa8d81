"""Wrong usage of the command line, in words: values that are empty or none on any system, and misspelt names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from harness.bounds import quote
from harness.nearest import did_you_mean, unknown

_NOTHING_IS_CALLED: Mapping[str, str] = {
    "--nemesis": "; 'none' means no faults",
    "--mutant": "; 'none' means no planted bug",
}


def refuse_empty(arguments: Sequence[str]) -> None:
    """Refuse an argument and a value of an option that is empty, as a variable that is not set leaves it.

    Before any of them is read: an empty path would be the current directory, an empty list would be no faults, and an
    empty name something else again. Raises click.UsageError.
    """
    before = "stormproof"
    for argument in arguments:
        if "\0" in argument:
            raise click.UsageError(f"no value holds a NUL character, got {quote(argument)}")
        option, equals, value = argument.partition("=")
        if option.startswith("--") and equals and not value.strip():
            before, argument = option, ""
        if not argument.strip():
            raise click.UsageError(
                f"what follows {before} is empty (a variable that is not set?): give it a value or leave it out"
                f"{_NOTHING_IS_CALLED.get(before, '')}"
            )
        before = argument


def in_words(error: click.UsageError) -> str:
    """One line: what was wrong, what was probably meant, and whose help says more."""
    words = error.format_message()
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        known = [name for param in error.ctx.command.get_params(error.ctx) for name in option_names(param)]
        words = f"No such option {quote(error.option_name)}{did_you_mean(error.option_name, known)}"
    asked = error.ctx.command_path if error.ctx else "stormproof"
    return f"{' '.join(words.split())} (see: {asked} --help)"


def option_names(param: click.Parameter) -> tuple[str, ...]:
    """What an option is called: `--progress` and `--quiet`. Nothing for an argument."""
    return (*param.opts, *param.secondary_opts) if isinstance(param, click.Option) else ()


class SparkMaster(click.ParamType[str]):
    """The URL of a Spark master in one of the forms that Spark knows; whether one answers there is not asked."""

    name = "master"
    _FORMS = re.compile(
        r"yarn|spark://[^\s/:,]+:\d+(,[^\s/:,]+:\d+)*|k8s://\S+|local|local\[(\*|[1-9]\d{0,3})(,\s*\d{1,4})?\]"
        r"|local-cluster\[\d{1,3},\d{1,3},\d{1,6}\]"
    )

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not self._FORMS.fullmatch(str(value)):
            raise click.UsageError(
                f"--master takes local[2], local[*], spark://host:7077, yarn or k8s://…, got {quote(str(value))}", ctx
            )
        return str(value)


class ModelName(click.ParamType[str]):
    """A model that comes with it, or module:NAME of one's own; another one is answered with the nearest."""

    name = "model"

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if ":" not in value and value not in self.names:
            more = ", or module:NAME of a model of one's own"
            raise click.UsageError(unknown("model", str(value), self.names, more=more), ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self.names if name.startswith(incomplete)]


class OneOf(click.Choice[str]):
    """One of some names; another one is answered with the nearest."""

    def __init__(self, kind: str, names: Iterable[str]) -> None:
        super().__init__(tuple(names))
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            raise click.UsageError(unknown(self.kind, str(value), self.choices), ctx)
        return str(value)
