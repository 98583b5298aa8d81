"""How a history that came without its run is judged: as one of a workload, or of an object with a model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from checkers.api.plan import Checker, CheckRequest, Engine
from checkers.certified import CertifiedHistory
from checkers.completions import CompletionEchoes
from checkers.history_batches import Source, batch_schema
from checkers.kernels.columns import NONE
from checkers.linearizable.checker import Linearizable
from checkers.linearizable.history.completions import repeats_of
from checkers.linearizable.model import ASKING, FailedCas, Model
from checkers.linearizable.objects.register import cas_register
from checkers.linearizable.own_model import NoModel, model_of
from checkers.names import TRANSACTIONAL
from checkers.statistics import Statistics
from checkers.transactions.model.lattice import ALIASES, ConsistencyModel, model_named
from checkers.vacuity import Vacuity
from harness.errors import UsageError
from harness.jepsen import Beside, Shape, convert, held
from harness.jepsen.source import is_short
from harness.nearest import unknown
from harness.record.history import MalformedHistory
from harness.record.history.value_types import require_json, require_values
from harness.workload import Workload
from stormproof.session import registry
from stormproof.session.null_reads import NullReads

T = TypeVar("T")

INTEGERS = pa.struct([("value", pa.int64()), ("expected", pa.int64())])
ANYTHING = pa.struct([("json", pa.string())])

REGISTERS = ("register", "cas-register")


@runtime_checkable
class Certifier(Protocol):
    """A checker that can prove what it says."""

    def certify(
        self,
        request: CheckRequest,
        engine: Engine,
        write: Callable[[Iterable[str]], None],
        history: CertifiedHistory | None = None,
    ) -> str:
        """Have the pieces of the proof of `history` written, if there is one; returns what it is, in few words.

        Raises TooLargeToCertify, and what `write` raises.
        """


@dataclass(frozen=True, kw_only=True)
class CheckSpec:
    """What is to be checked of a history that came without its run."""

    subject: str
    """The name of the workload or model."""
    arguments: tuple[str, ...] = ()
    """The words of a command line that ask for the same."""
    checkers: Mapping[str, Any]
    shape: Shape
    repeats: tuple[CompletionEchoes, ...]
    otherwise: CheckSpec | None = None
    """What is checked of a history whose values are not of that shape."""
    null_reads: NullReads = NullReads.EMPTY
    value_type: pa.StructType | None = None
    """The type of a table's values; None: any values of JSON."""
    certifier: Certifier | None = None
    certificate: Path | None = None
    """Where its orders are written, if they are asked for."""

    def read_as(self, functions: Mapping[str, str], *, by_time: bool = False) -> CheckSpec:
        """The same for a history whose clients use other names for these functions. With `by_time` its rows are put in
        the order of their times."""
        shape = dataclasses.replace(self.shape, renamed=tuple(functions.items()), by_time=by_time)
        otherwise = None if self.otherwise is None else self.otherwise.read_as(functions, by_time=by_time)
        return dataclasses.replace(self, shape=shape, otherwise=otherwise)

    def without_null_reads(self) -> CheckSpec:
        """The same for a history whose reads of null show nothing. It is not certified."""
        otherwise = None if self.otherwise is None else self.otherwise.without_null_reads()
        return dataclasses.replace(self, null_reads=NullReads.UNKNOWN, certificate=None, otherwise=otherwise)

    def require_values(self, history: Source) -> None:
        """Raises MalformedHistory if values of a table that was not read by `shape` are of other types."""
        came = batch_schema(history, ("value",)).field("value").type
        path = history if isinstance(history, Path) else None
        if self.value_type is None:
            require_json(came, path=path)
        else:
            require_values(came, self.value_type, path=path)

    def without_figures(self) -> CheckSpec:
        """The same verdict and findings, without what only a report shows."""
        judging = {name: checker for name, checker in self.checkers.items() if not isinstance(checker, Statistics)}
        otherwise = None if self.otherwise is None else self.otherwise.without_figures()
        return dataclasses.replace(self, checkers=judging, otherwise=otherwise)


def converted(path: Path, history: Path, spec: CheckSpec) -> tuple[CheckSpec, Beside]:
    """Write a foreign history as Parquet; returns what it turned out to be judged by, and what else it holds.

    Raises MalformedHistory, HarnessError.
    """
    _, spec, beside = _of_its_shape(spec, lambda shape, beside: convert(path, history, shape, beside))
    return spec, beside


def read(path: Path, history: Path, spec: CheckSpec) -> tuple[Source, CheckSpec, Beside]:
    """The rows of a foreign history, in memory if it is short, else at `history`; what it turned out to be judged by,
    and what else it holds.

    Raises MalformedHistory, HarnessError.
    """
    if is_short(path):
        return in_memory(path, spec)
    return history, *converted(path, history, spec)


def in_memory(path: Path, spec: CheckSpec) -> tuple[pa.Table, CheckSpec, Beside]:
    """The rows of a foreign history, what it turned out to be judged by, and what else it holds.

    Raises MalformedHistory, HarnessError.
    """
    return _of_its_shape(spec, lambda shape, beside: held(path, shape, beside))


def _of_its_shape(spec: CheckSpec, read: Callable[[Shape, Beside], T]) -> tuple[T, CheckSpec, Beside]:
    try:
        beside = Beside()
        return read(spec.shape, beside), spec, beside
    except MalformedHistory:
        if spec.otherwise is None:
            raise
        beside = Beside()
        return read(spec.otherwise.shape, beside), spec.otherwise, beside


def transactional() -> tuple[str, ...]:
    """Workloads that are judged for a consistency model of transactions."""
    return TRANSACTIONAL


def consistency_models() -> tuple[str, ...]:
    """What --consistency-model takes, other names of the same model included."""
    return (*(model.value for model in ConsistencyModel), *ALIASES)


def demands(workload: str, consistency_model: str | None, assume: Sequence[str]) -> tuple[str, ...]:
    """What a user demands of transactions, as settings of their workload. Raises UsageError."""
    settings = []
    if consistency_model is not None:
        try:
            settings.append(f"model={model_named(consistency_model).value}")
        except ValueError:
            raise UsageError(unknown("consistency model", consistency_model, consistency_models())) from None
    if assume:
        if "assume" not in _settings_of(registry.workload(workload)):
            raise UsageError(f"--assume is for registers: the reads of {workload} show the order of versions")
        settings.append(f"assume={','.join(assume)}")
    return tuple(settings)


def of_workload(name: str, settings: Sequence[str], certificate: Path | None = None) -> CheckSpec:
    """`settings` read key=value. Raises UsageError."""
    workload = registry.workload(name)
    checkers = _checkers_of(workload, settings)
    enough = Vacuity(subject=f"workload {name}", evidence=workload.evidence)
    return CheckSpec(
        subject=name,
        checkers={**checkers, "statistics": Statistics(), enough.name: enough},
        shape=shape_of(workload),
        repeats=workload.repeats,
        value_type=workload.value_type,
        certifier=next((checker for checker in checkers.values() if isinstance(checker, Certifier)), None),
        certificate=certificate,
    )


def shape_of(workload: Workload) -> Shape:
    """The shape of a history of this workload that others recorded."""
    # A position or a link beside an answer does not make it a question.
    asked_for = [one for one in workload.repeats if set(one.columns) != {"value.link"}]
    repeated = {f for one in asked_for for f in one.functions}
    in_parts = {f for one in workload.repeats if any(".txn." in name for name in one.columns) for f in one.functions}
    return Shape(
        value_type=workload.value_type,
        functions=workload.functions,
        passes_others=True,
        timed=workload.timed,
        answering=frozenset(workload.functions) - repeated,
        puts=frozenset(workload.puts),
        asking=frozenset(repeated - in_parts),
        any_values=workload.any_values,
        lists=frozenset(workload.lists),
        batches=frozenset(workload.batches),
    )


def checker_for(workload: str, settings: Mapping[str, str]) -> Checker:
    """The one checker of a workload, with these settings. Raises UsageError."""
    (checker,) = _checkers_of(
        registry.workload(workload), [f"{key}={value}" for key, value in settings.items()]
    ).values()
    return checker


def _checkers_of(workload: Workload, settings: Sequence[str]) -> Mapping[str, Checker]:
    given = dict(registry.parse_setting(text) for text in settings)
    known = _settings_of(workload)
    for key in sorted(set(given) - set(known)):
        raise UsageError(unknown("setting", key, known, of=f" of workload {workload.name}"))
    return workload.checkers(registry.typed_settings(workload.settings_type, given))


def _settings_of(workload: Workload) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(workload.settings_type))


def of_model(
    name: str,
    *,
    initial: str | None,
    failed_cas: str | None,
    null_reads: str | None = None,
    certificate: Path | None = None,
) -> CheckSpec:
    """`initial` is JSON; None for what the model begins with. Raises UsageError."""
    if null_reads is not None and name not in REGISTERS:
        raise UsageError(f"--null-reads is for --model {' or '.join(REGISTERS)}, not for {name}")
    if failed_cas is not None and name != "cas-register":
        raise UsageError(f"--failed-cas is for --model cas-register, {name} has no cas")
    what_failed = FailedCas(failed_cas or FailedCas.IGNORED.value)
    model = cas_register(what_failed) if name == "cas-register" else _model_of(name)
    if initial is not None:
        model = _beginning_with(model, initial)
    checker = Linearizable(model)
    enough = Vacuity(subject=f"model {name}", evidence=model.evidence(model.initial))
    shape = Shape(
        value_type=ANYTHING,
        functions=model.functions,
        passes_others=True,
        answering=frozenset(ASKING).intersection(model.functions).difference(model.repeats),
        keyed=model.keyed,
    )
    spec = CheckSpec(
        subject=name,
        checkers={checker.name: checker, enough.name: enough},
        shape=shape,
        repeats=repeats_of(model),
        null_reads=NullReads(null_reads or NullReads.EMPTY.value),
        certifier=checker,
        certificate=certificate,
    )
    if name not in REGISTERS or not _is_integer_or_null(model.initial):
        return spec
    return dataclasses.replace(spec, shape=dataclasses.replace(shape, value_type=INTEGERS), otherwise=spec)


def _model_of(name: str) -> Model:
    """Raises UsageError."""
    try:
        return model_of(name)
    except NoModel as error:
        raise UsageError(str(error)) from None


def _beginning_with(model: Model, initial: str) -> Model:
    """Raises UsageError."""
    try:
        value = json.loads(initial, parse_constant=_no_json)
    except (ValueError, RecursionError):
        raise UsageError(f"--initial takes a value as JSON, e.g. 0 or null, got {initial!r}") from None
    expected = model.begins.expected
    try:
        if model.begins.accepts(value):
            return dataclasses.replace(model.beginning_with(value), initial_json=initial)
    except TypeError:
        expected += " that can be compared with each other"
    raise UsageError(f"--initial of model {model.name} must be {expected}, it is {initial}")


def _no_json(constant: str) -> None:
    raise ValueError(constant)


def _is_integer_or_null(value: Any) -> bool:
    """Whether it is null or an integer of 64 bits, but not the least one, which stands for null."""
    return value is None or (type(value) is int and NONE < value <= -(NONE + 1))
