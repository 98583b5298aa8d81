"""A terminal, as far as our output needs one: what a user sees, from the bytes that were written to it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
from collections.abc import Mapping
from dataclasses import dataclass, field

TOKENS = re.compile(r"\x1b\[(\d*(?:;\d+)*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)|(\x1b)")


@dataclass
class Screen:
    """Lines of a terminal so many columns wide, with all that scrolled away; a line that is too long goes on below."""

    columns: int
    lines: list[str] = field(default_factory=lambda: [""])
    drawn: list[str] = field(default_factory=list)
    """Each state of a line that was left by a carriage return."""
    colours: list[tuple[str, str]] = field(default_factory=list)
    """What was written in which colour."""
    _column: int = 0
    _row: int = 0
    _colour: str = "0"

    def feed(self, text: str) -> Screen:
        for parameters, command, control, plain, lone in TOKENS.findall(text):
            assert not lone, f"an escape sequence that the console does not write: {text!r}"
            if command == "K":
                self.lines[self._row] = self.lines[self._row][: self._column]
            elif command == "m":
                self._colour = parameters or "0"
            elif command:
                raise AssertionError(f"an escape sequence that the console does not write: {parameters}{command}")
            elif control == "\r":
                self.drawn.append(self.lines[self._row])
                self._column = 0
            elif control == "\n":
                self._next_row()
            else:
                self._write(plain)
        return self

    @property
    def seen(self) -> list[str]:
        return [line.rstrip() for line in self.lines]

    def _write(self, plain: str) -> None:
        if self._colour != "0":
            self.colours.append((plain, self._colour))
        for character in plain:
            if self._column == self.columns:
                self._next_row()
                self._column = 0
            line = self.lines[self._row].ljust(self._column)
            self.lines[self._row] = line[: self._column] + character + line[self._column + 1 :]
            self._column += 1

    def _next_row(self) -> None:
        self._row += 1
        if self._row == len(self.lines):
            self.lines.append("")


def sized(descriptor: int, columns: int) -> int:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    return descriptor


def on_a_terminal(command: list[str], *, columns: int, environment: Mapping[str, str]) -> tuple[str, int]:
    """All that a command writes with a terminal as its standard output and standard error, and its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        sized(1, columns)
        os.execvpe(command[0], command, dict(environment))
    written = bytearray()
    while True:
        try:
            read = os.read(terminal, 65_536)
        except OSError:  # the last one has closed it
            break
        if not read:
            break
        written += read
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return written.decode(), os.waitstatus_to_exitcode(status)
