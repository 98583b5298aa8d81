"""Many short histories in one call: each is printed_alone of as if it had been checked by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkers.statistics import Statistics
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


def without(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in ("seconds", "directory")}


@pytest.mark.parametrize("options", [(), ("--workload", "list-append"), ("--accept-vacuous",)], ids=" ".join)
def test_each_of_many_is_reported_as_by_itself(options: tuple[str, ...], stormproof: Stormproof) -> None:
    some = [written(f"{kind}.edn", text) for kind, text in KINDS.items()]
    paths = [some[0], "missing.edn", *some, some[0]]
    judged_as = (*options, *IN_PROCESS)
    alone = [json.loads(stormproof("check", path, *judged_as, "--json").out) for path in paths]
    printed_alone = [stormproof("check", path, *judged_as).out.splitlines() for path in paths]
    together = stormproof("check", *paths, *judged_as, "--json")
    assert together.code == 1
    assert [without(json.loads(line)) for line in together.out.splitlines()] == list(map(without, alone))
    *printed, last = stormproof("check", *paths, *judged_as).out.splitlines()
    assert printed == [line for lines in printed_alone for line in lines if not line.startswith("report ")]
    assert last == "all       INVALID"


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
