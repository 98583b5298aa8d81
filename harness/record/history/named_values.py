"""Values that are no integers of 64 bits, numbered so that the columns of a history keep their integers.

What a test put into a set, a queue or a register may be anything: a text, a keyword, a vector, an integer of any
length. Checkers only compare such values, so each distinct one gets a number while a foreign history is read, from
FIRST on. Integers stay what they are, but for those that would be taken for such numbers, which are numbered as well.

The texts of the values that were numbered lie with the history, in the metadata of its table or file; a value is shown
as its text. A history of integers has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.record.history.metadata import metadata_of

NULL = -(1 << 63)
"""Stands for null where values are integers of 64 bits."""
FIRST = NULL + 1
"""The number of the first value that is none of these integers."""
LEAST_INTEGER = FIRST + (1 << 40)
"""Integers from here to the greatest of 64 bits are not numbered: they are their own numbers."""
METADATA = b"stormproof.values"
LONGEST_SHOWN = 200
"""Characters of a value in a message."""

_NUMBER = re.compile(r"(?<!\d)-922337\d{13}(?!\d)")
"""What a number of a value looks like, among others."""


class Numbering:
    """Numbers values by the texts that tell them apart."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, text: str) -> int:
        """The number of the value with this text."""
        return self._numbers.setdefault(text, FIRST + len(self._numbers))

    def metadata(self) -> dict[bytes, bytes]:
        """What lies with the history; nothing where no value was numbered."""
        return {METADATA: json.dumps(list(self._numbers)).encode()} if self._numbers else {}


@dataclass(frozen=True)
class ValueNames:
    """The texts of the values that were numbered, in the order of their numbers."""

    texts: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.texts)

    def with_names(self, value: Any) -> Any:
        """The same text, mapping or sequence, with what was numbered by its text; of other types the value itself."""
        if not self.texts:
            return value
        if isinstance(value, str):
            return _NUMBER.sub(lambda match: self._text(int(match[0]), match[0]), value)
        if isinstance(value, Mapping):
            return {self.with_names(key): self.with_names(item) for key, item in value.items()}
        if isinstance(value, tuple | list):
            return type(value)(map(self.with_names, value))
        return self._text(value, value) if value.__class__ is int else value

    def _text(self, number: int, otherwise: Any) -> Any:
        place = number - FIRST
        if not 0 <= place < len(self.texts):
            return otherwise
        text = self.texts[place]
        return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"

    def whole(self, number: int) -> str | None:
        """The text of a value with this number, of any length; None for an integer."""
        place = number - FIRST
        return self.texts[place] if 0 <= place < len(self.texts) else None


def names_of(history: Path | pa.Table) -> ValueNames:
    """What lies with a history of ours; nothing for a file of another kind. Raises OSError."""
    texts = metadata_of(history).get(METADATA)
    return ValueNames(json.loads(texts)) if texts else ValueNames()
