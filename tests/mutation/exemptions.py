"""Changes that no test can or should notice, as a person found: `known.txt`.

    checkers/buckets.py bucket_count
    - return max(1, -(-rows // BUCKET_ROWS))
    + return max(2, -(-rows // BUCKET_ROWS))
    work: one bucket more

The first word of the last line is the kind: `equivalent` (nothing differs), `work` (how much is done, or when it is
given up, but no answer), or `words` (of an explanation, or which of several equal examples is shown).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.changes import Wording, changes
from tests.mutation.concerns import ROOT

FILE = Path(__file__).with_name("known.txt")
KINDS = ("equivalent", "work", "words")
_ENTRY = re.compile(r"(\S+) (.+)\n- (.+)\n\+ (.+)\n(\w+): (.+)")


@dataclass(frozen=True, kw_only=True)
class Exemption:
    kind: str
    why: str


def parse(text: str) -> dict[Wording, Exemption]:
    """Raises ValueError if an entry is not written as above, or is there twice."""
    found: dict[Wording, Exemption] = {}
    for entry in re.split(r"\n{2,}", text.strip()) if text.strip() else ():
        match = _ENTRY.fullmatch(entry)
        if match is None or match[5] not in KINDS:
            raise ValueError(f"not an entry:\n{entry}")
        wording = Wording(path=match[1], function=match[2], before=match[3], after=match[4])
        if wording in found:
            raise ValueError(f"there twice:\n{entry}")
        found[wording] = Exemption(kind=match[5], why=match[6])
    return found


def read_exemptions() -> dict[Wording, Exemption]:
    return parse(FILE.read_text())


def gone(entries: dict[Wording, Exemption]) -> list[Wording]:
    """Those that are no change of what stands in the modules now."""
    there = {
        change.wording
        for path in {wording.path for wording in entries}
        if (ROOT / path).exists()
        for change in changes(ROOT / path, path)
    }
    return [wording for wording in entries if wording not in there]


def by_kind(entries: Iterable[Exemption]) -> str:
    counts = Counter(entry.kind for entry in entries)
    return ", ".join(f"{counts[kind]} {kind}" for kind in KINDS)
