"""`verdict.json`: the verdict of a run as data, for gates and for pages.

    {"verdict": "valid" | "invalid" | "unknown", "reasons": […], "accepted_as_vacuous": […], "excused": "…",
     "checkers": {name: {"verdict", "reasons", "vacuous", "accepted",
                         "anomalies": {name: {"count", "examples", "legal", "excused", "meaning"}}, "statistics"}},
     "passed_over": […], "operations": {…}, "faults": {…}, "points": {name: {"reached", "struck_by"}},
     "usage": {node: …}, "versions": {…},
     "checked": {"history", "judged_as", "engine", "engine_because", "command"} | null}

The reasons begin with the anomalies that were found. `count` is exact, `examples` are the first few. `legal` says
why this configuration under these faults may do it; where it is empty, the anomaly makes the verdict invalid. Of one
that is legal in part, `excused` is {"count", "examples", "legal"} of that part, which is not counted outside it; else
null. The `excused` of all is one line: what was found and is legal, with the reasons; empty where nothing was.
`meaning` is {"says", "usually"}: what the anomaly says and what usually causes it; null where no checker explains it.
`vacuous` are those of a checker's reasons that say that too little happened to contradict anything; where a user has
accepted that, they are listed in `accepted` instead, and for all checkers in `accepted_as_vacuous`.
`passed_over` is what of a history that came without its run decides nothing (notes of clients, times that run back),
as counted, or was not read, in words; empty where all was judged.
`usage` is what each node's program held of its machine, as medians of the first and the last quarter of the run; none
where that is not measured.
`points` are those that the system declares: how often each was reached, and the faults that struck in that moment; none
where the environment does not see them.
Numbers that JSON cannot hold (NaN, infinity) become null, so that any parser reads the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import AnomalySummary, CheckerResult, Verdict, accepted, excused, found
from harness.reading import json_kept
from harness.record.meaning import Meaning
from harness.record.run_directory import RunDirectory
from results.output import write

ACCEPTED = "accepted_as_vacuous"
EXCUSED = "excused"


@dataclass(frozen=True, kw_only=True)
class Checking:
    """Where a verdict comes from."""

    history: str
    """Path of what was checked."""
    judged_as: str
    """The options that say what it is a history of, e.g. `--model register --initial 0`; empty for a run, whose
    scenario says it."""
    engine: str
    engine_because: str = ""
    """Why this engine and no other."""
    command: str
    """The command that checks it again."""


@dataclass(frozen=True, kw_only=True)
class VerdictFile:
    """The content of one `verdict.json`."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    """The reasons, apart from anomalies, which are with the checkers."""
    checkers: Mapping[str, CheckerResult] = field(default_factory=dict)
    passed_over: tuple[str, ...] = ()
    """What the history holds that was not judged, in words."""
    operations: Mapping[str, Any] = field(default_factory=dict)
    """What clients did, counted, e.g. {"send": {"ok": 10, "fail": 0, "info": 1}}."""
    faults: Mapping[str, Any] = field(default_factory=dict)
    """What the nemesis did, counted, e.g. {"partition": {"applied": 3, "with_effect": 3}}."""
    points: Mapping[str, Any] = field(default_factory=dict)
    """{"alter-proposed": {"reached": 3, "struck_by": ["kill it when alter-proposed"]}}."""
    usage: Mapping[str, Any] = field(default_factory=dict)
    """Node -> {"samples", "memory_bytes": [first, last], "handles": [first, last]}, medians of quarters."""
    versions: Mapping[str, Any] = field(default_factory=dict)
    checking: Checking | None = None
    """Where the verdict comes from; None if that is not known."""

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict.value,
            "reasons": [*found(self.checkers), *self.reasons],
            ACCEPTED: list(accepted(self.checkers)),
            EXCUSED: excused(self.checkers),
            "checkers": {name: _checker_to_json(result) for name, result in sorted(self.checkers.items())},
            "passed_over": list(self.passed_over),
            "operations": plain(self.operations),
            "faults": plain(self.faults),
            "points": plain(self.points),
            "usage": plain(self.usage),
            "versions": plain(self.versions),
            "checked": None if self.checking is None else asdict(self.checking),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> VerdictFile:
        """Raises KeyError, TypeError or ValueError for a file that is not a verdict."""
        checkers = {name: _checker_from_json(checker) for name, checker in data["checkers"].items()}
        anomalies = found(checkers)
        return cls(
            verdict=Verdict(data["verdict"]),
            reasons=tuple(reason for reason in data["reasons"] if reason not in anomalies),
            checkers=checkers,
            passed_over=tuple(data.get("passed_over", ())),
            operations=data["operations"],
            faults=data["faults"],
            points=data.get("points", {}),
            usage=data.get("usage", {}),
            versions=data["versions"],
            checking=Checking(**data["checked"]) if data.get("checked") else None,
        )


def as_accepted(reason: str) -> str:
    """A reason that was accepted as vacuous, in words."""
    return f"accepted as vacuous: {reason}"


def write_verdict(directory: Path, content: VerdictFile) -> Path:
    """Write `verdict.json` into a run directory, atomically. Raises OSError."""
    path = RunDirectory(directory).verdict
    write(path, [json.dumps(content.to_json(), indent=2, ensure_ascii=False, allow_nan=False), "\n"])
    return path


def read_verdict(directory: Path) -> VerdictFile:
    """Read a run directory's verdict; raises FileNotFoundError where none was reached, ValueError for another file."""
    path = RunDirectory(directory).verdict
    try:
        return VerdictFile.from_json(json_kept(path))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is not a verdict: {error!r}") from error


def plain(value: object) -> Any:
    """JSON-able data of what checkers report: numpy numbers, tuples, enums and paths included."""
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=str)
    item = getattr(value, "tolist", None)
    return plain(item()) if callable(item) else str(value)


def _checker_to_json(result: CheckerResult) -> dict[str, Any]:
    return {
        "verdict": result.verdict.value,
        "reasons": list(result.reasons),
        "vacuous": list(result.vacuous),
        "accepted": list(result.accepted),
        "anomalies": {
            name: {
                **_summary_to_json(summary),
                "excused": None if summary.excused is None else _summary_to_json(summary.excused),
                "meaning": None if summary.meaning is None else asdict(summary.meaning),
            }
            for name, summary in sorted(result.anomalies.items())
        },
        "statistics": plain(result.statistics),
    }


def _summary_to_json(summary: AnomalySummary) -> dict[str, Any]:
    return {
        "count": int(summary.count),
        "examples": [_anomaly_to_json(anomaly) for anomaly in summary.examples],
        "legal": summary.legal,
    }


def _anomaly_to_json(anomaly: Anomaly) -> dict[str, Any]:
    return {
        "name": anomaly.name,
        "key": anomaly.key,
        "operations": [int(index) for index in anomaly.operations],
        "because": anomaly.because,
        "details": plain(anomaly.details),
    }


def _checker_from_json(data: Mapping[str, Any]) -> CheckerResult:
    return CheckerResult(
        verdict=Verdict(data["verdict"]),
        reasons=tuple(data.get("reasons", ())),
        vacuous=tuple(data.get("vacuous", ())),
        accepted=tuple(data.get("accepted", ())),
        anomalies={
            name: replace(
                _summary_from_json(name, summary),
                excused=_summary_from_json(name, summary["excused"]) if summary.get("excused") else None,
                meaning=Meaning(**summary["meaning"]) if summary.get("meaning") else None,
            )
            for name, summary in data["anomalies"].items()
        },
        statistics=data["statistics"],
    )


def _summary_from_json(name: str, data: Mapping[str, Any]) -> AnomalySummary:
    return AnomalySummary(
        count=data["count"],
        examples=tuple(_anomaly_from_json(name, example) for example in data["examples"]),
        legal=data.get("legal", ""),
    )


def _anomaly_from_json(name: str, data: Mapping[str, Any]) -> Anomaly:
    return Anomaly(
        name=data.get("name", name),
        key=data.get("key"),
        operations=tuple(data.get("operations", ())),
        because=data["because"],
        details=data.get("details", {}),
    )
