"""The vacuity checker: did enough happen for VALID to mean anything? It asks this in one place for all histories.

A pass is vacuous, and so the verdict UNKNOWN with the reason, if
- nothing in the history could have contradicted what was claimed of it (`evidence`), or it is empty
- fewer operations of some kind succeeded in the storm than the workload requires (`required_ok`), or a smaller share
  of those invoked (`required_share`), or less than three times that share of those invoked while no fault was active
  nor had been for as long as the system declares that it needs to recover
- faults were asked for, and none had an effect
A user may accept these (`CheckerResult.accepting_vacuous`), but not what makes a pass doubtful:
- a fault had an effect and was never undone, so what was judged as healed was not
- a fault outlived its own stop, and only the healing after the storm undid it, so the nemesis does not heal

It takes any history, and its run if there is one; the storm ends where the final reads began.

It does not establish that anything was right, and is never INVALID. It kills no mutant; it keeps a run in which nothing
could be found from being VALID. Cost: for a history without its run, the rows up to the first evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from checkers.api.evidence import Evidence, looked_at
from checkers.api.plan import CheckRequest, Engine, RunUnderCheck
from checkers.api.verdict import CheckerResult, Verdict
from checkers.history_batches import Source, batches
from checkers.kernels.columns import TYPES, Int64, codes, whole
from harness.record.fault_log import QUORUM
from harness.record.meaning import Meaning

COLUMNS = ("time", "process", "type", "f")
QUIET_FACTOR = 3
"""The factor by which a required share is raised while there is no fault: it is a third of the least that healthy
storms showed."""
QUIET_OPERATIONS = 50
"""The fewest operations of which a share means anything."""
SHOWN = 5
"""The most faults that were not healed that are named."""
END_OF_TIME_NS = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, kw_only=True)
class Vacuity:
    """The rules against passes that mean nothing."""

    subject: str
    """The workload or model that the history is judged by: `model register`."""
    evidence: tuple[Evidence, ...]
    name: str = "vacuity"
    meanings: ClassVar[Mapping[str, Meaning]] = {}

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        run = request.run or RunUnderCheck()
        final_from_ns = run.facts.final_from_ns
        seen = _Seen(evidence=self.evidence, storm_end_ns=END_OF_TIME_NS if final_from_ns is None else final_from_ns)
        seen.quiet = quiet_spans(run, seen.storm_end_ns)
        seen.read(request.history, everything=bool(run.required_ok or run.required_share))
        vacuous = tuple([*self._contradictable(seen), *too_little(seen, run)])
        reasons = (*vacuous, *doubtful(run))
        return CheckerResult(verdict=Verdict.UNKNOWN if reasons else Verdict.VALID, reasons=reasons, vacuous=vacuous)

    def _contradictable(self, seen: _Seen) -> Iterator[str]:
        if seen.rows == 0:
            yield "nothing happened: the history is empty"
        elif self.evidence and not seen.found:
            wanted = " or ".join(str(one) for one in self.evidence)
            kinds = sorted({one.f for one in self.evidence})
            is_there = any(f in seen.ended for f in kinds)
            happened = "; ".join(f"{f}: {_counts(seen.ended.get(f, {}))}" for f in kinds)
            hint = "" if is_there else f"; is this a history of {self.subject}?"
            yield (
                f"too little happened: nothing could have contradicted {self.subject}; that takes {wanted} "
                f"({happened}){hint}"
            )


@dataclass(kw_only=True)
class _Seen:
    """What clients did, as far as the history was read."""

    evidence: tuple[Evidence, ...]
    storm_end_ns: int
    rows: int = 0
    """How many rows clients and the nemesis have."""
    found: bool = False
    ended: dict[str, dict[str, int]] = field(default_factory=dict)
    """f -> type -> how many operations ended so; `invoke` is how many began."""
    in_storm: dict[str, dict[str, int]] = field(default_factory=dict)
    """The same up to the end of the storm."""
    quiet: Int64 = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    """Spans without any fault, as (start, end) in ns."""
    in_quiet: dict[str, dict[str, int]] = field(default_factory=dict)
    """The same for operations in these spans."""
    _on_key: list[dict[str | None, int]] = field(default_factory=list)

    def read(self, history: Source, *, everything: bool) -> None:
        """Reads up to the first evidence, or everything."""
        self._on_key = [{} for _ in self.evidence]
        for batch in batches(history, (*COLUMNS, *looked_at(self.evidence))):
            self.rows += batch.num_rows
            clients = batch["process"].to_numpy() >= 0
            rows = batch if clients.all() else batch.take(pa.array(np.flatnonzero(clients)))
            self._count(rows)
            self.found = self.found or any(self._is_found(number, rows) for number in range(len(self.evidence)))
            if self.found and not everything:
                return

    def _is_found(self, number: int, rows: pa.Table) -> bool:
        wanted = self.evidence[number]
        found = wanted.among(rows)
        if wanted.at_least == 1:
            return bool(found.num_rows > 0)
        on_key = self._on_key[number]
        for counted in whole(found["key"]).cast(pa.string()).value_counts().to_pylist():
            on_key[counted["values"]] = on_key.get(counted["values"], 0) + counted["counts"]
        return max(on_key.values(), default=0) >= wanted.at_least

    def _count(self, rows: pa.Table) -> None:
        names = whole(rows["f"])
        names = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
        kind = names.indices.to_numpy().astype(np.int64) * len(TYPES) + codes(rows["type"], TYPES)
        f_names = names.dictionary.to_pylist()
        time = rows["time"].to_numpy()
        quiet = np.zeros(len(time), dtype=np.bool_)
        for start_ns, end_ns in self.quiet.tolist():
            quiet |= (time >= start_ns) & (time < end_ns)
        of_each = (self.ended, kind), (self.in_storm, kind[time < self.storm_end_ns]), (self.in_quiet, kind[quiet])
        for counts, which in of_each:
            sizes = np.bincount(which)
            for number in np.flatnonzero(sizes).tolist():
                of_f = counts.setdefault(f_names[number // len(TYPES)], {})
                outcome = TYPES[number % len(TYPES)]
                of_f[outcome] = of_f.get(outcome, 0) + int(sizes[number])


def too_little(seen: _Seen, run: RunUnderCheck) -> Iterator[str]:
    """Why a pass of this run would mean nothing."""
    for f, required in sorted(run.required_ok.items()):
        ok = seen.in_storm.get(f, {}).get("ok", 0)
        if ok < required:
            yield f"too little happened: {ok} {f} succeeded in the storm, {required} are required"
    for f, share in sorted(run.required_share.items()):
        invoked, ok = (seen.in_storm.get(f, {}).get(outcome, 0) for outcome in ("invoke", "ok"))
        if ok < share * invoked:
            yield (
                f"too little happened: {ok} of {invoked} {f} succeeded in the storm, which is "
                f"{ok / invoked:.1%}; {share:.0%} are required"
            )
    for f, share in sorted(run.required_share.items()):
        invoked, ok = (seen.in_quiet.get(f, {}).get(outcome, 0) for outcome in ("invoke", "ok"))
        if invoked >= QUIET_OPERATIONS and ok < QUIET_FACTOR * share * invoked:
            yield (
                f"too little happened: {ok} of {invoked} {f} succeeded while no fault was active nor had been for "
                f"{run.recovers_within_s:g} s; {QUIET_FACTOR * share:.0%} are required"
            )
    # The fault that liveness needs was not asked for by the scenario.
    if run.faults_asked and all(window.package == QUORUM for window in run.faults.struck):
        yield f"no fault took effect, although these were asked for: {', '.join(sorted(run.faults_asked))}"


def quiet_spans(run: RunUnderCheck, storm_end_ns: int) -> Int64:
    """Sorted spans (start, end), in ns, in which no fault was active, nor had been for as long as the system declares
    that it needs to recover; also the one before the first fault."""
    if run.recovers_within_s is None or run.facts.storm_from_ns is None:
        return np.empty((0, 2), dtype=np.int64)
    spans, from_ns = [], run.facts.storm_from_ns
    for window in run.faults.struck:
        spans.append((from_ns, window.start_ns))
        from_ns = max(from_ns, window.stop_ns + round(run.recovers_within_s * 1e9))
    spans.append((from_ns, storm_end_ns))
    return np.array([span for span in spans if span[0] < span[1]], dtype=np.int64).reshape(-1, 2)


def doubtful(run: RunUnderCheck) -> Iterator[str]:
    """Why a pass of this run could not be trusted, however much happened."""
    unhealed = run.faults.unhealed
    if unhealed:
        more = f", and {len(unhealed) - SHOWN} more" if len(unhealed) > SHOWN else ""
        struck = len(run.faults.struck)
        yield f"{len(unhealed)} of {struck} faults were not healed: {'; '.join(unhealed[:SHOWN])}{more}"
    late = run.faults.left_to_the_end
    if late:
        yield (
            f"{len(late)} of {len(run.faults.struck)} faults were healed by nothing before the end of the storm: "
            f"{'; '.join(late[:SHOWN])}{'' if len(late) <= SHOWN else f', and {len(late) - SHOWN} more'}"
        )


def _counts(outcomes: Mapping[str, int]) -> str:
    failed, unknown = outcomes.get("fail", 0), outcomes.get("info", 0)
    never = outcomes.get("invoke", 0) - sum(outcomes.get(name, 0) for name in TYPES[1:])
    return f"{outcomes.get('ok', 0)} ok, {failed} failed, {unknown + max(never, 0)} of unknown outcome"
