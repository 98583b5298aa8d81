"""A campaign against published releases draws the same storms again, keeps what came of them, and tells it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.record.scenario import Scenario
from nemesis.schedule_file import lines_of
from stormproof.session import registry
from stormproof.session.suite_file import load_suite
from tests.rocketmq.findings.campaign import blow_all, keep_newest, main
from tests.rocketmq.findings.outcomes import FAILED, INVALID, REFUSED, VALID, Kept, Outcome, outcome_of
from tests.rocketmq.findings.page import PARTS, finding_files, page
from tests.rocketmq.findings.storms import PACKAGES, SHARES, WORKLOADS, Storm, drawn

EXAMPLES = Path(__file__).parents[3] / "examples" / "findings"
OTHERS = Path(__file__).parents[3] / "docs" / "systems"
ROUND = sum(SHARES.values())


def ended(storm: Storm, verdict: str = VALID, **changes: Any) -> Outcome:
    return Outcome(storm=storm, verdict=verdict, exit_code=0, **changes)


def test_the_same_root_draws_the_same_storms() -> None:
    assert drawn(1, 100) == drawn(1, 100)
    assert drawn(1, 100)[:40] == drawn(1, 40)
    assert drawn(1, 40) != drawn(2, 40)


def test_a_storm_keeps_its_seed_when_releases_and_packages_are_taken_away() -> None:
    all_storms = drawn(1, 5 * len(WORKLOADS) * len(PACKAGES))
    those = {(one.release, one.workload, one.nemesis): one.seed for one in reversed(all_storms)}
    for one in drawn(1, 6, {"5.4.0": 1}, WORKLOADS, PACKAGES[:1]):
        assert those[one.release, one.workload, one.nemesis] == one.seed


def test_several_workloads_at_once_have_clients_each() -> None:
    storm = drawn(1, 1, workloads=["log+queue+pop+consumption+delayed+transactional"])[0]
    arguments = storm.arguments(90.0, "runs")
    assert arguments[arguments.index("--concurrency") + 1] == "24"


def test_each_release_has_its_share_of_every_round() -> None:
    storms = drawn(3, 10 * ROUND)
    for start in range(0, len(storms), ROUND):
        releases = [one.release for one in storms[start : start + ROUND]]
        assert {release: releases.count(release) for release in SHARES} == dict(SHARES)


@pytest.mark.parametrize("root", range(20))
def test_all_combinations_come_once_before_one_comes_twice(root: int) -> None:
    pairs = [(one.workload, one.nemesis) for one in drawn(root, len(WORKLOADS) * len(PACKAGES), {"5.4.0": 1})]
    assert len(set(pairs)) == len(pairs)
    assert {workload for workload, _ in pairs[: len(WORKLOADS)]} == set(WORKLOADS)
    assert {package for _, package in pairs[: len(PACKAGES)]} == set(PACKAGES)


def test_a_campaign_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    storms, blown, said = drawn(1, 5), list[Storm](), list[str]()

    def blow(storm: Storm) -> Outcome | None:
        blown.append(storm)
        return {1: None, 2: ended(storm, FAILED)}.get(storms.index(storm), ended(storm))

    for _ in range(2):
        blow_all(storms, Kept(tmp_path / "outcomes"), blow, 1e9, said.append, lambda: None)
    assert blown == [*storms, storms[1], storms[2]]
    assert "5 storms, 3 of them blown before" in said


def test_no_storm_begins_once_the_time_is_over(tmp_path: Path) -> None:
    said: list[str] = []
    blow_all(drawn(1, 5), Kept(tmp_path / "outcomes"), ended, -1.0, said.append, lambda: None)
    assert said[-1] == "5 left"


def test_outcomes_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "outcomes"
    outcome = ended(
        drawn(1, 1)[0], INVALID, anomalies={"lost-write": 3}, reasons=("lost-write: 3 found",), beyond_s=7.5
    )
    Kept(file).add(outcome)
    assert Kept(file).outcomes() == [outcome]


def test_an_outcome_tells_broken_promises_from_what_is_excused(tmp_path: Path) -> None:
    anomalies = {"lost-write": {"count": 2, "legal": ""}, "stale-read": {"count": 9, "legal": "b1 lost power"}}
    content = {"verdict": INVALID, "reasons": ["a"], "excused": "9 stale-read excused: b1 lost power"}
    file = tmp_path / "verdict.json"
    file.write_text(json.dumps(content | {"checkers": {"log": {"anomalies": anomalies}}}))
    outcome = outcome_of(drawn(1, 1)[0], 1, file, "", 60.0)
    assert dict(outcome.anomalies) == {"lost-write": 2}
    assert outcome.excused == "9 stale-read excused: b1 lost power"


def test_a_verdict_is_none_where_the_system_did_not_start(tmp_path: Path) -> None:
    file = tmp_path / "verdict.json"
    file.write_text(json.dumps({"verdict": "unknown", "checkers": {}, "reasons": [], "excused": ""}))
    assert outcome_of(drawn(1, 1)[0], 255, file, "stormproof: it did not serve", 1.0).verdict == FAILED


@pytest.mark.parametrize(("code", "verdict"), [(254, REFUSED), (255, FAILED)])
def test_a_command_without_a_verdict_was_refused_or_failed(code: int, verdict: str) -> None:
    outcome = outcome_of(drawn(1, 1)[0], code, None, "stormproof: no", 1.0)
    assert (outcome.verdict, outcome.reasons) == (verdict, ("stormproof: no",))


def test_the_oldest_directories_go_first(tmp_path: Path) -> None:
    for name in ("first", "second", "third"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "history").write_bytes(bytes(100))
    keep_newest(tmp_path, 1000)
    assert len(list(tmp_path.iterdir())) == 3
    keep_newest(tmp_path, 0)
    assert not list(tmp_path.iterdir())


def made_page(outcomes: Sequence[Outcome], parts: Path) -> str:
    (parts / "2-second.md").write_text("### Two: a send, twice\n\nSeen.\n")
    (parts / "1-first.md").write_text("### One\n\nSeen.\n")
    (parts / "published-defects.md").write_text("| issue |\n")
    return page(outcomes, parts)


def test_the_page_counts_storms_and_has_all_parts_in_order(tmp_path: Path) -> None:
    new = Storm(release="5.10.0", workload="log", nemesis="kill", seed=1)
    old = Storm(release="5.4.0", workload="pop", nemesis="kill", seed=2)
    text = made_page([ended(old), ended(new, INVALID, anomalies={"lost-write": 3}), ended(old)], tmp_path)
    assert text.index("### One") < text.index("### Two") < text.index("| issue |") < text.index("### 5.10.0")
    assert "2. [Two: a send, twice](#two-a-send-twice)" in text
    assert text.index("### 5.10.0") < text.index("### 5.4.0")
    assert "| kill | 2 valid |" in text
    assert "| kill | **1 invalid** |" in text
    assert "- `log`, `kill`, seed 1: lost-write × 3" in text
    assert "| lost-write | 1 |  |" in text


def test_an_anomaly_of_one_of_several_workloads_counts_as_such(tmp_path: Path) -> None:
    both = Storm(release="5.4.0", workload="log+pop", nemesis="kill", seed=1)
    one = Storm(release="5.4.0", workload="pop", nemesis="kill", seed=2)
    outcomes = [
        ended(both, INVALID, anomalies={"pop/lost": 3, "log/lost": 1}),
        ended(one, INVALID, anomalies={"lost": 1}),
    ]
    assert "| lost | 2 |" in made_page(outcomes, tmp_path)


def test_only_the_page_is_written_where_no_storm_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    arguments = ["--count", "0", "--outcomes", str(tmp_path / "none"), "--runs", str(tmp_path), "--page", str(file)]
    assert main(arguments, lambda line: None) == 0
    assert file.read_text("utf-8").startswith("# ")


def test_every_finding_begins_with_its_heading() -> None:
    for file in finding_files(PARTS):
        assert file.read_text("utf-8").startswith("### "), file.name


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_suites_that_show_findings_are_read(path: Path) -> None:
    assert load_suite(str(path)).scenarios


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.txt")), ids=lambda path: path.stem)
def test_schedules_that_show_findings_are_read(path: Path) -> None:
    scenario = Scenario(system="rocketmq", workload="log", environment="docker", settings={"release": "5.4.0"})
    assert registry.resolve(replace(scenario, schedule=lines_of(path), time_limit_s=90.0)).packages


def test_pages_name_every_storm_that_shows_a_finding() -> None:
    text = "".join(file.read_text("utf-8") for file in (*finding_files(PARTS), *OTHERS.glob("*.md")))
    for file in (*EXAMPLES.glob("*.toml"), *EXAMPLES.glob("*.txt")):
        assert f"examples/findings/{file.name}" in text, file.name
