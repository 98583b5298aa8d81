"""What a search has tried, in a directory: what is searched, and a Parquet file for each round.

    rocketmq-flush-lie-0/
      search.json        what is searched; the same command goes on with it
      rounds/00000.parquet …

`spark.read.parquet(".../rounds")` is a row a storm, as `stormproof.search.trial.ROWS` says. A round is there whole or
not at all, and after all rounds before it; those under way are lost when a search is interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import HarnessError, UsageError
from stormproof.search.trial import ROWS

SEARCH = "search.json"
ROUNDS = "rounds"


class Store:
    """Raises UsageError for a directory that holds another search, or none; HarnessError where it cannot be written."""

    def __init__(self, directory: Path, search: Mapping[str, Any]) -> None:
        self.directory = directory
        self.rounds = directory / ROUNDS
        try:
            self.rounds.mkdir(parents=True, exist_ok=True)
            file = directory / SEARCH
            if file.exists():
                _require_same(directory, json.loads(file.read_text(encoding="utf-8")), search)
            else:
                write_whole(file, json.dumps(search, indent=2, sort_keys=True).encode())
        except ValueError:
            raise UsageError(f"{directory / SEARCH} is no search; name another directory with --into") from None
        except OSError as error:
            raise HarnessError(f"{directory} cannot be written: {error.strerror or error}") from None

    def rows(self) -> Iterator[list[dict[str, Any]]]:
        """The rounds so far, in order. Raises UsageError for a file that is no round."""
        for number in range(self.count()):
            path = self._path(number)
            try:
                yield pq.read_table(path).cast(ROWS).to_pylist()
            except (OSError, pa.ArrowException) as error:
                raise UsageError(f"{path} is no round of a search: {error}") from None

    def count(self) -> int:
        """How many rounds there are without a gap."""
        number = 0
        while self._path(number).exists():
            number += 1
        return number

    def add(self, number: int, rows: pa.Table) -> None:
        """Keep a round. Raises HarnessError."""
        partial = self.rounds / f".{number:05}.partial"
        try:
            pq.write_table(rows, partial)
            partial.replace(self._path(number))
        except OSError as error:
            raise HarnessError(f"{self.rounds} cannot be written: {error.strerror or error}") from None

    def _path(self, number: int) -> Path:
        return self.rounds / f"{number:05}.parquet"


def write_whole(file: Path, data: bytes) -> None:
    """It is there whole or not at all."""
    partial = file.with_name(f".{file.name}.partial")
    partial.write_bytes(data)
    partial.replace(file)


def _require_same(directory: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    if changed:
        listed = ", ".join(f"{key} was {before.get(key)!r}, is {now.get(key)!r}" for key in changed)
        raise UsageError(f"{directory} holds another search ({listed}); name another directory with --into")
