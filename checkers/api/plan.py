"""Plans: how a checker says what to shuffle and what to compute, without saying where.

A checker is a short plan: map the history's batches, group rows by some columns, run a pure kernel on
each group, gather what is small. `Engine` has two implementations with the same result: in-process
(Arrow and numpy) and Spark (`checkers/spark`). Kernels are top-level functions, Arrow table in and Arrow
table out, without access to Spark, pandas or the outer world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from checkers.api.verdict import CheckerResult
from checkers.completions import CompletionEchoes
from checkers.history_batches import Source
from checkers.search_budget import Searches
from harness.record.excuse import Excuse
from harness.record.facts import RunFacts
from harness.record.fault_log import FaultLog, nodes_struck
from harness.record.history import COLUMNS
from harness.record.meaning import Meaning
from harness.record.steady_spans import SteadySpan

Kernel = Callable[[pa.Table], pa.Table]
Split = Callable[[pa.Table], tuple[pa.Table, pa.Table]]
"""A kernel that makes two tables, each of its own schema."""


@dataclass(frozen=True, kw_only=True)
class Matching:
    """How complete rows of a batch are distinguished from those whose other end is in another batch."""

    split: Split
    """Splits a batch into what is complete in it and its other rows, of which there must be few."""
    schema: pa.Schema
    """The schema of what is complete."""
    open_schema: pa.Schema
    """The schema of the other rows."""
    keys: tuple[str, ...]
    kernel: Kernel
    """Makes what is complete of each group of other rows that agree on `keys`."""


class Dataset(Protocol):
    """Rows in some engine, not yet computed."""

    @property
    def schema(self) -> pa.Schema: ...


class Engine(Protocol):
    """Where plans run. Neither collects what grows with the history; `gather` is bounded."""

    @property
    def name(self) -> str: ...

    def history(self, source: Source, columns: tuple[str, ...] = COLUMNS) -> Dataset:
        """The rows of a closed history, in any order and split; `columns`: see `history_batches`."""

    def mapped(self, source: Dataset, kernel: Kernel, schema: pa.Schema) -> Dataset:
        """Run the kernel on each batch; batches have any size, so the kernel must not rely on neighbours."""

    def grouped(self, source: Dataset, keys: tuple[str, ...], kernel: Kernel, schema: pa.Schema) -> Dataset:
        """Run the kernel on each group of rows that agree on `keys`; rows of a group come in any order."""

    def completed(self, source: Dataset, matching: Matching) -> AbstractContextManager[Dataset]:
        """What is complete in each batch, and what all other rows, which are held at once, complete together. As with
        `kept`, datasets made of them cannot be used after the `with`."""

    def union(self, left: Dataset, right: Dataset) -> Dataset: ...

    def kept(self, source: Dataset) -> AbstractContextManager[Dataset]:
        """The same rows, computed once for all plans that use them inside the `with`, and held where they are.
        Datasets made of them cannot be used after it."""

    def gather(self, source: Dataset, limit: int) -> pa.Table:
        """Bring at most `limit` rows home. Raises ValueError if there are more: the plan forgot to bound itself."""


@dataclass(frozen=True, kw_only=True)
class RunUnderCheck:
    """What is known of the run that a history comes from, in addition to the history."""

    facts: RunFacts = field(default_factory=RunFacts)
    faults: FaultLog = field(default_factory=FaultLog)
    faults_asked: tuple[str, ...] = ()
    """Kinds of faults that the scenario asked for."""
    required_ok: Mapping[str, int] = field(default_factory=dict)
    """f -> how many must succeed in the storm."""
    required_share: Mapping[str, float] = field(default_factory=dict)
    """f -> which share of those invoked must succeed in the storm, from 0 to 1."""
    concurrency: int | None = None
    """Process p is a life of client p % concurrency; None: each process is a client of its own."""
    recovery_limit_s: float | None = None
    """The longest outage that is allowed; None: any is."""
    recovers_within_s: float | None = None
    """How long after the last fault the system and all its replicas serve again; None: it does not say."""
    may_panic: tuple[str, ...] = ()
    """Kinds of faults on a node under which it may end by itself."""
    contagious: tuple[str, ...] = ()
    """Kinds of faults that, on any node, let every node end by itself."""
    lasting_damage: tuple[str, ...] = ()
    """Kinds of faults whose damage to a disk no healing undoes. A node that they struck need not be whole again; any
    other has to be only if it is known to depend on no such node (`RunFacts.apart`)."""
    demanded: tuple[SteadySpan, ...] = ()
    """Spans in which the system has to serve although faults last, from `serves_within_s` after the start of each
    on."""
    serves_within_s: float | None = None
    node_events: Source | None = None
    """The table of `harness.record.node_events`; None where no node reported any."""

    def recovered_by(self, time_ns: int) -> bool:
        """Whether the system had to serve again by then: everything had been healed that long before, and no node was
        dead."""
        if self.recovers_within_s is None or self.facts.healed_ns is None:
            return False
        return self._is_healed and time_ns - self.facts.healed_ns >= self.recovers_within_s * 1e9

    @property
    def is_settled(self) -> bool:
        """Whether every replica had to be whole when it was finally read, because the system had served again
        before."""
        facts = self.facts
        return self._is_healed and self.recovers_within_s is not None and facts.serves_ns is not None and facts.complete

    @property
    def damaged(self) -> frozenset[str]:
        """The nodes with damage to disks that no healing undoes."""
        return nodes_struck(self.faults.struck, self.lasting_damage)

    @property
    def _is_healed(self) -> bool:
        apart = set(self.facts.apart)
        is_open = self.faults.unhealed or self.faults.left_to_the_end or self.facts.panics.keys() - apart
        return self.damaged <= apart and not is_open

    def unexplained_panics(self) -> Iterator[tuple[str, str]]:
        """(node, its last words) of each node that ended by itself, although no fault that may cause that had
        struck."""
        everywhere = {kind for window in self.faults.struck for kind in window.kinds}
        if not everywhere.isdisjoint(self.contagious):
            return
        for node, panic in sorted(self.facts.panics.items()):
            kinds = {kind for window in self.faults.struck if node in window.nodes for kind in window.kinds}
            if kinds.isdisjoint(self.may_panic):
                yield node, panic


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """One closed history and what is expected of it."""

    history: Source
    repeats: tuple[CompletionEchoes, ...] = ()
    """What completions may only repeat from their invocations; a history in which they differ is malformed."""
    legal: Mapping[str, str] = field(default_factory=dict)
    """anomaly name -> why it is legal here throughout."""
    excuses: tuple[Excuse, ...] = ()
    """Anomalies that are legal for what was written in some spans of time."""
    run: RunUnderCheck | None = None
    """The run; None for a history without one."""
    searches: Searches = Searches.UNTIL_INVALID


class Checker(Protocol):
    """Names the mutants it kills in its module's docstring."""

    @property
    def name(self) -> str: ...

    @property
    def meanings(self) -> Mapping[str, Meaning]:
        """The meaning of every anomaly that it can report, by name."""

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        """Raises MalformedHistory; any other failure of a checker becomes UNKNOWN with its reason."""
