"""Administrators act: once at a time, without effect where they are refused, and ended for certain."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from harness.errors import OUTCOME_UNKNOWN, PRECONDITION_FAILED, ErrorCode, OperationError, UsageError
from harness.operation import NEMESIS, Operation
from harness.record.fault_log import FaultLog
from harness.record.fault_row import FINAL_HEALING, FaultRow
from harness.seed import Seed
from nemesis import nemesis as module
from nemesis.able import require_able
from nemesis.administration import Administer
from nemesis.nemesis import Nemesis
from nemesis.package import administration
from nemesis.periodic import every
from nemesis.schedule import Due, Entry
from nemesis.sentence import parse
from nemesis.shape import Together, kill
from nemesis.target import Nodes
from nemesis.trigger import when
from tests.unit.nemesis.systems import ROCKETMQ, WORDS
from tests.unit.nemesis.test_membership import Timed


@dataclass
class Office:
    """Acts that say when they begin and end, and are refused so often."""

    refusals: list[ErrorCode] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    ends: asyncio.Event = field(default_factory=asyncio.Event)
    """An end waits for it."""

    def __post_init__(self) -> None:
        self.ends.set()

    def act(self, name: str) -> Deed:
        return Deed(self, name)

    def ask(self, what: str) -> str:
        self.done.append(what)
        if self.refusals:
            raise OperationError(self.refusals.pop(0), "not now")
        return f"{what} is done"


@dataclass
class Deed:
    office: Office
    name: str

    async def begin(self) -> str:
        return self.office.ask(f"begin {self.name}")

    async def end(self) -> str:
        words = self.office.ask(f"end {self.name}")
        await self.office.ends.wait()
        return words


class Storm:
    """Acts by number, which a test starts and stops one by one."""

    def __init__(self, *names: str, refusals: Sequence[ErrorCode] = ()) -> None:
        self.rows: list[FaultRow] = []
        self.office = Office(refusals=list(refusals))
        entries = [Entry.between(0, 1, "test", number, Administer(name)) for number, name in enumerate(names)]

        async def roles() -> dict[str, tuple[str, ...]]:
            return {}

        self.nemesis = Nemesis(
            environment=Timed(),  # type: ignore[arg-type]
            groups=WORDS.groups,
            roles=roles,
            acts=self.office.act,
            due=tuple(Due(0, starts, entry) for entry in entries for starts in (True, False)),
            seed=Seed(1),
            record=self.rows.append,
        )

    async def start(self, number: int) -> FaultRow:
        await self._carry_out(2 * number)
        return self.rows[-1]

    async def stop(self, number: int) -> FaultRow:
        """Once it has ended, which goes on beside the storm."""
        rows = len(self.rows)
        await self._carry_out(2 * number + 1)
        for _ in range(10_000):
            if len(self.rows) > rows:
                return self.rows[-1]
            await asyncio.sleep(0)
        raise AssertionError("it did not end")

    async def _carry_out(self, position: int) -> None:
        await self.nemesis.invoke(Operation(NEMESIS, "invoke", "fault", {"due": position}))


def test_an_act_begins_and_ends_with_its_fault() -> None:
    storm = Storm("remade-groups")

    async def play() -> None:
        started = await storm.start(0)
        assert (started.happened, started.kind, started.nodes) == (True, "administer", ())
        assert started.fault == {"kind": "administer", "act": "remade-groups"}
        assert started.evidence == "begin remade-groups is done"
        stopped = await storm.stop(0)
        assert stopped.happened
        assert stopped.evidence.startswith("end remade-groups is done in ")

    asyncio.run(play())
    assert storm.office.done == ["begin remade-groups", "end remade-groups"]
    log = FaultLog.of(storm.rows)
    assert (log.unhealed, log.left_to_the_end) == ((), ())


def test_a_refused_act_is_a_fault_without_effect() -> None:
    storm = Storm("remade-groups", refusals=[PRECONDITION_FAILED])

    async def play() -> None:
        refused = await storm.start(0)
        assert (refused.happened, refused.evidence) == (
            False,
            "remade-groups was not done: precondition-failed: not now",
        )
        assert not (await storm.stop(0)).happened

    asyncio.run(play())
    assert storm.office.done == ["begin remade-groups"]
    assert FaultLog.of(storm.rows).unhealed == ()


def test_what_may_have_begun_is_ended_however_often_it_is_refused() -> None:
    storm = Storm("remade-groups", refusals=[OUTCOME_UNKNOWN, PRECONDITION_FAILED, OUTCOME_UNKNOWN])

    async def play() -> None:
        started = await storm.start(0)
        assert started.happened
        assert started.evidence == "whether remade-groups was done is not known: outcome-unknown: not now"
        stopped = await storm.stop(0)
        assert stopped.happened
        assert stopped.evidence.endswith(", after 2 refusals (outcome-unknown: not now)")

    asyncio.run(play())
    assert storm.office.done == ["begin remade-groups", *["end remade-groups"] * 3]


def test_the_same_act_is_not_begun_again_before_it_has_ended() -> None:
    storm = Storm("remade-groups", "remade-groups", "more-queues", "remade-groups")

    async def play() -> None:
        assert (await storm.start(0)).happened
        again = await storm.start(1)
        assert (again.happened, again.evidence) == (False, "the same was begun before, and has not ended")
        assert (await storm.start(2)).happened, "another one is"
        await storm.stop(0)
        assert (await storm.start(3)).happened

    asyncio.run(play())


def test_an_act_that_is_never_ended_is_told_and_counts_as_not_healed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETURN_TIMEOUT_S", 1.0)
    storm = Storm("remade-groups")

    async def play() -> None:
        await storm.start(0)
        storm.office.refusals = [PRECONDITION_FAILED]
        storm.office.ends.clear()
        await storm.nemesis.heal()

    asyncio.run(play())
    last = storm.rows[-1]
    assert (last.happened, last.shape) == (False, FINAL_HEALING)
    assert last.evidence == "remade-groups was not ended: precondition-failed: not now"
    assert len(FaultLog.of(storm.rows).unhealed) == 1


def test_a_sentence_names_one_of_the_acts_that_the_system_declares() -> None:
    (act, *_) = WORDS.acts
    beat = parse(f"administer {act} every 9 for 2", WORDS)
    assert beat.shape == Administer(act)
    assert str(beat.shape) == f"administer {act}"
    with pytest.raises(UsageError, match=f"is no act that can follow 'administer'; there can be: {act}"):
        parse("administer nothing every 9 for 2", WORDS)
    with pytest.raises(UsageError, match="nothing can follow 'administer': this system, as it is set, declares no"):
        parse(f"administer {act} every 9 for 2", type(WORDS)(groups=WORDS.groups))


def test_an_act_is_joined_with_no_other_fault_and_strikes_at_no_point() -> None:
    (act, *_) = WORDS.acts
    for sentence in (
        f"administer {act} and kill b1 every 9 for 2",
        f"administer {act} when {WORDS.points[0]} every 9 for 2",
    ):
        with pytest.raises(UsageError, match="asks the system, which takes its time"):
            parse(sentence, WORDS)
    for beat in (
        every(9, Together((Administer(act), kill(Nodes(("b1",))))), heal_after_s=2),
        every(9, Administer(act), heal_after_s=2, trigger=when(WORDS.points[0])),
    ):
        with pytest.raises(UsageError, match="joined with no other shape and strikes at no point"):
            require_able(beat, "rocketmq", ROCKETMQ, WORDS)


def test_the_package_has_the_acts_that_are_declared_and_none_is_for_a_system_without_any() -> None:
    assert [shape for _, shape in administration(ROCKETMQ).shapes] == [Administer(act) for act in ROCKETMQ.acts]
    require_able(administration(ROCKETMQ), "rocketmq", ROCKETMQ, WORDS)
    without = type(ROCKETMQ)(groups=ROCKETMQ.groups)
    with pytest.raises(UsageError, match="declares no acts"):
        require_able(administration(without), "other", without, WORDS)


def test_where_the_system_declares_nothing_an_act_finds_nobody_to_do_it() -> None:
    storm = Storm("remade-groups")
    storm.nemesis.acts = None
    assert Administer("remade-groups").strike(storm.nemesis._cluster_of({}), random.Random(0)) is None
