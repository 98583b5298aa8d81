"""What a foreign history holds beside what its clients did: acts of its nemesis, and what had to be passed over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.jepsen.operation_columns import OperationColumns
from harness.jepsen.scan import Int64
from harness.record.history.schema import OPERATION_TYPES

MOST_ACTS = 20_000
"""How many acts of a nemesis are kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NemesisAct:
    """One row of a nemesis."""

    time_ns: int
    f: str
    value: Any
    """What was recorded as its value; None where there is none."""


@dataclass
class Beside:
    """Filled while a history is read."""

    acts: list[NemesisAct] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    """What was passed over, in words, each a noun: `what stands from line 7, column 1 on (the text ends within an
    operation)`."""

    def take(self, recorded: OperationColumns, times: Int64) -> None:
        """The rows of the nemesis in a block; `times` are those that all its rows were given, in nanoseconds."""
        process = recorded.fields["process"]
        is_nemesis = np.array([value == "nemesis" for value in process.values], np.bool_)[process.codes]
        fs, values, types = (recorded.fields[name] for name in ("f", "value", "type"))
        for row in np.flatnonzero(is_nemesis)[: MOST_ACTS - len(self.acts)].tolist():
            f, kind = fs.values[fs.codes[row]], types.values[types.codes[row]]
            if isinstance(f, str) and kind in OPERATION_TYPES:
                self.acts.append(NemesisAct(time_ns=int(times[row]), f=f, value=values.values[values.codes[row]]))
