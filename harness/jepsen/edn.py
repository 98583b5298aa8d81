"""EDN, as far as histories use it: operations one by one, and values read and written.

Read are maps, vectors, lists, sets, numbers (ratios and hexadecimal ones as well), strings, characters, keywords,
symbols, comments, and forms discarded with `#_`. Tags are passed over, but for those that say that a pair is a key
and a value. Sequences become tuples, so that a value can be remembered and be a key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from harness.jepsen.source import BrokenText, CutOff, Row, Unfinished

_TOKEN = re.compile(
    rb"""[\s,]+ | ;[^\n]* | \#_ | \#\{ | \#?"(?:[^"\\]|\\.)*" | [\[\](){}]
    | \\(?:[A-Za-z]\w*|[^\x00-\x7f]+|.) | \#?[^\s,;"\[\](){}\\\#][^\s,;"\[\](){}\\]* | \#\#[-\w]+""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN_STRING = re.compile(rb'"([\x00-!#-\[\]-\x7f]*)"')
"""What has nothing in it that would have to be decoded."""
_BLANK = re.compile(rb"(?:[\s,]+|;[^\n]*)+")
_INTEGER = re.compile(r"[+-]?\d+N?")
_HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F]+N?")
_RATIO = re.compile(r"[+-]?\d+/\d*[1-9]\d*")
_REAL = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?M?")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CHARACTERS = {"newline": "\n", "space": " ", "tab": "\t", "return": "\r", "backspace": "\b", "formfeed": "\f"}
_WORDS: dict[str, Any] = {
    "nil": None,
    "true": True,
    "false": False,
    "##Inf": float("inf"),
    "##-Inf": float("-inf"),
    "##NaN": float("nan"),
}
_CLOSER = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_PAIRING = (
    "#jepsen.independent/tuple",
    "#jepsen.independent.Tuple",
    "#clojure.lang.MapEntry",
    "#clojure.lang/MapEntry",
)
"""Tags of a key and what belongs to it."""
_OPERATION = frozenset(("process", "type", "f"))
_JUDGED = frozenset((*_OPERATION, "value", "key", "time", "index"))
"""Fields in which no operation lies. Others may show one: what a client threw tells of what it was asked."""

STRING_LINES = 100
"""A string that goes on for longer lacks its end."""
LONGEST_NUMBER = 4_000
DIGITS = 18
"""What is made of so many digits is read without a look at it."""
DEEPEST = 200
"""Brackets within brackets."""


class Keyword(str):
    """A keyword, without its colon."""

    __slots__ = ()


class Verbatim(str):
    """EDN that is written as it is."""

    __slots__ = ()


class Unordered(tuple[Any, ...]):
    """A set; its elements in one and the same order, however they were written."""

    __slots__ = ()


class Lifted(tuple[Any, ...]):
    """A pair that its tag declares to be a key and what belongs to it."""

    __slots__ = ()


class Forms:
    """Reads what stands between operations, and operations: alone, or in a sequence around all of them."""

    def __init__(self) -> None:
        self._closers: list[str] = []
        """Of the sequence around all operations."""

    def one(self, text: bytes, at: int, *, final: bool) -> tuple[int, Row | None]:
        """Read a comment, a bracket, a discarded form or an operation; where the text goes on, and the operation.

        Raises BrokenText, and if that does not end in the text Unfinished where the text is `final`, CutOff otherwise.
        """
        blank = _BLANK.match(text, at)
        if blank is not None:
            if blank.end() == len(text) and not final:
                raise CutOff
            return blank.end(), None
        cursor = _Cursor(text, at, final)
        try:
            token = cursor.token()
            if token == "#_":
                cursor.discard(0)
            elif token in ("[", "(") and not self._closers:
                self._closers.append(_CLOSER[token])
            elif token in ("]", ")", "}"):
                if not self._closers or token != self._closers.pop():
                    raise BrokenText(at, f"{token!r} where nothing is open")
            else:
                operation = _operation(cursor, at, token)
                return cursor.at, operation
        except _End:
            if final:
                raise Unfinished(at, "the text ends within an operation") from None
            raise CutOff from None
        except BrokenText as broken:
            if final and cursor.at == len(text) and text[-1] not in b'])}"':
                raise Unfinished(at, "the text ends within an operation") from None
            raise BrokenText(at, broken.reason, fault=broken.fault) from None
        return cursor.at, None

    def end(self, at: int) -> None:
        """Raises Unfinished if something lacks its end."""
        if self._closers:
            raise Unfinished(at, f"the text ends before {self._closers[-1]!r}")


def parse(text: str | bytes) -> Any:
    """The one form in the text. Raises BrokenText."""
    if text.isdigit() and text.isascii() and len(text) <= DIGITS:
        return int(text)
    coded = text.encode() if isinstance(text, str) else text
    plain = _PLAIN_STRING.fullmatch(coded)
    if plain is not None:
        return plain[1].decode()
    forms = sequence(coded)
    if len(forms) != 1:
        raise BrokenText(0, f"one value was expected, there are {len(forms)}: {text!r}")
    return forms[0]


def document(text: bytes) -> Any:
    """The form in a text that is no history: it may have operations in it, and maps as keys. Raises BrokenText."""
    cursor = _DocumentCursor(text, 0, True)
    try:
        return cursor.form(cursor.token(), 0)
    except _End:
        raise BrokenText(len(text), "the text ends too early") from None


def sequence(text: bytes) -> tuple[Any, ...]:
    """All forms in the text. Raises BrokenText."""
    cursor = _Cursor(text + b"\n]", 0, True)
    try:
        found = cursor.items("]", 0)
    except _End:
        raise BrokenText(0, f"{_quote(text)} ends too early") from None
    except BrokenText as broken:
        raise BrokenText(0, f"{broken.reason} in {_quote(text)}") from None
    if cursor.at != len(cursor.text):
        raise BrokenText(0, f"']' where nothing is open in {_quote(text)}")
    return tuple(found)


def written(value: Any) -> str:
    """The value as EDN; names of fields become keywords."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Keyword):
        return f":{value}"
    if isinstance(value, Verbatim):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_written_key(name)} {written(item)}" for name, item in value.items()) + "}"
    if isinstance(value, Unordered):
        return "#{" + " ".join(written(item) for item in value) + "}"
    if isinstance(value, Iterable):
        return "[" + " ".join(written(item) for item in value) + "]"
    if isinstance(value, float) and value - value != 0:
        return "##NaN" if value != value else "##Inf" if value > 0 else "##-Inf"
    return str(value)


def identity(value: Any) -> str:
    """The value as EDN, the same for equal values alone: 1.0 is 1, and sets and maps have no order."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str):
        return f":{value}" if isinstance(value, Keyword) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{identity(key)} {identity(item)}" for key, item in value.items())) + "}"
    if isinstance(value, Unordered):
        return "#{" + " ".join(sorted(map(identity, value))) + "}"
    if isinstance(value, Iterable):
        return "[" + " ".join(map(identity, value)) + "]"
    return written(value)


def _written_key(name: Any) -> str:
    """A name of a field as keyword; text that is none as text."""
    is_name = isinstance(name, str) and re.fullmatch(r"[A-Za-z*!?<>=_.+-][\w*!?<>=.+/-]*", name)
    return written(Keyword(name)) if is_name else written(name)


class _End(Exception):
    """The text ends within a form."""


class _Cursor:
    """Reads forms from a text, one behind the other."""

    def __init__(self, text: bytes, at: int, final: bool) -> None:
        self.text = text
        self.at = at
        self._final = final
        self.may_hold_operations = False
        """Whether what is read is a field that may show other operations; none of them begins a line."""

    def token(self) -> str:
        """The next one that is neither blank nor comment. Raises _End, BrokenText."""
        while True:
            match = _TOKEN.match(self.text, self.at)
            if match is None:
                raise self._nothing()
            self.at = match.end()
            token = match[0]
            if token[0] in b" \t\r\n\f\v,;":
                continue
            if self.at == len(self.text) and not self._final and token[-1] not in b'[](){}"':
                raise _End
            try:
                return token.decode()
            except UnicodeDecodeError as error:
                raise BrokenText(match.start(), _not_utf_8(error), fault=match.start() + error.start) from None

    def items(self, closer: str, depth: int) -> list[Any]:
        """The forms up to there."""
        if depth > DEEPEST:
            raise BrokenText(self.at, f"brackets are nested deeper than {DEEPEST}")
        found: list[Any] = []
        while True:
            token = self.token()
            if token == closer:
                return found
            if token == "#_":
                self.discard(depth)
            else:
                found.append(self.form(token, depth, closer))

    def form(self, token: str, depth: int, closer: str = "") -> Any:
        """What begins with this token."""
        begun = self.at - len(token.encode())
        if token in _CLOSER:
            items = self.items(_CLOSER[token], depth + 1)
            if token == "{":
                return self._map(items, begun, depth)
            return _unordered(items) if token == "#{" else tuple(items)
        if token in "])}":
            expected = f"{closer!r} was expected" if closer else "a value was expected"
            raise BrokenText(begun, f"{token!r} where {expected}")
        if token[0] == "#" and token not in _WORDS and token[1] != '"':
            return self._tagged(token, depth, closer)
        return _scalar(token, begun)

    def discard(self, depth: int) -> None:
        """Pass over the next form, and one more for each further `#_` before it."""
        forms = 1
        while forms:
            token = self.token()
            if token == "#_":
                forms += 1
            else:
                self.form(token, depth)
                forms -= 1

    def _tagged(self, tag: str, depth: int, closer: str) -> Any:
        token = self.token()
        while token == "#_":
            self.discard(depth)
            token = self.token()
        if depth > DEEPEST:
            raise BrokenText(self.at, f"tags are nested deeper than {DEEPEST}")
        value = self.form(token, depth + 1 if token[0] == "#" else depth, closer)
        if tag in _PAIRING and isinstance(value, tuple) and len(value) == 2:
            return Lifted(value)
        return value

    def _map(self, items: list[Any], begun: int, depth: int) -> Row:
        if len(items) % 2:
            raise BrokenText(begun, "a map has a key without a value")
        try:
            form = dict(zip(items[::2], items[1::2], strict=True))
        except TypeError:
            raise BrokenText(begun, "a map has a map as a key") from None
        if 2 * len(form) != len(items):
            twice = next(key for number, key in enumerate(items[::2]) if key in items[: 2 * number : 2])
            raise BrokenText(begun, f"a map has the key {written(twice)} twice")
        is_shown = self.may_hold_operations and self.text[begun - 1 : begun] != b"\n"
        if depth and form.keys() >= _OPERATION and not is_shown:
            raise BrokenText(begun, "another operation begins within this one: a bracket or quote lacks its end")
        return form

    def _nothing(self) -> Exception:
        rest = self.text[self.at : self.at + LONGEST_SHOWN]
        if rest[:1] == b'"' or rest[:2] == b'#"':
            if self.text.count(b"\n", self.at) > STRING_LINES:
                return BrokenText(self.at, f"a string does not end: {_quote(rest)}")
            return _End()
        if len(self.text) - self.at <= 1:
            return _End()
        return BrokenText(self.at, f"nothing begins with {_quote(rest)}")


class _DocumentCursor(_Cursor):
    """Reads what is no history."""

    def _map(self, items: list[Any], begun: int, depth: int) -> Row:
        if len(items) % 2:
            raise BrokenText(begun, "a map has a key without a value")
        keys = (written(key) if isinstance(key, dict) or _holds_map(key) else key for key in items[::2])
        return dict(zip(keys, items[1::2], strict=True))


def _holds_map(key: Any) -> bool:
    return isinstance(key, tuple) and any(isinstance(item, dict) or _holds_map(item) for item in key)


LONGEST_SHOWN = 40


def _quote(text: bytes) -> str:
    return repr(text[:LONGEST_SHOWN].decode(errors="replace"))


def _not_utf_8(error: UnicodeDecodeError) -> str:
    return f"not UTF-8 text: {error.reason}"


def _operation(cursor: _Cursor, begun: int, token: str) -> Row:
    while token[0] == "#" and token not in _CLOSER and token not in _WORDS and token[1] != '"':
        token = cursor.token()
    if token != "{":
        form = cursor.form(token, 0)
        raise BrokenText(
            begun, f"an operation must be a map with :process, :type and :f, it is {written(form)[:LONGEST_SHOWN]}"
        )
    row: Row = {}
    while True:
        token = cursor.token()
        at = cursor.at - len(token.encode())
        if token == "}":
            return row
        if token == "#_":
            cursor.discard(1)
            continue
        if token[0] not in ':"':
            raise BrokenText(begun, f"an operation is broken: {token!r} where its next key should be", fault=at)
        key = _scalar(token, at)
        if key in row:
            raise BrokenText(begun, f"an operation has the key {token} twice", fault=at)
        token = cursor.token()
        while token == "#_":
            cursor.discard(1)
            token = cursor.token()
        if token == "}":
            raise BrokenText(begun, f"an operation is broken: a key without a value, {written(key)}", fault=at)
        cursor.may_hold_operations = key not in _JUDGED
        row[key] = cursor.form(token, 1)


def _unordered(items: list[Any]) -> Unordered:
    try:
        return Unordered(sorted(items))
    except TypeError:
        return Unordered(sorted(items, key=repr))


def _scalar(token: str, at: int) -> Any:
    first = token[0]
    if first == ":":
        return Keyword(token[1:])
    if first == '"' or token[:2] == '#"':
        text = token[1:-1] if first == '"' else token[2:-1]
        return _ESCAPE.sub(_unescaped, text) if "\\" in text else text
    if token in _WORDS:
        return _WORDS[token]
    if first in "+-.0123456789":
        if len(token) > LONGEST_NUMBER:
            raise BrokenText(at, f"a number of {len(token)} characters; at most {LONGEST_NUMBER} are read")
        if _INTEGER.fullmatch(token):
            return int(token.rstrip("N"))
        if _REAL.fullmatch(token):
            return float(token.rstrip("M"))
        if _HEXADECIMAL.fullmatch(token):
            return int(token.rstrip("N"), 16)
        if _RATIO.fullmatch(token):
            ratio = Fraction(token)
            return ratio.numerator if ratio.denominator == 1 else str(ratio)
        if first.isdigit():
            raise BrokenText(at, f"{token!r} is no number")
    if first == "\\":
        return _CHARACTERS.get(token[1:], token[1:])
    return token


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])
