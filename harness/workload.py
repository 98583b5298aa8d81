"""What a workload is: the operations clients carry out, what must then hold, and who judges it.

A workload is one value, `WORKLOAD`, in a module of its own, found by name through an entry point in
`stormproof.workloads`. The module's docstring is its specification. One without a generator cannot be run: histories
that something else recorded are judged as one of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from harness.errors import UsageError
from harness.generator import Generator
from harness.seed import Seed


@dataclass(frozen=True, kw_only=True)
class NoSettings:
    """Of a workload with nothing to set."""


def any_settings(settings: Any) -> None:
    """Of a workload that can be run with whatever its settings may be."""


def refused_in_run(workload: str, setting: str, value: object, *, expected: str) -> UsageError:
    """The refusal of a setting that is true of histories recorded elsewhere and not of what a run records."""
    return UsageError(
        f"setting {setting} in a run of {workload}: expected {expected}, got {value}; leave it out of the run "
        f"(of a history recorded elsewhere: stormproof check HISTORY --workload {workload} --set {setting}={value})"
    )


@dataclass(frozen=True, kw_only=True)
class Workload:
    name: str
    about: str
    """The promise, in a few words."""
    value_type: pa.DataType
    """The Arrow struct of the history's `value` column."""
    functions: tuple[str, ...]
    """Every `f` that its operations may have."""
    checkers: Callable[[Any], Mapping[str, Any]]
    """Takes its settings: name -> checkers.api.plan.Checker."""
    settings_type: type = NoSettings
    """A frozen dataclass with what `--set` takes, of the generator and of the checkers."""
    require_runnable: Callable[[Any], None] = any_settings
    """Raises UsageError for settings that a run cannot make true: its history would be judged for what it is not."""
    any_values: bool = False
    """Its values, but for those with names of their own, are only compared: what others recorded may be anything."""
    lists: tuple[str, ...] = ()
    """Functions, or micro-operations, that show a list of elements; where values may be anything, others show one."""
    batches: tuple[str, ...] = ()
    """Functions that show one element or several."""
    puts: tuple[str, ...] = ()
    """Functions that put their value in as an element."""
    timed: bool = False
    """Whether it is judged by times, and not only by the order of what happened."""
    repeats: tuple[Any, ...] = ()
    """checkers.completions.CompletionEchoes: what completions may only repeat of what was asked."""
    evidence: tuple[Any, ...] = ()
    """checkers.api.evidence.Evidence: operations that could contradict it; a history without any proves nothing."""
    generator: Callable[[Any, Seed, int], Generator] | None = None
    """(settings, seed, concurrency) -> the storm's client operations, endless; the caller staggers them and limits the
    time. None for a workload that only judges."""
    final_generator: Callable[[Any, Seed, int, tuple[str, ...]], Generator] | None = None
    """(settings, seed, concurrency, names of replicas) -> the final reads, after healing and recovery; ends by itself.
    Where there is a generator, there is this as well."""
    required_ok: Mapping[str, int] = field(default_factory=dict)
    """f -> least number of ok operations in the storm, below which a verdict would be vacuous."""
    required_share: Mapping[str, float] = field(default_factory=dict)
    """f -> least share of the operations invoked in the storm that must be ok, below which it would be as well."""

    explored: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Setting -> values beside the usual one that storms draw where `stormproof explore` searches."""
    strands: tuple[Workload, ...] = ()
    """Those that it runs side by side, where it is made of several (`workloads.combined`)."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of its strands, or its own."""
        return tuple(strand.name for strand in self.strands) or (self.name,)

    @property
    def anomalies(self) -> tuple[str, ...]:
        """The names of all broken promises that its checkers can report."""
        checkers = self.checkers(self.settings_type())
        return tuple(sorted({name for checker in checkers.values() for name in checker.meanings}))

    def __post_init__(self) -> None:
        if (self.generator is None) != (self.final_generator is None):
            raise TypeError(f"workload {self.name} needs a generator and a final generator, or neither")
