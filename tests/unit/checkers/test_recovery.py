"""After the storm: a system that declares how soon it recovers has to, its replicas as well, and nodes stay alive."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import CheckerResult, Verdict
from checkers.consumption import ConsumptionChecker
from checkers.consumption.rows import CONSUMPTION
from checkers.in_process.engine import InProcessEngine
from checkers.log import LogChecker
from checkers.log.rows import LOG_MESSAGES
from checkers.recovery import Recovery
from harness.errors import UsageError
from harness.record.facts import Lack, RunFacts
from harness.record.fault_log import FaultLog, FaultWindow
from harness.record.history import history_schema
from harness.record.meaning import Meaning

S = 1_000_000_000
STUCK = RunFacts(storm_from_ns=0, healed_ns=40 * S, final_from_ns=70 * S, complete=True)
SERVES = replace(STUCK, serves_ns=62 * S)
DECLARED = RunUnderCheck(
    recovers_within_s=30.0, may_panic=("full-disk",), contagious=("bit-rot",), lasting_damage=("bit-rot",)
)
ROT = FaultLog(windows=(FaultWindow(kind="bit-rot", nodes=("b2",), start_ns=5, stop_ns=9),))
LACKING = replace(SERVES, lack=Lack(name="under-replicated", because="b2 lacks entry 3"))
RESTORES = {"under-replicated": Meaning(says="A copy is missing.", usually="Nobody looks for it.")}
NOTHING = pa.table({"index": pa.array([], pa.int64())})


def judge(run: RunUnderCheck | None) -> CheckerResult:
    return Recovery(RESTORES).check(CheckRequest(history=NOTHING, run=run), InProcessEngine())


def test_a_system_that_does_not_serve_though_it_declares_that_it_would_is_stuck() -> None:
    result = judge(replace(DECLARED, facts=STUCK))
    (anomaly,) = result.anomalies["no-progress"].examples
    assert result.verdict is Verdict.INVALID
    assert anomaly.because.startswith("30.0 s after all faults had been healed the system did not serve")


def test_what_a_system_has_not_given_back_in_time_is_found_by_the_name_that_it_declares() -> None:
    result = judge(replace(DECLARED, facts=LACKING))
    assert set(result.anomalies) == {"under-replicated"}
    assert result.anomalies["under-replicated"].examples[0].because == (
        "30.0 s after all faults had been healed b2 lacks entry 3, although the system declares that it recovers "
        "within 30 s"
    )
    assert Recovery(RESTORES).meanings["under-replicated"].says == "A copy is missing."
    assert "under-replicated" not in Recovery().meanings


def test_what_lacks_is_read_back_from_the_facts_of_a_run() -> None:
    assert RunFacts.from_json(json.loads(json.dumps(LACKING.to_json()))) == LACKING
    for lack, words in (({"name": "x"}, "has name and because"), ({"name": 1, "because": ""}, "cannot be")):
        with pytest.raises(UsageError, match=f"a lack {words}"):
            RunFacts.from_json({"lack": lack})


def test_how_long_it_took_to_serve_again_is_counted_from_the_healing() -> None:
    for facts, seconds in ((SERVES, 22.0), (STUCK, None), (replace(SERVES, healed_ns=None), None)):
        assert judge(replace(DECLARED, facts=facts)).statistics == {"served_again_s": seconds}


@pytest.mark.parametrize(
    "run",
    [
        None,
        replace(DECLARED, facts=SERVES),
        replace(DECLARED, facts=STUCK, recovers_within_s=None),
        replace(DECLARED, facts=STUCK, recovers_within_s=30.1),
        replace(DECLARED, facts=replace(STUCK, healed_ns=None)),
        replace(DECLARED, facts=replace(STUCK, final_from_ns=None)),
        replace(DECLARED, facts=STUCK, faults=FaultLog(unhealed=("kill b1",))),
        replace(DECLARED, facts=STUCK, faults=FaultLog(left_to_the_end=("kill b1",))),
        replace(DECLARED, facts=STUCK, faults=ROT),
        replace(DECLARED, facts=LACKING, recovers_within_s=30.1),
        replace(DECLARED, facts=LACKING, faults=ROT),
    ],
    ids=[
        *("no run", "serves", "undeclared", "too soon", "not healed", "cut short", "unhealed", "left open", "damaged"),
        *("lacks for too short", "lacks and is damaged"),
    ],
)
def test_otherwise_nothing_is_decided_here(run: RunUnderCheck | None) -> None:
    assert judge(run).verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("struck", "is_explained"),
    [
        (FaultWindow(kind="full-disk", nodes=("b1",), start_ns=5, stop_ns=9), True),
        (FaultWindow(kind="kill+full-disk", nodes=("b1", "b2"), start_ns=5, stop_ns=9), True),
        (FaultWindow(kind="full-disk", nodes=("b2",), start_ns=5, stop_ns=9), False),
        (FaultWindow(kind="bit-rot", nodes=("b2",), start_ns=5, stop_ns=9), True),
        (FaultWindow(kind="kill", nodes=("b1",), start_ns=5, stop_ns=9), False),
        (FaultWindow(kind="full-disk", nodes=("b1",), start_ns=5, stop_ns=9, happened=False), False),
    ],
    ids=str,
)
def test_a_node_that_ends_by_itself_is_a_finding_unless_a_fault_explains_it(
    struck: FaultWindow, is_explained: bool
) -> None:
    facts = replace(SERVES, panics={"b1": "assertion failed"})
    result = judge(replace(DECLARED, facts=facts, faults=FaultLog(windows=(struck,))))
    assert ("panicked" in result.anomalies) is not is_explained
    if not is_explained:
        assert result.anomalies["panicked"].examples[0].because == "node b1 ended by itself: assertion failed"


def read_to_the_end(*nodes: str) -> list[dict[str, Any]]:
    """Final reads of q at b1 and b2, of which these could be read to the end."""
    rows: list[dict[str, Any]] = [
        {"process": 0, "type": "invoke", "f": "send", "value": {"message": 1}},
        {"process": 0, "type": "ok", "f": "send", "value": {"message": 1, "offset": 0}},
    ]
    for process, node in enumerate(("b1", "b2"), start=1):
        read = {"messages": [{"offset": 0, "message": 1}]}
        rows += [
            {"process": process, "type": type_, "f": "final-poll", "value": value, "node": node}
            for type_, value in (("invoke", None), ("ok", read))
        ]
        ended = "ok" if node in nodes else "fail"
        rows += [{"process": process, "type": type_, "f": "caught-up", "node": node} for type_ in ("invoke", ended)]
    return [{"index": i, "time": i, "key": "q", **row} for i, row in enumerate(rows)]


def judged_log(run: RunUnderCheck, *nodes: str) -> CheckerResult:
    history = pa.Table.from_pylist(read_to_the_end(*nodes), schema=history_schema(LOG_MESSAGES))
    return LogChecker().check(CheckRequest(history=history, run=run), InProcessEngine())


def test_a_replica_that_stays_behind_in_the_calm_is_stuck() -> None:
    result = judged_log(replace(DECLARED, facts=SERVES), "b1")
    assert result.verdict is Verdict.INVALID
    (anomaly,) = result.anomalies["stuck-replica"].examples
    assert anomaly.details == {"node": "b2", "queues": ["q"]}


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        (replace(DECLARED, facts=STUCK), Verdict.UNKNOWN),
        (replace(DECLARED, facts=SERVES, recovers_within_s=None), Verdict.UNKNOWN),
        (replace(DECLARED, facts=replace(SERVES, complete=False)), Verdict.UNKNOWN),
        (replace(DECLARED, facts=replace(SERVES, panics={"b2": "full"})), Verdict.UNKNOWN),
        (replace(DECLARED, facts=SERVES, faults=FaultLog(unhealed=("kill b2",))), Verdict.UNKNOWN),
        (replace(DECLARED, facts=SERVES, faults=ROT), Verdict.UNKNOWN),
    ],
    ids=["does not serve", "not declared", "cut short", "dead", "not healed", "damaged"],
)
def test_a_replica_that_stays_behind_for_a_reason_leaves_the_verdict_open(run: RunUnderCheck, verdict: Verdict) -> None:
    assert judged_log(run, "b1").verdict is verdict


def test_a_node_that_is_damaged_for_good_hides_itself_alone_where_nobody_depends_on_it() -> None:
    apart = replace(SERVES, apart=("b2",), panics={"b2": "a checksum is wrong"})
    run = replace(DECLARED, facts=apart, faults=ROT, may_panic=("bit-rot",))
    assert "stuck-replica" not in judged_log(run, "b1").anomalies
    (anomaly,) = judged_log(run, "b2").anomalies["stuck-replica"].examples
    assert anomaly.details["node"] == "b1"
    stuck = replace(run, facts=replace(apart, serves_ns=None))
    assert set(judge(stuck).anomalies) == {"no-progress"}
    assert judged_log(replace(run, facts=replace(apart, panics={"b1": "dead"})), "b2").verdict is Verdict.UNKNOWN


def test_a_second_node_that_is_damaged_and_not_apart_leaves_everything_open() -> None:
    faults = FaultLog(windows=(*ROT.windows, FaultWindow(kind="kill+bit-rot", nodes=("b3",), start_ns=6, stop_ns=9)))
    run = replace(DECLARED, facts=replace(SERVES, apart=("b2",)), faults=faults)
    assert judged_log(run, "b2").verdict is Verdict.UNKNOWN
    assert judge(replace(run, facts=replace(STUCK, apart=("b2",)))).anomalies == {}


def test_replicas_that_were_read_to_their_ends_are_well() -> None:
    assert judged_log(replace(DECLARED, facts=SERVES), "b1", "b2").verdict is Verdict.VALID


def judged_consumption(run: RunUnderCheck, *ended: str) -> CheckerResult:
    """Two groups consume; those that `ended` came to the end of their queues."""
    rows: list[dict[str, Any]] = []
    for group in ("g", "h"):
        for f in ("join", *(("settled", "dead-letters") if group in ended else ())):
            for type_ in ("invoke", "ok"):
                value = {"group": group, "messages": []}
                rows.append(
                    {"index": len(rows), "process": 0, "type": type_, "f": f, "value": value, "time": len(rows)}
                )
    history = pa.Table.from_pylist(rows, schema=history_schema(CONSUMPTION))
    return ConsumptionChecker().check(CheckRequest(history=history, run=run), InProcessEngine())


def test_a_group_that_does_not_come_to_its_end_in_the_calm_is_stuck() -> None:
    result = judged_consumption(replace(DECLARED, facts=SERVES), "g")
    assert result.verdict is Verdict.INVALID
    (anomaly,) = result.anomalies["stuck-consumer"].examples
    assert anomaly.details == {"consumer": "h"}
    assert judged_consumption(replace(DECLARED, facts=SERVES), "g", "h").verdict is Verdict.VALID


def test_a_group_that_does_not_come_to_its_end_for_a_reason_leaves_the_verdict_open() -> None:
    for run in (replace(DECLARED, facts=STUCK), replace(DECLARED, facts=SERVES, faults=ROT)):
        assert judged_consumption(run, "g").verdict is Verdict.UNKNOWN
