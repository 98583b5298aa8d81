"""How a history that came without its run is judged: as one of a workload, or of an object with a model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from checkers.kernels.columns import NONE
from checkers.linearizable import FailedCas, LinearizableRegister
from checkers.statistics import Statistics
from harness.cli import registry
from harness.errors import UsageError
from harness.foreign import Shape
from harness.scenario import SettingValue

REGISTER = pa.struct([("value", pa.int64()), ("expected", pa.int64())])

MODELS: Mapping[str, Shape] = {
    "register": Shape(value_type=REGISTER, functions=("read", "write")),
    "cas-register": Shape(value_type=REGISTER, functions=("read", "write", "cas")),
}


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What is expected of a history that came without its run."""

    name: str
    checkers: Mapping[str, Any]
    shape: Shape
    required_ok: tuple[str, ...] = ()
    """Of these f one must have succeeded, or the verdict would be vacuous."""


def of_workload(name: str, settings: Mapping[str, SettingValue]) -> Judgement:
    """Raises UsageError."""
    workload = registry.workload(name)
    unknown = sorted(set(settings) - {field.name for field in dataclasses.fields(workload.settings_type)})
    if unknown:
        raise UsageError(f"workload {name} has no setting {unknown[0]!r}; stormproof list shows its settings")
    checkers = workload.checkers(registry.typed_settings(workload.settings_type, settings))
    return Judgement(
        name=name,
        checkers={**checkers, "statistics": Statistics()},
        shape=Shape(value_type=workload.value_type),
        required_ok=tuple(workload.required_ok),
    )


def of_model(name: str, *, initial: str, failed_cas: str) -> Judgement:
    """`initial` is JSON. Raises UsageError."""
    try:
        value = json.loads(initial)
    except ValueError:
        raise UsageError(f"--initial takes a value as JSON, e.g. 0 or null, got {initial!r}") from None
    if value is not None and (type(value) is not int or not NONE < value <= -(NONE + 1)):
        raise UsageError(f"a register begins with a whole number of 64 bits or null, --initial is {initial}")
    checker = LinearizableRegister(initial=NONE if value is None else value, failed_cas=FailedCas(failed_cas))
    return Judgement(name=name, checkers={checker.name: checker}, shape=MODELS[name])
