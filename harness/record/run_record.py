"""`scenario.json`: what a run was asked to do, with which versions, and what became of it beside history and faults.

    {"format": 2, "scenario": {…}, "versions": {…}, "replay": "stormproof run …", "facts": {…},
     … what the environment reported: in the simulator "regime", "trace_hash", "trace_events", "reached"}

It is written when a run begins, without `facts`, and again when it ends. Format 1, which has no number, has the fields
of the scenario beside the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.bounds import quote
from harness.errors import UsageError
from harness.reading import json_kept
from harness.record.facts import RunFacts
from harness.record.run_directory import RunDirectory
from harness.record.scenario import Scenario

FORMAT = 2
_FIELDS: Mapping[str, type] = {"versions": dict, "replay": str, "facts": dict}
_REPORTED: Mapping[str, type] = {"regime": dict, "trace_hash": str, "trace_events": int, "reached": dict}
_BESIDE_A_SCENARIO_OF_FORMAT_1 = (*_FIELDS, *_REPORTED, "world")


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The content of one `scenario.json`."""

    scenario: Scenario
    versions: Mapping[str, str] = field(default_factory=dict)
    replay: str = ""
    """The command that runs the scenario again."""
    facts: RunFacts | None = None
    """What is known of the run; None while it goes on, or where its harness was killed."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """What the environment reported of itself, JSON-able."""

    @property
    def regime(self) -> Mapping[str, float]:
        """The kind of world that the simulator drew from the seed."""
        regime: Mapping[str, float] = self.environment.get("regime", {})
        return regime

    @property
    def trace_hash(self) -> str | None:
        """None where there is no trace, or the run was cut short."""
        return self.environment.get("trace_hash")

    def to_json(self) -> dict[str, Any]:
        facts = {} if self.facts is None else {"facts": self.facts.to_json()}
        return {
            "format": FORMAT,
            "scenario": self.scenario.to_json(),
            "versions": dict(self.versions),
            "replay": self.replay,
            **self.environment,
            **facts,
        }

    @classmethod
    def from_json(cls, data: Any) -> RunRecord:
        """Raises ValueError for what is no record, UsageError for one that is wrong in itself."""
        if not isinstance(data, dict):
            raise ValueError(f"it must be an object, it is {quote(data)}")
        format_ = data.get("format", 1)
        if type(format_) is not int or format_ not in (1, FORMAT):
            raise UsageError(
                f"format {quote(format_)} is not known here, only formats up to {FORMAT}: check this run with the "
                f"version of stormproof that wrote it, or a later one"
            )
        for name, kind in {**_FIELDS, **_REPORTED}.items():
            if name in data and not isinstance(data[name], kind):
                raise ValueError(f"{name} cannot be {quote(data[name])}")
        if not all(type(value) in (int, float) for value in data.get("regime", {}).values()):
            raise ValueError(f"regime cannot be {quote(data['regime'])}")
        scenario, reported = _of_format_1(data) if format_ == 1 else _of_format_2(data)
        return cls(
            scenario=Scenario.from_json(scenario),
            versions=data.get("versions", {}),
            replay=data.get("replay", ""),
            facts=RunFacts.from_json(data["facts"]) if "facts" in data else None,
            environment=reported,
        )


def _of_format_1(data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The scenario, and what the environment reported."""
    scenario = {name: value for name, value in data.items() if name not in _BESIDE_A_SCENARIO_OF_FORMAT_1}
    reported = {name: data[name] for name in (*_REPORTED, "world") if name in data}
    return scenario, reported


def _of_format_2(data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    if not isinstance(data.get("scenario"), dict):
        raise ValueError(f"scenario cannot be {quote(data.get('scenario'))}")
    return data["scenario"], {
        name: value for name, value in data.items() if name not in ("format", "scenario", *_FIELDS)
    }


def write_run_record(directory: RunDirectory, record: RunRecord) -> None:
    """Raises HarnessError."""
    directory.write_json(directory.scenario.name, record.to_json())


def read_run_record(directory: Path) -> RunRecord:
    """The record of a run directory. Raises UsageError."""
    path = RunDirectory(directory).scenario
    try:
        return RunRecord.from_json(json_kept(path))
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{directory} is not a run directory: it has no {path.name}") from None
    except (ValueError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} cannot be read: {reason}") from None
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
