"""Drawings of cycles: their transactions and dependencies, from the anomaly's details alone, and of nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import AnomalySummary, CheckerResult, Verdict
from results.report import write_report
from results.report.cycle import DRAWN, LABEL_LETTERS, LETTERS, cycle_drawing
from results.report.page import document
from results.verdict_file import VerdictFile, write_verdict

KINDS = ("ww", "wr", "rw", "process", "realtime")


def cycle_of(count: int, *, operations: int = 3) -> dict[str, Any]:
    names = [f"T{number + 1}" for number in range(count)]
    return {
        "transactions": [
            {
                "name": name,
                "index": 2 * number,
                "process": number % 3,
                "operations": [f"append x{line} {number}" for line in range(operations)],
            }
            for number, name in enumerate(names)
        ],
        "edges": [
            {
                "kind": KINDS[number % len(KINDS)],
                "source": name,
                "target": names[(number + 1) % count],
                "key": f"x{number}" if number % len(KINDS) < 3 else None,
                "because": f"{name} <is> before",
            }
            for number, name in enumerate(names)
        ],
        "edges_left_out": 0,
    }


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


@pytest.mark.parametrize("count", range(2, 13))
def test_every_transaction_and_every_edge_is_drawn_once_and_apart(count: int) -> None:
    svg = parsed(cycle_drawing(cycle_of(count)))
    boxes = [group.find("rect") for group in svg.findall("g") if not group.get("class")]
    frames = [
        tuple(float(box.get(name, "")) for name in ("x", "y", "width", "height")) for box in boxes if box is not None
    ]
    assert len(frames) == count
    width, height = (float(size) for size in svg.get("viewBox", "").split()[2:])
    for number, (x, y, w, h) in enumerate(frames):
        assert x >= 0 and x + w <= width and y >= 0 and y + h <= height
        for x2, y2, w2, h2 in frames[:number]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
    arrows = [group for group in svg.findall("g") if group.get("class")]
    assert [group.get("class") for group in arrows] == [f"edge {KINDS[n % len(KINDS)]}" for n in range(count)]
    assert [group.findtext("title") for group in arrows] == [f"T{n + 1} <is> before" for n in range(count)]
    assert width == 1020 and height < 160 * (count // 2 + 1)


def test_the_report_shows_the_drawing_and_the_steps_line_by_line(tmp_path: Path) -> None:
    details = cycle_of(3) | {"steps": ["T1 <reads> from T3.", "So T1 before T1."]}
    example = Anomaly(name="G1c", operations=(0, 2, 4), because="T1 <reads> from T3. So T1 before T1.", details=details)
    found = CheckerResult(verdict=Verdict.INVALID, anomalies={"G1c": AnomalySummary(count=1, examples=(example,))})
    write_verdict(tmp_path, VerdictFile(verdict=Verdict.INVALID, checkers={"elle": found}))
    assert write_report(tmp_path) is None
    page = (tmp_path / "report.html").read_text()
    assert "T1 &lt;reads&gt; from T3.<br>So T1 before T1.</p><svg" in page
    assert page.count('class="cycle"') == 1 and 'class="edge wr"' in page


def test_of_cases_the_report_says_which_is_drawn(tmp_path: Path) -> None:
    example = Anomaly(name="not-serializable", because="Case 1.2: …", details=cycle_of(3) | {"case": "1.2"})
    found = CheckerResult(
        verdict=Verdict.INVALID, anomalies={"not-serializable": AnomalySummary(count=1, examples=(example,))}
    )
    write_verdict(tmp_path, VerdictFile(verdict=Verdict.INVALID, checkers={"elle": found}))
    assert write_report(tmp_path) is None
    assert 'Of these, case 1.2:</p><svg class="cycle"' in (tmp_path / "report.html").read_text()


def test_long_words_are_cut_in_the_middle() -> None:
    details = cycle_of(2)
    details["transactions"][0]["operations"][1] = "r x = [" + ", ".join(map(str, range(100))) + "]"
    details["edges"][0]["key"] = "of-a-tenant/customer-accounts/17"
    drawing = cycle_drawing(details)
    assert "97, 98, 99]" in "".join(parsed(drawing).itertext())
    lines = re.findall(r'<text class="operation"[^>]*>(.*?)</text>', drawing)
    assert len(lines) == 6 and all(len(line) <= LETTERS for line in lines)
    labels = re.findall(r'<text x="[^"]*" y="[^"]*">([^<]*)</text></g>', drawing)
    assert labels == ["ww of-a-t … ounts/17", "wr x1"] and all(len(label) <= LABEL_LETTERS for label in labels)


@pytest.mark.parametrize("count", [2, 4, 7])
def test_a_label_covers_no_arrow(count: int) -> None:
    details = cycle_of(count)
    for edge in details["edges"]:
        edge["key"] = "a-key-with-quite-a-long-name"
    for arrow in parsed(cycle_drawing(details)).findall("g[@class]"):
        line, label = arrow.find("line"), arrow.find("rect")
        assert line is not None and label is not None
        if line.get("y1") == line.get("y2"):
            length = abs(float(line.get("x2", "")) - float(line.get("x1", "")))
            assert float(label.get("width", "")) <= length - 40


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"transactions": 2, "value": 3},
        {"transactions": [], "edges": []},
        {"transactions": [1], "edges": [1, 2]},
        cycle_of(2) | {"edges_left_out": 1},
        cycle_of(2) | {"edges": cycle_of(3)["edges"][:2]},
        cycle_of(DRAWN + 1),
    ],
)
def test_what_is_no_cycle_is_not_drawn(details: dict[str, Any]) -> None:
    assert cycle_drawing(details) == ""


def test_everything_that_comes_from_outside_is_escaped() -> None:
    details = cycle_of(2)
    details["transactions"][0] |= {"process": "<b>", "operations": ["<script>"]}
    details["edges"][0] |= {"key": "<i>", "kind": "<u>"}
    assert not re.search("<(b|script|i|u)>", document("", [cycle_drawing(details)], css="", scripts=[]))
