"""The page on what storms show of published releases: counts made of a campaign's outcomes, between parts that people
wrote.

The parts are Markdown files: `introduction.md`, one for each finding in the order of their names, and
`published-defects.md`. A finding's first line is its heading, and the page links to it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.rocketmq.findings.outcomes import INVALID, VALID, VERDICTS, Outcome
from tests.rocketmq.findings.storms import PACKAGES, WORKLOADS

PARTS = Path(__file__).parents[3] / "docs" / "findings" / "rocketmq"
INTRODUCTION, PUBLISHED = "introduction.md", "published-defects.md"
MADE = "Made by `make findings`; what people wrote of it lies in `docs/findings/rocketmq/`, and is changed there."
LEGEND = "A cell counts storms: valid, unknown, **invalid**; *refused* by the harness, or *failed* of itself."


def page(outcomes: Sequence[Outcome], parts: Path) -> str:
    findings = [file.read_text("utf-8").strip() for file in finding_files(parts)]
    sections = [
        "# What storms show of Apache RocketMQ's releases",
        MADE,
        _part(parts / INTRODUCTION),
        "## Findings",
        "\n".join(_links(findings)),
        *findings,
        "## Published defects, and which of them were found again",
        _part(parts / PUBLISHED),
        "## Storms",
        "\n".join(_totals(outcomes)),
        "\n".join(_anomalies(outcomes)),
        LEGEND,
        *(_release(release, outcomes) for release in _releases(outcomes)),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def finding_files(parts: Path) -> list[Path]:
    """In the order of the numbers with which their names begin."""
    files = (file for file in parts.glob("*.md") if file.name not in (INTRODUCTION, PUBLISHED))
    return sorted(files, key=lambda file: int(file.name.partition("-")[0]))


def _part(file: Path) -> str:
    return file.read_text("utf-8").strip() if file.exists() else ""


def _links(findings: Iterable[str]) -> list[str]:
    headings = [text.splitlines()[0].lstrip("# ") for text in findings]
    return [f"{number}. [{heading}](#{_anchor(heading)})" for number, heading in enumerate(headings, 1)]


def _anchor(heading: str) -> str:
    """As GitHub makes them."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _releases(outcomes: Iterable[Outcome]) -> list[str]:
    """The newest first."""
    numbers = {one.storm.release for one in outcomes}
    return sorted(numbers, key=lambda release: [int(part) for part in release.split(".")], reverse=True)


def _totals(outcomes: Sequence[Outcome]) -> list[str]:
    lines = [f"| release | storms | {' | '.join(VERDICTS)} | beyond the storm's own length, median |"]
    lines.append("|---" * (len(VERDICTS) + 3) + "|")
    for release in _releases(outcomes):
        those = [one for one in outcomes if one.storm.release == release]
        count = Counter(one.verdict for one in those)
        known = sorted(one.beyond_s for one in those if one.beyond_s is not None)
        beyond = f"{known[len(known) // 2]:.0f} s" if known else ""
        cells = " | ".join(str(count[verdict]) for verdict in VERDICTS)
        lines.append(f"| {release} | {len(those)} | {cells} | {beyond} |")
    return lines


def _anomalies(outcomes: Sequence[Outcome]) -> list[str]:
    """In how many storms of each release a promise was seen broken."""
    releases = _releases(outcomes)
    storms = Counter(
        found for one in outcomes for found in {(_plain(name), one.storm.release) for name in one.anomalies}
    )
    if not storms:
        return []
    lines = [f"| storms with | {' | '.join(releases)} |", "|---" * (len(releases) + 1) + "|"]
    for name in sorted({name for name, _ in storms}):
        lines.append(f"| {name} | {' | '.join(str(storms[name, release] or '') for release in releases)} |")
    return lines


def _plain(anomaly: str) -> str:
    """Without the workload that it belongs to where several were put into one storm: `pop/lost`."""
    return anomaly.rpartition("/")[2]


def _release(release: str, outcomes: Iterable[Outcome]) -> str:
    those = [one for one in outcomes if one.storm.release == release]
    workloads = _known_first(WORKLOADS, (one.storm.workload for one in those))
    packages = _known_first(PACKAGES, (one.storm.nemesis for one in those))
    lines = [f"### {release}", "", f"| faults | {' | '.join(workloads)} |", "|---" * (len(workloads) + 1) + "|"]
    for package in packages:
        cells = (
            _cell([one for one in those if (one.storm.workload, one.storm.nemesis) == (workload, package)])
            for workload in workloads
        )
        lines.append(f"| {package} | {' | '.join(cells)} |")
    lines += _broken_promises(one for one in those if one.verdict == INVALID)
    return "\n".join(lines)


def _known_first(order: Sequence[str], met: Iterable[str]) -> list[str]:
    names = set(met)
    return [*(name for name in order if name in names), *sorted(names - set(order))]


def _cell(outcomes: Sequence[Outcome]) -> str:
    count = Counter(one.verdict for one in outcomes)
    return ", ".join(_counted(count[verdict], verdict) for verdict in VERDICTS if count[verdict])


def _counted(number: int, verdict: str) -> str:
    words = f"{number} {verdict}"
    return words if verdict == VALID else f"**{words}**" if verdict == INVALID else f"*{words}*"


def _broken_promises(invalid: Iterable[Outcome]) -> list[str]:
    lines = [
        f"- `{one.storm.workload}`, `{one.storm.nemesis}`, seed {one.storm.seed}: "
        + ", ".join(f"{name} × {count}" for name, count in one.anomalies.items())
        for one in invalid
    ]
    return ["", "Storms that broke a promise:", "", *lines] if lines else []
