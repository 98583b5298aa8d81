"""What kernels count beside anomalies, gathered with them in one pass."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from checkers.api.findings import FINDINGS, Example, Findings, GatheredFindings, gathered_findings
from checkers.api.tallies import bins_of
from checkers.in_process.engine import InProcessDataset, InProcessEngine
from harness.record.history import MalformedHistory

ENGINE = InProcessEngine()


def gathered(*tables: pa.Table, partitions: int = 1) -> GatheredFindings:
    """What several calls of kernels reported."""
    dataset = InProcessDataset(FINDINGS, lambda: ((lambda table=table: iter([table])) for table in tables), partitions)
    return gathered_findings(ENGINE, dataset)


def report(operation: int) -> Findings:
    findings = Findings()
    example = Example(key=None, operations=(operation,), because=f"{operation} is gone")
    findings.add("lost", 1, [example])
    findings.tally("lost", 5)
    findings.tally("unread", 2, [example])
    findings.tally_by_bin("latency", bins_of(np.array([operation, 1000 * operation])))
    return findings


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_tally_and_an_anomaly_of_one_name_are_counted_apart_however_they_are_split(partitions: int) -> None:
    found = gathered(report(3).table(), report(1).table(), report(2).table(), partitions=partitions)
    assert {name: summary.count for name, summary in found.anomalies.items()} == {"lost": 3}
    assert found.counts("lost", "unread", "latency", "never counted") == {
        "lost": 15,
        "unread": 6,
        "latency": 6,
        "never counted": 0,
    }
    assert [example.operations for example in found.tally("unread").examples] == [(1,), (2,), (3,)]
    assert found.tally("latency").quantiles({"least": 0.0, "half": 0.5, "most": 1.0}) == {
        "least": 1,
        "half": 3,
        "most": 2944,
    }


def test_the_first_operation_that_is_refused_is_named() -> None:
    later, earlier, nothing = Findings(), Findings(), Findings()
    later.refuse([(9, "has no key"), (7, "reads a list"), (7, "has no key")])
    earlier.refuse([(8, "reads a list")])
    nothing.refuse([])
    assert nothing.table().num_rows == 0
    with pytest.raises(MalformedHistory, match="row 7: has no key"):
        gathered(earlier.table(), later.table(), nothing.table())
