"""Says what the compiler is busy with, where kernels were not compiled ahead: nobody waits in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.compiled import on_compiling

PURPOSES: Mapping[str, tuple[str, int]] = {
    "harness.jepsen": ("the reader of histories", 6),
    "checkers.linearizable": ("the search for an order of operations", 15),
    "checkers.transactions": ("the search for cycles among transactions", 50),
    "checkers": ("kernels of the checkers", 5),
}
"""Modules that hold kernels -> what these are for, and the seconds that most of them take, one core of 2024."""


def announce_compiling(say: Callable[[str], None]) -> None:
    """From now on, one line for each purpose, when the first of its kernels is compiled."""
    announced: set[str] = set()

    def compiling(module: str) -> None:
        found = [package for package in PURPOSES if module == package or module.startswith(f"{package}.")]
        if not found:
            return
        words, seconds = PURPOSES[max(found, key=len)]
        if words not in announced:
            announced.add(words)
            say(f"compiling {words} (once on this machine, about {seconds} s)")

    on_compiling(compiling)
