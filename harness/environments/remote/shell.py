"""The way to a node that runs somewhere else. What acts on nodes needs no more than this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended in a node."""

    exit_code: int
    output: bytes
    errors: bytes


class Shell(Protocol):
    """Commands and files in one node. Everything blocks, and raises HarnessError where the way to the node fails."""

    def run(self, argv: Sequence[str]) -> Finished:
        """Run a command, as root and outside of the faked clock, to its end."""

    def put(self, files: Mapping[str, bytes]) -> None:
        """Write files by their absolute paths; directories are made."""

    def fetch(self, path: str) -> bytes:
        """A file's content; empty where there is none."""
