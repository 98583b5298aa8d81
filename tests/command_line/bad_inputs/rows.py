"""Rows of bad input: what is typed, and what one line on standard error must then contain.

Tables are written in four forms, each made into rows by a function of this module: arguments of a command; values of an
option; texts of a file that a command reads; edits of a run directory that is otherwise sound.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

STANDS_FOR = {"<NUL>": "\0", "<ESC>": "\x1b", "<BYTE>": "\udcff", "<9999>": "9" * 5_000, "<xxxx>": "x" * 5_000}
"""In arguments, characters that no table can hold; `<BYTE>` is one that is no UTF-8."""

Content = str | bytes


@dataclass(frozen=True, kw_only=True)
class Row:
    arguments: tuple[str, ...]
    words: str
    files: Mapping[str, Content] = field(default_factory=dict)
    """Beside those that all rows share."""

    def __str__(self) -> str:
        typed = shlex.join(self.arguments)
        held = "; ".join(f"{name}: {content[:60]!r}" for name, content in self.files.items())
        return f"{typed[:100]}  [{held}]" if held else typed[:100]


def typed(command: str, table: str) -> Iterator[Row]:
    """Lines `arguments => words`."""
    for line in table.strip().splitlines():
        arguments, _, words = line.partition("=> ")
        yield Row(arguments=_split(f"{command} {arguments}"), words=words)


def values(command: str, table: str) -> Iterator[Row]:
    """Lines `--option: value value … => words`, where words stand before what came, and lines as `typed` takes them."""
    for line in table.strip().splitlines():
        left, _, words = line.partition(" => ")
        option, has_values, given = left.partition(": ")
        if not has_values:
            yield from typed(command, line)
        for value in _split(given):
            joined = f"{option}{value}" if option.endswith("=") else f"{option} {shlex.quote(value)}"
            yield Row(arguments=_split(f"{command} {joined}"), words=words)


def texts(command: str, name: str, table: Sequence[tuple[Content, str]]) -> Iterator[Row]:
    """Texts of the file `name`, and words."""
    for text, words in table:
        yield Row(arguments=_split(command), words=words, files={name: text})


def edited(command: str, sound: Mapping[str, Any], table: Sequence[tuple[Mapping[str, Any], str]]) -> Iterator[Row]:
    """Fields of `scenario.json` in the run directory `run`, and words."""
    for changes, words in table:
        stored = json.dumps({**sound, **changes})
        yield Row(arguments=_split(command), words=words, files={"run/scenario.json": stored})


def _split(line: str) -> tuple[str, ...]:
    arguments = []
    for argument in shlex.split(line):
        for name, characters in STANDS_FOR.items():
            argument = argument.replace(name, characters)
        arguments.append(argument)
    return tuple(arguments)
