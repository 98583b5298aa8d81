"""How a command is asked to end: SIGINT, SIGTERM and SIGHUP, at any moment, once or several times.

A signal never raises in code that did not ask for it: raised inside a coroutine, a callback or a destructor it would be
taken for that code's failure, or be swallowed. There are two cases instead.

- While something runs that has to be unwound (a run: faults to heal, containers to remove), `unwinding` is around it. A
  signal asks it, once, to end at a point of its own choice; `Interrupted` is raised when it has.
- Otherwise nothing has to be unwound: the process says that it was interrupted, gives back what it holds outside of
  itself (`harness.lifetime.resources`), and is gone.

Further signals change nothing, and the first of them is answered: giving back is never cut short. A signal that was
ignored when the process began stays ignored (nohup; a shell's background jobs and Ctrl-C), but for SIGTERM.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn

from harness.lifetime.resources import give_all_back

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SAID_AT = 2
"""The signal after which a command that is still there says what it is doing."""
EXIT_CODE = 255
"""Every command that was interrupted ends with it, whatever it was doing: nothing is said about the system."""

Ask = Callable[[], None]


class Interrupted(KeyboardInterrupt):
    """A signal asked for the end of what was running, and it has ended; the cause is what failed meanwhile."""


@dataclass
class _Process:
    """Signals belong to the process, and so does what is known of them."""

    is_command: bool = False
    """`install` was called: the process ends when it is asked to. Otherwise it is somebody's test or program."""
    noted: list[int] = field(default_factory=list)
    ask: Ask | None = None
    words: dict[str, str] = field(default_factory=dict)
    say: Callable[[str], None] = lambda line: None
    terminals: tuple[int, ...] = ()


_process = _Process()


def install(say: Callable[[str], None]) -> None:
    """From now on this process, a command, ends when it is asked to. `say` is for what it says then, and is called in a
    signal's handler."""
    _process.is_command = True
    _process.say = say
    _process.terminals = tuple(descriptor for descriptor in (1, 2) if os.isatty(descriptor))
    for number in SIGNALS:
        if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _heard)


def has_come() -> bool:
    """Whether this process was asked to end."""
    return bool(_process.noted)


def last_words(topic: str, words: str) -> None:
    """What to say of this topic if the process is interrupted from now on; replaces what was there. Empty: nothing."""
    _process.words[topic] = words


def forget_words() -> None:
    """A command line begins: nothing is known of it yet."""
    _process.words.clear()


def described() -> str:
    """What an interrupted command says, without its prefix."""
    words_left = [words for words in _process.words.values() if words] or ["no verdict was reached"]
    by = f" by {signal.Signals(_process.noted[0]).name}" if _process.noted else ""
    return f"interrupted{by}: {'; '.join(words_left)}"


@contextmanager
def unwinding(ask: Ask) -> Iterator[None]:
    """While inside, a signal calls `ask`, once, from its handler, and `Interrupted` is raised on the way out.

    `ask` brings about, without blocking, that the inside ends in its own way; it may come after that, too. Outside of a
    command this holds for Ctrl-C alone, and only if nobody else handles it. Not in the main thread: nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    outer, _process.ask = _process.ask, ask
    borrowed = not _process.is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if borrowed:
        signal.signal(signal.SIGINT, _heard)
    try:
        if has_come():
            ask()
        yield
    except BaseException as error:
        if _left(outer, borrowed=borrowed):
            raise Interrupted from error
        raise
    if _left(outer, borrowed=borrowed):
        raise Interrupted


def _left(outer: Ask | None, *, borrowed: bool) -> bool:
    """As it was before; returns whether a signal had come."""
    _process.ask = outer
    if borrowed:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    came = has_come()
    if not _process.is_command:
        _process.noted.clear()  # whose process it is decides what comes of it
    return came


def end() -> NoReturn:
    """Say that it was interrupted, give everything back, and be gone."""
    _process.say(described())
    # What other threads were using is now taken from them, and they would say so.
    _lead_nowhere(1, 2)
    give_all_back()
    os._exit(EXIT_CODE)


def finish() -> None:
    """The command has come to its end: what it holds is given back, and a signal is too late."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    _lead_nowhere(2)  # libraries that miss what is given back, in their last moments
    give_all_back()


def _heard(number: int, _frame: FrameType | None) -> None:
    if number == signal.SIGHUP:
        # It may be gone: writing to it would fail, in the middle of healing.
        _lead_nowhere(*_process.terminals)
    _process.noted.append(number)
    if len(_process.noted) > 1:
        if len(_process.noted) == SAID_AT and _process.is_command:
            _process.say("still tidying up, which further signals do not cut short; kill -9 would, and leave the rest")
        return
    if _process.ask is not None:
        _process.ask()
    elif _process.is_command:
        end()


def _lead_nowhere(*descriptors: int) -> None:
    """From now on nothing that is written there is seen."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in descriptors:
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
