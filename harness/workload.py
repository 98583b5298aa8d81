"""The Workload protocol: a client's operations, a generator, a checker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from harness.generator import Generator
from harness.seed import Seed


class Workload(Protocol):
    """What clients do and what must then hold. The module's docstring is its specification."""

    @property
    def name(self) -> str: ...

    @property
    def settings_type(self) -> type: ...

    @property
    def value_type(self) -> pa.DataType:
        """The Arrow struct of the history's `value` column."""

    @property
    def required_ok(self) -> Mapping[str, int]:
        """f -> least number of ok operations in the storm, below which a verdict would be vacuous."""

    @property
    def required_share(self) -> Mapping[str, float]:
        """f -> least share of the operations invoked in the storm that must be ok, below which it would be as well."""

    @property
    def repeats(self) -> tuple[Any, ...]:
        """checkers.repeats.Repeats: what completions may only repeat of what was asked, or it is no history."""

    @property
    def evidence(self) -> tuple[Any, ...]:
        """checkers.evidence.Evidence: operations that could contradict it; a history without any proves nothing."""

    def generator(self, settings: Any, seed: Seed, concurrency: int) -> Generator:
        """The storm's client operations, endless; the caller staggers them and limits the time."""

    def final_generator(self, settings: Any, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
        """The final reads, after healing and recovery; must end by itself."""

    def checkers(self, settings: Any) -> Mapping[str, Any]:
        """name -> checkers.plan.Checker."""
