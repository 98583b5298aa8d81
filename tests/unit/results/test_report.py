"""`report.html`: drawn from the run directory alone, self-contained, bounded, and never in the verdict's way."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import AnomalySummary, CheckerResult, Verdict
from harness.operation import Operation
from harness.record.fault_log import FaultWindow
from harness.record.history import HistoryWriter
from harness.record.scenario import Scenario
from results.report import escaped, write_report
from results.report.figure import figure
from results.report.head import scenario_title
from results.report.measure import BUCKETS, POINTS_OF_EACH_OUTCOME, measure, rows_at
from results.report.run_files import RoleSpan, read_run, role_spans
from results.report.witness import numbers_in, value_words
from results.verdict_file import VerdictFile, write_verdict
from tests.unit.results.synthetic_run import FAULTS, LOG_VALUE, write_history, write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = write_run(tmp_path_factory.mktemp("runs") / "20260101-1729")
    assert write_report(directory) is None
    return directory


def page(directory: Path) -> str:
    """Without the library inside."""
    return re.sub(r"<script>.*?</script>", "", (directory / "report.html").read_text(), flags=re.DOTALL)


def test_the_page_shows_the_verdict_the_witnesses_the_faults_and_how_to_replay(run: Path) -> None:
    text = page(run)
    assert "INVALID" in text
    assert "lost-write × 14" in text
    assert "send of message 712 was acknowledged by b2 at offset 178" in text
    assert "2,310" in text
    assert "a client&#x27;s retry may store a message twice" in text
    assert "12 packets stopped" in text
    assert "no effect" in text
    assert "--seed 1729" in text
    assert 'href="nodes/b1/node.log"' in text


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({"nemesis": ("partition", "kill")}, "cmq · queue · partition + kill"),
        ({"schedule": ("2 for 1 kill n1 [kill 0]",)}, "cmq · queue · a schedule"),
        ({}, "cmq · queue · no faults"),
    ],
)
def test_the_title_says_which_faults_were_asked_for(faults: dict[str, tuple[str, ...]], words: str) -> None:
    assert scenario_title(Scenario.from_json({"system": "cmq", "workload": "queue", **faults})) == words


def test_the_verdict_comes_first_and_nothing_is_shown_twice(run: Path) -> None:
    text = page(run)
    places = [text.index(words) for words in ("INVALID", "lost-write × 14: ", 'id="timeline"', "Broken promises")]
    assert places == sorted(places)
    head = text[: text.index("</header>")]
    assert head.count("lost-write") == 1
    assert "duplicate × 3, legal here: a client" in head


def test_points_are_shown_with_the_faults_that_struck_there_and_those_never_reached_by_name(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run")
    points = {
        "became-master": {"reached": 1_234, "struck_by": []},
        "alter-proposed": {"reached": 7, "struck_by": ["kill it when alter-proposed", "isolate <it>"]},
        "log-cut": {"reached": 0, "struck_by": []},
    }
    write_verdict(directory, VerdictFile(verdict=Verdict.VALID, points=points))
    assert write_report(directory) is None
    text = page(directory)
    assert "2 of 3 points were reached, faults struck at 1 of them" in text
    assert "kill it when alter-proposed; isolate &lt;it&gt;" in text
    assert text.index("alter-proposed") < text.index("became-master")
    assert "1,234" in text
    assert "Never reached: log-cut." in text


def test_three_examples_are_open_and_the_others_folded(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", seconds=1)
    examples = tuple(
        Anomaly(name="lost-write", key="storm/1", operations=(number,), because=f"message {number} is gone")
        for number in range(10)
    )
    summary = AnomalySummary(count=66, examples=examples)
    log = CheckerResult(verdict=Verdict.INVALID, anomalies={"lost-write": summary})
    write_verdict(directory, VerdictFile(verdict=Verdict.INVALID, checkers={"log": log}))
    write_report(directory)
    text = page(directory)
    opened, _, folded = text[text.index("Broken promises") :].partition("<summary>7 examples more</summary>")
    assert [number for number in range(10) if f"message {number} is gone" in opened] == [0, 1, 2]
    assert all(f"message {number} is gone" in folded for number in range(3, 10))
    assert "56 more of the kind" in folded


def test_figures_of_operations_are_one_table_with_times_a_reader_can_read(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", seconds=1)
    figures = {
        "operations": {"poll": {"invoke": 3, "ok": 3}, "send": {"invoke": 1234, "ok": 1200, "info": 34}},
        "ok_latency": {"send": {"p50_ns": 2_686_976, "max_ns": 1_500_000_000}},
    }
    statistics = CheckerResult(verdict=Verdict.VALID, statistics=figures)
    write_verdict(directory, VerdictFile(verdict=Verdict.VALID, checkers={"statistics": statistics}))
    write_report(directory)
    text = page(directory)
    table = re.sub("<[^>]+>", " ", text[text.index("<h2>Checkers") : text.index("<h2>Nodes")]).split()
    joined = " ".join(table)
    assert "invoke ok info p50 max" in joined
    assert "send 1,234 1,200 34 2.7 ms 1.50 s" in joined
    assert "poll 3 3 – – –" in joined
    assert "ns" not in table


def test_outages_are_shown_by_operation_and_by_fault_with_what_was_lost(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", seconds=1)
    outages = {"outages": 4, "unfinished": 1, "p50_ns": 2_500_000_000, "p90_ns": 3_000_000_000, "max_ns": 4_000_000_000}
    measured = {
        "lasting_successes": 3,
        "lasting_window_s": 1.0,
        "recovery": {"send by queue": {"streams": 7, **outages, "without_service": 0.125, "worst": 0.5}},
        "faults": [{"fault": "isolate <primary>", "start_ns": 8_000_000_000, "recovery": {"send by queue": outages}}],
    }
    at_risk = [
        {"fault": "kill b1", "start_ns": 9_000_000_000, "lost": 1234, "span_ns": 70_000_000, "reach_ns": 60_000_000},
        {"fault": "no fault", "start_ns": None, "lost": 2, "span_ns": 0},
    ]
    checkers = {
        "availability": CheckerResult(verdict=Verdict.VALID, statistics=measured),
        "log": CheckerResult(verdict=Verdict.VALID, statistics={"data_at_risk": at_risk, "acked": 17}),
    }
    write_verdict(directory, VerdictFile(verdict=Verdict.VALID, checkers=checkers))
    assert write_report(directory) is None
    text = page(directory)
    section = text[text.index("<h2>Availability</h2>") :]
    section = section[: section.index("</section>")]
    for words in (
        "2.50 s",
        "4.00 s",
        "12.50%",
        "50.00%",
        "isolate &lt;primary&gt;",
        "8.00 s",
        "1,234",
        "60.0 ms",
        "70.0 ms",
    ):
        assert words in section
    checkers_section = text[text.index("<h2>Checkers</h2>") :]
    assert "acked" in checkers_section
    assert "p90" not in checkers_section


def test_a_witness_shows_the_part_of_a_long_poll_that_it_is_about() -> None:
    poll = {"offset": 30, "messages": [{"offset": i, "message": 100 + i} for i in range(30)]}
    assert "20: 120" not in value_words(poll)
    words = value_words(poll, numbers_in({"message": 120, "offset": 20}))
    assert "[…, 18: 118, 19: 119, 20: 120, 21: 121," in words
    assert "(30 in all)" in words


def test_the_page_needs_nothing_from_anywhere_else(run: Path) -> None:
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", page(run))
    assert "Plotly.react" in (run / "report.html").read_text()


def test_what_comes_from_outside_is_escaped(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", seconds=1)
    scenario = json.loads((directory / "scenario.json").read_text())
    scenario |= {"system": "<script>alert(1)</script>", "replay": '"><img src=x>'}
    (directory / "scenario.json").write_text(json.dumps(scenario))
    write_report(directory)
    text = (directory / "report.html").read_text()
    assert "<script>alert(1)" not in text
    assert "<img src=x>" not in text


def test_the_masters_succeed_each_other_and_the_dead_play_no_part(run: Path) -> None:
    found = read_run(run, 60.0, None).roles
    masters = [(span.node, span.start_s, span.stop_s) for span in found if span.role == "master"]
    assert masters == [("b1", 0.4, 14.6), ("b2", 12.2, 18.5), ("b3", 21.9, 60.0)]
    assert [(span.node, span.epoch) for span in found if span.role == "leader"] == [("c1", 1)]


def test_a_role_reported_twice_is_one_span() -> None:
    events = iter([{"event": "role", "role": "slave", "epoch": 1, "time": t * 10**9} for t in (1, 2)])
    (span,) = role_spans("b1", events, (), 9.0)
    assert span == RoleSpan(node="b1", role="slave", epoch=1, start_s=1.0, stop_s=9.0)


def test_an_empty_role_ends_the_one_before() -> None:
    events = [{"event": "role", "role": role, "time": t * 10**9} for t, role in enumerate(("owner", "", "auditor"))]
    spans = [(span.role, span.start_s, span.stop_s) for span in role_spans("p1", iter(events), (), 9.0)]
    assert spans == [("owner", 0.0, 1.0), ("auditor", 2.0, 9.0)]


def test_the_killed_play_no_part() -> None:
    fault = {"kind": "kill+pause", "faults": [{"kind": "pause", "nodes": ["b2"]}, {"kind": "kill", "nodes": ["b3"]}]}
    window = FaultWindow(kind="kill+pause", nodes=("b2", "b3"), start_ns=10**9, stop_ns=2 * 10**9, fault=fault)
    events = [{"event": "role", "role": "slave", "epoch": 1, "time": 0}]
    stops = [role_spans(node, iter(events), (window,), 9.0)[0].stop_s for node in ("b2", "b3")]
    assert stops == [9.0, 1.0]


def test_every_operation_is_counted_and_latencies_are_those_of_the_history(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history.arrows", LOG_VALUE)
    ms = 1_000_000
    for number, (latency_ms, outcome) in enumerate([(1, "ok"), (3, "ok"), (100, "ok"), (7, "fail"), (9, "info")]):
        start = number * 1000 * ms
        writer.append(Operation(number, "invoke", "send", time=start))
        writer.append(Operation(-1, "info", "start-kill", time=start))
        error = None if outcome == "ok" else "client-timeout"
        writer.append(Operation(number, outcome, "send", time=start + latency_ms * ms, error=error))  # type: ignore[arg-type]
    writer.append(Operation(77, "invoke", "poll", time=9000 * ms))
    writer.close()
    measured = measure(tmp_path / "history.parquet")
    assert measured.counts == {"poll": {"invoke": 1}, "send": {"fail": 1, "info": 1, "invoke": 5, "ok": 3}}
    assert measured.errors == {("send", "fail", "client-timeout"): 1, ("send", "info", "client-timeout"): 1}
    latency = measured.latencies["send"]
    assert latency.worst == 100
    assert latency.median == pytest.approx(3, rel=0.07)
    assert measured.points["info"].latency_ms.tolist() == [9]
    assert sum(rates.sum() for rates in measured.rates.values()) * measured.bucket_s == pytest.approx(5)


def test_a_long_history_gives_a_page_of_bounded_size(tmp_path: Path) -> None:
    rows = write_history(tmp_path, seconds=600, rate=100)
    measured = measure(tmp_path / "history.parquet")
    assert measured.rows == rows == 120_000
    sizes = [len(points.index) for points in measured.points.values()]
    assert max(sizes) <= POINTS_OF_EACH_OUTCOME
    assert min(sizes) > 100, "failures and unknowns must not be crowded out"
    assert len(measured.median_ms) == BUCKETS
    assert len(json.dumps(figure(measured, (), (), ()))) < 400_000


def test_pairs_are_found_across_the_batches_a_history_is_read_in(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history.arrows", LOG_VALUE)
    writer.append(Operation(0, "invoke", "send", time=0))
    for number in range(70_000):
        writer.append(Operation(1, "invoke" if number % 2 == 0 else "ok", "poll", time=1000 + number))
    writer.append(Operation(0, "ok", "send", time=5_000_000))
    writer.close()
    measured = measure(tmp_path / "history.parquet")
    assert measured.latencies["send"].worst == 5.0
    assert not np.isnan(measured.latencies["poll"].median)


def test_witnesses_are_found_by_their_index(run: Path) -> None:
    rows = rows_at(run / "history.parquet", [0, 11_999, 5000, 10**9])
    assert sorted(rows) == [0, 5000, 11_999]
    assert all(row["index"] == index for index, row in rows.items())


def test_a_broken_history_leaves_a_page_that_says_so_with_the_verdict_on_it(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", verdict=Verdict.UNKNOWN, seconds=1)
    (directory / "history.parquet").write_bytes(b"PAR1 and nothing more")
    verdict = (directory / "verdict.json").read_bytes()
    problem = write_report(directory)
    assert problem is not None
    assert "the history could not be read" in problem
    assert "UNKNOWN" in page(directory)
    assert (directory / "verdict.json").read_bytes() == verdict


def test_an_empty_directory_gives_a_page_without_verdict(tmp_path: Path) -> None:
    assert write_report(tmp_path) is None
    assert "NO VERDICT" in page(tmp_path)


def test_a_page_that_cannot_be_written_is_reported_and_not_raised(tmp_path: Path) -> None:
    problem = write_report(tmp_path / "is-not-there")
    assert problem is not None
    assert "the report could not be written" in problem


@pytest.mark.skipif(shutil.which("chromium") is None, reason="not run: no chromium here")
def test_a_browser_draws_the_chart_and_meets_no_error(run: Path) -> None:
    browser = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000"]
    dom = subprocess.run(
        [*browser, "--dump-dom", (run / "report.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    assert "could not be drawn" not in re.sub(r"<script>.*?</script>", "", dom, flags=re.DOTALL)
    drawn = dom[dom.index('id="timeline"') :]
    assert "main-svg" in drawn
    assert all(f">{kind}</text>" in drawn for kind, *_ in FAULTS)


def test_every_part_of_the_page_escapes_by_the_one_function() -> None:
    """Which also shows what no page shows: controls, and characters that turn the direction of text."""
    parts = sorted(Path(escaped.__file__).parent.glob("*.py"))
    assert len(parts) > 5
    for part in parts:
        own = part.name == "escaped.py"
        assert bool(re.search(r"^(from|import) html\b", part.read_text(), re.MULTILINE)) is own, part
    assert escaped.escape("<b>\x1b\u202e\n") == r"&lt;b&gt;\x1b\u202e\n"


def test_a_node_of_several_groups_leads_until_it_leads_none() -> None:
    def event(second: int, name: str, group: str) -> dict[str, object]:
        return {"time": second * 10**9, "event": name, "group": group, "term": second}

    events = (
        *(event(1, "leader", "g1"), event(2, "leader", "g2"), event(3, "follower", "g1"), event(5, "follower", "g2")),
        *(event(6, "leader", "g1"), event(7, "follower", "g2")),
    )
    spans = [(span.role, span.epoch, span.start_s, span.stop_s) for span in role_spans("n1", events, (), 9.0)]
    assert spans == [("leader", 1, 1.0, 5.0), ("follower", 5, 5.0, 6.0), ("leader", 6, 6.0, 9.0)]
