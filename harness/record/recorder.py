"""Where a run is recorded while it goes on: in its directory, or in memory where it is one of many."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from harness.operation import Operation
from harness.record.fault_row import FaultRow
from harness.record.history import HistoryWriter, table_of
from harness.record.run_directory import OBSERVED, RunDirectory
from harness.record.usage_log import UsageRow


class Recorder(Protocol):
    """Takes what happens, in order; what it cannot take is a HarnessError."""

    @property
    def nodes(self) -> Path | None:
        """Where the nodes' logs go, a folder each; None where they stay in memory."""

    def operation(self, operation: Operation) -> None: ...

    def fault(self, row: FaultRow) -> None: ...

    def usage(self, row: UsageRow) -> None: ...

    def observed(self, node: str, event: Mapping[str, Any]) -> None:
        """What a node that reports nothing of itself answered: an event as `node_events` knows them, with its time."""

    def close(self) -> None: ...


class DirectoryRecorder:
    """Next to nothing is lost where the run is killed."""

    def __init__(self, directory: RunDirectory, value_type: pa.DataType) -> None:
        """Raises HarnessError where the files cannot be made."""
        self.nodes: Path | None = directory.nodes
        self._usage = directory.usage
        self._history = HistoryWriter(directory.history_stream, value_type)
        # Line by line: of a run that is killed, too, it must be known which faults struck.
        self._faults = directory.faults.open("a", encoding="utf-8", buffering=1)

    def operation(self, operation: Operation) -> None:
        self._history.append(operation)

    def fault(self, row: FaultRow) -> None:
        self._faults.write(json.dumps(row.to_json()) + "\n")

    def usage(self, row: UsageRow) -> None:
        with self._usage.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row.to_json()) + "\n")

    def observed(self, node: str, event: Mapping[str, Any]) -> None:
        assert self.nodes is not None
        folder = self.nodes / node
        folder.mkdir(exist_ok=True)
        with (folder / OBSERVED).open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")

    def close(self) -> None:
        try:
            self._faults.close()
        finally:
            self._history.close()


@dataclass
class MemoryRecorder:
    """Leaves no file."""

    value_type: pa.DataType
    operations: list[Operation] = field(default_factory=list)
    faults: list[FaultRow] = field(default_factory=list)
    nodes: Path | None = None

    def operation(self, operation: Operation) -> None:
        self.operations.append(operation)

    def fault(self, row: FaultRow) -> None:
        self.faults.append(row)

    def usage(self, row: UsageRow) -> None:
        """It measures nothing that runs in this process."""

    def observed(self, node: str, event: Mapping[str, Any]) -> None:
        """What runs in this process reports itself."""

    def close(self) -> None:
        pass

    def history(self) -> pa.Table:
        """The rows as a closed history holds them."""
        return table_of(self.operations, self.value_type)
