"""What is certain of a history of which only a prefix is known.

The rest is still to come: any rows, including the completions of open operations. So an open operation counts as one of
unknown outcome, and a finding is certain only if no rows that may follow undo it:

    add 1 ok · read → [1 1]               duplicated: the read stays what it is
    add 1 ok · read → []                  lost, until a later read shows 1 after all
    enqueue 1 fails · dequeue → 1         aborted-read, until somebody enqueues 1 again

Each checker declares beside its meanings which findings are certain, as `final_on_a_prefix`: their names, and other
names under which the whole history may report them, because more is known then. (A cycle has a read of what an open
transaction wrote. If that transaction fails, there is no cycle, but an aborted read.) A finding that is not declared is
not final, so a checker that declares nothing reports nothing too early.

Two things are not promised: that the whole is a valid history, and that a search in the whole finds it within bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from checkers.api.verdict import AnomalySummary, CheckerResult

Finals = Mapping[str, frozenset[str]]
"""Name -> other names under which the whole history may report it."""


def by_their_names(*names: str) -> Finals:
    """Findings that the whole history reports under the same names."""
    return dict.fromkeys(names, frozenset[str]())


def finals_of(checker: Any) -> Finals:
    """The findings of a checker that are final; none if it declares none."""
    declared: Finals = getattr(checker, "final_on_a_prefix", {})
    return declared


def certain(
    results: Mapping[str, CheckerResult], checkers: Mapping[str, Any]
) -> Iterator[tuple[str, str, AnomalySummary]]:
    """(checker, name, summary) of findings in a prefix that break every history that begins with it."""
    for checker, result in results.items():
        finals = finals_of(checkers[checker])
        for name, summary in sorted(result.anomalies.items()):
            if summary.count and not summary.legal and name in finals:
                yield checker, name, summary
