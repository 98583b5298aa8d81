"""Makes text from outside printable: one value stays on its line, and acts on no terminal, log, page or CI system.

Keys, values and errors of histories, what nodes and other programs say, names of files: any of them may hold an escape
sequence that recolours or erases what stands above, a line break behind which a verdict is forged, or a character that
turns the direction of what follows. `printable` shows such characters as escapes (`\\x1b`, `\\r\\n`, `\\u202e`). It
establishes that the result is one line of visible characters and can be encoded; it does not establish that the escapes
can be distinguished from a value that holds backslashes.

Code that prints passes the text through here first, and adds colours and line breaks of its own afterwards.
"""

from __future__ import annotations

import re
from typing import Any

_UNPRINTABLE = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # controls: C0, DEL, C1
    "\u2028\u2029"  # separators of lines and paragraphs
    "\ud800-\udfff"  # lone surrogates, such as the bytes of a path that is no UTF-8
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164"  # of no width
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\ufdd0-\ufdef\ufffe\uffff"  # no characters; the last two are in no XML
    "]"
)


LINES_TOLD = 5


def printable(text: str) -> str:
    """One line that shows all of `text`. Printable text is returned as it is."""
    return _UNPRINTABLE.sub(_escaped, text)


def last_lines(text: str) -> str:
    """The last lines of what a program said, on one line, ` | ` between them; its exit code first, if told first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > LINES_TOLD and lines[0].startswith("exit code"):
        return " | ".join((lines[0], *lines[1 - LINES_TOLD :]))
    return " | ".join(lines[-LINES_TOLD:])


def printable_data(data: Any) -> Any:
    """Plain data (mappings, lists, strings, numbers) with all of its strings printable, names of fields included."""
    if isinstance(data, str):
        return printable(data)
    if isinstance(data, dict):
        return {printable(name): printable_data(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [printable_data(item) for item in data]
    return data


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
