"""Nodes leave and are let in again: as many as may be out, only if the others agree, and never as one who forgot."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.environments.environment import Effect
from harness.errors import OUTCOME_UNKNOWN, PRECONDITION_FAILED, ErrorCode, OperationError, UsageError
from harness.membership import Membership, Start
from harness.operation import NEMESIS, Operation
from harness.program import Program, PythonProgram
from harness.record.fault_log import QUORUM, FaultLog
from harness.record.fault_row import FINAL_HEALING, FaultRow
from harness.seed import Seed
from nemesis import nemesis as module
from nemesis.able import require_able
from nemesis.membership import shrink, wipe
from nemesis.nemesis import Nemesis
from nemesis.periodic import every
from nemesis.schedule import Due, Entry
from nemesis.shape import Shape, Together, kill, pause
from nemesis.target import Group, Nodes, One, Role
from nemesis.trigger import when
from tests.unit.nemesis.systems import ROCKETMQ, WORDS
from tests.unit.nemesis.test_nemesis import World

JOINING = PythonProgram(main="none:main", config={"joins": True})


class Timed(World):
    """Seconds pass at once where somebody sleeps, and a hundred times as fast where somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.programs: dict[str, Program] = {}

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

    async def within(self, seconds: float, awaitable: Awaitable[Any]) -> Any:
        return await asyncio.wait_for(awaitable, seconds / 100)

    async def replace_program(self, node: str, program: Program) -> Effect:
        self.programs[node] = program
        return Effect(True, "replaced")


@dataclass
class Administrators:
    """A system that says what it is asked, and answers the first requests with these refusals."""

    refusals: list[ErrorCode] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    lets_in: asyncio.Event = field(default_factory=asyncio.Event)
    """`grow` waits for it."""

    async def shrink(self, node: str) -> str:
        self._ask(f"shrink {node}")
        return f"{node} was removed"

    async def grow(self, node: str, start: Start) -> str:
        self._ask(f"grow {node}")
        await start(JOINING)
        self.asked.append(f"started {node}")
        await self.lets_in.wait()
        return f"{node} was added"

    def _ask(self, request: str) -> None:
        self.asked.append(request)
        if self.refusals:
            raise OperationError(self.refusals.pop(0), "not now")


class Storm:
    """Faults by number, which a test starts and stops one by one."""

    def __init__(
        self, *shapes: Shape, refusals: Sequence[ErrorCode] = (), package: str = "test", most_out: int = 1
    ) -> None:
        self.world = Timed()
        self.rows: list[FaultRow] = []
        self.system = Administrators(refusals=list(refusals))
        entries = [Entry.between(0, 1, "test", number, shape) for number, shape in enumerate(shapes)]
        entries[-1] = dataclasses.replace(entries[-1], package=package)

        async def roles() -> dict[str, tuple[str, ...]]:
            return {"active-controller": ("c2",)}

        self.nemesis = Nemesis(
            environment=self.world,  # type: ignore[arg-type]
            groups=WORDS.groups,
            roles=roles,
            membership=Membership(self.system.shrink, self.system.grow, most_out),
            due=tuple(Due(0, starts, entry) for entry in entries for starts in (True, False)),
            seed=Seed(1),
            record=self.rows.append,
        )

    async def start(self, number: int) -> FaultRow:
        await self._carry_out(2 * number)
        return self.rows[-1]

    async def stop(self, number: int) -> None:
        await self._carry_out(2 * number + 1)

    async def _carry_out(self, position: int) -> None:
        await self.nemesis.invoke(Operation(NEMESIS, "invoke", "fault", {"due": position}))

    async def until_recorded(self, rows: int) -> None:
        for _ in range(10_000):
            if len(self.rows) >= rows:
                return
            await asyncio.sleep(0)
        raise AssertionError(f"{len(self.rows)} of {rows} rows were recorded")

    @property
    def lost(self) -> set[str]:
        return {node for node, kind in self.world.impaired if kind == "lost-disk"}


def played(play: Callable[[Storm], Awaitable[None]], *shapes: Shape, **options: Any) -> Storm:
    async def main() -> Storm:
        storm = Storm(*shapes, **options)
        await play(storm)
        return storm

    return asyncio.run(main())


C1, ONE = Nodes(("c1",)), One("controllers")


def test_who_leaves_is_let_go_first_and_then_loses_its_disk_and_comes_back_as_one_who_joins() -> None:
    async def play(storm: Storm) -> None:
        started = await storm.start(0)
        assert (started.happened, started.nodes, started.kind) == (True, ("c1",), "shrink")
        assert started.fault == {"kind": "shrink", "nodes": ("c1",)}
        assert storm.system.asked == ["shrink c1"]
        assert storm.lost == {"c1"}
        storm.system.lets_in.set()
        await storm.stop(0)
        await storm.until_recorded(2)

    storm = played(play, shrink(C1))
    assert storm.system.asked == ["shrink c1", "grow c1", "started c1"]
    assert storm.lost == set()
    assert storm.world.programs == {"c1": JOINING}
    assert storm.rows[-1].happened
    assert storm.rows[-1].evidence.startswith("c1 was added in ")
    log = FaultLog.of(storm.rows)
    assert (log.unhealed, log.left_to_the_end) == ((), ())
    assert log.windows[0].down == ("c1",)


def test_one_whose_disk_is_lost_is_let_go_before_it_is_let_in_again() -> None:
    async def play(storm: Storm) -> None:
        assert (await storm.start(0)).nodes == ("c2",)
        assert storm.system.asked == []
        assert storm.lost == {"c2"}
        storm.system.lets_in.set()
        await storm.stop(0)
        await storm.until_recorded(2)

    storm = played(play, wipe(Role("active-controller")))
    assert storm.system.asked == ["shrink c2", "grow c2", "started c2"]
    assert storm.rows[-1].evidence.startswith("c2 was removed; c2 was added in ")


def test_a_refusal_to_let_go_leaves_the_node_alone() -> None:
    async def play(storm: Storm) -> None:
        refused = await storm.start(0)
        assert (refused.happened, refused.evidence) == (
            False,
            "c1 was not let go: precondition-failed: not now",
        )
        assert storm.lost == set()
        assert (await storm.start(1)).nodes == ("c1",), "nothing holds it"
        await storm.stop(1)
        await storm.stop(0)

    storm = played(play, shrink(C1), kill(C1), refusals=[PRECONDITION_FAILED])
    assert storm.system.asked == ["shrink c1"]
    assert not storm.rows[-1].happened
    assert FaultLog.of(storm.rows).unhealed == ()


def test_who_may_have_been_let_go_loses_its_disk_and_is_let_go_for_certain_before_it_comes_back() -> None:
    async def play(storm: Storm) -> None:
        started = await storm.start(0)
        assert started.happened
        assert "whether c1 was let go is not known: outcome-unknown: not now" in started.evidence
        storm.system.lets_in.set()
        await storm.stop(0)
        await storm.until_recorded(2)

    storm = played(play, shrink(C1), refusals=[OUTCOME_UNKNOWN, PRECONDITION_FAILED])
    assert storm.system.asked == ["shrink c1", "shrink c1", "shrink c1", "grow c1", "started c1"]
    assert "after 1 refusals (precondition-failed: not now)" in storm.rows[-1].evidence


def test_nobody_leaves_while_another_one_is_out_and_no_other_fault_touches_that_one() -> None:
    async def play(storm: Storm) -> None:
        await storm.start(0)
        for number in (1, 2):
            second = await storm.start(number)
            assert (second.happened, second.fault) == (False, None)
            assert "another one is out" in second.evidence
        assert (await storm.start(3)).nodes == ("c2",)
        await storm.stop(0)
        await asyncio.sleep(0.01)
        assert (await storm.start(1)).fault is None, "it is not let in yet"
        storm.system.lets_in.set()
        await storm.until_recorded(6)
        await storm.stop(3)
        assert (await storm.start(1)).happened
        await storm.nemesis.heal()

    played(play, shrink(C1), shrink(ONE), wipe(ONE), pause(Nodes(("c1", "c2"))))


def test_other_faults_go_on_while_a_node_is_let_in() -> None:
    async def play(storm: Storm) -> None:
        await storm.start(0)
        await storm.start(1)
        await storm.stop(0)
        await storm.stop(1)
        assert [(row.number, row.starts) for row in storm.rows] == [(0, True), (1, True), (1, False)]
        storm.system.lets_in.set()
        await storm.until_recorded(4)
        assert storm.rows[-1].shape == "shrink c1"

    played(play, shrink(C1), kill(Nodes(("b1",))))


def test_what_goes_on_when_the_storm_is_over_is_awaited_and_counts_as_its_own_end() -> None:
    async def play(storm: Storm) -> None:
        await storm.start(0)
        await storm.stop(0)
        asyncio.get_running_loop().call_later(0.02, storm.system.lets_in.set)
        await storm.nemesis.heal()

    log = FaultLog.of(played(play, shrink(C1)).rows)
    assert (log.unhealed, log.left_to_the_end) == ((), ())


def test_who_is_let_in_while_others_are_healed_is_healed_once() -> None:
    async def play(storm: Storm) -> None:
        boot = storm.world.boot

        async def slowly(nodes: Sequence[str]) -> Effect:
            storm.system.lets_in.set()
            await asyncio.sleep(0.01)
            return await boot(nodes)

        await storm.start(0)
        await storm.start(1)
        await storm.stop(1)
        await asyncio.sleep(0.01)
        storm.world.boot = slowly  # type: ignore[method-assign]
        await storm.nemesis.heal()

    storm = played(play, kill(Nodes(("b1",))), shrink(C1))
    assert [(row.number, row.shape) for row in storm.rows[2:]] == [(1, "shrink c1"), (0, FINAL_HEALING)]
    assert FaultLog.of(storm.rows).unhealed == ()


def test_a_storm_that_is_cut_short_lets_in_who_is_out() -> None:
    async def play(storm: Storm) -> None:
        await storm.start(0)
        storm.system.lets_in.set()
        await storm.nemesis.heal()

    log = FaultLog.of(played(play, shrink(C1)).rows)
    assert (log.unhealed, log.left_to_the_end) == ((), ("shrink c1",))


def test_who_is_never_let_in_again_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETURN_TIMEOUT_S", 2.0)

    async def play(storm: Storm) -> None:
        await storm.start(0)
        await storm.stop(0)
        await storm.nemesis.heal()
        await storm.nemesis.heal()

    storm = played(play, shrink(C1), refusals=[])
    assert storm.rows[-1].shape == FINAL_HEALING
    (words,) = FaultLog.of(storm.rows).unhealed
    assert words.startswith("shrink c1 (its stop had no effect: c1 was not let in again: ")


def test_a_run_that_is_being_ended_does_not_wait_for_who_is_out() -> None:
    async def ended() -> Storm:
        storm = Storm(shrink(C1))

        async def storming() -> None:
            await storm.start(0)
            try:
                await asyncio.sleep(3600)
            finally:
                await storm.nemesis.heal()

        task = asyncio.create_task(storming())
        await storm.until_recorded(1)
        task.cancel()
        await asyncio.wait_for(asyncio.wait((task,)), 0.3)
        return storm

    assert len(FaultLog.of(asyncio.run(ended()).rows).unhealed) == 1


def test_nodes_that_the_system_can_do_without_are_taken_down_only_once_all_are_in() -> None:
    async def play(storm: Storm) -> None:
        await storm.start(0)
        await storm.stop(0)
        taken_down = asyncio.create_task(storm.start(1))
        await asyncio.sleep(0.01)
        assert storm.world.down == set()
        storm.system.lets_in.set()
        await taken_down
        assert storm.world.down == {"c2"}
        await storm.nemesis.heal()

    played(play, shrink(C1), kill(Role("active-controller")), package=QUORUM)


@pytest.mark.parametrize(
    ("beat", "says"),
    [
        (every(20, Together((shrink(ONE), kill(ONE))), heal_after_s=5), "it is joined with no other shape"),
        (every(20, shrink(ONE), heal_after_s=5, trigger=when("elected")), "strikes at no point"),
        (every(20, shrink(One("all")), heal_after_s=5), "only nodes of controllers can leave"),
        (every(20, wipe(Role("primary")), heal_after_s=5), "only nodes of controllers can leave"),
        (every(20, wipe(Nodes(("b1",))), heal_after_s=5), "only nodes of controllers can leave"),
    ],
)
def test_values_are_held_to_what_the_grammar_and_the_system_allow(beat: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        require_able(beat, "rocketmq", ROCKETMQ, WORDS)


def test_a_system_that_lets_nobody_go_is_struck_by_no_such_fault() -> None:
    async def play(storm: Storm) -> None:
        storm.nemesis.membership = None
        assert (await storm.start(0)).fault is None

    played(play, shrink(C1))
    require_able(every(20, shrink(ONE), heal_after_s=5), "rocketmq", ROCKETMQ, WORDS)
    none = dataclasses.replace(ROCKETMQ, elastic=())
    with pytest.raises(UsageError, match="which store cannot do, as it is set; 'kill'"):
        require_able(every(20, shrink(ONE), heal_after_s=5), "store", none, WORDS)


@pytest.mark.parametrize(("first", "most_out", "leaves"), [(shrink, 2, True), (wipe, 2, False), (shrink, 1, False)])
def test_a_second_one_leaves_once_the_first_is_let_go_where_so_many_may_be_out(
    first: Callable[[Nodes], Shape], most_out: int, leaves: bool
) -> None:
    """A disk that is lost while its node belongs to the others still is one too many already."""

    async def play(storm: Storm) -> None:
        await storm.start(0)
        second = await storm.start(1)
        assert second.happened is leaves
        assert storm.lost == ({"c1", "c2"} if leaves else {"c1"})
        assert not (await storm.start(2)).happened

    played(play, first(C1), shrink(Nodes(("c2",))), shrink(ONE), most_out=most_out)


def test_as_many_leave_at_once_as_may_be_out_and_they_come_back_at_once() -> None:
    async def play(storm: Storm) -> None:
        started = await storm.start(0)
        assert storm.system.asked == [f"shrink {node}" for node in started.nodes]
        assert storm.lost == set(started.nodes)
        assert len(started.nodes) == 2
        await storm.stop(0)
        await asyncio.sleep(0.001)
        assert {asked for asked in storm.system.asked if "grow" in asked} == {f"grow {node}" for node in started.nodes}
        assert len(storm.rows) == 1, "none of them is in yet"
        storm.system.lets_in.set()
        await storm.until_recorded(2)

    storm = played(play, shrink(Group("controllers")), most_out=2)
    assert storm.lost == set()
    (window,) = FaultLog.of(storm.rows).windows
    assert window.is_stopped and window.down == window.nodes


def test_where_the_others_refuse_to_let_one_of_them_go_the_rest_leave() -> None:
    async def play(storm: Storm) -> None:
        started = await storm.start(0)
        refused, gone = (asked.removeprefix("shrink ") for asked in storm.system.asked)
        assert started.nodes == (gone,) and started.happened
        assert f"{refused} was not let go: precondition-failed: not now" in started.evidence
        assert storm.lost == {gone}

    played(play, shrink(Group("controllers")), most_out=2, refusals=[PRECONDITION_FAILED])


def test_of_several_only_one_loses_its_disk_while_it_belongs_to_the_others() -> None:
    async def play(storm: Storm) -> None:
        assert len((await storm.start(0)).nodes) == 1
        assert len(storm.lost) == 1

    played(play, wipe(Nodes(("c1", "c2"))), most_out=2)
