"""Short histories that came without their runs, judged at once as far as nothing is wrong with them.

Most of what it takes to judge a short history does not depend on its length. So some are laid behind each other first
(`checkers.batch`): more and more of them as long as they turn out valid, and none where few do. What is not
certainly valid is judged by itself, so that nothing is told otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from checkers.batch import are_composable, judge_together
from checkers.verdict import Verdict
from harness.jepsen import Beside
from harness.jepsen.source import is_short
from stormproof.session import engines
from stormproof.session.check_spec import Judgement, in_memory
from stormproof.session.decide import Decided, Judge
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

    given: GivenHistory
    rows: pa.Table
    judgement: Judgement
    judged: str
    """The name of the workload or model."""
    beside: Beside


def short_history(given: GivenHistory, judgement: Judgement, *, judged: str) -> ShortHistory | None:
    """None if it is not short, or cannot be judged together with others.

    Raises OSError, MalformedHistory, HarnessError: whoever judges it by itself does so, too.
    """
    if given.form is not Form.TEXT or given.file.stat().st_size > MOST_BYTES or not is_short(given.file):
        return None
    if not are_composable(judgement.checkers.values()) or judgement.null_reads is not NullReads.EMPTY:
        return None
    rows, judgement, beside = in_memory(given.file, judgement)
    if not rows.num_rows:
        return None
    return ShortHistory(given=given, rows=rows, judgement=judgement, judged=judged, beside=beside)


def judged_together(histories: Sequence[ShortHistory], judge: Judge) -> list[JudgedHistory | None]:
    """Of each what it came to, if it is certainly VALID and nothing was found; None for those to be judged alone."""
    found: list[JudgedHistory | None] = [None] * len(histories)
    alike: dict[int, list[int]] = {}
    for place, history in enumerate(histories):
        alike.setdefault(id(history.judgement), []).append(place)
    for places in alike.values():
        for place, judged in zip(places, _alike([histories[place] for place in places], judge), strict=True):
            found[place] = judged
    return found


def _alike(histories: Sequence[ShortHistory], judge: Judge) -> list[JudgedHistory | None]:
    """The same of histories of one judgement."""
    chosen = [
        engines.choose(judge.engine, judge.master, rows=history.rows.num_rows, judged=history.judged)
        for history in histories
    ]
    if any(one.name != engines.IN_PROCESS for one in chosen):
        return [None] * len(histories)
    engine = engines.make_engine(chosen[0])
    judgement = histories[0].judgement
    rows = [history.rows for history in histories]
    together = judge_together(rows, judgement.checkers, judgement.repeats, engine)
    return [
        JudgedHistory(
            given=history.given,
            history=history.rows,
            verdict=Verdict.VALID,
            reasons=(),
            decided=Decided(results=together.results, chosen=chosen[place], engine=engine),
            beside=history.beside,
        )
        if place in together.valid
        else None
        for place, history in enumerate(histories)
    ]


def may_be_judged_together(judge: Judge) -> bool:
    """Whether it is worth a look: not on Spark, nor where searches end after a time that would have to be shared."""
    return judge.engine != engines.SPARK and judge.master is None and judge.effort.give_up_after_s is None


@dataclass
class Pace:
    """How many histories are looked at next, and whether together before each by itself."""

    size: int = 1
    together: bool = True

    def learn(self, valid: int) -> None:
        """How many of the last ones turned out valid: if few did, the next are looked at one by one."""
        self.together = valid >= ENOUGH * self.size
        self.size = min(2 * self.size, MOST) if valid == self.size else self.size if self.together else AGAIN
