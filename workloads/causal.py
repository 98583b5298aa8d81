"""Causal consistency: nobody sees an effect without its causes.

Operations on registers, in the form of `checkers/causal/checker.py`: `write`, `read`, `read-init`, or `txn`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from checkers.causal.checker import CAUSAL_OPERATIONS, CausalChecker
from checkers.evidence import any_ok, reading
from checkers.plan import Checker
from checkers.repeats import members, parts
from harness.bounds import INT64
from harness.workload import Workload


@dataclass(frozen=True, kw_only=True)
class CausalSettings:
    initial: Annotated[int, INT64] = 0
    """What a register holds before its first write, beside null."""


def checkers(settings: CausalSettings) -> dict[str, Checker]:
    return {"causal": CausalChecker(initial=settings.initial)}


WORKLOAD = Workload(
    name="causal",
    about="nobody sees an effect without its causes",
    settings_type=CausalSettings,
    value_type=CAUSAL_OPERATIONS,
    functions=("read", "read-init", "write", "txn"),
    repeats=(members("write"), parts("txn", written=("w", "append"))),
    evidence=(*any_ok("read", "read-init"), reading("txn", "r")),
    checkers=checkers,
    anomalies=("aborted-read", "broken-link", "cyclic-causality", "initial-read", "overwritten-read", "unexpected"),
)
