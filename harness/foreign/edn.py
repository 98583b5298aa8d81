"""EDN, as far as histories use it: a stream of operations, and values written for Clojure.

Read are maps, vectors, lists, sets, numbers, strings, characters, keywords, symbols, comments, and forms discarded
with `#_`; tags are passed over. Sequences become tuples, so that a value can be remembered and be a key.

Lines that hold one flat map each, as nearly all do, are matched whole by a regular expression made from the keys of
a line before them; all else goes through the parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.foreign.source import BrokenText, Pieces, Row

_TOKEN = re.compile(
    r"""[\s,]+ | ;[^\n]* | \#_ | \#\{ | \#\#?[\w.\-/]+ | "(?:[^"\\]|\\.)*" | [\[\](){}]
    | \\(?:[A-Za-z]\w*|.) | [^\s,;"\[\](){}\\\#]+""",
    re.VERBOSE | re.DOTALL,
)
_INTEGER = re.compile(r"[+-]?\d+N?")
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

_ATOM = r"""[^\s,;"\[\](){}\\\#]++|"[^"\\\n]*+"|\[[^"\\;\[\](){}\#\n]*+\]"""
"""What a line that is matched whole may have as a value: a word, a plain string, a flat vector."""

_ASKED = frozenset(("process", "type", "f", "value", "key", "error", "node"))
"""The fields of an operation that mean something here, beside its time."""

STRING_LINES = 100
"""A string that goes on for longer lacks its end."""
TEMPLATES = 8
REMEMBERED = 65_536


class Keyword(str):
    """A keyword, without its colon."""

    __slots__ = ()


def rows(pieces: Pieces) -> Iterator[tuple[int, Row]]:
    """Each operation with the line on which it begins. Raises BrokenText."""
    forms, atoms = Forms(), _Atoms()
    templates: list[_Template] = []
    known = atoms.__getitem__
    for piece in pieces:
        if forms.between:
            for template in templates:
                match = template.pattern.fullmatch(piece)
                if match:
                    try:
                        row = dict(zip(template.keys, map(known, match.group(*template.keys)), strict=True))
                    except BrokenText as error:
                        raise BrokenText(pieces.line, error.reason) from None
                    if template.has_time:
                        row["time"] = int(match["time"])
                    yield pieces.line, row
                    break
            else:
                found = list(forms.feed(piece, pieces.line))
                for line, form in found:
                    yield line, _operation(line, form)
                if len(found) == 1 and forms.between and len(templates) < TEMPLATES:
                    templates.append(_Template.of(found[0][1]))
        else:
            for line, form in forms.feed(piece, pieces.line):
                yield line, _operation(line, form)
    forms.end(pieces.line)


def parse(text: str) -> Any:
    """The one form in the text. Raises BrokenText."""
    forms = Forms()
    found = [form for _, form in forms.feed(f"({text}\n)", 1)]
    forms.end(1)
    if len(found) != 1:
        raise BrokenText(1, f"one value was expected, there are {len(found)}: {text}")
    return found[0]


def written(value: Any) -> str:
    """The value as EDN; names of fields become keywords."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Keyword):
        return f":{value}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{written(Keyword(name))} {written(item)}" for name, item in value.items()) + "}"
    if isinstance(value, Iterable):
        return "[" + " ".join(written(item) for item in value) + "]"
    return str(value)


@dataclass
class _Open:
    """A collection that is being read. `items` is None where its elements are operations of the stream."""

    closer: str
    line: int
    items: list[Any] | None = field(default_factory=list)
    is_operation: bool = False
    is_set: bool = False
    discard: int = 0

    def expects_key(self) -> bool:
        return self.closer == "}" and not self.is_set and self.items is not None and len(self.items) % 2 == 0


class Forms:
    """A parser that is fed text and gives forms back: those at the top, or in a sequence around all of them."""

    def __init__(self) -> None:
        self._stack = [_Open(closer="", line=1, items=None)]
        self._carried = ""
        self._carried_pieces = 0

    @property
    def between(self) -> bool:
        """No operation is half read."""
        top = self._stack[-1]
        return top.items is None and top.discard == 0 and not self._carried

    def feed(self, text: str, line: int) -> Iterator[tuple[int, Any]]:
        """The forms that end here, each with the line on which it begins. Raises BrokenText."""
        whole = text.endswith("\n")
        text = self._carried + text
        self._carried = ""
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or (match.end() == len(text) and not whole and text[at] not in '[](){}"'):
                self._carry(text[at:], line)
                return
            at = match.end()
            token = match[0]
            first = token[0]
            if first in " \t\r\n,;\f":
                continue
            if token in _CLOSER:
                self._begin(token, line)
            elif first in "])}":
                yield from self._close(token, line)
            elif token == "#_":
                self._stack[-1].discard += 1
            elif first != "#" or token in _WORDS:
                yield from self._put(_scalar(token, line), line)
        self._carried_pieces = 0

    def end(self, line: int) -> None:
        """Raises BrokenText if something lacks its end."""
        if self._carried.strip():
            raise BrokenText(self._begun(line), f"the text ends within {self._carried[:40]!r}")
        if len(self._stack) > 1:
            raise BrokenText(
                line, f"the text ends before {self._stack[-1].closer!r}, opened in line {self._begun(line)}"
            )

    def _carry(self, rest: str, line: int) -> None:
        self._carried_pieces += 1
        if rest[0] != '"' and rest[0] not in "\\#" and _TOKEN.match(rest) is None:
            raise BrokenText(self._begun(line), f"nothing begins with {rest[:20]!r}")
        if self._carried_pieces > STRING_LINES:
            raise BrokenText(self._begun(line - STRING_LINES), f"a string does not end: {rest[:40]!r}")
        self._carried = rest

    def _begun(self, line: int) -> int:
        """Where the operation that is half read begins."""
        return next((opened.line for opened in self._stack if opened.items is not None), line)

    def _begin(self, token: str, line: int) -> None:
        top = self._stack[-1]
        if top.is_operation and top.expects_key():
            raise BrokenText(
                top.line, f"an operation is broken: {token!r} in line {line}, where its next key should be"
            )
        outermost = len(self._stack) == 1 and token in "[("
        self._stack.append(
            _Open(
                closer=_CLOSER[token],
                line=line,
                items=None if outermost else [],
                is_operation=top.items is None and not outermost,
                is_set=token == "#{",
            )
        )

    def _close(self, token: str, line: int) -> Iterator[tuple[int, Any]]:
        opened = self._stack[-1]
        if token != opened.closer:
            expected = f"{opened.closer!r} was expected" if opened.closer else "nothing is open"
            raise BrokenText(self._begun(line), f"{token!r} in line {line}, where {expected}")
        self._stack.pop()
        if opened.items is None:
            return
        if opened.closer == "}" and not opened.is_set:
            if len(opened.items) % 2:
                raise BrokenText(opened.line, "a map has a key without a value")
            try:
                yield from self._put(dict(zip(opened.items[::2], opened.items[1::2], strict=True)), opened.line)
            except TypeError:
                raise BrokenText(opened.line, "a map has a map as a key") from None
        else:
            yield from self._put(tuple(opened.items), opened.line)

    def _put(self, form: Any, line: int) -> Iterator[tuple[int, Any]]:
        top = self._stack[-1]
        if top.discard:
            top.discard -= 1
        elif top.items is None:
            yield line, form
        else:
            top.items.append(form)


class _Atoms(dict[str, Any]):
    """The value of each atom's text; a bounded number of them is remembered."""

    def __missing__(self, text: str) -> Any:
        try:
            value = int(text)
        except ValueError:
            value = parse(text)
        if len(self) < REMEMBERED:
            self[text] = value
        return value


def _operation(line: int, form: Any) -> Row:
    if not isinstance(form, dict):
        raise BrokenText(line, f"an operation must be a map with :process, :type and :f, it is {written(form)[:60]}")
    return form


@dataclass(frozen=True, kw_only=True)
class _Template:
    """What a line of one flat map with certain keys looks like. Fields that nobody asks for are not taken out."""

    pattern: re.Pattern[str]
    keys: tuple[str, ...]
    """Of the groups that are taken out, beside the time, which is hardly ever the same twice."""
    has_time: bool

    @classmethod
    def of(cls, form: Row) -> _Template:
        cells = {key: f"(?P<{key}>{_ATOM})" if key in _ASKED else f"(?:{_ATOM})" for key in form}
        if "time" in cells:
            cells["time"] = r"(?P<time>\d++)"
        pairs = r"[\s,]+".join(rf":{re.escape(str(key))}\s+{cell}" for key, cell in cells.items())
        return cls(
            pattern=re.compile(rf"[\s,]*(?:#[\w.\-/]+\s*)?\{{\s*{pairs}\s*\}}[\s,]*"),
            keys=tuple(str(key) for key in form if key in _ASKED),
            has_time="time" in cells,
        )


def _scalar(token: str, line: int) -> Any:
    first = token[0]
    if first == ":":
        return Keyword(token[1:])
    if first == '"':
        text = token[1:-1]
        return _ESCAPE.sub(_unescaped, text) if "\\" in text else text
    if token in _WORDS:
        return _WORDS[token]
    if first in "+-.0123456789":
        if _INTEGER.fullmatch(token):
            return int(token.rstrip("N"))
        if _REAL.fullmatch(token):
            return float(token.rstrip("M"))
        if first.isdigit():
            raise BrokenText(line, f"{token!r} is no number")
    if first == "\\":
        return _CHARACTERS.get(token[1:], token[1:])
    return token


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])
