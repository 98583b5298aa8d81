"""Suites: a matrix of systems, workloads, nemeses, settings and seeds, written in TOML.

    name = "smoke"

    [defaults]                          # every key of a matrix may stand here
    system = "rocketmq"
    time_limit_s = 30

    [[matrix]]                          # each one is multiplied out
    workload = ["log", "register"]
    nemesis = ["partition,kill", "clock", "none"]
    settings = [{}, { flush = "async" }]
    seeds = [1, 2, 3]                   # or { from = 1, count = 20 }

    [[matrix]]                          # what is known of a system is expected, and named with its reason
    workload = "set"
    nemesis = "kill one of servers every 30 for 15"
    expect = "invalid"                  # or "valid", "unknown", "not-valid"
    because = "a failover throws away what its old leader alone had taken"
    anomalies = ["lost"]                # none but these are expected; left out: any may be found

`system`, `workload`, `environment`, `nemesis`, `mutant` and `settings` take one value or a list of them;
`concurrency`, `rate`, `time_limit_s`, `recovery_s`, `liveness_s` and `max_outage_s` take a number. What is wrong is
named by its key. Among nemeses and mutants `none` says that there is none; an empty text says nothing and is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from harness import path_name, toml_file
from harness.bounds import quote
from harness.errors import UsageError
from harness.nearest import did_you_mean, unknown
from harness.reading import read_given
from harness.record.scenario import LONGEST_TEXT, NONE, SIMULATED, Scenario, SettingValue, nemesis_names
from stormproof.session.expectation import EXPECTED, Expectation

MOST_SCENARIOS = 10_000
LONGEST_SUITE_BYTES = 1 << 20

_AXES = ("system", "workload", "environment", "nemesis", "mutant")
_NUMBERS: Mapping[str, type] = {
    "concurrency": int,
    "rate": float,
    "time_limit_s": float,
    "recovery_s": float,
    "liveness_s": float,
    "max_outage_s": float,
}
_EXPECTED = ("expect", "because", "anomalies")
_KEYS = (*_AXES, "settings", "seeds", *_NUMBERS, *_EXPECTED)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A scenario of a suite."""

    scenario: Scenario
    expected: Expectation | None = None
    """The expected verdict; None: valid, as for every scenario without one."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    name: str
    rows: tuple[Row, ...]

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        return tuple(row.scenario for row in self.rows)


def shipped() -> tuple[str, ...]:
    """Names of the suites that come with the package."""
    folder = resources.files("stormproof.session") / "suites"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_suite(where: str) -> Suite:
    """A suite file by its path (`-` is standard input), or a shipped one by its name. Raises UsageError."""
    if where in shipped() and not Path(where).is_file():
        text = (resources.files("stormproof.session") / "suites" / f"{where}.toml").read_text(encoding="utf-8")
        return parse_suite(text, where)
    path = Path(where)
    try:
        text = read_given(path, LONGEST_SUITE_BYTES).decode()
    except FileNotFoundError:
        shipped_ones = f"{', '.join(shipped())}{did_you_mean(where, shipped())}"
        raise UsageError(f"no suite file {where}; give a TOML file, or one of: {shipped_ones}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"suite file {where} cannot be read: {reason}") from None
    return parse_suite(text, where)


def parse_suite(text: str, where: str) -> Suite:
    """Multiply the matrices out, in the order written. `where` names the file in errors. Raises UsageError."""
    data = toml_file.parsed(text, where)
    try:
        return _suite(data, path_name.made_of(Path(where).stem, otherwise="suite"))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _suite(data: Mapping[str, Any], usual_name: str) -> Suite:
    """Raises UsageError that says in which place of the file, as all functions below."""
    _refuse_unknown(data, ("name", "defaults", "matrix"), "the suite")
    name = data.get("name", usual_name)
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"name must be text, got {quote(name)}")
    path_name.checked(name, "a suite")
    defaults = _table(data.get("defaults", {}), "defaults")
    _refuse_unknown(defaults, _KEYS, "defaults")
    matrices = data.get("matrix", [{}] if defaults else [])
    if not isinstance(matrices, list) or not matrices:
        raise UsageError("a suite needs at least one [[matrix]]")
    rows: list[Row] = []
    for position, matrix in enumerate(matrices, 1):
        place = f"matrix {position}"
        _refuse_unknown(_table(matrix, place), _KEYS, place)
        whole = {**defaults, **matrix}
        expected = _expectation(whole, place)
        scenarios = _scenarios(whole, place, MOST_SCENARIOS - len(rows))
        rows += [Row(scenario=scenario, expected=expected) for scenario in scenarios]
    return Suite(name=name, rows=tuple(rows))


def _expectation(matrix: Mapping[str, Any], place: str) -> Expectation | None:
    given = [key for key in _EXPECTED if key in matrix]
    if not given:
        return None
    for key in ("expect", "because"):
        if key not in matrix:
            raise UsageError(f"{place} has {given[0]!r}, but not {key!r}: say what is expected, and why")
    if matrix["expect"] not in list(EXPECTED):
        raise UsageError(f"{place}: expect takes one of {', '.join(EXPECTED)}, got {quote(matrix['expect'])}")
    because, anomalies = matrix["because"], matrix.get("anomalies", ["any"])
    if not _says(because):
        raise UsageError(f"{place}: because takes a reason in words, got {quote(because)}")
    if not isinstance(anomalies, list) or not anomalies or not all(map(_says, anomalies)):
        raise UsageError(f"{place}: anomalies takes a list of names, got {quote(anomalies)}; leave it out for any")
    return Expectation(name=matrix["expect"], because=because.strip(), anomalies=tuple(matrix.get("anomalies", ())))


def _says(text: Any) -> bool:
    return isinstance(text, str) and bool(text.strip()) and text.isprintable() and len(text) <= LONGEST_TEXT


def _scenarios(matrix: Mapping[str, Any], place: str, most: int) -> list[Scenario]:
    for key in ("system", "workload"):
        if key not in matrix:
            raise UsageError(f"{place} lacks {key!r}, and so do the defaults")
    axes: list[list[Any]] = []
    for key in _AXES:
        default = SIMULATED if key == "environment" else NONE
        axes.append([_text(value, f"{place}: {key}") for value in _listed(matrix.get(key, default))])
    settings = [_settings(value, f"{place}: settings") for value in _listed(matrix.get("settings", {}))]
    seeds = _seeds(matrix.get("seeds", [0]), f"{place}: seeds")
    numbers: dict[str, Any] = {
        key: _number(matrix[key], type_, f"{place}: {key}") for key, type_ in _NUMBERS.items() if key in matrix
    }
    total = len(settings) * len(seeds)
    for axis in axes:
        total *= len(axis)
    if total > most:
        raise UsageError(f"{place} makes {total} scenarios, the suite may have {MOST_SCENARIOS}; split it")
    if total == 0:
        raise UsageError(f"{place} makes no scenario: one of its lists is empty")
    try:
        return [
            Scenario(
                system=system,
                workload=workload,
                environment=environment,
                nemesis=nemesis_names(nemesis),
                mutant=None if mutant == NONE else mutant,
                settings=setting,
                seed=seed,
                **numbers,
            )
            for system, workload, environment, nemesis, mutant, setting, seed in itertools.product(
                *axes, settings, seeds
            )
        ]
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None


def _seeds(value: Any, key: str) -> list[int]:
    if isinstance(value, dict):
        _refuse_unknown(value, ("from", "count"), key)
        first, count = value.get("from", 1), value.get("count", 1)
        for part in (first, count):
            if type(part) is not int or part < 0:
                raise UsageError(f"{key} takes {{ from = 1, count = 20 }}, got {quote(value)}")
        if count > MOST_SCENARIOS:
            raise UsageError(f"{key} takes a count of at most {MOST_SCENARIOS}, got {count}")
        return list(range(first, first + count))
    seeds = _listed(value)
    for seed in seeds:
        if type(seed) is not int or not 0 <= seed < 2**63:
            raise UsageError(f"{key} takes whole numbers from 0, got {seed!r}")
    return seeds


def _settings(value: Any, key: str) -> dict[str, SettingValue]:
    for name, setting in _table(value, key).items():
        if not isinstance(setting, (str, int, float, bool)):
            raise UsageError(f"{key}.{name} takes text, a number or true/false, got {setting!r}")
    return dict(value)


def _number(value: Any, type_: type, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, type_)):
        expected = "a whole number" if type_ is int else "a number"
        raise UsageError(f"{key} takes {expected}, got {value!r}")
    number: float = type_(value)
    return number


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{key} takes text or a list of texts, got {value!r}")
    return value


def _table(value: Any, key: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{key} takes a table of keys and values, got {value!r}")
    return value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _refuse_unknown(table: Mapping[str, Any], names: tuple[str, ...], place: str) -> None:
    for key in table:
        if key not in names:
            raise UsageError(unknown("key", key, names, of=f" of {place}"))
