"""Functions that others call otherwise: `broadcast` for `add`, `debit` for an `add` of what is taken away.

    renamed(columns, {"broadcast": "add", "debit": "-add"})

A minus before a function says that it takes what the other one adds. A read that its test marks as `:final?` is a
`final-read` where the workload knows such.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import UsageError
from harness.jepsen.edn import Keyword, Lifted
from harness.jepsen.operation_columns import Column, OperationColumns
from harness.jepsen.scan import MARKED_FINAL
from harness.reading import read_kept

READ, FINAL_READ = "read", "final-read"
MINUS = "-"
BESIDE_SUFFIX = ".toml"
LONGEST_FILE_BYTES = 1 << 16
_EXPECTED = "NAME=FUNCTION, such as broadcast=add, or debit=-add where one takes what the other adds"


def renamed(recorded: OperationColumns, functions: Mapping[str, str], *, has_final_reads: bool) -> OperationColumns:
    """The operations by the names that the workload has for what they do."""
    f = recorded.fields["f"]
    marked = recorded.fields[MARKED_FINAL]
    fields = dict(recorded.fields)
    taking = [number for number, name in enumerate(f.values) if _taken_by(name, functions)]
    if taking:
        fields["value"] = _negated(recorded.fields["value"], np.isin(f.codes, taking))
    if functions:
        values = [_renamed(name, functions) for name in f.values]
        f = fields["f"] = Column(values, f.codes)
    if has_final_reads and any(value is True for value in marked.values):
        kinds = recorded.fields["type"]
        is_invoked = np.array([kind == "invoke" for kind in kinds.values])[kinds.codes]
        is_read = np.array([name == READ for name in f.values])[f.codes]
        is_final = np.array([value is True for value in marked.values])[marked.codes]
        codes = np.where(is_invoked & is_read & is_final, len(f.values), f.codes).astype(np.int32)
        fields["f"] = Column([*f.values, Keyword(FINAL_READ)], codes)
    return replace(recorded, fields=fields)


def _taken_by(name: Any, functions: Mapping[str, str]) -> bool:
    return isinstance(name, str) and functions.get(name, "").startswith(MINUS)


def _renamed(name: Any, functions: Mapping[str, str]) -> Any:
    return Keyword(functions[name].removeprefix(MINUS)) if isinstance(name, str) and name in functions else name


def _negated(column: Column, rows: Any) -> Column:
    """The column with the numbers of some rows with the other sign; in pairs, the second ones."""
    values = [*column.values, *map(_taken_away, column.values)]
    return Column(values, np.where(rows, column.codes + len(column.values), column.codes).astype(np.int32))


def _taken_away(value: Any) -> Any:
    if value.__class__ in (int, float):
        return -value
    if isinstance(value, tuple | list) and len(value) == 2 and value[1].__class__ in (int, float):
        taken = (value[0], -value[1])
        return Lifted(taken) if isinstance(value, Lifted) else taken
    return value


def functions_of(texts: Iterable[str]) -> dict[str, str]:
    """From `NAME=FUNCTION`. Raises UsageError."""
    functions = {}
    for text in texts:
        name, separator, function = text.partition("=")
        if not separator or not name.strip(": ") or not function.strip(":- "):
            raise UsageError(f"--function takes {_EXPECTED}, got {text!r}")
        functions[name.strip().removeprefix(":")] = function.strip().removeprefix(":")
    return functions


def functions_beside(history: Path) -> dict[str, str]:
    """Of the file `HISTORY.toml`, from its table `functions`; none where it is not there. Raises UsageError."""
    path = history.with_name(history.name + BESIDE_SUFFIX)
    try:
        if not history.name or not path.is_file():
            return {}
        said = tomllib.loads(read_kept(path, LONGEST_FILE_BYTES).decode()).get("functions", {})
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not isinstance(said, dict) or not all(isinstance(function, str) for function in said.values()):
        raise UsageError(f'{path} must have a table functions of texts, such as broadcast = "add"')
    return functions_of(f"{name}={function}" for name, function in said.items())
