"""Short histories that came without their runs, judged at once as far as nothing is wrong with them.

Most of what it takes to judge a short history does not depend on its length. So some are laid behind each other first
(`checkers.batch`): more and more of them as long as they turn out valid, and none where few do. What is not
certainly valid is judged by itself, so that nothing is told otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from checkers.api.verdict import Verdict
from checkers.batch import are_composable, judge_together
from harness.jepsen import Beside
from harness.jepsen.source import is_short
from stormproof.session import engines
from stormproof.session.check_spec import CheckSpec, in_memory
from stormproof.session.decide import CheckOptions, CheckOutcome
from stormproof.session.foreign_history import Form, GivenHistory
from stormproof.session.judge_history import JudgedHistory
from stormproof.session.null_reads import NullReads

AGAIN, MOST = 8, 256
"""How many are looked at before it is known whether most are valid again, and how many are judged together at most."""
ENOUGH = 0.75
"""Such a share of them has to be valid, or judging them together is too often in vain."""
MOST_BYTES = 1 << 17
"""A longer text is of a history that takes little longer by itself."""


@dataclass(frozen=True, kw_only=True)
class ShortHistory:
    """One that can be judged together with others of its judgement."""

    source: GivenHistory
    rows: pa.Table
    spec: CheckSpec
    subject: str
    """The name of the workload or model."""
    beside: Beside


def short_history(source: GivenHistory, spec: CheckSpec, *, subject: str) -> ShortHistory | None:
    """None if it is not short, or cannot be judged together with others.

    Raises OSError, MalformedHistory, HarnessError: whoever judges it by itself does so, too.
    """
    if source.form is not Form.TEXT or source.file.stat().st_size > MOST_BYTES or not is_short(source.file):
        return None
    if not are_composable(spec.checkers.values()) or spec.null_reads is not NullReads.EMPTY:
        return None
    rows, spec, beside = in_memory(source.file, spec)
    if not rows.num_rows:
        return None
    return ShortHistory(source=source, rows=rows, spec=spec, subject=subject, beside=beside)


def judged_together(histories: Sequence[ShortHistory], check_options: CheckOptions) -> list[JudgedHistory | None]:
    """Of each what it came to, if it is certainly VALID and nothing was found; None for those to be judged alone."""
    found: list[JudgedHistory | None] = [None] * len(histories)
    alike: dict[int, list[int]] = {}
    for place, history in enumerate(histories):
        alike.setdefault(id(history.spec), []).append(place)
    for places in alike.values():
        for place, judged in zip(places, _alike([histories[place] for place in places], check_options), strict=True):
            found[place] = judged
    return found


def _alike(histories: Sequence[ShortHistory], check_options: CheckOptions) -> list[JudgedHistory | None]:
    """The same of histories of one judgement."""
    chosen = [
        engines.choose(check_options.engine, check_options.master, rows=history.rows.num_rows, subject=history.subject)
        for history in histories
    ]
    if any(one.name != engines.IN_PROCESS for one in chosen):
        return [None] * len(histories)
    engine = engines.make_engine(chosen[0])
    spec = histories[0].spec
    rows = [history.rows for history in histories]
    together = judge_together(rows, spec.checkers, spec.repeats, engine)
    return [
        JudgedHistory(
            source=history.source,
            history=history.rows,
            verdict=Verdict.VALID,
            reasons=(),
            decided=CheckOutcome(results=together.results, chosen=chosen[place], engine=engine),
            beside=history.beside,
        )
        if place in together.valid
        else None
        for place, history in enumerate(histories)
    ]


def may_be_judged_together(check_options: CheckOptions) -> bool:
    """Whether it is worth a look: not on Spark, nor where searches end after a time that would have to be shared."""
    return (
        check_options.engine != engines.SPARK
        and check_options.master is None
        and check_options.effort.give_up_after_s is None
    )


@dataclass
class Pace:
    """How many histories are looked at next, and whether together before each by itself."""

    size: int = 1
    together: bool = True

    def learn(self, valid: int) -> None:
        """How many of the last ones turned out valid: if few did, the next are looked at one by one."""
        self.together = valid >= ENOUGH * self.size
        self.size = min(2 * self.size, MOST) if valid == self.size else self.size if self.together else AGAIN
