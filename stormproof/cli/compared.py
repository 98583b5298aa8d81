"""Where a verdict differs from the one that Jepsen reached on the same history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import CheckerResult, Verdict, merge
from checkers.linearizable.checker import OPEN_OBJECTS
from harness.jepsen.test_directory import JepsenTest, JepsenVerdict

PROVES_NOTHING = "empty-transaction-graph"
"""What is an anomaly to Elle, and no verdict here."""
NOT_OF_SET_FULL = frozenset(("duplicated", "unexpected", "aborted-read"))
"""Anomalies of a set that Jepsen's `set-full` does not find: it follows the elements that were added, and its count of
duplicates is always 0."""
NOT_OF_ELLE = "garbage-read"
NULL_READ = "read that returned null "
OF_NULL_READS = "a read of null is empty here and says nothing to Knossos"
OF_VACUOUS_PASSES = "what nothing contradicts is valid to Jepsen, and here only if something could have"
KEYS_SHOWN = 10
"""The most keys that are shown on which verdicts differ, or which a checker rejects."""
_VERDICTS = {verdict.value: verdict for verdict in Verdict}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Jepsen's verdict beside ours."""

    test: JepsenTest
    differences: tuple[str, ...]
    not_compared: tuple[str, ...] = ()
    """Keys that were not searched here, or not to the end."""
    may_rest_on_null_reads: bool = False
    """Whether the history is valid to Jepsen and invalid here."""

    def resting_on_null_reads(self, is_valid_without: bool) -> Comparison:
        """The same, which names reads of null where the history is valid once these say nothing."""
        if not is_valid_without or not self.differences:
            return self
        why = f"{OF_NULL_READS}, and with --null-reads unknown it is valid"
        return replace(self, differences=(f"{self.differences[0]}: {why}", *self.differences[1:]))

    def lines(self) -> list[str]:
        """As they are printed."""
        results = self.test.results
        if results is None:
            return [f"jepsen    {self.test.problem}; nothing to compare with"]
        lines = [f"jepsen    {results.valid}"]
        lines += [f"          {line}" for line in _checkers_in_words(results.checkers)]
        judges = any(one.judges_history for one in results.checkers)
        shown = self.differences or (
            "nowhere" if judges else "in nothing that can be compared: none of these judges the history",
        )
        lines += [f"differs   {shown[0]}", *(f"          {line}" for line in shown[1:])]
        if self.not_compared:
            keys = ", ".join(self.not_compared)
            lines.append(f"          not compared, for they were not searched to the end here: {keys}")
        return lines

    def to_json(self) -> dict[str, Any]:
        test, results = self.test, self.test.results
        data: dict[str, Any] = {"test": test.name, "workload": test.workload or None, "history": str(test.history)}
        if results is None:
            return {**data, "verdict": None, "problem": test.problem}
        checkers: dict[str, Any] = {}
        for one in results.checkers:
            if one.key is None:
                checkers[one.name] = one.valid
            else:
                checkers.setdefault(one.name, {})[one.key] = one.valid
        data |= {"verdict": results.valid, "checkers": checkers, "differences": list(self.differences)}
        return {**data, "not_compared": list(self.not_compared)} if self.not_compared else data


def compared(test: JepsenTest, verdict: Verdict, results: Mapping[str, CheckerResult]) -> Comparison:
    if test.results is None:
        return Comparison(test=test, differences=())
    judging = [one for one in test.results.checkers if one.judges_history]
    theirs = merge(map(_verdict_of, judging))
    differences = []
    if verdict is not theirs and judging:
        decided_by = [one for one in judging if theirs is not Verdict.VALID and _verdict_of(one) is theirs]
        by = f" ({', '.join(dict.fromkeys(one.name for one in decided_by))})" if decided_by else ""
        why = _why(verdict, theirs, results)
        differences.append(f"the history is {theirs.value}{by} to Jepsen, and {verdict.value} here{why}")
    by_key, not_compared = _keys_that_differ(judging, results)
    return Comparison(
        test=test,
        differences=(*differences, *by_key),
        not_compared=not_compared,
        may_rest_on_null_reads=verdict is Verdict.INVALID and theirs is Verdict.VALID,
    )


def _verdict_of(one: JepsenVerdict) -> Verdict:
    if one.anomalies == (PROVES_NOTHING,):
        return Verdict.UNKNOWN
    return _VERDICTS.get(one.valid, Verdict.UNKNOWN)


def _why(verdict: Verdict, theirs: Verdict, results: Mapping[str, CheckerResult]) -> str:
    """Why they differ, where that lies in what each demands."""
    if theirs is not Verdict.VALID:
        return ""
    if verdict is Verdict.UNKNOWN:
        is_vacuous = any(result.vacuous for result in results.values())
        return f": {OF_VACUOUS_PASSES}" if is_vacuous else ""
    found = {name for result in results.values() for name, summary in result.found() if not summary.legal}
    if "set" in results and found <= NOT_OF_SET_FULL:
        return ": Jepsen's set-full looks for elements that are lost, and not for these"
    if found == {NOT_OF_ELLE}:
        return ": Elle does not ask who wrote what was read from a register"
    return ""


def _keys_that_differ(
    judging: Sequence[JepsenVerdict], results: Mapping[str, CheckerResult]
) -> tuple[list[str], tuple[str, ...]]:
    """For histories whose keys Jepsen judged one by one: (sentences on keys with which only one of the two found fault,
    keys on which nothing can be said because they were not searched here)."""
    by_key: dict[str, list[JepsenVerdict]] = {}
    for one in judging:
        if one.key is not None:
            by_key.setdefault(one.key, []).append(one)
    if not by_key:
        return [], ()
    ours, all_shown = _found_by_key(results)
    named, all_named = _open_keys(results)
    lines, not_compared = [], []
    for key, verdicts in by_key.items():
        is_rejected = any(one.valid == "invalid" for one in verdicts)
        if key not in ours and (key in named or not all_named):
            not_compared.append(key)
        elif is_rejected and key not in ours and all_shown:
            lines.append(f"key {key} is invalid to Jepsen; here nothing was found on it")
        elif not is_rejected and key in ours:
            theirs = merge(map(_verdict_of, verdicts)).value
            found = f"{ours[key].name}: {ours[key].because}"
            aside = f"; {OF_NULL_READS}" if NULL_READ in ours[key].because else ""
            lines.append(f"key {key} is {theirs} to Jepsen; here {found}{aside}")
    more = len(lines) - KEYS_SHOWN
    if more > 0:
        lines[KEYS_SHOWN:] = [f"and {more} more keys"]
    if len(not_compared) > KEYS_SHOWN:
        not_compared[KEYS_SHOWN:] = [f"and {len(not_compared) - KEYS_SHOWN} more"]
    return lines, tuple(not_compared)


def _open_keys(results: Mapping[str, CheckerResult]) -> tuple[set[str], bool]:
    """Keys that were not searched to the end, and whether these are all."""
    left = [result.statistics[OPEN_OBJECTS] for result in results.values() if OPEN_OBJECTS in result.statistics]
    named = {key for one in left for key in one["named"]}
    return named, sum(one["count"] for one in left) <= len(named)


def _found_by_key(results: Mapping[str, CheckerResult]) -> tuple[dict[str, Anomaly], bool]:
    """An anomaly of each key that has one, and whether these are all keys: examples are bounded."""
    ours: dict[str, Anomaly] = {}
    all_shown = True
    for result in results.values():
        for _, summary in result.found():
            if summary.legal:
                continue
            all_shown &= summary.count <= len(summary.examples)
            for example in summary.examples:
                if example.key is not None:
                    ours.setdefault(example.key, example)
    return ours, all_shown


def _checkers_in_words(verdicts: Sequence[JepsenVerdict]) -> list[str]:
    """A line for each checker; of those that judge key by key the keys that are not valid."""
    lines = []
    for name in dict.fromkeys(one.name for one in verdicts):
        mine = [one for one in verdicts if one.name == name]
        aside = "" if mine[0].judges_history else ", which does not judge the history"
        named = ", ".join(dict.fromkeys(anomaly for one in mine for anomaly in one.anomalies))
        anomalies = f": {named}" if named else ""
        if mine[0].key is None:
            lines.append(f"{name}: {mine[0].valid}{anomalies}{aside}")
            continue
        wrong = [f"{one.key} {one.valid}" for one in mine if one.valid != "valid"]
        more = f", and {len(wrong) - KEYS_SHOWN} more" if len(wrong) > KEYS_SHOWN else ""
        shown = ", ".join(wrong[:KEYS_SHOWN]) + more if wrong else "all valid"
        lines.append(f"{name}: {len(mine)} keys, {shown}{anomalies}{aside}")
    return lines
