"""The page on planted bugs: what it took to catch each, and the storm that is left of the catch.

Made of what a campaign came to so far (`tests/rocketmq/mutants/searches.py`). Where a search caught nothing, what it
would have cost is more than any number: medians over root seeds take it as infinite.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stormproof.search.compare import Chase, states_a_storm
from stormproof.search.mutate import entries_in
from stormproof.search.trial import scenario_of

FEW_FAULTS = 3
FEW_OPERATIONS = 20
SOON_S = 60.0
RANDOM_COLUMNS = " random | storms | processor s |"
EASY_STORMS = 20
"""What needs no more storms than that at random shows nothing of a guide."""

_LAGS = (
    "where all of the set must acknowledge, a laggard in it loses nothing; it has to lag longer than most faults last"
)
_HELD = (
    "a proposal has to be held on its way until the set, or the master, is another one: its links have to be held in "
    "the very milliseconds in which it is sent"
)
WHY_NOT: Mapping[str, str] = {
    "caught-up-by-batch": _LAGS,
    "wall-clock-catch-up": _LAGS,
    "no-master-epoch-check": _HELD,
    "no-set-epoch-check": _HELD,
    "bogus-ack": (
        "somebody has to acknowledge what was never sent; a slave whose log is longer is cut before it acknowledges "
        "anything"
    ),
    "corrupt-is-absent": (
        "a copy of one of the last entries has to be harmed before another owner takes over, and its bookie to answer "
        "before the others"
    ),
    "epochs-not-corrected": (
        "a log has to be cut below the beginning of its newest epoch, which needs an unclean election of a shorter "
        "log, or power lost right after a promotion"
    ),
    "fsync-error-ignored": (
        "the fsync of the log has to fail and of no other file, and power to be lost before the process ends for any "
        "other reason"
    ),
    "late-truncate-same-term": (
        "a TRUNCATE has to wait on a connection that is replaced meanwhile, by the same leader in the same term, and "
        "to arrive after that one has appended and been acknowledged again"
    ),
    "last-file-member": (
        "who began at the last file has to be elected before what it lacks has expired, and while somebody still looks "
        "for that"
    ),
    "newcomer-blocks-shrink": (
        "of four brokers the active controller has not to hear one that catches up, while another one has to leave "
        "the set; not in 400 storms of four brokers either"
    ),
    "offset-never-lowers": (
        "a broker has to start again with less, and to be ranked by what it had before its next report"
    ),
    "pulse-outlives-controller": (
        "a master has to give up while a controller that has just begun again has heard less of it than the life "
        "before had"
    ),
    "strict-lock-unnoted": (
        "the master has to change within the seconds for which a lock lives, while its owner is at work and the queue "
        "is another member's by now"
    ),
    "unclean-though-clean-lives": (
        "unclean elections have to be allowed, and who is not in the set has to hold as much as a member that lives "
        "when the master dies"
    ),
    "unheard-is-dead": (
        "at RocketMQ's own pace, with asynchronous flush, the power of the primary and of a controller has to be lost "
        "together, for less than the time-out; not in 400 storms either"
    ),
}
"""Bug -> why no search caught it, where somebody found out."""


@dataclass(frozen=True)
class Small:
    """A catch that was made small."""

    row: Mapping[str, Any]
    """As `shrunk_catch` makes it."""

    @property
    def mutant(self) -> str:
        return str(self.row["mutant"])

    @property
    def name(self) -> str:
        """As that of the search."""
        return f"{self.mutant}-{'guided' if self.row['is_guided'] else 'random'}-{self.row['root']}"

    @property
    def faults(self) -> int:
        return len(entries_in(scenario_of(self.row)))

    @property
    def operations(self) -> int:
        return int(self.row["operations"])

    @property
    def is_sound(self) -> bool:
        """It shows something that the system without the bug does not."""
        return bool(self.row["trace"]) and bool(self.row["is_of_the_bug"])

    @property
    def fits(self) -> bool:
        return self.is_sound and self.faults <= FEW_FAULTS and self.operations <= FEW_OPERATIONS


@dataclass(frozen=True, kw_only=True)
class Bug:
    name: str
    promise: str
    guided: tuple[Chase, ...]
    random: tuple[Chase, ...]
    smallest: Small | None

    @property
    def chases(self) -> tuple[Chase, ...]:
        return self.guided + self.random

    @property
    def is_caught(self) -> bool:
        return any(chase.is_caught for chase in self.chases)

    @property
    def is_hard(self) -> bool:
        """For a search at random."""
        return bool(self.guided) and bool(self.random) and median(self.random, _storms) > EASY_STORMS

    def settings(self) -> str:
        """To its searches; another one's as well, where they differ."""
        return "; ".join(dict.fromkeys(_settings_of(chase) for chase in self.chases if chase.given))

    def anomalies(self) -> str:
        counts = Counter(anomaly for chase in self.chases for anomaly in chase.anomalies)
        return ", ".join(anomaly for anomaly, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _settings_of(chase: Chase) -> str:
    values = {name: str(value).lower() if isinstance(value, bool) else value for name, value in chase.given.items()}
    return ", ".join(f"{name}={value}" for name, value in values.items())


Cost = Callable[[Chase], float]


def _storms(chase: Chase) -> float:
    return chase.storms


def _processor_s(chase: Chase) -> float:
    return chase.processor_s


def median(chases: Sequence[Chase], cost: Cost) -> float:
    """To the first catch; infinite where half of the searches caught nothing, or there was none."""
    return statistics.median([cost(chase) if chase.is_caught else math.inf for chase in chases] or [math.inf])


def bugs_of(promises: Mapping[str, str], chases: Iterable[Chase], small: Iterable[Small]) -> list[Bug]:
    """In the order of their names; of the storms that are sound the one of fewest faults, then operations."""
    sound = sorted((one for one in small if one.is_sound), key=lambda one: (one.faults, one.operations, one.name))
    in_order = sorted(chases, key=lambda chase: chase.root)
    return [
        Bug(
            name=name,
            promise=promise,
            guided=tuple(chase for chase in in_order if chase.mutant == name and chase.is_guided),
            random=tuple(chase for chase in in_order if chase.mutant == name and not chase.is_guided),
            smallest=next((one for one in sound if one.mutant == name), None),
        )
        for name, promise in sorted(promises.items())
    ]


def page(
    promises: Mapping[str, str],
    chases: Iterable[Chase],
    small: Iterable[Small],
    revisions: Sequence[str] = (),
    system: str = "rocketmq",
) -> str:
    """Markdown. `promises`: bug -> what it breaks, of all that the system has. `revisions`: at which was searched."""
    bugs = bugs_of(promises, chases, small)
    with_random = any(bug.random for bug in bugs)
    lines = [
        f"# Planted bugs of {system}, and what it took to catch them",
        "",
        f"Made by `make searches SYSTEM={system}`. Each bug was searched for by `stormproof explore`'s search, "
        f"{'guided and at random' if with_random else 'guided'},",
        f"from {_count(_roots(bugs), 'root seed')}, without a storm that was written for it. A catch is a storm that",
        "breaks a promise with the bug and breaks none without it. What it cost is counted up to and with that storm:",
        "storms, and processor seconds of storms and their judgement; the median over the root seeds, where a search",
        "that caught nothing costs more than any number (–). The catch of fewest faults was then made small; its storm",
        "lies in the directory of the searches.",
        "A search draws everything, the deployment and the workload among it, but for what its bug was given.",
        *([f"Searched at {', '.join(revisions)}."] if revisions else []),
        "",
        "## Summary",
        "",
        *_summary(bugs, with_random),
        "",
        "## Table",
        "",
        f"| bug | shows | given | guided | storms | processor s |{RANDOM_COLUMNS if with_random else ''} shrunk: faults"
        " | operations |",
        "|---" * (11 if with_random else 8) + "|",
        *(_row(bug, with_random) for bug in bugs),
    ]
    return "\n".join(lines) + "\n"


def _summary(bugs: Sequence[Bug], with_random: bool) -> list[str]:
    caught = [bug for bug in bugs if bug.is_caught]
    by = {"guided": 0, "random": 0}
    for bug in bugs:
        by["guided"] += any(chase.is_caught for chase in bug.guided)
        by["random"] += any(chase.is_caught for chase in bug.random)
    soon = sum(median(bug.guided, _processor_s) <= SOON_S for bug in bugs)
    fitting = sum(bug.smallest is not None and bug.smallest.fits for bug in bugs)
    return [
        f"- Caught: {len(caught)} of {len(bugs)}"
        + (f" ({by['guided']} guided, {by['random']} at random)." if with_random else "."),
        f"- Within {SOON_S:g} processor seconds, guided, in the median: {_share(soon, len(bugs))}.",
        f"- Shrunk to at most {FEW_FAULTS} faults and {FEW_OPERATIONS} operations: {_share(fitting, len(bugs))}.",
        *(_against_random([bug for bug in bugs if bug.is_hard]) if with_random else []),
        *_not_caught([bug for bug in bugs if bug.chases and not bug.is_caught]),
        *_not_sought([bug.name for bug in bugs if not bug.chases]),
    ]


def _against_random(hard: Sequence[Bug]) -> list[str]:
    """Bugs that both missed in the median say nothing of who is sooner, but something of states."""
    opening = f"- Guided against random, over bugs that random needs more than {EASY_STORMS} storms for"
    if not hard:
        return [f"{opening}: there is none."]
    told = [bug for bug in hard if any(math.isfinite(median(side, _storms)) for side in (bug.guided, bug.random))]
    losing = [bug.name for bug in told if median(bug.guided, _storms) > median(bug.random, _storms)]
    times = _median_words([_tried(bug.random) / _tried(bug.guided) for bug in told])
    return [
        f"{opening} ({len(hard)}):",
        f"  - random takes {times} times as many storms, in the median of the {len(told)} that either catches in the"
        " median of its root seeds; a search that caught nothing counts with what it tried, which flatters it;",
        f"  - distinct states by a measure that the guide does not use: {_ratio(hard, states_a_storm)} times as many a"
        f" storm, {_ratio(hard, _states)} times in total, {_at_equal_storms(hard)} times after equally many storms;",
        f"  - guided loses on: {', '.join(losing) or 'none'}.",
    ]


def _tried(chases: Sequence[Chase]) -> float:
    return statistics.median(map(_storms, chases))


def _states(chase: Chase) -> float:
    return max(chase.states, default=0)


def _pairs(bugs: Sequence[Bug]) -> list[tuple[Chase, Chase]]:
    """Guided and random from the same root seed."""
    return [
        (guided, random) for bug in bugs for guided in bug.guided for random in bug.random if guided.root == random.root
    ]


def _ratio(bugs: Sequence[Bug], of: Cost) -> str:
    return _median_words([of(guided) / of(random) for guided, random in _pairs(bugs) if of(random)])


def _at_equal_storms(bugs: Sequence[Bug]) -> str:
    """After the last round that both made, but for a last one, which a catch may have ended."""
    shared = [
        (guided.states, random.states, min(len(guided.states), len(random.states)) - 1)
        for guided, random in _pairs(bugs)
    ]
    return _median_words([mine[at - 1] / theirs[at - 1] for mine, theirs, at in shared if at > 0 and theirs[at - 1]])


def _median_words(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f}" if values else "(nobody knows how many)"


def _not_caught(bugs: Sequence[Bug]) -> list[str]:
    lines = ["- Not caught:"] if bugs else []
    for bug in bugs:
        tried = sum(chase.storms for chase in bug.chases)
        spent_s = sum(chase.processor_s for chase in bug.chases)
        why = WHY_NOT.get(bug.name, "nobody knows why")
        lines.append(f"  - {bug.name}, in {tried:,} storms of {spent_s:,.0f} processor s: {why}")
    return lines


def _not_sought(names: Sequence[str]) -> list[str]:
    return [f"- Not searched for yet: {', '.join(names)}."] if names else []


def _row(bug: Bug, with_random: bool) -> str:
    small = (bug.smallest.faults, bug.smallest.operations) if bug.smallest is not None else ("–", "–")
    costs = (
        cell
        for chases in ((bug.guided, bug.random) if with_random else (bug.guided,))
        for cell in (
            f"{sum(chase.is_caught for chase in chases)} of {len(chases)}",
            _number(median(chases, _storms)),
            _number(median(chases, _processor_s)),
        )
    )
    cells = (bug.name, bug.anomalies() or "–", bug.settings() or "–", *costs, *map(str, small))
    return f"| {' | '.join(cells)} |"


def _roots(bugs: Iterable[Bug]) -> int:
    return len({chase.root for bug in bugs for chase in bug.chases})


def _count(number: int, of: str) -> str:
    return f"{number:,} {of}{'' if number == 1 else 's'}"


def _share(number: int, of: int) -> str:
    return f"{number} of {of}" + (f" ({number / of:.0%})" if of else "")


def _number(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "–"
