"""Commands of the README and the guide are carried out as they are shown there, in an empty folder, in their order.

Only those that need neither a container, nor Spark, nor minutes; tests/unit/stormproof/cli/test_readme.py parses all.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.command_line.answers import Answer, Stormproof
from tests.pages import FENCED, README, TEXTS, commands_of, lines_of_blocks

SHORT = ("--time-limit", "20", "--recovery", "5", "--seed", "1")
"""Added to a run, which would otherwise take longer, and draw its seed."""
_AT_ONCE = re.compile(r"stormproof (list|completion|doctor)( |$)")
AT_ONCE = [line for line in dict.fromkeys(commands_of("stormproof")) if _AT_ONCE.match(line)]


def carried_out(stormproof: Stormproof, line: str, *more: str) -> Answer:
    """As it stands on a page, with options behind it that the page leaves to their defaults."""
    assert line in commands_of("stormproof"), line
    return stormproof(*shlex.split(line)[1:], *more)


@pytest.mark.parametrize("line", AT_ONCE)
def test_what_only_shows_something_shows_it(stormproof: Stormproof, line: str) -> None:
    answer = carried_out(stormproof, line)
    assert answer.code == 0, answer.err
    assert len(answer.out.splitlines()) >= 3


def test_the_skeletons_of_a_new_system_are_written(stormproof: Stormproof) -> None:
    assert carried_out(stormproof, "stormproof new my-store").code == 0
    shutil.rmtree("my-store")
    assert carried_out(stormproof, "stormproof new my-store --command").code == 0
    assert Path("my-store/pyproject.toml").exists()


@pytest.mark.gate
def test_a_run_is_valid_judged_again_replayed_and_exported(stormproof: Stormproof) -> None:
    answer = carried_out(stormproof, "stormproof run rocketmq --nemesis partition,kill", *SHORT)
    assert (answer.code, "verdict   VALID" in answer.out) == (0, True), answer.out
    assert carried_out(stormproof, "stormproof check runs/latest").code == 0
    answer = carried_out(stormproof, "stormproof replay runs/latest")
    assert (answer.code, "the same, event for event" in answer.out) == (0, True), answer.out
    for line in (
        "stormproof export runs/latest --output history.edn",
        "stormproof export runs/latest --format json --output history.json",
    ):
        assert carried_out(stormproof, line).code == 0
    edn, json = (len(Path(name).read_text(encoding="utf-8").splitlines()) for name in ("history.edn", "history.json"))
    assert edn == json > 1000


@pytest.mark.gate
def test_transactions_are_certified_and_the_certificate_is_verified(stormproof: Stormproof) -> None:
    assert stormproof("run", "rocketmq", "--workload", "rw-register", *SHORT).code == 0
    shutil.copy("runs/latest/history.parquet", "registers.parquet")
    line = "stormproof check registers.parquet --workload rw-register --consistency-model causal --certify proof.json"
    assert carried_out(stormproof, line).code == 0
    for line in ("stormproof verify proof.json", "stormproof verify proof.json registers.parquet --json"):
        answer = carried_out(stormproof, line)
        assert (answer.code, "the certificate holds" in answer.out) == (0, True), answer.out


@pytest.mark.gate
def test_the_planted_bug_of_the_readme_is_found_as_it_says(stormproof: Stormproof) -> None:
    (promised,) = [block for kind, block in FENCED.findall(TEXTS[README]) if kind == "text"]
    (planted,) = [line for line in lines_of_blocks("stormproof", TEXTS[README]) if "--mutant" in line]
    answer = carried_out(stormproof, planted)
    assert answer.code == 1
    lines = iter(answer.out.splitlines())
    for promise in promised.splitlines():
        pattern = ".*".join(map(re.escape, promise.split("…")))
        assert promise == "…" or any(re.fullmatch(pattern, line) for line in lines), (promise, answer.out)
    assert (Path("runs") / "latest" / "report.html").exists()


@pytest.mark.gate
def test_the_runs_of_dledger_are_valid_but_for_the_planted_bug(stormproof: Stormproof) -> None:
    lines = [line for line in lines_of_blocks("stormproof") if line.startswith("stormproof run dledger ")]
    assert len(lines) == 4
    for line in lines:
        answer = carried_out(stormproof, line, *SHORT)
        assert answer.code == ("--mutant" in line), (line, answer.out)


@pytest.mark.gate
def test_the_runs_of_bookkeeper_are_valid(stormproof: Stormproof) -> None:
    lines = [line for line in lines_of_blocks("stormproof") if line.startswith("stormproof run bookkeeper ")]
    assert len(lines) == 3
    for line in lines:
        answer = carried_out(stormproof, line, *SHORT)
        assert answer.code == 0, (line, answer.out)


@pytest.mark.gate
def test_the_runs_of_cmq_are_valid(stormproof: Stormproof) -> None:
    lines = [line for line in lines_of_blocks("stormproof") if line.startswith("stormproof run cmq ")]
    assert len(lines) == 4
    for line in lines:
        answer = carried_out(stormproof, line, *SHORT)
        assert answer.code == 0, (line, answer.out)
