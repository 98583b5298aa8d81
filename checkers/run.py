"""Runs checkers over one history; a checker that fails gives UNKNOWN, never VALID."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa

from checkers.api.plan import Checker, CheckRequest, Engine
from checkers.api.verdict import CheckerResult, Verdict
from checkers.asked import in_full
from checkers.history_batches import encoded
from checkers.search_budget import TimeIsUp
from harness.record.history import MalformedHistory, require_history
from harness.record.meaning import Meaning


def check_history(
    request: CheckRequest,
    checkers: Mapping[str, Checker],
    engine: Engine,
    *,
    begins: Callable[[str], None] = lambda name: None,
) -> Mapping[str, CheckerResult]:
    """The result of each checker, in the given order. `begins` is called with a checker's name when it begins. Raises
    MalformedHistory before any checker runs."""
    if isinstance(request.history, pa.Table):
        request = replace(request, history=encoded(request.history))
    require_history(request.history)
    results = {}
    with in_full(request.history, request.repeats) as history:
        request = replace(request, history=history)
        for name, checker in checkers.items():
            begins(name)
            results[name] = _checked(request, checker, engine)
    return results


def _checked(request: CheckRequest, checker: Checker, engine: Engine) -> CheckerResult:
    try:
        return _explained(checker.check(request, engine), checker.meanings)
    except MalformedHistory:
        raise
    except TimeIsUp as up:
        return CheckerResult(verdict=Verdict.UNKNOWN, reasons=(f"{checker.name}: {up}",))
    except Exception as error:  # noqa: BLE001  a checker's failure, of whatever kind, says nothing about the system
        reason = f"the {checker.name} checker failed: {type(error).__name__}: {_first_line(error)}"
        return CheckerResult(verdict=Verdict.UNKNOWN, reasons=(reason,))


def _explained(result: CheckerResult, meanings: Mapping[str, Meaning]) -> CheckerResult:
    anomalies = {name: replace(summary, meaning=meanings.get(name)) for name, summary in result.anomalies.items()}
    return replace(result, anomalies=anomalies)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "")
