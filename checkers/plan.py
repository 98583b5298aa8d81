"""Plans: how a checker says what to shuffle and what to compute, without saying where.

A checker is a short plan: map the history's batches, group rows by some columns, run a pure kernel on
each group, gather what is small. `Engine` has two implementations with the same result: in-process
(Arrow and numpy) and Spark (`checkers/spark`). Kernels are top-level functions, Arrow table in and Arrow
table out, without access to Spark, pandas or the outer world.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from checkers.repeats import Repeats
from checkers.verdict import CheckerResult
from harness.record.history import COLUMNS

Kernel = Callable[[pa.Table], pa.Table]


class Dataset(Protocol):
    """Rows in some engine, not yet computed."""

    @property
    def schema(self) -> pa.Schema: ...


class Engine(Protocol):
    """Where plans run. Neither collects what grows with the history; `gather` is bounded."""

    @property
    def name(self) -> str: ...

    def history(self, path: Path, columns: tuple[str, ...] = COLUMNS) -> Dataset:
        """The rows of a closed history (Parquet), in any order and split; `columns`: see `history_batches`."""

    def mapped(self, source: Dataset, kernel: Kernel, schema: pa.Schema) -> Dataset:
        """Run the kernel on each batch; batches have any size, so the kernel must not rely on neighbours."""

    def grouped(self, source: Dataset, keys: tuple[str, ...], kernel: Kernel, schema: pa.Schema) -> Dataset:
        """Run the kernel on each group of rows that agree on `keys`; rows of a group come in any order."""

    def union(self, left: Dataset, right: Dataset) -> Dataset: ...

    def kept(self, source: Dataset) -> AbstractContextManager[Dataset]:
        """The same rows, computed once for all plans that use them inside the `with`, and held where they are.
        Datasets made of them are of no use after it."""

    def gather(self, source: Dataset, limit: int) -> pa.Table:
        """Bring at most `limit` rows home. Raises ValueError if there are more: the plan forgot to bound itself."""


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """One closed history and what is expected of it."""

    history: Path
    repeats: tuple[Repeats, ...] = ()
    """What completions may only repeat of what was asked, or it is no history."""
    legal: Mapping[str, str] = field(default_factory=dict)
    """anomaly name -> why it is legal here."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the run a checker may need: `final_from_ns`, `faults_applied`, `faults_with_effect`, `required_ok`, …"""


class Checker(Protocol):
    """Names the mutants it kills in its module's docstring."""

    @property
    def name(self) -> str: ...

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        """Raises MalformedHistory; any other failure of a checker becomes UNKNOWN with its reason."""
