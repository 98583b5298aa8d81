"""What nothing could have contradicted is UNKNOWN, whatever it is judged as; a little that could have is enough.

Each model and each workload has a history without evidence, and the least that makes one with some of it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from checkers.linearizable.objects import MODELS
from stormproof.session.registry import names
from tests.command_line.answers import Stormproof

IN_PROCESS = ("--engine", "inprocess")

Operation = tuple[str, str, str, str]
"""How it ended (open: without a completion), f, what was asked and what was answered, in EDN."""

TXN_OF_WRITES: Operation = ("ok", "txn", "[[:w x 1] [:w y 1]]", "[[:w x 1] [:w y 1]]")

MODEL_CASES: dict[str, tuple[list[Operation], list[list[Operation]]]] = {
    "register": (
        [("ok", "write", "1", "1"), ("fail", "write", "2", "2"), ("fail", "read", "nil", "nil")],
        [[("ok", "read", "nil", "1")]],
    ),
    "cas-register": (
        [("ok", "write", "1", "1"), ("fail", "cas", "[2 3]", "[2 3]"), ("info", "read", "nil", "nil")],
        [[("ok", "read", "nil", "1")], [("ok", "cas", "[1 2]", "[1 2]")]],
    ),
    "multi-register": (
        [("ok", "txn", "[[:write x 1]]", "[[:write x 1]]"), ("fail", "read", "[[:read x nil]]", "[[:read x nil]]")],
        [
            [("ok", "txn", "[[:read x nil]]", "[[:read x 1]]")],
            [("ok", "read", "[[:read x nil]]", "[[:read x 1]]")],
        ],
    ),
    "map": (
        [("ok", "put", '"a"', '"a"'), ("ok", "append", '"b"', '"b"'), ("fail", "get", "nil", "nil")],
        [[("ok", "get", "nil", '"ab"')]],
    ),
    "set": (
        [("ok", "add", "1", "1"), ("ok", "remove", "2", "2"), ("fail", "read", "nil", "nil")],
        [
            [("ok", "read", "nil", "[1]")],
            [("ok", "contains", "1", "true")],
            [("ok", "add", "1", "false")],
            [("ok", "remove", "1", "true")],
        ],
    ),
    "mutex": (
        [("fail", "acquire", "nil", "nil"), ("ok", "acquire", "nil", "nil"), ("info", "release", "nil", "nil")],
        [[("ok", "acquire", "nil", "nil")], [("ok", "release", "nil", "nil")]],
    ),
    "fenced-lock": (
        [("fail", "acquire", "nil", "nil"), ("info", "acquire", "nil", "nil")],
        [[("ok", "acquire", "nil", "2")], [("ok", "release", "nil", "nil")]],
    ),
    "leased-lock": (
        [("ok", "acquire", "nil", "2"), ("fail", "release", "1", "1"), ("info", "acquire", "nil", "nil")],
        [[("ok", "acquire", "nil", "3")], [("ok", "release", "2", "2")]],
    ),
    "counter": (
        [("ok", "add", "1", "1"), ("fail", "read", "nil", "nil"), ("ok", "add", "2", "2")],
        [[("ok", "read", "nil", "3")]],
    ),
    **{
        queue: (
            [("fail", "enqueue", "1", "1"), ("fail", "dequeue", "nil", "nil"), ("ok", "enqueue", "2", "2")],
            [[("ok", "dequeue", "nil", "2")]],
        )
        for queue in ("fifo-queue", "unordered-queue", "priority-queue")
    },
    "stack": (
        [("ok", "push", "1", "1"), ("fail", "pop", "nil", "nil"), ("info", "push", "2", "2")],
        [[("ok", "pop", "nil", "1")]],
    ),
    "append-log": (
        [("ok", "append", "1", "1"), ("fail", "read", "nil", "nil")],
        [[("ok", "read", "nil", "[1]")], [("ok", "append", "2", "[1 2]")]],
    ),
    "echo": ([("fail", "echo", "1", "nil"), ("info", "echo", "2", "nil")], [[("ok", "echo", "3", "3")]]),
}

MESSAGE = '{:message 1 :queue "k" :offset 0 :tries 0}'
GIVEN = f'{{:group "g" :member "a" :messages [{MESSAGE}]}}'
FINISHED = f'{{:group "g" :member "a" :outcome "success" :messages [{MESSAGE}]}}'

WORKLOAD_CASES: dict[str, tuple[list[Operation], list[list[Operation]]]] = {
    "bank": (
        [
            ("ok", "transfer", "{:from 0 :to 1 :amount 1}", "{:from 0 :to 1 :amount 1}"),
            ("ok", "read", "nil", "nil"),
            ("fail", "read", "nil", "nil"),
        ],
        [[("ok", "read", "nil", "{0 1, 1 1}")]],
    ),
    "causal": (
        [("ok", "write", "1", "1"), ("fail", "read", "nil", "nil")],
        [
            [("ok", "read", "nil", "1")],
            [("ok", "txn", "[[:w y 2]]", "[[:w y 2]]"), ("ok", "txn", "[[:r y nil]]", "[[:r y 2]]")],
        ],
    ),
    "causal-reverse": (
        [("ok", "write", "1", "1"), ("ok", "read", "nil", "[]"), ("fail", "read", "nil", "nil")],
        [[("ok", "read", "nil", "[1]")]],
    ),
    "consumption": (
        [("ok", "send", "{:message 1}", "{:message 1 :offset 0}"), ("fail", "consume", '{:group "g"}', "nil")],
        [
            [
                ("ok", "consume", '{:group "g"}', GIVEN),
                ("ok", "finish", FINISHED, FINISHED),
                ("ok", "settled", '{:group "g"}', '{:group "g"}'),
                ("ok", "dead-letters", '{:group "g"}', '{:group "g" :messages []}'),
            ]
        ],
    ),
    "counter": (
        [("ok", "add", "1", "1"), ("ok", "read", "nil", "nil")],
        [[("ok", "read", "nil", "1")], [("ok", "final-read", "nil", "1")]],
    ),
    "delay": (
        [("ok", "send", "{:message 1 :due 0}", "{:message 1 :due 0}"), ("fail", "deliver", "nil", "nil")],
        [[("ok", "deliver", "nil", "{:messages [1]}")]],
    ),
    "delayed": (
        [("info", "enqueue", "{:value 1 :delay_ms 0}", "nil"), ("fail", "dequeue", "nil", "nil")],
        [[("ok", "dequeue", "nil", "{:values [1]}")], [("ok", "drain", "nil", "{:values []}")]],
    ),
    "list-append": (
        [("ok", "txn", "[[:append x 1]]", "[[:append x 1]]"), ("info", "txn", "[[:r x nil]]", "[[:r x nil]]")],
        [[("ok", "txn", "[[:r x nil]]", "[[:r x [1]]]")]],
    ),
    "lock": (
        [("ok", "acquire", "nil", "nil"), ("fail", "acquire", "nil", "nil"), ("info", "release", "nil", "nil")],
        [[("ok", "acquire", "nil", "nil")], [("ok", "release", "nil", "nil")]],
    ),
    "log": (
        [("ok", "send", "{:message 1}", "{:message 1 :offset 0}"), ("fail", "poll", "nil", "nil")],
        [
            [
                ("ok", "poll", "{:offset 0}", "{:offset 1 :messages [{:offset 0 :message 1}]}"),
                ("ok", "final-poll", "{:offset 0}", "{:offset 1 :messages [{:offset 0 :message 1}]}"),
                ("ok", "caught-up", "{:offset 1}", "{:offset 1}"),
            ]
        ],
    ),
    "long-fork": (
        [("ok", "write", "[[:w x 1]]", "[[:w x 1]]"), ("fail", "read", "[[:r x nil] [:r y nil]]", "nil")],
        [[("ok", "read", "[[:r x nil] [:r y nil]]", "[[:r x 1] [:r y nil]]")]],
    ),
    "pop": (
        [("ok", "send", "{:message 1}", "{:message 1}"), ("fail", "pop", "nil", "nil")],
        [
            [
                ("ok", "pop", "{:invisible_ms 9}", "{:deliveries [{:message 1 :times 0}]}"),
                ("ok", "ack", "{:message 1}", "{:message 1}"),
            ]
        ],
    ),
    "monotonic": (
        [("fail", "inc", "nil", "nil"), ("fail", "read", "nil", "nil")],
        [[("ok", "inc", "nil", "1"), ("ok", "read", "nil", "1")]],
    ),
    "queue": (
        [("fail", "enqueue", "1", "1"), ("fail", "dequeue", "nil", "nil"), ("info", "enqueue", "2", "2")],
        [[("ok", "dequeue", "nil", "2")], [("ok", "drain", "nil", "[]")]],
    ),
    "register": (
        [("ok", "write", "1", "1"), ("fail", "read", "nil", "nil"), ("fail", "cas", "[1 2]", "[1 2]")],
        [[("ok", "read", "nil", "1")], [("ok", "cas", "[1 2]", "[1 2]")]],
    ),
    "rw-register": ([TXN_OF_WRITES], [[("ok", "txn", "[[:r x nil]]", "[[:r x 1]]")]]),
    "set": (
        [("info", "add", "1", "1"), ("fail", "read", "nil", "nil")],
        [[("ok", "read", "nil", "[1]")], [("ok", "read", "nil", "[]")]],
    ),
    "transactional": (
        [("fail", "enqueue", "1", "1"), ("fail", "dequeue", "nil", "nil"), ("info", "enqueue", "2", "2")],
        [[("ok", "dequeue", "nil", "[2]")], [("ok", "drain", "nil", "[]")]],
    ),
    "unique-ids": (
        [("ok", "generate", "nil", "1"), ("fail", "generate", "nil", "nil")],
        [[("ok", "generate", "nil", "2")]],
    ),
}


def write(path: Path, operations: list[Operation]) -> None:
    """One process goes on until an operation is open or ends with info; of one key, unless transactions name keys."""
    lines = []
    process = 0
    key = "" if any(f == "txn" for _, f, _, _ in operations) else ", :key :k"
    for ended, f, asked, returned in operations:
        lines.append(f"{{:process {process}, :type :invoke, :f :{f}{key}, :value {asked}}}")
        if ended != "open":
            lines.append(f"{{:process {process}, :type :{ended}, :f :{f}{key}, :value {returned}}}")
        process += ended in ("info", "open")
    path.write_text("\n".join(lines) + "\n")


CASES = [
    *(("--model", name, *case) for name, case in MODEL_CASES.items()),
    *(("--workload", name, *case) for name, case in WORKLOAD_CASES.items()),
]


def test_every_model_and_workload_is_here() -> None:
    assert MODEL_CASES.keys() == MODELS.keys()
    assert WORKLOAD_CASES.keys() == set(names("workloads"))


@pytest.mark.parametrize(("option", "name", "nothing", "proofs"), CASES, ids=[" ".join(case[:2]) for case in CASES])
def test_without_evidence_it_is_unknown_and_with_a_little_it_is_valid(
    stormproof: Stormproof, option: str, name: str, nothing: list[Operation], proofs: list[list[Operation]]
) -> None:
    write(Path("nothing.edn"), nothing)
    paths = ["nothing.edn"]
    for number, proof in enumerate(proofs):
        paths.append(f"{number}.edn")
        write(Path(paths[-1]), [*nothing, *proof])
    write(Path("open.edn"), [("open", *one[1:]) for proof in proofs for one in proof])
    answer = stormproof("check", *paths, "open.edn", option, name, "--json", *IN_PROCESS)
    empty, *printed, unseen = (json.loads(line) for line in answer.out.splitlines())
    assert [(one["verdict"], one["reasons"]) for one in printed] == [("valid", [])] * len(proofs)
    for one in (empty, unseen):
        assert (one["verdict"], one["exit_code"]) == ("unknown", 2), one
        words = f"nothing could have contradicted {option.removeprefix('--')} {name}; that takes "
        assert any(words in reason for reason in one["reasons"])
        assert "accepted_as_vacuous" not in one


NOTHING = "too little happened: nothing could have contradicted model register; that takes an ok read (read: 0 ok, 1 "


def test_an_accepted_vacuous_pass_is_marked_in_every_output(stormproof: Stormproof) -> None:
    write(Path("nothing.edn"), MODEL_CASES["register"][0])
    write(Path("stale.edn"), [("ok", "read", "nil", "1")])
    judged_as = ("--model", "register", "--accept-vacuous", *IN_PROCESS)
    answer = stormproof("check", "nothing.edn", *judged_as)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[1] == "verdict   VALID"
    assert lines[2].strip().startswith(f"accepted as vacuous: {NOTHING}")
    (directory,) = Path("runs/checked").iterdir()
    verdict = json.loads((directory / "verdict.json").read_text())
    assert (verdict["verdict"], verdict["reasons"]) == ("valid", [])
    (reason,) = verdict["accepted_as_vacuous"]
    assert reason.startswith(NOTHING)
    assert f"accepted as vacuous: {NOTHING}" in (directory / "report.html").read_text()

    printed = json.loads(stormproof("check", "nothing.edn", *judged_as, "--json").out)
    assert (printed["verdict"], printed["reasons"], printed["accepted_as_vacuous"]) == ("valid", [], [reason])
    stale = json.loads(stormproof("check", "stale.edn", *judged_as, "--json").out)
    assert (stale["verdict"], "accepted_as_vacuous" in stale) == ("invalid", False)


SHORT = ("--nemesis", "none", "--time-limit", "1", "--rate", "5", "--recovery", "1", "--seed", "11")


def test_a_run_and_its_check_may_be_accepted_as_vacuous(stormproof: Stormproof) -> None:
    reasons = stormproof("run", "rocketmq", *SHORT, *IN_PROCESS, "--json")
    assert reasons.code == 2
    assert all("succeeded in the storm, 20 are required" in reason for reason in reasons.json["reasons"])
    answer = stormproof("run", "rocketmq", *SHORT, *IN_PROCESS, "--accept-vacuous", "--json")
    assert (answer.code, answer.json["verdict"], answer.json["reasons"]) == (0, "valid", [])
    assert answer.json["accepted_as_vacuous"] == reasons.json["reasons"]
    assert stormproof("check", "runs/latest", *IN_PROCESS).code == 2
    again = stormproof("check", "runs/latest", *IN_PROCESS, "--accept-vacuous")
    assert again.code == 0
    assert f"          accepted as vacuous: {reasons.json['reasons'][0]}" in again.out.splitlines()
    junit = Path("runs/latest/junit.xml").read_text()
    assert "accepted_as_vacuous" in junit and "succeeded in the storm" in junit


def test_a_suite_may_be_accepted_as_vacuous(stormproof: Stormproof) -> None:
    Path("s.toml").write_text(
        'name = "s"\n[[matrix]]\nsystem = "rocketmq"\nworkload = "log"\nnemesis = "none"\nseeds = [11]\n'
        "time_limit_s = 1\nrate = 5\nrecovery_s = 1\n"
    )
    assert stormproof("suite", "s.toml", *IN_PROCESS).code == 2
    answer = stormproof("suite", "s.toml", *IN_PROCESS, "--accept-vacuous")
    assert answer.code == 0
    assert "accepted as vacuous: too little happened: " in answer.out
    printed = stormproof("suite", "s.toml", *IN_PROCESS, "--accept-vacuous", "--json").json
    assert printed["scenarios"][0]["accepted_as_vacuous"]
