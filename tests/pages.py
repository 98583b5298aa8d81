"""The README and the pages of the guide, which tests hold against what there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
GUIDE = tuple(sorted((ROOT / "docs" / "guide").glob("*.md")))
TEXTS = {page: page.read_text(encoding="utf-8") for page in (README, *GUIDE)}
ALL = "\n".join(TEXTS.values())
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def lines_of_blocks(program: str, text: str = ALL) -> list[str]:
    """Each line of a block that begins with that program, without what stands behind a #."""
    lines = [line for _, block in FENCED.findall(text) for line in block.splitlines()]
    return [re.sub(r"\s+# .*", "", line) for line in lines if line.startswith(f"{program} ")]


def commands_of(program: str) -> list[str]:
    """Each call of a program: between backquotes, or as a line of a block; in the order of the pages."""
    inline = [" ".join(call.split()) for call in re.findall(rf"`({program} [^`]+)`", FENCED.sub("", ALL))]
    return [*inline, *lines_of_blocks(program)]


def code(text: str) -> Iterator[str]:
    """What stands between backquotes."""
    for found in re.findall(r"`([^`]+)`", FENCED.sub("", text)):
        yield " ".join(found.split())


def rows(page: str, first: str) -> list[str]:
    """What is named in the first column of the table of a page whose first heading is that one."""
    table = TEXTS[ROOT / "docs" / "guide" / page].split(f"\n| {first} |", 1)[1].split("\n\n")[0]
    return [name for line in table.splitlines()[2:] for name in re.findall(r"`([\w-]+)`", line.split("|")[1])]
