"""Transactions from the command line: what is demanded, what is ruled out, what proves it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from checkers.transactions.model.lattice import ConsistencyModel
from checkers.transactions.verify import verified
from tests.command_line.answers import Answer, Stormproof

IN_PROCESS = ("--engine", "inprocess")

Event = tuple[int, str, str]
"""Process, type, and the micro-operations as EDN."""

WRITE_SKEW: list[Event] = [
    (0, "invoke", "[[:r 1 nil] [:w 2 5]]"),
    (1, "invoke", "[[:r 2 nil] [:w 1 6]]"),
    (0, "ok", "[[:r 1 nil] [:w 2 5]]"),
    (1, "ok", "[[:r 2 nil] [:w 1 6]]"),
]
SKEWED_LISTS: list[Event] = [
    (0, "invoke", "[[:append 1 1] [:r 2 nil]]"),
    (1, "invoke", "[[:append 2 1] [:r 1 nil]]"),
    (0, "ok", "[[:append 1 1] [:r 2 []]]"),
    (1, "ok", "[[:append 2 1] [:r 1 nil]]"),
]
OWN_WRITE_UNSEEN: list[Event] = [
    (0, "invoke", "[[:w 1 5]]"),
    (0, "ok", "[[:w 1 5]]"),
    (0, "invoke", "[[:r 1 nil]]"),
    (0, "ok", "[[:r 1 nil]]"),
]


def edn(events: list[Event], path: Path) -> Path:
    lines = [f"{{:process {process}, :type :{kind}, :f :txn, :value {value}}}\n" for process, kind, value in events]
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize(("workload", "events"), [("rw-register", WRITE_SKEW), ("list-append", SKEWED_LISTS)])
def test_write_skew_is_no_serializable_history_and_one_of_snapshots(
    stormproof: Stormproof, tmp_path: Path, workload: str, events: list[Event]
) -> None:
    history, certificate = edn(events, tmp_path / "history.edn"), tmp_path / "certificate.json"

    def checked(model: str) -> Answer:
        of_model = ("--consistency-model", model, "--certify", certificate)
        return stormproof("check", history, "--workload", workload, *of_model, "--json", *IN_PROCESS)

    for model, code, strongest in (
        ("serializable", 1, ["snapshot-isolation"]),
        ("snapshot-isolation", 0, ["snapshot-isolation"]),
        ("PL-SI", 0, ["snapshot-isolation"]),
    ):
        answer = checked(model)
        assert answer.code == code, answer.err
        assert answer.json["anomalies"] == {"G2-item": 1}
        assert answer.json["strongest"] == strongest
        assert "strict-serializable" in answer.json["ruled_out"]
        assert "strong-snapshot-isolation" not in answer.json["ruled_out"]
        assert answer.json["undecided"] == []
        assert answer.json["model"] == {"PL-SI": "snapshot-isolation"}.get(model, model)
        verified(json.loads(certificate.read_text()), Path(answer.json["directory"]) / "history.parquet")


def test_a_session_that_does_not_see_its_own_write_breaks_all_that_know_sessions(
    stormproof: Stormproof, tmp_path: Path
) -> None:
    history = edn(OWN_WRITE_UNSEEN, tmp_path / "history.edn")
    for model, code in (("serializable", 0), ("read-your-writes", 1), ("causal", 1), ("strict-serializable", 1)):
        of_model = ("--consistency-model", model, "--json", *IN_PROCESS)
        assert stormproof("check", history, "--workload", "rw-register", *of_model).code == code, model


def test_an_assumption_orders_versions(stormproof: Stormproof, tmp_path: Path) -> None:
    reversed_read: list[Event] = [
        (0, "invoke", "[[:w 1 5]]"),
        (0, "ok", "[[:w 1 5]]"),
        (0, "invoke", "[[:w 1 6]]"),
        (0, "ok", "[[:w 1 6]]"),
        (1, "invoke", "[[:r 1 nil]]"),
        (1, "ok", "[[:r 1 6]]"),
        (1, "invoke", "[[:r 1 nil]]"),
        (1, "ok", "[[:r 1 5]]"),
    ]
    history, certificate = edn(reversed_read, tmp_path / "history.edn"), tmp_path / "certificate.json"
    plainly = ("check", history, "--workload", "rw-register", "--consistency-model", "serializable", *IN_PROCESS)
    assert stormproof(*plainly).code == 0
    assuming = stormproof(*plainly, "--assume", "sequential-keys", "--json")
    assert assuming.code == 1
    assert assuming.json["anomalies"] == {"cyclic-versions": 1}
    certifying = stormproof(*plainly, "--assume", "sequential-keys", "--certify", certificate)
    assert f"cycle     cyclic-versions, assuming sequential-keys, in {certificate}" in certifying.out
    stated = json.loads(certificate.read_text())
    assert stated["assumed"] == ["sequential-keys"]
    verified(stated, next(tmp_path.rglob("history.parquet")))


@pytest.mark.parametrize(
    ("workload", "value", "reason"),
    [
        ("rw-register", "[[:w 1 5] [:w 1 5]]", "5 is written to 1 again"),
        ("rw-register", "[[:append 1 5]]", "micro-operation 0 is neither r nor w"),
        ("rw-register", "[[:w 1 nil]]", "micro-operation 0 writes null"),
        ("rw-register", "nil", "the operation has no transaction; its value must be [[f key value] …]"),
        ("list-append", "[[:append 1 5] [:append 1 5]]", "5 is appended to 1 again"),
        ("list-append", "[[:r 1 nil] [:w 1 5]]", "micro-operation 1 (w) is neither r nor append"),
        ("list-append", "[[:append 1 nil]]", "micro-operation 0 (append) appends null"),
        ("list-append", "[[:frob 1 5]]", "must be [f key value] with f of r, w, append"),
        ("list-append", "[[:r 1]]", "must be [f key value], it is [:r 1]"),
        ("list-append", "[[:append 1.0 2]]", "a key must be an integer, a keyword or a string, it is 1.0"),
    ],
)
def test_what_is_no_history_of_transactions_is_refused_with_its_place(
    stormproof: Stormproof, tmp_path: Path, workload: str, value: str, reason: str
) -> None:
    events = [(3, "invoke", value), (3, "ok", value)]
    answer = stormproof("check", edn(events, tmp_path / "history.edn"), "--workload", workload, *IN_PROCESS)
    assert answer.code == 254
    assert reason in answer.err and "line 1, row 0" in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("workload", ["rw-register", "list-append"])
def test_a_read_of_a_value_never_written_is_an_anomaly_and_no_crash(
    stormproof: Stormproof, tmp_path: Path, workload: str
) -> None:
    value = "[[:r 1 7]]" if workload == "rw-register" else "[[:r 1 [7]]]"
    history = edn([(0, "invoke", "[[:r 1 nil]]"), (0, "ok", value)], tmp_path / "history.edn")
    certificate = tmp_path / "certificate.json"
    answer = stormproof("check", history, "--workload", workload, "--json", "--certify", certificate, *IN_PROCESS)
    assert answer.code == 1
    assert answer.json["anomalies"] == {"garbage-read": 1}
    assert answer.json["strongest"] == []
    verified(json.loads(certificate.read_text()), Path(answer.json["directory"]) / "history.parquet")


def test_lists_of_which_no_read_shows_anything_are_unknown(stormproof: Stormproof, tmp_path: Path) -> None:
    appended = "[[:append 1 5]]"
    history = edn([(0, "invoke", appended), (0, "ok", appended)], tmp_path / "history.edn")
    answer = stormproof("check", history, "--workload", "list-append", "--json", *IN_PROCESS)
    assert answer.code == 2
    assert answer.json["reasons"][0].startswith("empty-transaction-graph")
    assert "let transactions read what others write" in answer.json["reasons"][0]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--workload", "list-append", "--consistency-model", "serialisable"), "did you mean serializable"),
        (("--workload", "list-append", "--assume", "wfr-keys"), "--assume is for registers"),
        (
            ("--workload", "queue", "--consistency-model", "serializable"),
            "--consistency-model is for --workload list-append or rw-",
        ),
        (("--workload", "list-append", "--certify", "nowhere/proof.json"), "there is no directory nowhere"),
        (("--model", "register", "--assume", "wfr-keys"), "--assume is for --workload list-append or rw-register"),
    ],
)
def test_demands_that_mean_nothing_are_refused(
    stormproof: Stormproof, tmp_path: Path, options: tuple[str, ...], reason: str
) -> None:
    answer = stormproof("check", edn(WRITE_SKEW, tmp_path / "history.edn"), *options, *IN_PROCESS)
    assert answer.code == 254
    assert reason in answer.err


INTERLEAVED: list[Event] = [
    (0, "invoke", "[[:append 1 1] [:append 2 1]]"),
    (1, "invoke", "[[:append 1 2] [:append 2 2]]"),
    (0, "ok", "[[:append 1 1] [:append 2 1]]"),
    (1, "ok", "[[:append 1 2] [:append 2 2]]"),
    (0, "invoke", "[[:r 1 nil] [:r 2 nil]]"),
    (0, "ok", "[[:r 1 [1 2]] [:r 2 [2 1]]]"),
]


def test_an_anomaly_is_explained_step_by_step_with_the_read_that_shows_it(
    stormproof: Stormproof, tmp_path: Path
) -> None:
    history = edn(INTERLEAVED, tmp_path / "history.edn")
    answer = stormproof("check", history, "--workload", "list-append", *IN_PROCESS)
    assert answer.code == 1
    lines = [line.strip() for line in answer.out.splitlines()]
    assert lines[lines.index("verdict   INVALID") + 1 : -2] == [
        "list-append: G0 × 1",
        "T1 (at 0): append 1 1, append 2 1.",
        "T2 (at 1): append 1 2, append 2 2.",
        "T3 (at 4): r 1 = [1, 2], r 2 = [2, 1].",
        "T2 appended 2 to 1 after T1's 1, as T3 read 1 as [1, 2].",
        "T1 appended 1 to 2 after T2's 2, as T3 read 2 as [2, 1].",
        "So T1 before T2 before T1: a contradiction.",
        "models    ruled out: read-uncommitted",
        f"and so all that imply it: {', '.join(model.value for model in list(ConsistencyModel)[1:])}",
        "strongest that remain, up to strict-serializable: none",
    ]


@pytest.mark.parametrize(
    ("events", "name", "because"),
    [
        (
            [
                (0, "invoke", "[[:w 1 5]]"),
                (0, "fail", "[[:w 1 5]]"),
                (1, "invoke", "[[:r 1 nil]]"),
                (1, "ok", "[[:r 1 5]]"),
            ],
            "G1a",
            "the transaction at 2 read 1 as 5: the transaction at 0, which wrote that, certainly failed",
        ),
        (
            [(0, "invoke", "[[:r 1 nil]]"), (0, "ok", "[[:r 1 0]]")],
            "garbage-read",
            "the transaction at 0 read 1 as 0, which no transaction tried to write (before any write it is null)",
        ),
        (
            [(0, "invoke", "[[:w 1 5] [:r 1 nil]]"), (0, "ok", "[[:w 1 5] [:r 1 nil]]")],
            "internal",
            "the transaction at 0 read 1 as null, where it had written 5",
        ),
        (
            [(0, "invoke", "[[:r 1 nil] [:w 1 5]]"), (0, "ok", "[[:r 1 5] [:w 1 5]]")],
            "future-read",
            "the transaction at 0 read 1 as 5, which it writes only later",
        ),
    ],
)
def test_an_anomaly_of_one_read_of_a_register_is_explained_with_key_and_transactions(
    stormproof: Stormproof, tmp_path: Path, events: list[Event], name: str, because: str
) -> None:
    history = edn(events, tmp_path / "history.edn")
    answer = stormproof("check", history, "--workload", "rw-register", *IN_PROCESS)
    assert answer.code == 1
    assert f"rw-register: {name} × 1\n            {because}\n" in answer.out


def test_what_is_refused_is_named_with_its_file_among_several(stormproof: Stormproof, tmp_path: Path) -> None:
    history = edn(INTERLEAVED, tmp_path / "history.edn")
    kept = Path(stormproof("check", history, "--workload", "list-append", "--json", *IN_PROCESS).json["directory"])
    lists = kept / "history.parquet"
    answer = stormproof("check", lists, lists, "--workload", "rw-register", *IN_PROCESS)
    assert answer.code == 254
    assert answer.err.count(f"{lists}: row 0: micro-operation 0 is neither r nor w") == 2
