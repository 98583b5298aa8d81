"""The words of an SQL92 filter, and how its errors are told."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

MAX_CHARACTERS: Final = 1 << 16

KEYWORDS: Final = frozenset(
    ("NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS", "CONTAINS", "STARTSWITH", "ENDSWITH")
)


class SqlError(ValueError):
    """An expression that is none; `position` counts characters from 1."""

    def __init__(self, position: int, expected: str, got: str) -> None:
        super().__init__(f"character {position}: expected {expected}, got {got}")
        self.position = position
        self.expected = expected
        self.got = got


class Kind(Enum):
    NAME = "a name"
    TEXT = "a text"
    WHOLE = "a whole number"
    FRACTION = "a number"
    KEYWORD = "a keyword"
    SIGN = "a sign"
    END = "the end"


class Token(NamedTuple):
    """`text` is as written, keywords in capitals; `position` counts characters from 1."""

    kind: Kind
    text: str
    position: int

    def __str__(self) -> str:
        return "the end" if self.kind is Kind.END else repr(self.text[:40])

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords or signs."""
        return self.kind in (Kind.KEYWORD, Kind.SIGN) and self.text in words


_BLANK: Final = re.compile(r"(?:[ \t\n\r\f]+|--[^\n\r]*|/\*(?s:.*?)\*/)*")
_TOKEN: Final = re.compile(
    r"(?P<FRACTION>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)"
    r"|(?P<WHOLE>0|[1-9][0-9]*[lL]?)"
    r"|(?P<TEXT>'(?:''|[^'])*+')"
    r"|(?P<NAME>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<SIGN><>|<=|>=|[=<>(),+-])"
)


def tokens_of(expression: str) -> list[Token]:
    """All tokens, the end as the last one. Raises SqlError."""
    if len(expression) > MAX_CHARACTERS:
        raise SqlError(MAX_CHARACTERS + 1, f"at most {MAX_CHARACTERS} characters", str(len(expression)))
    tokens: list[Token] = []
    at = _skip_blank(expression, 0)
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            what = "a text that ends with '" if expression[at] == "'" else "a name, a number, a text or a sign"
            raise SqlError(at + 1, what, repr(expression[at : at + 40]))
        kind, text = Kind[str(match.lastgroup)], match[0]
        if kind is Kind.NAME and text.upper() in KEYWORDS:
            kind, text = Kind.KEYWORD, text.upper()
        tokens.append(Token(kind, text, at + 1))
        at = _skip_blank(expression, match.end())
    tokens.append(Token(Kind.END, "", len(expression) + 1))
    return tokens


def _skip_blank(expression: str, at: int) -> int:
    match = _BLANK.match(expression, at)
    return at if match is None else match.end()
