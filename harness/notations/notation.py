"""Which notation a file or a directory has, seen from its bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.jepsen import source
from harness.jepsen.source import BrokenText
from harness.notations import cobra, dbcop_binary, dbcop_json, dbcop_text, session_blocks, tagged_lines
from harness.notations.sessions import Sessions

LONGEST_BYTES = 1 << 30
"""A history is held in memory as a whole."""


@dataclass(frozen=True, kw_only=True)
class Notation:
    name: str
    """The notation's name, which says whose it is."""
    looks_so: Callable[[bytes], bool]
    """Whether the first bytes of a text look so."""
    parse: Callable[[bytes], Sessions]
    """Raises BrokenText with the byte where it is none."""

    def read(self, path: Path) -> Sessions:
        """Raises OSError, BrokenText."""
        if path.is_dir():
            return cobra.read_directory(path)
        with source.opened(path) as text:
            content = text.read(LONGEST_BYTES + 1)
        if len(content) > LONGEST_BYTES:
            raise BrokenText(0, f"a history of {self.name} is read up to {LONGEST_BYTES >> 30} GiB")
        return self.parse(content)


COBRA = Notation(name="Cobra's logs", looks_so=cobra.looks_so, parse=cobra.parse)
NOTATIONS = (
    Notation(name="PolySI's and Plume's text", looks_so=tagged_lines.looks_so, parse=tagged_lines.parse),
    Notation(name="AWDIT's text", looks_so=session_blocks.looks_so, parse=session_blocks.parse),
    Notation(name="dbcop's text", looks_so=dbcop_text.looks_so, parse=dbcop_text.parse),
    Notation(name="dbcop's JSON", looks_so=dbcop_json.looks_so, parse=dbcop_json.parse),
    Notation(name="dbcop's binary form", looks_so=dbcop_binary.looks_so, parse=dbcop_binary.parse),
    COBRA,
)


def recognised(path: Path) -> Notation | None:
    """None where it is none of them. Raises OSError."""
    if path.is_dir():
        return COBRA if cobra.is_directory(path) else None
    try:
        with source.opened(path) as text:
            head = text.read(source.SNIFFED_BYTES)
    except BrokenText:
        return None
    return next((notation for notation in NOTATIONS if notation.looks_so(head)), None)
