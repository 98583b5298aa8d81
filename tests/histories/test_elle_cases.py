"""Elle's own test histories get Elle's verdicts and anomalies here, or stronger verdicts that a certificate proves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import CheckerResult, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.transactions.anomalies import NO_ORDER
from checkers.transactions.checker import ListAppend, RwRegister
from checkers.transactions.elle.rw_register import Assumption
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel, model_named
from checkers.transactions.verify import verified
from harness.jepsen import Shape, convert
from results.output import write

CASES = Path(__file__).parents[3] / "shared" / "histories" / "elle" / "cases.jsonl"
SHAPE = Shape(value_type=TRANSACTION, functions=("txn",))
VERDICTS = {True: Verdict.VALID, False: Verdict.INVALID, "unknown": Verdict.UNKNOWN}
EMPTY_GRAPH = "empty-transaction-graph"

IMPLIED: Mapping[str, frozenset[str]] = {
    "G0": frozenset({"G0"}),
    "G1": frozenset({"G0", "G1a", "G1b", "G1c", "incompatible-order"}),
    "G2": frozenset({"G2-item", "G-single-item", "G-nonadjacent-item"}),
    "G-single": frozenset({"G-single-item"}),
    "dirty-update": frozenset({"dirty-update"}),
    "internal": frozenset({"internal"}),
}
"""An anomaly that a model of Elle forbids -> the anomalies here that it forbids with it."""

Event = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Combined:
    verdict: Verdict
    anomalies: frozenset[str]
    """Of those demanded to be absent."""


def cases() -> list[Any]:
    if not CASES.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="no ../shared/histories/elle beside the checkout"))]
    found = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    return [pytest.param(case, id=f"{number}-{case['checker']}-{case['test']}") for number, case in enumerate(found)]


def with_invocations(events: list[Event]) -> list[Event]:
    """Completions without invocation are invoked right before; a process that invokes twice is another then."""
    open_events: list[Event] = []
    complete = []
    for event in events:
        # A read of nothing may lack its third part.
        event = event | {"f": "txn", "value": [[*part, None][:3] for part in event["value"]], "by": event["process"]}
        if event["type"] == "invoke":
            is_busy = any(other["process"] == event["process"] for other in open_events)
            open_events.append(event | {"process": 1_000 + len(complete)} if is_busy else event)
            complete.append(open_events[-1])
            continue
        invoked = next((other for other in open_events if asked(other) == asked(event)), None)
        if invoked is None:
            unanswered = [[f, key, None if f == "r" else value] for f, key, value in event["value"]]
            invoked = event | {"type": "invoke", "value": unanswered}
            complete.append(invoked)
        else:
            open_events.remove(invoked)
        complete.append(event | {"process": invoked["process"]})
    return complete


def asked(event: Event) -> tuple[Any, ...]:
    return event["by"], [part[:2] for part in event["value"]]


def unwritten_reads(events: list[Event]) -> bool:
    """Whether a register is read as what no transaction tried to write: Elle takes that for its initial value."""
    parts = [tuple(part) for event in events if event["type"] != "fail" for part in event["value"]]
    tried = {tuple(part[1:]) for event in events for part in event["value"] if part[0] == "w"}
    return any(f == "r" and value is not None and (key, value) not in tried for f, key, value in parts)


def completions(events: list[Event]) -> list[int]:
    return [number for number, event in enumerate(events) if event["type"] != "invoke"]


def written(events: list[Event], directory: Path) -> Path:
    """Through the reader of foreign histories; times and indices of most cases mean nothing."""
    foreign = directory / "history.json"
    lines = [json.dumps({name: event[name] for name in ("process", "type", "f", "value")}) for event in events]
    foreign.write_text("\n".join(lines), encoding="utf-8")
    convert(foreign, directory / "history.parquet", SHAPE)
    return directory / "history.parquet"


def models(case: dict[str, Any]) -> list[ConsistencyModel]:
    named = case["opts"].get("consistency-models", ["strict-serializable"])
    return [ConsistencyModel.STRICT_SERIALIZABLE] if named is None else [model_named(name) for name in named]


def checker(case: dict[str, Any], model: ConsistencyModel, events: list[Event]) -> ListAppend | RwRegister:
    if case["checker"] == "list-append":
        return ListAppend(model=model)
    opts = case["opts"]
    assume = {"sequential-keys?": Assumption.SEQUENTIAL_KEYS, "wfr-keys?": Assumption.WFR_KEYS}
    order = dict(zip(map(str, range(len(events))), completions(events), strict=False))
    return RwRegister(
        model=model,
        assume=frozenset(assumption for name, assumption in assume.items() if opts.get(name)),
        order={order[number]: place for number, place in opts.get("transaction-order", {}).items()},
    )


def combine(case: dict[str, Any], results: list[CheckerResult]) -> Combined:
    """What all demands together say."""
    only = case["opts"].get("anomalies")
    found = {name for result in results for name in result.anomalies if not name.startswith(NO_ORDER)}
    if only is not None:
        found &= frozenset().union(*(IMPLIED[name] for name in only))
        empty = all(result.statistics["dependencies"] == 0 for result in results)
        return Combined(
            verdict=Verdict.INVALID if found else Verdict.UNKNOWN if empty else Verdict.VALID,
            anomalies=frozenset(found),
        )
    broken = {name for result in results for name, summary in result.anomalies.items() if not summary.legal}
    verdicts = {result.verdict for result in results}
    worst = next(v for v in (Verdict.INVALID, Verdict.UNKNOWN, Verdict.VALID) if v in verdicts)
    return Combined(verdict=worst, anomalies=frozenset(found & broken))


@pytest.mark.parametrize("case", cases())
def test_elles_histories_get_elles_verdicts(case: dict[str, Any], tmp_path: Path) -> None:
    events = with_invocations(case["history"])
    request = CheckRequest(history=written(events, tmp_path))
    checkers = [checker(case, model, events) for model in models(case)]
    found = combine(case, [one.check(request, InProcessEngine()) for one in checkers])
    expected = Combined(verdict=VERDICTS[case["valid"]], anomalies=frozenset(case["anomaly_types"]) - {EMPTY_GRAPH})
    if case["checker"] == "rw-register" and case["opts"].get("anomalies") is None and unwritten_reads(events):
        (stronger,) = checkers
        stronger.certify(request, InProcessEngine(), partial(write, tmp_path / "certificate.json"))
        verified(json.loads((tmp_path / "certificate.json").read_text(encoding="utf-8")), request.history)
        expected = Combined(verdict=Verdict.INVALID, anomalies=expected.anomalies | {"garbage-read"})
    # Elle reports no cycle that needs sessions or realtime where there is one without.
    beside = {name for name in found.anomalies - expected.anomalies if name.endswith(("-process", "-realtime"))}
    assert expected.anomalies or not beside
    assert replace(found, anomalies=found.anomalies - beside) == expected
