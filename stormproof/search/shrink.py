"""A storm that shows an anomaly, made as small and as plain as it can be while it shows the same anomaly.

Passes remove, in this order: the demand for progress, everything unusual about the world, what comes after the
violation, kinds of faults, faults, operations, nodes, clients, keys, unusual settings. Then they simplify what is left:
one thing at a time and not several, weaker, sooner, at round times. They are repeated in turn until none of them finds
anything more. Only the anomaly decides: it must be found again, and not be legal. Storms that were tried are
remembered, so none is run twice.

Equal storms are shrunk to equal ones, unless `most_seconds` ends the search.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from checkers.api.anomaly import Anomaly
from harness.bounds import bounds_of
from harness.errors import HarnessError, UsageError
from harness.operation import NEMESIS
from harness.progress import Moment, Progress, unwatched
from harness.record.fault_log import FaultWindow
from harness.record.history import MalformedHistory
from harness.record.picked import picked_numbers, picked_text
from harness.record.scenario import CALM, Scenario
from nemesis.grammar import parse_shapes
from nemesis.impair import Impairing, amounts_of
from nemesis.parameters import Amount, Value
from nemesis.schedule import Entry
from nemesis.shape import Shape, Together
from nemesis.vocabulary import IT
from stormproof.search.delta_debugging import fewest, least
from stormproof.search.mutate import entries_in
from stormproof.search.sampling import with_entries
from stormproof.search.storm import StormOutcome, blown_and_judged
from stormproof.session import registry
from stormproof.session.execute import entries_of

MOST_STORMS = 500
MOST_TURNS = 4
SECOND_NS = 1_000_000_000
ROUND_NS = (SECOND_NS, SECOND_NS // 10, SECOND_NS // 1000)
"""The units to which times are rounded, coarsest first: the first one with which the anomaly still shows is taken."""
FEW_CLIENTS = (1, 2, 3, 5)
FEW_OPERATIONS = 20
STEPS = (64, 16, 4)
"""The steps in which operations are guessed: every 64th may be enough, or every 16th, or every 4th."""
OTHER_SEEDS = 12
COARSE = 16
"""The number of interleaved parts in which operations are left out at first."""
MOST_HALVINGS = 12
"""How many times an amount is halved at most in one turn."""
SHORT_CALM_S = 3.0
"""The calm of storms while they are shrunk, if it is enough: the calm is most of the cost of a short storm."""
LEAD_S = 1.0
"""How much quiet is left before the first event that matters."""


@dataclass(frozen=True, kw_only=True)
class Shrunk:
    """The smallest storm that was found to show the anomaly, and what it took to find it."""

    scenario: Scenario
    outcome: StormOutcome
    anomaly: str
    storms: int
    processor_s: float

    @property
    def faults(self) -> int:
        """How many faults its schedule has."""
        return len(self.scenario.schedule)

    @property
    def operations(self) -> int:
        """How many operations of clients it has before the final reads."""
        return len(storm_operations(self.outcome))


def shrunk(
    scenario: Scenario,
    anomaly: str,
    *,
    progress: Progress = unwatched,
    most_storms: int = MOST_STORMS,
    most_seconds: float | None = None,
) -> Shrunk:
    """The storm, shrunk. `most_seconds`: of processor time. Raises UsageError if it does not show the anomaly."""
    trials = Trials(anomaly=anomaly, progress=progress, most_storms=most_storms, most_seconds=most_seconds)
    if not trials.shows(scheduled(scenario)):
        raise UsageError(f"the storm of seed {scenario.seed} does not show {anomaly}; there is nothing to shrink")
    try:
        trials.changes(recovery_s=min(scenario.recovery_s, SHORT_CALM_S))
        for turn in range(MOST_TURNS):
            before = trials.best
            trials.turn = turn
            for name, pass_ in PASSES:
                pass_(trials)
                trials.tell(name)
            if trials.best == before:
                break
        trials.changes(recovery_s=scenario.recovery_s)
    except _Spent:
        progress("shrinking ends: as many storms were tried as it may take")
    return Shrunk(
        scenario=trials.best,
        outcome=trials.outcome,
        anomaly=anomaly,
        storms=trials.storms,
        processor_s=trials.processor_s,
    )


def scheduled(scenario: Scenario) -> Scenario:
    """The same storm, with the faults of its packages written down as a schedule. Raises UsageError."""
    if not scenario.nemesis:
        return scenario
    parts = registry.resolve(scenario)
    known = {one.name for type_ in (parts.system.settings_type, parts.workload.settings_type) for one in fields(type_)}
    settings = {name: value for name, value in scenario.settings.items() if name in known}
    return with_entries(replace(scenario, nemesis=(), settings=settings), entries_of(scenario, parts))


class _Spent(Exception):
    """No more storms may be tried."""


@dataclass(kw_only=True)
class Trials:
    """Storms that were tried; the last one that showed the anomaly is the best, as each candidate is simpler."""

    anomaly: str
    progress: Progress
    most_storms: int
    most_seconds: float | None
    turn: int = 0
    storms: int = 0
    processor_s: float = 0.0
    _best: tuple[Scenario, StormOutcome] | None = None
    _tried: dict[str, bool] = field(default_factory=dict)

    @property
    def best(self) -> Scenario:
        assert self._best is not None
        return self._best[0]

    @property
    def outcome(self) -> StormOutcome:
        assert self._best is not None
        return self._best[1]

    def shows(self, candidate: Scenario) -> bool:
        """Whether the candidate shows the anomaly. If so, it is the best one from now on."""
        if self._best is not None and candidate == self.best:
            return True
        key = json.dumps(candidate.to_json(), sort_keys=True)
        if key in self._tried:
            return False  # what showed it was the best at once, and everything since is simpler
        if self.storms >= self.most_storms or (self.most_seconds or self.processor_s + 1) <= self.processor_s:
            raise _Spent
        judged = self._judge(candidate)
        self._tried[key] = judged is not None and self.anomaly in judged.anomalies
        if judged is None or not self._tried[key]:
            return False
        self._best = candidate, judged
        return True

    def changes(self, **changed: Any) -> bool:
        """Whether the best storm still shows the anomaly with these fields changed; False if that is refused."""
        try:
            candidate = replace(self.best, **changed)
            return self.shows(with_entries(candidate, entries_in(candidate)) if candidate.schedule else candidate)
        except UsageError:
            return False

    def _judge(self, candidate: Scenario) -> StormOutcome | None:
        """The outcome of a candidate; None if it cannot be run."""
        began = time.process_time()
        try:
            parts = registry.resolve(candidate)
            registry.environment_of(candidate, parts)
            self.storms += 1
            self.progress(Moment(f"{self.anomaly}: storm {self.storms}"))
            return blown_and_judged(candidate, parts)
        except (UsageError, HarnessError, MalformedHistory):
            return None
        finally:
            self.processor_s += time.process_time() - began

    def tell(self, name: str) -> None:
        self.progress(
            f"{self.anomaly}: {self.storms} storms tried; {name}: {len(self.best.schedule)} faults, "
            f"{len(storm_operations(self.outcome))} operations, {self.best.time_limit_s:g} s"
        )


def storm_operations(outcome: StormOutcome) -> list[dict[str, Any]]:
    """The invocations of clients before the final reads, in order; the n-th is the n-th that the scenario picks."""
    blown = outcome.blown
    final_ns = blown.facts.final_from_ns
    rows = blown.history.select(["index", "process", "type", "f", "key", "time"]).to_pylist()
    return [
        row
        for row in rows
        if row["type"] == "invoke" and row["process"] != NEMESIS and (final_ns is None or row["time"] < final_ns)
    ]


def witnesses(outcome: StormOutcome, anomaly: str) -> tuple[int, ...]:
    """The rows of the history that the anomaly's examples name, those of the first example first."""
    return tuple(dict.fromkeys(index for example in examples(outcome, anomaly) for index in example.operations))


def examples(outcome: StormOutcome, anomaly: str) -> tuple[Anomaly, ...]:
    found = (result.anomalies[anomaly] for result in outcome.results.values() if anomaly in result.anomalies)
    return tuple(example for summary in found for example in summary.examples)


def moments_ns(outcome: StormOutcome, anomaly: str) -> tuple[int, ...]:
    """When it showed, as far as nodes or their watch reported it."""
    details = [example.details for example in examples(outcome, anomaly)]
    times_ns = {time_ns for one in details for time_ns in one.get("times_ns", ())}
    return tuple(sorted(times_ns | {one["time_ns"] for one in details if "time_ns" in one}))


# What is removed ------------------------------------------------------------------------------------------------------


def without_liveness(trials: Trials) -> None:
    best = trials.best
    if best.liveness_s:
        trials.changes(liveness_s=0.0, time_limit_s=best.time_limit_s - best.liveness_s)
    if best.max_outage_s:
        trials.changes(max_outage_s=0.0)


def calm(trials: Trials) -> None:
    if trials.best.world != CALM:
        trials.changes(world=CALM)


def cut_behind(trials: Trials) -> None:
    """Makes the storm as short as possible, in whole seconds; first it is cut at the moment when the anomaly showed."""
    liveness_s = trials.best.liveness_s
    from_ns = trials.outcome.blown.facts.storm_from_ns or 0
    for moment_ns in moments_ns(trials.outcome, trials.anomaly)[:1]:
        end_s = max(1, (moment_ns - from_ns) // SECOND_NS + 1)
        if end_s + liveness_s < trials.best.time_limit_s:
            trials.changes(time_limit_s=end_s + liveness_s)
    storm_s = trials.best.time_limit_s - liveness_s
    if storm_s != int(storm_s):
        trials.changes(time_limit_s=int(storm_s) + 1 + liveness_s)
    least(0, int(trials.best.time_limit_s - liveness_s), lambda end_s: trials.changes(time_limit_s=end_s + liveness_s))


def fewer_kinds(trials: Trials) -> None:
    kinds = sorted({entry.shape.kind for entry in entries_in(trials.best)})
    for kind in kinds:
        entries = entries_in(trials.best)
        fewer = tuple(entry for entry in entries if entry.shape.kind != kind)
        if fewer != entries:
            trials.shows(with_entries(trials.best, fewer))


def fewer_faults(trials: Trials) -> None:
    scenario = trials.best
    fewest(entries_in(scenario), lambda entries: trials.shows(with_entries(scenario, entries)))


def fewer_operations(trials: Trials) -> None:
    scenario = trials.best
    count = len(storm_operations(trials.outcome))
    numbers = _numbers(scenario, count)

    def shows(kept: tuple[int, ...]) -> bool:
        # A scenario without picked operations carries out all of them, so they are never empty.
        return bool(kept) and trials.shows(replace(scenario, operations=picked_text(kept)))

    for guess in _guesses(trials, numbers):
        if len(guess) < len(numbers) and shows(guess):
            numbers = guess
            break
    if len(numbers) > FEW_OPERATIONS:
        numbers = _of_another_seed(trials, numbers)
        scenario = trials.best
    # They are only left out one by one when all else is small already, because storms are cheaper then.
    fewest(numbers, shows, 1 if trials.turn else max(1, len(numbers) // COARSE))


def _of_another_seed(trials: Trials, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Operations of a storm with another seed. A few operations rarely show the anomaly under the same seed, because
    any change shifts all that follows; another seed may show it with as few."""
    best = trials.best
    for step in STEPS:
        kept = numbers[::step]
        for seed in range(best.seed + 1, best.seed + 1 + OTHER_SEEDS):
            if trials.shows(replace(best, operations=picked_text(kept), seed=seed)):
                return kept
    return numbers


def _numbers(scenario: Scenario, count: int) -> tuple[int, ...]:
    """The numbers of the operations that clients invoke."""
    picked = sorted(picked_numbers(scenario.operations)) if scenario.operations else range(count)
    return tuple(picked)[:count]


def _guesses(trials: Trials, numbers: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Guesses of a few operations that may be enough: the witnesses and those that began last before nodes reported it,
    with more and more of their neighbours; then every 64th, 16th or 4th operation."""
    invoked = storm_operations(trials.outcome)
    named = set(witnesses(trials.outcome, trials.anomaly))
    open_: dict[int, int] = {}
    rows = trials.outcome.blown.history.select(["index", "process", "type"]).to_pylist()
    place_of = {row["index"]: place for place, row in enumerate(invoked)}
    marked: set[int] = set()
    for row in rows:
        if row["type"] == "invoke":
            open_[row["process"]] = row["index"]
        place = place_of.get(open_.get(row["process"], -1))
        if row["index"] in named and place is not None:
            marked.add(place)
    for time_ns in moments_ns(trials.outcome, trials.anomaly):
        marked.add(sum(row["time"] <= time_ns for row in invoked) - 1)
    for around in (0, 2, 8, 32):
        near = {other for place in marked for other in range(place - around, place + around + 1)}
        if kept := tuple(numbers[place] for place in sorted(near) if 0 <= place < len(numbers)):
            yield kept
    for step in STEPS:
        yield numbers[::step]


def fewer_nodes(trials: Trials) -> None:
    """Lowers the settings that have the name of a group of nodes, and say how many nodes it has."""
    system, settings = registry.configured_system(trials.best.system, trials.best.settings)
    _smaller(trials, settings, system.cluster(settings).groups)


def fewer_clients(trials: Trials) -> None:
    for count in FEW_CLIENTS:
        if count >= trials.best.concurrency or trials.changes(concurrency=count):
            return


def fewer_keys(trials: Trials) -> None:
    """Lowers the whole numbers among the workload's settings: keys, queues, accounts."""
    type_ = registry.workload(trials.best.workload).settings_type
    _smaller(trials, registry.typed_settings(type_, trials.best.settings), tuple(f.name for f in fields(type_)))


def _smaller(trials: Trials, settings: Any, names: tuple[str, ...]) -> None:
    bounds = bounds_of(type(settings))
    for name in names:
        now = getattr(settings, name, None)
        if type(now) is not int or name not in bounds:
            continue
        for value in sorted({max(few, int(bounds[name].least)) for few in FEW_CLIENTS}):
            if value >= now or trials.changes(settings={**trials.best.settings, name: value}):
                break


def usual_settings(trials: Trials) -> None:
    """Sets settings back to their defaults, all at once or one by one. The numbers of nodes and queues stay."""
    system, settings = registry.configured_system(trials.best.system, trials.best.settings)
    workload = registry.workload(trials.best.workload)
    counts = {*system.cluster(settings).groups, *(one.name for one in fields(workload.settings_type))}
    unusual = [name for name in trials.best.settings if name not in counts]
    counted = {name: value for name, value in trials.best.settings.items() if name in counts}
    if unusual and not trials.changes(settings=counted):
        for name in unusual:
            trials.changes(settings={key: value for key, value in trials.best.settings.items() if key != name})


# What is simplified ---------------------------------------------------------------------------------------------------


def one_thing_at_a_time(trials: Trials) -> None:
    """Leaves as few as possible of the shapes that strike together."""
    for place, entry in enumerate(entries_in(trials.best)):
        if isinstance(entry.shape, Together):

            def shows(shapes: tuple[Shape, ...], place: int = place) -> bool:
                shape = shapes[0] if len(shapes) == 1 else Together(shapes)
                return bool(shapes) and _with_entry(trials, place, lambda old: replace(old, shape=shape))

            fewest(entry.shape.shapes, shows)


def plain_times(trials: Trials) -> None:
    """Lets faults strike at the times at which they struck, so that they need not wait for a point."""
    for place, entry in enumerate(entries_in(trials.best)):
        window = None if entry.trigger is None else _window_of(trials, entry)
        if window is not None:
            _with_entry(trials, place, partial(_struck_at, trials, window))


def _window_of(trials: Trials, entry: Entry) -> FaultWindow | None:
    """The window of this entry's fault in the best storm."""
    windows = (
        one for one in trials.outcome.blown.faults.struck if (one.package, one.shape) == (entry.package, entry.what)
    )
    return next(windows, None)


def _struck_at(trials: Trials, window: FaultWindow, entry: Entry) -> Entry:
    """The entry aimed at the nodes that it struck, if it was aimed at the node that reached the point."""
    from_ns = trials.outcome.blown.facts.storm_from_ns or 0
    nodes = "+".join(window.aimed_at)
    words = tuple(nodes if word == IT else word for word in str(entry.shape).split())
    at_ns = window.start_ns - from_ns
    storm_ns = round((trials.best.time_limit_s - trials.best.liveness_s) * SECOND_NS)
    until_ns = min(at_ns + entry.until_ns - entry.at_ns, storm_ns)
    shape = parse_shapes(words, registry.resolve(trials.best).vocabulary)
    return replace(entry, at_ns=at_ns, until_ns=until_ns, shape=shape, trigger=None)


def smaller_amounts(trials: Trials) -> None:
    """Makes the amounts of impairments explicit, as small as possible, and with one digit if that is enough."""
    for place, entry in enumerate(entries_in(trials.best)):
        _says_its_amounts(trials, place, entry)
        shape = entries_in(trials.best)[place].shape
        if isinstance(shape, Impairing) and shape.amounts is not None:
            for number, amount in enumerate(amounts_of(shape)):
                _smaller_amount(trials, place, number, amount)


def _says_its_amounts(trials: Trials, place: int, entry: Entry) -> None:
    """Writes the amounts that were drawn when the fault struck, if its text has none."""
    window = _window_of(trials, entry)
    if window is None or window.fault is None:
        return
    if isinstance(entry.shape, Impairing) and entry.shape.amounts is None and amounts_of(entry.shape):
        values = tuple(window.fault[amount.name] for amount in amounts_of(entry.shape))
        _with_entry(trials, place, lambda old: replace(old, shape=replace(old.shape, amounts=values)))  # type: ignore[type-var]


def _smaller_amount(trials: Trials, place: int, number: int, amount: Amount) -> None:
    def shows(value: float) -> bool:
        return _with_entry(trials, place, partial(_with_amount, number=number, value=value))

    for _ in range(MOST_HALVINGS):
        value = _amount_in(trials, place, number)
        half = None if value is None else amount.near(value / 2, digits=1)
        if half is None or half == value or not shows(half):
            break
    value = _amount_in(trials, place, number)
    if value is not None and amount.near(value, digits=1) != value:
        shows(amount.near(value, digits=1))


def _amount_in(trials: Trials, place: int, number: int) -> Value:
    shape = entries_in(trials.best)[place].shape
    assert isinstance(shape, Impairing) and shape.amounts is not None
    return shape.amounts[number]


def _with_amount(entry: Entry, number: int, value: float) -> Entry:
    shape = entry.shape
    assert isinstance(shape, Impairing) and shape.amounts is not None
    amounts = (*shape.amounts[:number], value, *shape.amounts[number + 1 :])
    return replace(entry, shape=replace(shape, amounts=amounts))


def sooner(trials: Trials) -> None:
    """Removes a long quiet before the first event that matters."""
    scenario, entries = trials.best, entries_in(trials.best)
    from_ns = trials.outcome.blown.facts.storm_from_ns
    if not entries or from_ns is None or not scenario.operations or not scenario.rate:
        return
    first_s = min(entry.at_ns for entry in entries) / SECOND_NS
    invoked = storm_operations(trials.outcome)
    if invoked:
        first_s = min(first_s, (invoked[0]["time"] - from_ns) / SECOND_NS)
    for by_s in (int(first_s - LEAD_S), int(first_s / 2)):
        if by_s < 1:
            continue
        earlier = tuple(
            replace(entry, at_ns=entry.at_ns - by_s * SECOND_NS, until_ns=entry.until_ns - by_s * SECOND_NS)
            for entry in entries
        )
        by = min(round(by_s * scenario.rate), min(picked_numbers(scenario.operations)))
        numbers = (number - by for number in picked_numbers(scenario.operations))
        sooner_ = replace(scenario, operations=picked_text(numbers), time_limit_s=scenario.time_limit_s - by_s)
        if trials.shows(with_entries(sooner_, earlier)):
            return


def round_times(trials: Trials) -> None:
    """Rounds times, all at once, then each by itself."""
    for unit_ns in ROUND_NS:
        entries = tuple(_rounded(entry, unit_ns=unit_ns) for entry in entries_in(trials.best))
        if _fits(trials, entries) and trials.shows(with_entries(trials.best, entries)):
            break
    for place in range(len(entries_in(trials.best))):
        for begins in (True, False):
            for unit_ns in ROUND_NS:
                change = partial(_rounded, unit_ns=unit_ns, begins=begins, lasts=not begins)
                if _with_entry(trials, place, change):
                    break


def _rounded(entry: Entry, *, unit_ns: int, begins: bool = True, lasts: bool = True) -> Entry:
    at_ns = round(entry.at_ns / unit_ns) * unit_ns if begins else entry.at_ns
    length_ns = entry.until_ns - entry.at_ns
    if lasts:
        length_ns = max(1, round(length_ns / unit_ns)) * unit_ns
    return replace(entry, at_ns=at_ns, until_ns=at_ns + length_ns)


def _with_entry(trials: Trials, place: int, change: Callable[[Entry], Entry]) -> bool:
    entries = list(entries_in(trials.best))
    if place >= len(entries):
        return False
    entries[place] = change(entries[place])
    return _fits(trials, entries) and trials.shows(with_entries(trials.best, entries))


def _fits(trials: Trials, entries: Any) -> bool:
    storm_ns = round((trials.best.time_limit_s - trials.best.liveness_s) * SECOND_NS)
    return all(entry.at_ns < storm_ns and entry.until_ns <= storm_ns for entry in entries)


def plain_streams(trials: Trials) -> None:
    """Gives random streams short names."""
    entries = (replace(entry, package=_stream(entry), number=n) for n, entry in enumerate(entries_in(trials.best)))
    trials.shows(with_entries(trials.best, tuple(entries)))


def _stream(entry: Entry) -> str:
    return entry.shape.kind.partition("+")[0]


Pass = Callable[[Trials], None]
PASSES: tuple[tuple[str, Pass], ...] = (
    ("no demand for progress", without_liveness),
    ("a calm world", calm),
    ("cut behind the anomaly", cut_behind),
    ("fewer kinds of faults", fewer_kinds),
    ("fewer faults", fewer_faults),
    ("fewer operations", fewer_operations),
    ("fewer nodes", fewer_nodes),
    ("fewer clients", fewer_clients),
    ("fewer keys", fewer_keys),
    ("usual settings", usual_settings),
    ("plain times", plain_times),
    ("one thing at a time", one_thing_at_a_time),
    ("smaller amounts", smaller_amounts),
    ("sooner", sooner),
    ("round times", round_times),
    ("plain names", plain_streams),
)
