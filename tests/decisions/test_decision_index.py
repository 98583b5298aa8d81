"""The index of decisions is what its program makes, and a reference to a record is found again."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.decisions.index import (
    DOCS,
    INDEX,
    NUMBERS,
    README,
    SYSTEMS,
    NotARecordError,
    anchor,
    files,
    index,
    readme,
    records,
)

ROOT = DOCS.parent
NEVER_GIVEN = {
    39,
    *range(44, 50),
    *range(54, 60),
    69,
    79,
    84,
    98,
    *range(154, 160),
    164,
    168,
    179,
    180,
    194,
    195,
    197,
    204,
    206,
}
REFERENCE = re.compile(rf"\b[Dd]ecisions?\s+({NUMBERS})")
NUMBER_ALONE = re.compile(r"(?<![\d.])\b0\d{3}\b")
"""In the records themselves, which also refer to each other as (0146)."""
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", flags=re.MULTILINE)


@cache
def texts() -> dict[Path, str]:
    """Of all files of the project that may refer to a record."""
    folders = [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]
    paths = [*ROOT.glob("*.*"), *(path for folder in folders for path in folder.rglob("*.*"))]
    return {path: path.read_text("utf-8") for path in paths if path.suffix in (".py", ".md", ".toml")}


def markdown() -> dict[Path, str]:
    return {path: text for path, text in texts().items() if path.suffix == ".md"}


def pages() -> list[Path]:
    """All that records are in."""
    folders = DOCS / "decisions", *(DOCS / "decisions" / folder for folder in SYSTEMS), DOCS / "lab", DOCS / "systems"
    return [path for folder in folders for path in sorted(folder.glob("*.md"))]


def test_the_index_is_what_its_program_makes_of_the_records() -> None:
    assert (DOCS / README).read_text("utf-8") == readme(DOCS), "python -m tests.decisions.index"


def test_no_number_is_used_twice_and_none_that_was_ever_given_is_lost() -> None:
    used = Counter(int(number) for record in records(DOCS) for number in record.numbers)
    assert [number for number, times in used.items() if times > 1] == []
    assert set(used) == set(range(1, max(used) + 1)) - NEVER_GIVEN


def test_a_subject_has_more_than_one_record() -> None:
    for folder in (DOCS / "decisions", *(DOCS / "decisions" / system for system in SYSTEMS)):
        subjects = Counter(record.group for record in files(folder, DOCS))
        assert [subject for subject, count in subjects.items() if count == 1] == []


def test_every_section_that_names_a_record_is_found() -> None:
    found = Counter(record.place.partition("#")[0] for record in records(DOCS) if "#" in record.place)
    for path in pages():
        lines = [line for line in path.read_text("utf-8").splitlines() if re.match(r"Records? \d", line)]
        assert found[path.relative_to(DOCS).as_posix()] == len(lines), path


def test_every_record_that_a_text_names_by_its_number_is_there() -> None:
    known = {number for record in records(DOCS) for number in record.numbers}
    named = [
        (path, number)
        for path, text in texts().items()
        for numbers in REFERENCE.findall(text)
        for number in re.findall(r"\d{4}", numbers)
    ]
    assert len(named) > 20
    assert [(path, number) for path, number in named if number not in known] == []
    for path in pages():
        if path.parent.name != "systems":
            assert set(NUMBER_ALONE.findall(path.read_text("utf-8"))) <= known, path.name


def test_every_link_to_a_record_leads_to_a_file_and_to_its_heading() -> None:
    places, followed = set(pages()), 0
    for source, text in markdown().items():
        for target in LINK.findall(text):
            place, _, heading = target.partition("#")
            path = (source.parent / place).resolve() if place else source
            if re.search(r"\d{4}-[\w-]+\.md$", place):
                assert path.exists(), f"{source}: {target}"
            if path in places:
                followed += 1
                assert not heading or heading in map(anchor, HEADING.findall(texts()[path])), f"{source}: {target}"
    assert followed > 150


def test_a_record_without_a_subject_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "decisions"
    folder.mkdir()
    (folder / "0001-one.md").write_text("# 0001 One\n\nSubject: Faults; with records 0002 and 0003\n\nText.\n", "utf-8")
    (record,) = files(folder, tmp_path)
    assert (record.numbers, record.group) == (("0001", "0002", "0003"), "Faults")
    (folder / "0004-four.md").write_text("# 0004 Four\n\n**Decision.** None.\n", "utf-8")
    with pytest.raises(NotARecordError, match=r"0004-four\.md"):
        files(folder, tmp_path)


def test_the_index_notices_a_record_that_is_new_and_keeps_what_people_wrote(tmp_path: Path) -> None:
    folder = tmp_path / "decisions"
    folder.mkdir()
    (tmp_path / README).write_text(f"# Decisions\n\nRules.\n\n{INDEX}\n\nof before\n", "utf-8")
    before = index(tmp_path)
    (folder / "0001-one.md").write_text("# 0001 One\n\nSubject: Faults\n\nText.\n", "utf-8")
    assert "**Faults**\n\n- [0001](0001-one.md) One\n" in index(tmp_path)
    assert index(tmp_path) != before
    assert readme(tmp_path).startswith(f"# Decisions\n\nRules.\n\n{INDEX}\n\nMade by")
