"""Each file under tests/histories is the smallest history with, or without, one anomaly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkers.api.plan import Checker, CheckRequest
from checkers.api.verdict import CheckerResult, Verdict, merge
from checkers.availability import Availability
from checkers.history_batches import Source
from checkers.in_process.engine import InProcessEngine
from checkers.linearizable.objects import MODELS
from checkers.liveness import Liveness
from checkers.log import LogChecker
from checkers.progress import Progress
from checkers.recovery import Recovery
from checkers.replication import ReplicationChecker
from checkers.run import check_history
from checkers.statistics import Statistics
from checkers.transactions.checker import Levels, RwRegister
from checkers.transactions.meanings import NO_ORDER
from checkers.transactions.model.lattice import ConsistencyModel
from checkers.vacuity import Vacuity
from harness.compiled import Kernel, interpreted
from stormproof.session.registry import names
from stormproof.session.registry import workload as workload_named
from tests.histories.test_node_event_files import ANOMALIES as CLUSTER_ANOMALIES
from tests.references.history_language import WrittenHistory, parse_history
from tests.references.written_judgement import checker_of, evidence_of, repeats_of

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*/*.history"))
# Where no order explains a history in several models, the weakest of them is named. These are never the weakest, unless
# a search was given up, or the history is too long to decide all models: then the demanded one is named as well.
NEVER_THE_WEAKEST = {
    "list-append": (
        # They are broken by cycles, which have names of their own: those at the bottom, and those at the top.
        ConsistencyModel.READ_UNCOMMITTED,
        ConsistencyModel.STRONG_SESSION_READ_UNCOMMITTED,
        ConsistencyModel.PL_2,
        ConsistencyModel.REPEATABLE_READ,
        ConsistencyModel.SERIALIZABLE,
        ConsistencyModel.STRONG_SESSION_SERIALIZABLE,
        ConsistencyModel.STRICT_SERIALIZABLE,
        # Beside cycles and what weaker models forbid they demand nothing: where a read shows which of two versions was
        # first, the lists that were read show it as well, or contradict it without any session.
        ConsistencyModel.STRONG_SESSION_READ_COMMITTED,
        ConsistencyModel.STRONG_SESSION_READ_ATOMIC,
        # It allows what consistent view does, which is weaker, but for reads called internal.
        ConsistencyModel.PARALLEL_SNAPSHOT_ISOLATION,
    ),
    "rw-register": (
        # Some order always keeps these, for no read shows the order of versions.
        ConsistencyModel.READ_UNCOMMITTED,
        ConsistencyModel.STRONG_SESSION_READ_UNCOMMITTED,
        # It demands that information flows one way. What flows in a cycle is called G1c, and needs no order.
        ConsistencyModel.PL_2,
        # Those allow what consistent view and repeatable read do, which are weaker, but for reads called internal.
        ConsistencyModel.PARALLEL_SNAPSHOT_ISOLATION,
        ConsistencyModel.SERIALIZABLE,
    ),
}
SHOWN_BY_OTHER_NAMES = {
    "log": {"stuck-replica"},  # takes a run that has healed: `test_recovery`
    # They are promised by other deliveries and orders than these have: `queue`
    "delayed": {"duplicated", "out-of-order", "redelivered-after-ack"},
    "transactional": {"duplicated", "out-of-order", "redelivered-after-ack"},
    "consumption": {"stuck-consumer"},  # the same
    **{workload: {f"{NO_ORDER}{model.value}" for model in models} for workload, models in NEVER_THE_WEAKEST.items()},
}
OBJECTS = sorted(set(MODELS) - {"register"})


def judge(written: WrittenHistory, source: Source) -> tuple[Verdict, CheckerResult, tuple[str, ...]]:
    """The verdict, what the checker says, and all reasons. `source`: where the history has been written."""
    request = CheckRequest(history=source, repeats=repeats_of(written), run=written.run)
    checkers = {"it": checker_of(written), "vacuity": Vacuity(subject="x", evidence=evidence_of(written))}
    results = check_history(request, checkers, InProcessEngine())
    reasons = tuple(reason for result in results.values() for reason in result.reasons)
    return merge(result.verdict for result in results.values()), results["it"], reasons


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_history_gets_the_verdict_it_is_written_for(file: Path) -> None:
    written = parse_history(file.read_text())
    verdict, result, reasons = judge(written, written.table())
    assert (verdict.value, tuple(result.anomalies)) == (written.verdict, written.anomalies), (result, reasons)
    for name, summary in result.anomalies.items():
        assert summary.meaning == checker_of(written).meanings[name]
        assert summary.count == len(summary.examples)
        for anomaly in summary.examples:
            assert anomaly.operations == tuple(sorted(set(anomaly.operations)))
            assert all(0 <= operation < len(written.rows) for operation in anomaly.operations)
            assert written.operations in (None, anomaly.operations)


def _interpreted(kernel: Kernel[Any, Any], *args: Any, **kwargs: Any) -> Any:
    """A call as if the kernel had never been loaded."""
    if interpreted.is_interpreting():
        return kernel.function(*args, **kwargs)
    return interpreted.interpret(kernel.function, args, kwargs)


@pytest.mark.gate
@pytest.mark.parametrize("folder", sorted({file.parent.name for file in FILES}))
def test_interpreted_kernels_judge_in_memory_as_machine_code_does_a_file(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = {file: parse_history(file.read_text()) for file in FILES if file.parent.name == folder}
    compiled = [judge(history, history.write(tmp_path / f"{file.stem}.parquet")) for file, history in written.items()]
    monkeypatch.setattr(Kernel, "__call__", _interpreted)
    for (file, history), expected in zip(written.items(), compiled, strict=True):
        assert judge(history, history.table()) == expected, file


COLLECTIONS = ("fifo-queue", "unordered-queue", "priority-queue", "stack")


def _elements(rows: list[dict[str, Any]]) -> set[str]:
    return {row["value"]["json"] for row in rows} - {None}


def test_what_convicts_an_object_that_is_decided_convicts_it_alone() -> None:
    convicted = 0
    for file in FILES:
        written = parse_history(file.read_text())
        if written.checker != "object" or written.verdict != "invalid" or MODELS[written.model].decided is None:
            continue
        _, result, _ = judge(written, written.table())
        ((name, summary),) = result.anomalies.items()
        for anomaly in summary.examples:
            rows = [written.rows[index] for index in anomaly.operations]
            alone = replace(written, rows=rows)
            assert list(judge(alone, alone.table())[1].anomalies) == [name], (file, anomaly)
            if written.model in COLLECTIONS:
                until_then = written.rows[: max(anomaly.operations)]
                others = [row for row in until_then if row["type"] == "ok" and row not in rows]
                assert not _elements(others) & _elements(rows), f"{file}: {anomaly} forgets how an element came or went"
            convicted += len(rows) < len(written.rows)
    assert convicted


ALONE = ("causal", "serializable")
ALONE_IN_THE_GATE = ("read-committed", "read-uncommitted", "PL-2", "read-atomic", "snapshot-isolation")


@pytest.mark.parametrize(
    "model",
    [
        *(pytest.param(ConsistencyModel(name), id=name) for name in ALONE),
        *(pytest.param(ConsistencyModel(name), id=name, marks=pytest.mark.gate) for name in ALONE_IN_THE_GATE),
    ],
)
def test_a_level_for_itself_gets_the_verdict_that_it_gets_among_all(model: ConsistencyModel) -> None:
    for file in FILES:
        written = parse_history(file.read_text())
        among_all = checker_of(written)
        if not isinstance(among_all, RwRegister):
            continue
        among_all = replace(among_all, model=model)
        for_itself = replace(among_all, levels=Levels.DEMANDED)
        request = CheckRequest(history=written.table(), run=written.run)
        given = check_history(request, {"all": among_all, "one": for_itself}, InProcessEngine())
        verdicts = {name: (result.verdict, result.reasons) for name, result in given.items()}
        if given["all"].verdict is not Verdict.UNKNOWN:
            assert verdicts["one"] == verdicts["all"], file


@pytest.mark.parametrize(
    "folder", ["causal-reverse", "counter", "log", "monotonic", "object", "queue", "register", "set"]
)
def test_explanations_about_an_object_without_name_leave_no_gap(folder: str) -> None:
    sentences = 0
    for file in FILES:
        written = parse_history(file.read_text())
        keys = {row.get("key") for row in written.rows}
        if file.parent.name != folder or len(keys) != 1:
            continue
        nameless = replace(written, rows=[row | {"key": None} for row in written.rows])
        verdict, result, reasons = judge(nameless, nameless.table())
        assert (verdict.value, tuple(result.anomalies)) == (written.verdict, written.anomalies), file
        examples = [anomaly.because for summary in result.anomalies.values() for anomaly in summary.examples]
        for sentence in (*examples, *reasons):
            sentences += 1
            assert sentence == sentence.strip(" :") and "  " not in sentence, (file, sentence)
            assert not any(gap in sentence for gap in (" ,", " :", " of None", "None:")), (file, sentence)
    assert sentences


@pytest.mark.parametrize("model", OBJECTS)
def test_there_are_histories_of_each_model(model: str) -> None:
    written = [parse_history(file.read_text()) for file in FILES]
    assert {history.verdict for history in written if history.model == model} >= {"valid", "invalid"}


@pytest.mark.parametrize("checker", ["object", *names("workloads")])
def test_there_are_histories_with_and_without_anomalies(checker: str) -> None:
    verdicts = {parse_history(file.read_text()).verdict for file in FILES if file.parent.name == checker}
    assert verdicts >= {"valid", "invalid", "unknown"}


JUDGES_OF_RUNS = (
    Availability(),
    ReplicationChecker(),
    Recovery(),
    Liveness(25.0),
    Progress(),
    Statistics(),
    Vacuity(subject="x", evidence=()),
)
REPORTED_ELSEWHERE = {
    "availability": {"slow-recovery"},
    "cluster": CLUSTER_ANOMALIES,
    "recovery": {"no-progress", "panicked"},
    "liveness": {"no-progress"},
    "progress": {"no-progress"},
}
"""Each is shown by a test of its own: the histories of `availability` and `cluster`, `test_recovery`,
`test_liveness_checker`, and `test_progress`."""


@pytest.mark.parametrize("checker", JUDGES_OF_RUNS, ids=lambda checker: checker.name)
def test_a_judge_of_any_run_explains_just_what_it_reports(checker: Checker) -> None:
    assert set(checker.meanings) == REPORTED_ELSEWHERE.get(checker.name, set())


@pytest.mark.parametrize("workload", names("workloads"))
def test_a_meaning_is_two_sentences_that_fit_a_line_each(workload: str) -> None:
    chosen = workload_named(workload)
    for checker in (*chosen.checkers(chosen.settings_type()).values(), *JUDGES_OF_RUNS):
        for name, meaning in checker.meanings.items():
            for sentence in (meaning.says, meaning.usually):
                assert sentence == sentence.strip() and sentence.endswith("."), name
                assert "\n" not in sentence and "  " not in sentence, name


@pytest.mark.parametrize("workload", names("workloads"))
def test_every_anomaly_has_its_smallest_history(workload: str) -> None:
    written = [parse_history(file.read_text()) for file in FILES if file.parent.name == workload]
    shown = {name for history in written for name in history.anomalies}
    assert shown <= set(workload_named(workload).anomalies)
    assert set(workload_named(workload).anomalies) - shown == SHOWN_BY_OTHER_NAMES.get(workload, set())


@pytest.mark.parametrize(
    ("sent", "fate"),
    [
        ("0 ok send q0 1@0", "it was acknowledged (operation 1), shown, and lost"),
        ("0 info send q0 1 error=client-timeout", "it was never acknowledged, and was shown before it was safe"),
    ],
)
def test_a_dirty_read_is_explained_by_the_fate_of_its_write(sent: str, fate: str) -> None:
    text = (FOLDER / "log" / "dirty-read.history").read_text().replace("0 info send q0 1 error=client-timeout", sent)
    assert sent in text
    request = CheckRequest(history=parse_history(text).table())
    result = check_history(request, {"log": LogChecker()}, InProcessEngine())["log"]
    assert result.anomalies["dirty-read"].examples[0].because.endswith(f"does not hold it: {fate}")
