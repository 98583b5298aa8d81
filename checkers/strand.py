"""A checker of one workload when several ran side by side: it sees only the operations of its own strand.

Such a history has `log/send` for the operation `send` of the strand `log`, and its values have a member for each
strand. Findings are reported with the strand before their names: `log/lost-write`. Indices of operations are those of
the whole history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from checkers.api.evidence import Evidence
from checkers.api.plan import Checker, CheckRequest, Dataset, Engine
from checkers.api.verdict import AnomalySummary, CheckerResult
from checkers.completions import CompletionEchoes, Fills, with_member
from checkers.engine_wrapper import EngineAround
from checkers.history_batches import Source
from checkers.kernels.columns import Bool, Int64, member, whole
from checkers.vacuity import Vacuity
from harness.record.history import COLUMNS
from harness.record.meaning import Meaning


@dataclass(frozen=True, kw_only=True)
class OfStrand:
    """`checker`, on the operations of one strand."""

    strand: str
    checker: Checker

    @property
    def name(self) -> str:
        return f"{self.strand}/{self.checker.name}"

    @property
    def meanings(self) -> Mapping[str, Meaning]:
        return {f"{self.strand}/{name}": meaning for name, meaning in self.checker.meanings.items()}

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        legal = {name.removeprefix(f"{self.strand}/"): why for name, why in request.legal.items()}
        own = replace(request, legal=legal, repeats=())
        result = self.checker.check(own, _StrandEngine(engine=engine, strand=self.strand))
        anomalies = {f"{self.strand}/{name}": self._named(summary) for name, summary in result.anomalies.items()}
        return replace(result, anomalies=anomalies)

    def _named(self, summary: AnomalySummary) -> AnomalySummary:
        examples = tuple(replace(one, name=f"{self.strand}/{one.name}") for one in summary.examples)
        excused = None if summary.excused is None else self._named(summary.excused)
        return replace(summary, examples=examples, excused=excused)


@dataclass(frozen=True, kw_only=True)
class EvidenceOfStrand:
    """Whether anything could have contradicted this strand. Evidence of another strand does not count."""

    strand: str
    evidence: tuple[Evidence, ...]
    meanings: ClassVar[Mapping[str, Meaning]] = {}

    @property
    def name(self) -> str:
        return f"{self.strand}/vacuity"

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        own = tuple(_evidence_in_all(self.strand, one) for one in self.evidence)
        # The facts of the run are judged once for all strands.
        return Vacuity(subject=f"workload {self.strand}", evidence=own).check(replace(request, run=None), engine)


def _evidence_in_all(strand: str, one: Evidence) -> Evidence:
    which = None if one.which is None else partial(_which, strand=strand, which=one.which)
    return replace(one, f=f"{strand}/{one.f}", which=which, columns=_in_all(strand, one.columns))


def repeats_in_all(strand: str, one: CompletionEchoes) -> CompletionEchoes:
    """What a strand's completions may only repeat, in terms of the whole history."""
    functions = tuple(f"{strand}/{f}" for f in one.functions)
    return replace(
        one,
        functions=functions,
        differs=partial(_differ, strand=strand, differs=one.differs),
        columns=_in_all(strand, one.columns),
        leaves_out=None if one.leaves_out is None else partial(_differ, strand=strand, differs=one.leaves_out),
        fills=None if one.fills is None else partial(_filled, strand=strand, fills=one.fills),
    )


def _which(rows: pa.Table, *, strand: str, which: Callable[[pa.Table], Bool]) -> Bool:
    return which(_with_own_values(rows, strand))


def _differ(rows: pa.Table, asked: Int64, completed: Int64, *, strand: str, differs: Any) -> Bool:
    found: Bool = differs(_with_own_values(rows, strand), asked, completed)
    return found


def _filled(value: pa.Array, source: Int64, is_ok: Bool, *, strand: str, fills: Fills) -> pa.Array:
    return with_member(value, strand, fills(member(value, strand), source, is_ok))


def _in_all(strand: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of the whole history that have these columns of a strand."""
    return tuple(
        f"value.{strand}{name.removeprefix('value')}" if name.partition(".")[0] == "value" else name for name in columns
    )


def _with_own_values(rows: pa.Table, strand: str) -> pa.Table:
    place = rows.schema.get_field_index("value")
    return rows if place < 0 else rows.set_column(place, "value", member(rows["value"], strand))


@dataclass(frozen=True, kw_only=True)
class _StrandEngine(EngineAround):
    """Another engine, whose histories only have the rows of one strand if `f` is looked at.

    A plan that does not look at `f` counts operations by their index, which is that of the whole history.
    """

    strand: str

    def history(self, source: Source, columns: tuple[str, ...] = COLUMNS) -> Dataset:
        if "f" not in columns:
            return self.engine.history(source, columns)
        whole_rows = self.engine.history(source, _in_all(self.strand, columns))
        own = partial(rows_of, strand=self.strand)
        return self.engine.mapped(whole_rows, own, own(whole_rows.schema.empty_table()).schema)


def rows_of(rows: pa.Table, *, strand: str) -> pa.Table:
    """Kernel: the rows of a strand, with its own functions and values."""
    f = whole(rows["f"])
    f = f if pa.types.is_dictionary(f.type) else f.dictionary_encode()
    names = f.dictionary.to_pylist()
    is_own = np.array([name.startswith(f"{strand}/") for name in names], dtype=np.bool_)
    mine = np.flatnonzero(is_own[f.indices.to_numpy()]) if names else np.empty(0, dtype=np.int64)
    # A dictionary may not have a name twice, so names of other strands keep their prefix.
    own_names = [name.removeprefix(f"{strand}/") for name in names]
    own_f = pa.DictionaryArray.from_arrays(f.indices, pa.array(own_names, type=f.type.value_type))
    named = rows.set_column(rows.schema.get_field_index("f"), "f", own_f)
    return _with_own_values(named.take(pa.array(mine)), strand)
