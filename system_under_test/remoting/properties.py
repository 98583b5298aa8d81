"""Java's properties, the form in which RocketMQ's settings travel in bodies: lines `name=value`, with escapes.

What is read is what `java.util.Properties.load` reads, but in UTF-8, as RocketMQ's tools write it. What is written is
ASCII with escapes, so that any reader of properties gets the same, whatever encoding it takes them for.

Source: the documentation of java.util.Properties, methods load(Reader) and store(OutputStream, String).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

_BLANK: Final = " \t\f"
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_ENTRY: Final = re.compile(r"((?:[^\\=: \t\f]|\\.)*+)[ \t\f]*+[=:]?[ \t\f]*+(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_MEANINGS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LETTERS: Final = {meaning: f"\\{letter}" for letter, meaning in _MEANINGS.items()}


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Sorted by name."""
    lines = [
        f"{_escaped(name, ' =:#!')}={_escaped(value[:1], ' ')}{_escaped(value[1:], '')}\n"
        for name, value in sorted(properties.items())
    ]
    return "".join(lines).encode("ascii")


def decode_properties(body: bytes) -> dict[str, str]:
    """Of two lines with one name the later one holds. Raises ValueError for bytes that are no properties."""
    properties: dict[str, str] = {}
    for line in _logical_lines(body.decode()):
        entry = _ENTRY.fullmatch(line)
        assert entry is not None, "any line is an entry"
        properties[_unescaped(entry[1])] = _unescaped(entry[2])
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    """Without comments and blank lines; a line that ends with a backslash goes on in the next one."""
    begun: list[str] = []
    for line in _LINE_END.split(text):
        line = line.lstrip(_BLANK)
        if not begun and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            begun.append(line[:-1])
        else:
            yield "".join((*begun, line))
            begun = []
    if begun:
        yield "".join(begun)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_meaning, text)
    try:
        # Characters beyond 16 bits are two escapes; half of one is no character.
        return plain.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError as error:
        raise ValueError(f"half a character: {error}") from error


def _meaning(escape: re.Match[str]) -> str:
    letter = escape[1]
    if letter == "u":
        raise ValueError("expected four hexadecimal digits behind \\u")
    return chr(int(letter[1:], 16)) if len(letter) > 1 else _MEANINGS.get(letter, letter)


def _escaped(text: str, special: str) -> str:
    return "".join(_escape(character, special) for character in text)


def _escape(character: str, special: str) -> str:
    if character in _LETTERS:
        return _LETTERS[character]
    if character == "\\" or character in special:
        return f"\\{character}"
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
