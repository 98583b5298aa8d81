"""How a command's answer is shown: an aligned table for people, one JSON object on one line for machines.

Both have the same names, those of the command's columns. Whatever comes from the network may hold anything, so all that
is printed is printable: no value acts on a terminal or begins a line of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.printable import printable
from system_under_test.remoting.client_error import ClientError

Row = Mapping[str, object]
"""A value by column: text, a whole number, a flag, several of them, or None for none."""
NONE = "-"
GAP = "  "


@dataclass(frozen=True, kw_only=True)
class Report:
    command: str
    columns: tuple[str, ...]
    rows: Sequence[Row]
    errors: Sequence[ClientError] = ()
    """Errors of nodes that did not do what they were asked to."""

    def as_json(self) -> str:
        """One line, in ASCII."""
        value = {
            "command": self.command,
            "rows": [{column: row.get(column) for column in self.columns} for row in self.rows],
            "errors": [
                {"node": error.node, "code": error.code, "definite": error.definite, "detail": error.detail}
                for error in self.errors
            ],
        }
        # In ASCII, of which JSON leaves one control character as it is.
        return json.dumps(value, allow_nan=False).replace("\x7f", "\\u007f")

    def as_table(self) -> list[str]:
        """Lines without ends: the columns' names, then the rows. Numbers stand to the right."""
        cells = [self.columns, *(tuple(_render(row.get(column)) for column in self.columns) for row in self.rows)]
        widths = [max(len(line[at]) for line in cells) for at in range(len(self.columns))]
        to_right = [all(_is_number(row.get(column)) for row in self.rows) for column in self.columns]
        return [
            GAP.join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, to_right, strict=True)
            ).rstrip()
            for line in cells
        ]


def _is_number(value: object) -> bool:
    return value is None or type(value) is int


def _render(value: object) -> str:
    if value is None or value == () or value == []:
        return NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ";".join(_render(one) for one in value)
    return printable(str(value))
