"""Several workloads at once against one system: `log+pop+delayed`. Each is a strand of its own.

A strand has clients, topics or keys of its own (`harness.abilities.Shared`), and is judged by its own checkers, by its
own operations alone: `log/send` is the `send` of strand `log`. The faults, the run, and what nodes say are common to
all, and there is one verdict.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from types import NoneType
from typing import Any

import pyarrow as pa

from checkers.api.plan import Checker
from checkers.strand import EvidenceOfStrand, OfStrand, repeats_in_all
from harness.bounds import fitting
from harness.errors import UsageError
from harness.generator import Generator
from harness.generator.strands import Strand, shares, side_by_side
from harness.record.scenario import SettingValue
from harness.seed import Seed
from harness.workload import Workload


def combined(strands: Sequence[Workload]) -> Workload:
    """One workload of several. Raises UsageError for one that is there twice."""
    return _Combined(tuple(strands)).workload()


@dataclass(frozen=True)
class _Combined:
    strands: tuple[Workload, ...]

    def __post_init__(self) -> None:
        names = [strand.name for strand in self.strands]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"workload {name} is named twice in {'+'.join(names)}; name each once")

    def workload(self) -> Workload:
        strands = self.strands
        is_run = all(strand.generator is not None for strand in strands)
        return Workload(
            name="+".join(strand.name for strand in strands),
            about="; ".join(f"{strand.name}: {strand.about}" for strand in strands),
            value_type=pa.struct([pa.field(strand.name, strand.value_type) for strand in strands]),
            functions=tuple(f"{strand.name}/{f}" for strand in strands for f in strand.functions),
            checkers=self._checkers,
            settings_type=_settings_type(strands),
            require_runnable=self._require_runnable,
            repeats=tuple(repeats_in_all(strand.name, one) for strand in strands for one in strand.repeats),
            generator=self._generator if is_run else None,
            final_generator=self._final_generator if is_run else None,
            required_ok=_in_all(strands, "required_ok"),
            required_share=_in_all(strands, "required_share"),
            strands=strands,
        )

    def _checkers(self, settings: Any) -> Mapping[str, Checker]:
        found: dict[str, Checker] = {}
        for strand in self.strands:
            for name, checker in strand.checkers(_own(strand, settings)).items():
                found[f"{strand.name}/{name}"] = OfStrand(strand=strand.name, checker=checker)
            enough = EvidenceOfStrand(strand=strand.name, evidence=strand.evidence)
            found[enough.name] = enough
        return found

    def _require_runnable(self, settings: Any) -> None:
        for strand in self.strands:
            strand.require_runnable(_own(strand, settings))

    def _generator(self, settings: Any, seed: Seed, concurrency: int) -> Generator:
        def storm(strand: Workload, clients: int) -> Generator:
            assert strand.generator is not None
            return strand.generator(_own(strand, settings), seed.child(strand.name), clients)

        return self._side_by_side(storm, concurrency)

    def _final_generator(self, settings: Any, seed: Seed, concurrency: int, replicas: tuple[str, ...]) -> Generator:
        def reads(strand: Workload, clients: int) -> Generator:
            assert strand.final_generator is not None
            return strand.final_generator(_own(strand, settings), seed.child(strand.name), clients, replicas)

        return self._side_by_side(reads, concurrency)

    def _side_by_side(self, make: Callable[[Workload, int], Generator], concurrency: int) -> Generator:
        threads_of = zip(self.strands, shares(concurrency, len(self.strands)), strict=True)
        return side_by_side(
            *(
                Strand(strand.name, threads.start, len(threads), make(strand, len(threads)))
                for strand, threads in threads_of
            )
        )


def _in_all(strands: Sequence[Workload], what: str) -> dict[str, Any]:
    return {f"{strand.name}/{f}": least for strand in strands for f, least in getattr(strand, what).items()}


def _settings_type(strands: Sequence[Workload]) -> type:
    """With every setting of any of them, which all take that have it; None: as is usual for each."""
    names = dict.fromkeys(field.name for strand in strands for field in dataclasses.fields(strand.settings_type))
    anything = reduce(or_, (bool, int, float, str), NoneType)

    def require_fitting(settings: Any) -> None:
        for strand in strands:
            _own(strand, settings)

    return dataclasses.make_dataclass(
        "CombinedSettings",
        [(name, anything, dataclasses.field(default=None)) for name in names],
        frozen=True,
        kw_only=True,
        namespace={"__post_init__": require_fitting},
    )


def _own(strand: Workload, settings: Any) -> Any:
    """A strand's settings. Raises UsageError for what it does not take."""
    given: dict[str, SettingValue] = {
        field.name: value
        for field in dataclasses.fields(strand.settings_type)
        if (value := getattr(settings, field.name)) is not None
    }
    values = {
        name: fitting(strand.settings_type, name, value, what=f"setting {name} of workload {strand.name}")
        for name, value in given.items()
    }
    return strand.settings_type(**values)
