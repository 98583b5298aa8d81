"""What is certain of a history of which only a prefix is known.

The rest is still to come: any rows, among them the completions of what is open. So an operation that is open counts as
one of unknown outcome, and a finding is certain only if no rows that may follow undo it:

    add 1 ok · read → [1 1]               duplicated: the read stays what it is
    add 1 ok · read → []                  lost, until a later read shows 1 after all
    enqueue 1 fails · dequeue → 1         aborted-read, until somebody enqueues 1 again

Which findings are, each checker declares beside its meanings as `final_on_a_prefix`: by their names, those under which
the whole may tell the same in another way, since it knows more. (What a transaction that is open has written is read in
a cycle; it fails, and the cycle is none, but an aborted read.) What is not declared is not final, so that a checker of
which nothing is known says nothing too early.

Two things are no promise of it: that the whole is a history at all, and that what is searched in the whole is found
within bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from checkers.api.verdict import AnomalySummary, CheckerResult

Finals = Mapping[str, frozenset[str]]
"""Name -> under which other names the whole may tell it."""


def by_their_names(*names: str) -> Finals:
    """The whole has them by the same names."""
    return dict.fromkeys(names, frozenset[str]())


def finals_of(checker: Any) -> Finals:
    """None, where a checker declares none."""
    declared: Finals = getattr(checker, "final_on_a_prefix", {})
    return declared


def certain(
    results: Mapping[str, CheckerResult], checkers: Mapping[str, Any]
) -> Iterator[tuple[str, str, AnomalySummary]]:
    """Checker, name and what was found of a prefix, as far as every history that begins with it is broken as well."""
    for checker, result in results.items():
        finals = finals_of(checkers[checker])
        for name, summary in sorted(result.anomalies.items()):
            if summary.count and not summary.legal and name in finals:
                yield checker, name, summary
