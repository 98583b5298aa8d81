"""Wrong usage of the command line, in words: empty values, and names that do not exist beside those that were meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

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
        option, equals, value = argument.partition("=")
        if option.startswith("--") and equals and not value.strip():
            before, argument = option, ""
        if not argument.strip():
            raise click.UsageError(
                f"what follows {before} is empty (a variable that is not set?): give it a value or leave it out"
                f"{_NOTHING_IS_CALLED.get(before, '')}"
            )
        before = argument
