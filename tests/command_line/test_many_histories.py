"""Many short histories in one call: each is told of as if it had been checked by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkers.statistics import Statistics
from stormproof.cli import checking
from stormproof.session.batch_checking import AGAIN, MOST, Pace
from tests.command_line.answers import Stormproof

IN_PROCESS = ("--engine", "inprocess")


def transactions(*values: str) -> str:
    """One after the other, each of a process of its own; what they answer is what they were asked."""
    lines = [
        f"{{:process {process}, :type :{kind}, :f :txn, :value {value}}}"
        for process, value in enumerate(values)
        for kind in ("invoke", "ok")
    ]
    return "\n".join(lines) + "\n"


VALID = transactions("[[:append :x 1]]", "[[:r :x [1]] [:append :x 2]]", "[[:r :x [1 2]]]")
STALE = transactions("[[:append :x 1]]", "[[:r :x [1]] [:append :x 2]]", "[[:r :x [1]]]", "[[:r :x [1 2]]]")
BLIND = transactions("[[:append :x 1] [:r :x [1]]]", "[[:r :y nil]]")
TWICE = transactions("[[:append :x 1]]", "[[:append :x 1]]")
BROKEN = VALID + "{:process 1"
REGISTER = "".join(
    f"{{:process 0, :type :{kind}, :f :{f}, :value {value}}}\n"
    for f, value in (("write", 1), ("read", 1))
    for kind in ("invoke", "ok")
)
KINDS = {
    "valid": VALID,
    "stale": STALE,
    "blind": BLIND,
    "twice": TWICE,
    "broken": BROKEN,
    "empty": "",
    "register": REGISTER,
}


def written(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def judged_by_themselves(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of those from now on."""
    seen: list[str] = []
    judge = checking.judge_history

    def watched(source: Any, *arguments: Any, **named: Any) -> Any:
        seen.append(source.path.name)
        return judge(source, *arguments, **named)

    monkeypatch.setattr(checking, "judge_history", watched)
    return seen


def without(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in ("seconds", "directory")}


@pytest.mark.parametrize("options", [(), ("--workload", "list-append"), ("--accept-vacuous",)], ids=" ".join)
def test_each_of_many_is_told_of_as_by_itself(
    options: tuple[str, ...], stormproof: Stormproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [written(f"{kind}.edn", text) for kind, text in KINDS.items()]
    many = [written(f"{number}.edn", VALID) for number in range(12)]
    paths = [*many[:8], "missing.edn", *some, *many[8:]]
    judged_as = (*options, *IN_PROCESS)
    alone = [json.loads(stormproof("check", path, *judged_as, "--json").out) for path in paths]
    told = [stormproof("check", path, *judged_as).out.splitlines() for path in paths]
    seen = judged_by_themselves(monkeypatch)
    together = stormproof("check", *paths, *judged_as, "--json")
    assert together.code == 1
    assert [without(json.loads(line)) for line in together.out.splitlines()] == list(map(without, alone))
    *printed, last = stormproof("check", *paths, *judged_as).out.splitlines()
    assert printed == [line for lines in told for line in lines if not line.startswith("report ")]
    assert last == "all       INVALID"
    assert not set(many[1:7]) & set(seen)
    assert set(seen) >= {"stale.edn", "blind.edn", "twice.edn"}


def test_those_without_anything_wrong_are_judged_together(
    stormproof: Stormproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [written(f"{number}.edn", STALE if number == 30 else VALID) for number in range(60)]
    seen = judged_by_themselves(monkeypatch)
    assert stormproof("check", *paths, *IN_PROCESS).code == 1
    assert seen == ["0.edn", "30.edn"]


def test_registers_of_several_histories_are_judged_together(
    stormproof: Stormproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = REGISTER.replace(":read, :value 1", ":read, :value 2")
    paths = [written(f"{number}.edn", wrong if number == 11 else REGISTER) for number in range(23)]
    seen = judged_by_themselves(monkeypatch)
    answer = stormproof("check", *paths, "--model", "register", "--json", *IN_PROCESS)
    verdicts = [json.loads(line)["verdict"] for line in answer.out.splitlines()]
    assert [number for number, verdict in enumerate(verdicts) if verdict != "valid"] == [11]
    assert seen == ["0.edn", "11.edn"]


def test_figures_are_made_for_a_report_alone(stormproof: Stormproof, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [written("valid.edn", VALID), written("stale.edn", STALE)]
    asked: list[Statistics] = []
    check = Statistics.check

    def watched(self: Statistics, *arguments: Any) -> Any:
        asked.append(self)
        return check(self, *arguments)

    monkeypatch.setattr(Statistics, "check", watched)
    assert stormproof("check", *paths, *IN_PROCESS).code == 1
    assert not asked
    assert stormproof("check", paths[0], *IN_PROCESS).code == 0
    assert asked


def test_nothing_is_judged_together_where_searches_end_after_a_time(
    stormproof: Stormproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [written(f"{number}.edn", REGISTER) for number in range(4)]
    seen = judged_by_themselves(monkeypatch)
    assert stormproof("check", *paths, "--model", "register", "--give-up-after", "5", *IN_PROCESS).code == 0
    assert seen == paths


def test_a_long_search_is_left_to_whoever_judges_it_by_itself(
    stormproof: Stormproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeated = "".join(
        f"{{:process {process}, :type :invoke, :f :write, :value 1}}\n"
        f"{{:process {process}, :type :ok, :f :write, :value 1}}\n"
        for process in (0, 1)
    )
    paths = [written(f"{number}.edn", repeated + REGISTER.replace(":process 0", ":process 2")) for number in range(3)]
    monkeypatch.setattr("checkers.batch.MOST_SEARCHED_S", 0.0)
    seen = judged_by_themselves(monkeypatch)
    answer = stormproof("check", *paths, "--model", "register", *IN_PROCESS)
    assert answer.code == 0, answer.out
    assert seen == paths


def test_what_is_not_short_is_read_once(stormproof: Stormproof, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [written(f"{number}.edn", REGISTER) for number in range(3)]
    monkeypatch.setattr("stormproof.session.batch_checking.MOST_BYTES", len(REGISTER) - 1)
    seen = judged_by_themselves(monkeypatch)
    assert stormproof("check", *paths, "--model", "register", *IN_PROCESS).code == 0
    assert seen == paths


def test_more_and_more_are_judged_together_and_none_where_few_are_valid() -> None:
    pace = Pace()
    sizes = []
    for share in (1.0, 1.0, 1.0, 0.75, 0.5, 0.5, 1.0, 1.0):
        sizes.append((pace.size, pace.together))
        pace.learn(round(share * pace.size))
    assert sizes == [
        (1, True),
        (2, True),
        (4, True),
        (8, True),
        (8, True),
        (AGAIN, False),
        (AGAIN, False),
        (2 * AGAIN, True),
    ]
    for _ in range(20):
        pace.learn(pace.size)
    assert pace.size == MOST
