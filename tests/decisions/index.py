"""The index of decision records by subject: the part of docs/decisions/README.md below `INDEX` is made by this.

    python -m tests.decisions.index

A record is a file `NNNN-….md` in docs/decisions, or in the folder of one of our systems there. Its first line is its
number and title. Its third line is the subject, and the numbers of overtaken records that were merged into it:

    Subject: Faults; with record 0004

Records of measured experiments are sections of the pages in docs/lab. Records about one system that others made are
sections of its page in docs/systems. There the numbers stand below the heading: `Record 0135`, `Records 0137 and 0146`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
README = Path("decisions") / "README.md"
SYSTEMS = {
    "rocketmq": "The RocketMQ that comes with Stormproof",
    "dledger": "The DLedger that comes with Stormproof",
    "bookkeeper": "The BookKeeper that comes with Stormproof",
    "cmq": "The CMQ that comes with Stormproof",
}
"""Our own systems: the title of each folder of records."""
INDEX = "## Index"
MADE = "Made by `python -m tests.decisions.index` of the first lines of the records; what people write stands above."
NUMBER = r"\d{4}"
NUMBERS = rf"{NUMBER}(?:(?:, | and ){NUMBER})*"
TITLE = re.compile(rf"# ({NUMBER}) (\S.*)")
SUBJECT = re.compile(rf"Subject: ([^;]+?)(?:; with records? ({NUMBERS}))?")
SECTION = re.compile(rf"^(#{{2,3}}) (.+)\n\nRecords? ({NUMBERS})$", flags=re.MULTILINE)


class NotARecordError(ValueError):
    """The head of a file does not have the form of a record."""


@dataclass(frozen=True)
class Record:
    """The numbers are the record's own, and those of overtaken ones that were merged into it."""

    numbers: tuple[str, ...]
    title: str
    group: str
    """Its subject; for a section of a page, the page's title."""
    place: str
    """Below docs/, with the anchor of the section if it is one."""


def readme(docs: Path) -> str:
    """What people wrote, as it is, with an index of the records that are there now."""
    written, _, _ = (docs / README).read_text("utf-8").partition(f"{INDEX}\n")
    return f"{written}{INDEX}\n\n{MADE}\n\n{index(docs)}"


def index(docs: Path) -> str:
    parts = [
        ("### Architecture of the harness", _listed(files(docs / "decisions", docs))),
        *((f"### {title}", _listed(files(docs / "decisions" / folder, docs))) for folder, title in SYSTEMS.items()),
        ("### Measured experiments, a page a subject", _listed(sections(docs / "lab", docs), linked=True)),
        ("### Systems that others made", _listed(sections(docs / "systems", docs), linked=True)),
    ]
    return "\n".join(f"{heading}\n\n{listed}" for heading, listed in parts)


def records(docs: Path) -> list[Record]:
    folders = docs / "decisions", *(docs / "decisions" / folder for folder in SYSTEMS)
    pages = docs / "lab", docs / "systems"
    return [
        *(record for folder in folders for record in files(folder, docs)),
        *(record for folder in pages for record in sections(folder, docs)),
    ]


def files(folder: Path, docs: Path) -> list[Record]:
    """In the order of their numbers."""
    return [_file(path, docs) for path in sorted(folder.glob("*.md")) if path.name != README.name]


def _file(path: Path, docs: Path) -> Record:
    lines = path.read_text("utf-8").splitlines()
    title, subject = TITLE.fullmatch(lines[0]), SUBJECT.fullmatch(lines[2])
    if title is None or subject is None or lines[1] or not path.name.startswith(f"{title[1]}-"):
        raise NotARecordError(f"{path.name} begins with {lines[:3]}, not with a title, an empty line and a subject")
    numbers = (title[1], *re.findall(NUMBER, subject[2] or ""))
    return Record(numbers, title[2], subject[1], path.relative_to(docs).as_posix())


def sections(folder: Path, docs: Path) -> list[Record]:
    """In the order of pages, and within a page in that of its sections."""
    return [record for path in sorted(folder.glob("*.md")) for record in _sections(path, docs)]


def _sections(path: Path, docs: Path) -> Iterable[Record]:
    text = path.read_text("utf-8")
    page, place = text.splitlines()[0].lstrip("# "), path.relative_to(docs).as_posix()
    for _, heading, numbers in SECTION.findall(text):
        yield Record(tuple(re.findall(NUMBER, numbers)), heading, page, f"{place}#{anchor(heading)}")


def anchor(heading: str) -> str:
    """As GitHub makes them."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _listed(of: Sequence[Record], *, linked: bool = False) -> str:
    """By group, the one with the first record first; its heading is a link if groups are pages."""
    lines: list[str] = []
    for group in dict.fromkeys(record.group for record in of):
        those = [record for record in of if record.group == group]
        page = _link(those[0].place.partition("#")[0])
        lines += [f"**[{group}]({page})**" if linked else f"**{group}**", ""]
        lines += [*map(_line, those), ""]
    return "\n".join(lines)


def _line(record: Record) -> str:
    if "#" in record.place:
        return f"- [{', '.join(record.numbers)}]({_link(record.place)}) {record.title}"
    number, *merged = record.numbers
    return f"- [{number}]({_link(record.place)}) {record.title}" + (f" (with {', '.join(merged)})" if merged else "")


def _link(place: str) -> str:
    return os.path.relpath(place, README.parent)


if __name__ == "__main__":
    (DOCS / README).write_text(readme(DOCS), "utf-8")
