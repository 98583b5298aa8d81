"""Directories that Jepsen leaves of its tests: what they are is seen, and where verdicts differ is said."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.command_line.answers import Stormproof

SET = [
    ("0", "invoke", "add", "0"),
    ("0", "ok", "add", "0"),
    ("1", "invoke", "add", "1"),
    ("1", "ok", "add", "1"),
    (":nemesis", "info", "start", ":all"),
    ("0", "invoke", "read", "nil"),
    ("0", "ok", "read", "#{0 1}"),
]
LOST = [*SET[:-1], ("0", "ok", "read", "#{0}")]
REGISTERS = [
    ("0", "invoke", "write", "[1 5]"),
    ("0", "ok", "write", "[1 5]"),
    ("0", "invoke", "read", "[1 nil]"),
    ("0", "ok", "read", "[1 5]"),
    ("0", "invoke", "write", "[2 5]"),
    ("0", "ok", "write", "[2 5]"),
    ("0", "invoke", "read", "[2 nil]"),
    ("0", "ok", "read", "[2 6]"),
]
LOG = """2026-01-01 10:00:00,000\tINFO\tjepsen test runner: Command line:
lein run test --workload set --nemesis kill
2026-01-01 10:00:01,000\tINFO\tjepsen test runner: Running test:
{:remote #object[jepsen.control 0x1 "x"]
 :name "etcd 3.5 set"
 :concurrency 5}
"""
RESULTS = """{:perf {:latency-graph {:valid? true}, :rate-graph {:valid? true}, :valid? true},
 :stats {:valid? %s, :count 3, :by-f {:add {:valid? true, :count 2}}},
 :workload {:valid? %s,
            :lost-count %d,
            :worst-stale [{:element 1, :outcome :stable,
                           :last-absent #jepsen.history.Op{:index 4, :process 1, :type :invoke, :f :read, :value nil}}],
            {:an :odd} #{1 2}},
 :valid? %s}
"""


def laid_out(
    rows: list[tuple[str, str, str, str]], results: str | None, *, log: str = LOG, history: str = "history.edn"
) -> Path:
    """`store/latest`, with a test in it."""
    test = Path("store/etcd 3.5 set/20260101T100000.000Z")
    test.mkdir(parents=True)
    if history.endswith(".txt"):
        lines = [f"{process}\t:{kind}\t:{f}\t{value}\n" for process, kind, f, value in rows]
    else:
        lines = [
            f"{{:type :{kind}, :f :{f}, :value {value}, :process {process}, :time {place * 1000}, :index {place}}}\n"
            for place, (process, kind, f, value) in enumerate(rows)
        ]
    if rows:
        (test / history).write_text("".join(lines))
    if results is not None:
        (test / "results.edn").write_text(results)
    (test / "jepsen.log").write_text(log)
    (test / "test.jepsen").write_bytes(b"JEPSEN\x00")
    Path("store/latest").symlink_to(test.relative_to("store"))
    return Path("store/latest")


CHECK = ("check", "store/latest", "--engine", "inprocess")


def test_verdicts_that_agree(stormproof: Stormproof) -> None:
    laid_out(SET, RESULTS % ("true", "true", 0, "true"))
    answer = stormproof(*CHECK)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert "test      etcd 3.5 set, workload set" in lines
    assert "judged as --workload set" in lines
    assert "verdict   VALID" in lines
    begin = lines.index("jepsen    valid")
    assert lines[begin + 1 :] == [
        "          perf/latency-graph: valid, which does not judge the history",
        "          perf/rate-graph: valid, which does not judge the history",
        "          stats: valid, which does not judge the history",
        "          workload: valid",
        "differs   nowhere",
    ]


def test_where_verdicts_differ_is_said(stormproof: Stormproof) -> None:
    laid_out(LOST, RESULTS % ("true", "true", 0, "true"))
    answer = stormproof(*CHECK, "--json")
    assert answer.code == 1
    jepsen = json.loads(answer.out)["jepsen"]
    assert jepsen["test"] == "etcd 3.5 set"
    assert jepsen["workload"] == "set"
    assert jepsen["verdict"] == "valid"
    assert jepsen["checkers"]["workload"] == "valid"
    assert jepsen["differences"] == ["the history is valid to Jepsen, and invalid here"]


def test_what_does_not_judge_the_history_makes_no_difference(stormproof: Stormproof) -> None:
    laid_out(SET, RESULTS % ("false", "true", 0, "false"))
    answer = stormproof(*CHECK)
    assert answer.code == 0
    assert "jepsen    invalid\n" in answer.out
    assert "stats: invalid, which does not judge the history\n" in answer.out
    assert "differs   nowhere\n" in answer.out


def test_a_rejection_that_is_not_found_here_names_its_checker_and_anomalies(stormproof: Stormproof) -> None:
    laid_out(SET, RESULTS % ("true", "false", 1, "false"))
    answer = stormproof(*CHECK)
    assert answer.code == 0
    assert "workload: invalid: lost\n" in answer.out
    assert "differs   the history is invalid (workload) to Jepsen, and valid here\n" in answer.out


def test_keys_are_compared_one_by_one(stormproof: Stormproof) -> None:
    of_keys = "{:results {1 {:linear {:valid? false}, :valid? false}, 2 {:linear {:valid? true}, :valid? true}}"
    laid_out(REGISTERS, f"{{:workload {of_keys}, :failures [1], :valid? false}}, :valid? false}}")
    answer = stormproof(*CHECK, "--json")
    assert answer.code == 1
    jepsen = json.loads(answer.out)["jepsen"]
    assert jepsen["checkers"] == {"workload/linear": {"1": "invalid", "2": "valid"}}
    first, second = jepsen["differences"]
    assert first == "key 1 is invalid to Jepsen; here nothing was found on it"
    assert second.startswith("key 2 is valid to Jepsen; here nonlinearizable: ")


@pytest.mark.parametrize(
    ("results", "says"),
    [
        (None, "there is no results.edn: Jepsen's analysis did not end"),
        ("{:valid? true", "results.edn cannot be read as EDN: the text ends too early"),
        ("{:valid?}", "results.edn cannot be read as EDN: a map has a key without a value"),
        ("[1]", "results.edn holds no results: a map with :valid? was expected, it is [1]"),
        ("", "results.edn cannot be read as EDN: the text ends too early"),
    ],
)
def test_without_results_the_history_is_judged_alone(stormproof: Stormproof, results: str | None, says: str) -> None:
    laid_out(LOST, results)
    answer = stormproof(*CHECK)
    assert answer.code == 1
    assert f"jepsen    {says}" in answer.out
    assert "differs" not in answer.out


def test_the_text_is_read_where_there_is_no_edn_and_the_folder_names_the_test(stormproof: Stormproof) -> None:
    laid_out(LOST, None, history="history.txt", log="")
    answer = stormproof(*CHECK)
    assert answer.code == 1
    assert "test      etcd 3.5 set\n" in answer.out


def test_options_say_what_a_test_is_judged_as(stormproof: Stormproof) -> None:
    laid_out(SET, None)
    answer = stormproof(*CHECK, "--workload", "set", "--set", "reads=current")
    assert answer.code == 0
    assert "judged as" not in answer.out


def test_a_test_without_a_history_and_a_broken_link_are_refused(stormproof: Stormproof) -> None:
    laid_out([], None)
    Path("store/latest/jepsen.log").unlink()
    Path("old").symlink_to("nowhere")
    Path("notes").write_text("no history")
    with tarfile.open("notes.tar", "w") as archive:
        archive.add("notes")
    for path, says in (
        ("store/latest", "store/latest is a test of Jepsen's without its history: it has neither history.edn nor"),
        ("old", "old is a link to nowhere, which is not there"),
        ("notes.tar", "notes.tar is an archive without a test of Jepsen's: none of its directories has a history.edn"),
    ):
        answer = stormproof("check", path)
        assert (answer.code, answer.out.count("\n")) == (254, 0 if path == "notes.tar" else 1)
        (line,) = answer.err.splitlines()
        assert line.startswith(f"stormproof: {says}")


def test_several_tests_are_judged_each_as_what_it_is(stormproof: Stormproof) -> None:
    laid_out(SET, None)
    Path("h.edn").write_text("{:process 0, :type :invoke, :f :frob}\n")
    answer = stormproof("check", "store/latest", "h.edn", "--engine", "inprocess", "--json")
    assert answer.code == 254
    first, second = (json.loads(line) for line in answer.out.splitlines())
    assert (first["judged_as"], first["verdict"]) == ("--workload set", "valid")
    assert "h.edn does not say what it is a history of: its clients did frob, which is nothing" in second["error"]


def as_log(rows: list[tuple[str, str, str, str]]) -> str:
    entry = "2026-01-01 10:00:02,000\tINFO\t[jepsen worker 0] jepsen.util: "
    return LOG + "".join(f"{entry}{process}\t:{kind}\t:{f}\t{value}\n" for process, kind, f, value in rows)


def test_of_a_test_that_was_killed_the_log_is_read(stormproof: Stormproof) -> None:
    laid_out([], None, log=as_log(LOST))
    answer = stormproof(*CHECK)
    assert answer.code == 1
    assert "judged as --workload set\n" in answer.out


def test_a_test_in_which_no_client_did_anything_is_unknown(stormproof: Stormproof) -> None:
    laid_out([], None)
    answer = stormproof(*CHECK)
    assert answer.code == 2
    assert "nothing happened: store/latest/jepsen.log holds no operation of a client\n" in answer.out


def several() -> None:
    """Three tests in `store`, with a link to one of them."""
    laid_out(SET, RESULTS % ("true", "true", 0, "true"))
    for name, text in (("b/1", as_log(LOST)), ("b/2", as_log(LOST).replace(":add", ":frob"))):
        Path("store", name).mkdir(parents=True)
        Path("store", name, "jepsen.log").write_text(text)


TABLE = [
    ("INVALID", "b/1", "--workload set  lost × 1"),
    ("not judged", "b/2", "its clients did frob"),
    ("VALID", "etcd 3.5 set/20260101T100000.000Z", "--workload set"),
]


@pytest.mark.parametrize("archive", ["", "w", "w:gz"])
def test_a_store_is_a_table_with_a_line_for_each_test(stormproof: Stormproof, archive: str) -> None:
    several()
    Path("runs").mkdir()
    path = "store"
    if archive:
        path = "store.tar"
        with tarfile.open(path, archive) as written:
            written.add("store")
            written.addfile(tarfile.TarInfo("../history.edn"), io.BytesIO())
    answer = stormproof("check", path, "--engine", "inprocess", "--junit", "junit.xml")
    assert answer.code == 1
    assert answer.err == ""
    *lines, last = answer.out.splitlines()
    below = "store.tar/store" if archive else "store"
    for line, (verdict, test, says) in zip(lines, TABLE, strict=True):
        assert line.startswith(f"{verdict:<9} {below}/{test}  ")
        assert says in line
    assert last == "all       INVALID: 1 valid, 1 invalid, 1 not judged"
    assert not any(Path("runs").iterdir())
    cases = ElementTree.parse("junit.xml").getroot().findall("testsuite/testcase")
    assert [[child.tag for child in case if child.tag != "properties"] for case in cases] == [
        ["failure"],
        ["error"],
        [],
    ]
    assert [case.get("name") for case in cases] == [f"{below}/{test}" for _, test, _ in TABLE]


def test_a_store_as_json_is_an_object_for_each_test(stormproof: Stormproof) -> None:
    several()
    answer = stormproof("check", "store", "--engine", "inprocess", "--json")
    found = [json.loads(line) for line in answer.out.splitlines()]
    assert [(one["path"], one["exit_code"]) for one in found] == [
        ("store/b/1", 1),
        ("store/b/2", 254),
        ("store/etcd 3.5 set/20260101T100000.000Z", 0),
    ]
    assert found[2]["jepsen"]["differences"] == []


TWO_BROKEN = [
    row
    for key in "012"
    for row in [
        ("0", "invoke", "write", f"[{key} 1]"),
        ("0", "ok", "write", f"[{key} 1]"),
        ("0", "invoke", "write", f"[{key} 2]"),
        ("0", "ok", "write", f"[{key} 2]"),
        ("0", "invoke", "write", f"[{key} 1]"),
        ("0", "ok", "write", f"[{key} 1]"),
        ("0", "invoke", "cas", f"[{key} [1 2]]"),
        ("0", "ok", "cas", f"[{key} [1 2]]"),
        ("0", "invoke", "read", f"[{key} nil]"),
        ("0", "ok", "read", f"[{key} {2 if key == '2' else 1}]"),
    ]
]


def test_keys_that_were_not_searched_are_no_difference(stormproof: Stormproof) -> None:
    of_keys = "{0 {:valid? false}, 1 {:valid? false}, 2 {:valid? true}}"
    laid_out(TWO_BROKEN, f"{{:linear {{:valid? false, :results {of_keys}}}, :valid? false}}")
    answer = stormproof(*CHECK)
    assert answer.code == 1
    assert answer.out.endswith(
        "differs   nowhere\n          not compared, for they were not searched to the end here: 1, 2\n"
    )
    answer = stormproof(*CHECK, "--all-findings", "--json")
    assert "not_compared" not in json.loads(answer.out)["jepsen"]
    assert json.loads(answer.out)["jepsen"]["differences"] == []


NULL_READ = [
    ("0", "invoke", "write", "5"),
    ("0", "ok", "write", "5"),
    ("0", "invoke", "read", "nil"),
    ("0", "ok", "read", "nil"),
    ("0", "invoke", "read", "nil"),
    ("0", "ok", "read", "5"),
]


def test_a_difference_that_rests_on_reads_of_null_names_them(stormproof: Stormproof) -> None:
    laid_out(NULL_READ, "{:linear {:valid? true}, :valid? true}")
    answer = stormproof(*CHECK)
    assert answer.code == 1
    assert (
        "and invalid here: a read of null is empty here and says nothing to Knossos, and with --null-reads"
        in answer.out
    )
    answer = stormproof(*CHECK, "--model", "cas-register", "--null-reads", "unknown")
    assert answer.code == 0
    assert answer.out.endswith("differs   nowhere\n")


def test_a_difference_that_rests_on_something_else_does_not_name_them(stormproof: Stormproof) -> None:
    laid_out([*NULL_READ[:-1], ("0", "ok", "read", "6")], "{:linear {:valid? true}, :valid? true}")
    answer = stormproof(*CHECK)
    assert answer.code == 1
    assert "differs   the history is valid to Jepsen, and invalid here\n" in answer.out


REPEATED = [*SET[:-1], ("0", "ok", "read", "[0 1 1]")]
UNANSWERED = [("0", "invoke", "add", "0"), ("0", "info", "add", "0"), ("1", "invoke", "read", "nil")]
UNWRITTEN = [("0", "invoke", "txn", "[[:w 2 1] [:r 1 nil]]"), ("0", "ok", "txn", "[[:w 2 1] [:r 1 7]]")]
STALE = [
    ("0", "invoke", "txn", "[[:w 1 1]]"),
    ("0", "ok", "txn", "[[:w 1 1]]"),
    ("0", "invoke", "txn", "[[:r 1 nil]]"),
    ("0", "ok", "txn", "[[:r 1 nil]]"),
]


@pytest.mark.parametrize(
    ("rows", "code", "why"),
    [
        (REPEATED, 1, "Jepsen's set-full looks for elements that are lost, and not for these"),
        (NULL_READ[:2], 2, "what nothing contradicts is valid to Jepsen, and here only if something could have"),
        (UNWRITTEN, 1, "Elle does not ask who wrote what was read from a register"),
    ],
)
def test_a_difference_that_lies_in_what_is_demanded_says_so(
    stormproof: Stormproof, rows: list[tuple[str, str, str, str]], code: int, why: str
) -> None:
    laid_out(rows, "{:workload {:valid? true}, :valid? true}", log=LOG.replace("workload set", "workload register"))
    answer = stormproof(*CHECK)
    assert answer.code == code
    assert answer.out.endswith(f" here: {why}\n")


def test_a_graph_without_transactions_is_no_verdict_of_elle(stormproof: Stormproof) -> None:
    elle = "{:valid? false, :anomaly-types (:empty-transaction-graph)}"
    laid_out(STALE[:2], f"{{:workload {elle}, :valid? false}}")
    answer = stormproof(*CHECK)
    assert answer.code == 2
    assert answer.out.endswith("differs   nowhere\n")


def test_a_test_says_for_which_model_transactions_are_judged(stormproof: Stormproof) -> None:
    laid_out(STALE, None, log=LOG.replace(" :concurrency", " :consistency-models (:read-committed)\n :concurrency"))
    answer = stormproof(*CHECK)
    assert answer.code == 0
    assert "judged as --workload rw-register --consistency-model read-committed\n" in answer.out
    assert stormproof(*CHECK, "--consistency-model", "strict-serializable").code == 1


def test_what_no_answer_shows_is_unknown_whatever_it_is(stormproof: Stormproof) -> None:
    laid_out(UNANSWERED, None, log="")
    Path("store/etcd 3.5 set").rename("store/etcd")
    answer = stormproof("check", "store", "--engine", "inprocess")
    assert answer.code == 2
    assert "too little happened: " in answer.out
    assert "may be --workload set or --workload counter, and nothing could have contradicted either" in answer.out


def test_a_model_to_which_everything_is_possible_judges_nothing(stormproof: Stormproof) -> None:
    laid_out(NULL_READ, "{:valid? true, :configs ({:model {}, :pending []}), :final-paths ()}", log="")
    answer = stormproof(*CHECK)
    assert answer.code == 1
    assert answer.out.endswith("differs   in nothing that can be compared: none of these judges the history\n")


def test_the_checker_to_which_everything_is_valid_judges_nothing(stormproof: Stormproof) -> None:
    log = ':checker\n #object[jepsen.checker$unbridled_optimism$reify__1 0x1 "x"]'
    laid_out(LOST, "{:valid? true}", log=LOG.replace(":concurrency 5", log))
    answer = stormproof(*CHECK)
    assert answer.code == 1
    assert "differs   in nothing that can be compared: none of these judges the history\n" in answer.out
