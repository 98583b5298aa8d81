"""What the nemesis undoes: its own fault and nothing that another one holds, and in the end everything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.environments.environment import Effect, Link
from harness.errors import HarnessError
from harness.operation import NEMESIS, Operation
from harness.record.fault_log import QUORUM
from harness.record.fault_row import FaultRow
from harness.record.healing import unhealed
from harness.seed import Seed
from nemesis.impair import ImpairNodes
from nemesis.nemesis import Nemesis
from nemesis.schedule import Due, Entry
from nemesis.shape import ClockShape, CutLink, Isolate, Shape, Together, kill, pause
from nemesis.target import Nodes, One, Role
from tests.unit.nemesis.systems import WORDS


@dataclass
class World:
    """An environment that remembers which links are cut and which nodes are down."""

    cut_links: set[Link] = field(default_factory=set)
    down: set[str] = field(default_factory=set)
    paused: set[str] = field(default_factory=set)
    clocks: dict[str, tuple[float, float]] = field(default_factory=dict)
    impaired: set[tuple[str, str]] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    """Verbs that fail before they do anything."""
    moments: object = None
    """As in the simulator, where everything is replayed."""

    @property
    def timeline(self) -> World:
        return self

    def now_ns(self) -> int:
        return 0

    async def within(self, seconds: float, awaitable: Awaitable[Any]) -> Any:
        return await awaitable

    async def cut(self, links: Sequence[Link]) -> Effect:
        self.cut_links |= set(links)
        return Effect(True, "cut")

    async def heal(self, links: Sequence[Link]) -> Effect:
        self.cut_links -= set(links)
        return Effect(bool(links), "healed")

    async def kill(self, nodes: Sequence[str]) -> Effect:
        return self._changed("kill", self.down.update, nodes)

    async def boot(self, nodes: Sequence[str]) -> Effect:
        return self._changed("boot", self.down.difference_update, nodes)

    async def set_clock(self, node: str, *, offset_s: float, rate: float) -> Effect:
        before, self.clocks[node] = self.clocks.get(node, (0.0, 1.0)), (offset_s, rate)
        return Effect(before != (offset_s, rate), "set")

    async def impair(self, nodes: Sequence[str], impairment: Any) -> Effect:
        return self._changed("impair", self.impaired.update, [(node, impairment.kind) for node in nodes])

    async def relieve(self, nodes: Sequence[str], impairment: Any) -> Effect:
        return self._changed("relieve", self.impaired.difference_update, [(node, impairment.kind) for node in nodes])

    async def pause(self, nodes: Sequence[str]) -> Effect:
        return self._changed("pause", self.paused.update, nodes)

    async def resume(self, nodes: Sequence[str]) -> Effect:
        return self._changed("resume", self.paused.difference_update, nodes)

    def _changed(self, verb: str, change: Any, nodes: Sequence[str]) -> Effect:
        if verb in self.failing:
            raise HarnessError(f"{verb} failed")
        change(nodes)
        return Effect(True, verb)


@dataclass
class Storm:
    """Faults by number, which a test starts and stops one by one."""

    shapes: tuple[Shape, ...]
    world: World = field(default_factory=World)
    rows: list[FaultRow] = field(default_factory=list)
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    roles_now: Mapping[str, tuple[str, ...]] | None = None
    """What a watch knows; None without one."""
    package: str = "test"
    asked: int = 0

    def __post_init__(self) -> None:
        entries = [Entry.between(0, 1, self.package, number, shape) for number, shape in enumerate(self.shapes)]

        async def roles() -> Mapping[str, tuple[str, ...]]:
            self.asked += 1
            return self.roles

        self.nemesis = Nemesis(
            environment=self.world,  # type: ignore[arg-type]
            groups=WORDS.groups,
            roles=roles,
            roles_now=None if self.roles_now is None else lambda: self.roles_now or {},
            due=tuple(Due(0, starts, entry) for entry in entries for starts in (True, False)),
            seed=Seed(1),
            record=self.rows.append,
        )

    def start(self, number: int) -> FaultRow:
        return self._carried_out(2 * number)

    def stop(self, number: int) -> FaultRow:
        return self._carried_out(2 * number + 1)

    def heal(self) -> None:
        asyncio.run(self.nemesis.heal())

    def _carried_out(self, position: int) -> FaultRow:
        asyncio.run(self.nemesis.invoke(Operation(NEMESIS, "invoke", "fault", {"due": position})))
        return self.rows[-1]


def cut(left: str, *right: str) -> Shape:
    return CutLink(Nodes((left,)), Nodes(right))


def links(*pairs: str) -> set[Link]:
    return {Link(a, b) for pair in pairs for a, b in (pair.split("-"), reversed(pair.split("-")))}


def test_a_link_that_two_partitions_share_stays_cut_until_both_are_stopped() -> None:
    storm = Storm((cut("b1", "b2", "b3"), cut("b1", "b2", "c1")))
    storm.start(0)
    storm.start(1)
    stopped = storm.stop(0)
    assert storm.world.cut_links == links("b1-b2", "b1-c1")
    assert stopped.happened
    assert stopped.fault is not None
    assert len(stopped.fault["links"]) == 4
    storm.stop(1)
    assert storm.world.cut_links == set()


def test_a_partition_whose_links_another_one_holds_all_has_no_effect_when_it_stops() -> None:
    storm = Storm((cut("b1", "b2"), cut("b1", "b2", "b3")))
    storm.start(0)
    storm.start(1)
    assert not storm.stop(0).happened
    assert storm.world.cut_links == links("b1-b2", "b1-b3")
    storm.stop(1)
    assert storm.world.cut_links == set()


def test_a_compound_is_undone_whole_but_for_links_that_another_fault_holds() -> None:
    storm = Storm(
        (Together((cut("b1", "b2"), kill(Nodes(("b3",))))), Together((cut("b2", "b1", "c1"), pause(Nodes(("c1",))))))
    )
    storm.start(0)
    storm.start(1)
    storm.stop(0)
    assert (storm.world.cut_links, storm.world.down, storm.world.paused) == (links("b1-b2", "b2-c1"), set(), {"c1"})
    storm.stop(1)
    assert (storm.world.cut_links, storm.world.paused) == (set(), set())


def test_a_stop_whose_start_struck_no_node_has_no_effect() -> None:
    storm = Storm((Isolate(Role("primary")), cut("b1", "b2")))
    started = storm.start(0)
    assert (started.happened, started.nodes, started.fault, started.kind) == (False, (), None, "partition")
    storm.start(1)
    stopped = storm.stop(0)
    assert (stopped.happened, stopped.fault) == (False, None)
    assert storm.world.cut_links == links("b1-b2")


def test_a_fault_is_stopped_once() -> None:
    storm = Storm((kill(Nodes(("b1",))),))
    storm.start(0)
    assert storm.stop(0).happened
    assert not storm.stop(0).happened


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_faults_that_set_one_clock_the_one_that_is_left_has_it(order: tuple[int, int]) -> None:
    storm = Storm((ClockShape(Nodes(("b1", "b2"))), ClockShape(Nodes(("b1",)))))
    storm.start(0)
    first = dict(storm.world.clocks)
    storm.start(1)
    second = dict(storm.world.clocks)
    assert first["b1"] != second["b1"]
    storm.stop(order[0])
    assert storm.world.clocks == ({"b1": second["b1"], "b2": (0.0, 1.0)} if order[0] == 0 else first)
    storm.stop(order[1])
    assert storm.world.clocks == {"b1": (0.0, 1.0), "b2": (0.0, 1.0)}
    assert unhealed(storm.rows) == ()


def test_a_node_that_an_impairment_restarts_is_left_to_it_and_one_that_is_down_is_left_alone() -> None:
    loop, wipe, slow = (ImpairNodes(verb, Nodes(("b1",))) for verb in ("restart loop of", "wipe disks of", "slow down"))
    storm = Storm((loop, kill(Nodes(("b1", "b2"))), wipe, slow))
    storm.start(0)
    assert storm.start(1).nodes == ("b2",)
    assert storm.start(2).fault is None
    assert storm.start(3).nodes == ("b1",)
    storm.heal()
    assert storm.world.impaired == storm.world.down == set()
    storm.start(1)
    assert storm.start(0).fault is None


def test_nothing_is_sent_to_a_process_that_another_fault_holds_down() -> None:
    storm = Storm((kill(Nodes(("b1",))), pause(Nodes(("b1", "b2"))), kill(Nodes(("b1",)))))
    storm.start(0)
    assert storm.start(1).nodes == ("b2",)
    assert storm.start(2).fault is None
    storm.stop(0)
    assert storm.start(2).nodes == ("b1",)


def test_roles_that_cannot_be_found_out_are_those_last_reported() -> None:
    storm = Storm((kill(Role("primary")), Isolate(Role("primary"))), roles={"primary": ("b2",)})
    assert storm.start(0).nodes == ("b2",)
    storm.roles = {}
    storm.start(1)
    assert links("b2-b1") <= storm.world.cut_links


def test_where_everything_is_seen_nobody_is_asked_for_roles() -> None:
    storm = Storm((kill(Role("primary")), kill(Role("primary"))), roles={"primary": ("b2",)}, roles_now={})
    assert storm.start(0).fault is None, "nobody was seen in the role"
    storm.roles_now = {"primary": ("b1",)}
    assert storm.start(1).nodes == ("b1",)
    assert storm.asked == 0


def test_the_system_itself_says_without_which_nodes_it_must_go_on() -> None:
    roles, seen = {"primary": ("b2",)}, {"primary": ("b1",)}
    storm = Storm((kill(Role("primary")),), roles=roles, roles_now=seen, package=QUORUM)
    assert storm.start(0).nodes == ("b2",)
    assert storm.asked == 1


def test_healing_stops_what_is_active_and_only_that() -> None:
    storm = Storm((cut("b1", "b2"), kill(Nodes(("b3",))), pause(Nodes(("c1",)))))
    for number in range(3):
        storm.start(number)
    storm.stop(2)
    before = len(storm.rows)
    storm.heal()
    assert (storm.world.cut_links, storm.world.down) == (set(), set())
    assert [(row.number, row.shape, row.happened) for row in storm.rows[before:]] == [
        (0, "final healing", True),
        (1, "final healing", True),
    ]
    storm.heal()
    assert len(storm.rows) == before + 2


def test_a_fault_that_cannot_be_healed_keeps_no_other_from_it_and_is_tried_again() -> None:
    storm = Storm((kill(Nodes(("b3",))), cut("b1", "b2")))
    storm.start(0)
    storm.start(1)
    storm.world.failing = {"boot"}
    with pytest.raises(HarnessError, match="boot failed"):
        storm.stop(0)
    with pytest.raises(HarnessError, match="boot failed"):
        storm.heal()
    assert storm.world.cut_links == set()
    assert storm.world.down == {"b3"}
    storm.world.failing = set()
    storm.heal()
    assert storm.world.down == set()


def test_what_a_start_that_failed_half_way_has_done_is_healed() -> None:
    storm = Storm((Together((cut("b1", "b2"), kill(Nodes(("b3",))))),), world=World(failing={"kill"}))
    with pytest.raises(HarnessError, match="kill failed"):
        storm.start(0)
    assert storm.world.cut_links == links("b1-b2")
    storm.heal()
    assert storm.world.cut_links == set()


@dataclass
class Elapsing(World):
    """Its time passes while somebody sleeps, after which another node plays the role."""

    passed_ns: int = 0
    then: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    storm: Storm | None = None

    def now_ns(self) -> int:
        return self.passed_ns

    async def sleep(self, seconds: float) -> None:
        self.passed_ns += int(seconds * 1e9)
        assert self.storm is not None
        self.storm.roles = self.then


@dataclass
class Slow(World):
    """Each clock takes its second to be set."""

    passed_ns: int = 0

    def now_ns(self) -> int:
        return self.passed_ns

    async def set_clock(self, node: str, *, offset_s: float, rate: float) -> Effect:
        self.passed_ns += 1_000_000_000
        return await super().set_clock(node, offset_s=offset_s, rate=rate)


def test_a_fault_begins_when_the_first_of_it_may_be_felt_and_ends_when_the_last_is_over() -> None:
    storm = Storm((Together((ClockShape(Nodes(("b1",))), ClockShape(Nodes(("b2",))))),), world=Slow())
    assert storm.start(0).time_ns == 0
    assert storm.world.now_ns() == 2_000_000_000
    assert storm.stop(0).time_ns == 4_000_000_000


def test_a_fault_waits_for_a_role_whose_player_is_down_to_pass_on() -> None:
    world = Elapsing(then={"primary": ("b1",)})
    storm = Storm((kill(Role("primary")), kill(Role("primary"))), world=world, roles={"primary": ("b2",)})
    world.storm = storm
    assert storm.start(0).nodes == ("b2",)
    assert storm.start(1).nodes == ("b1",)
    assert world.passed_ns == 500_000_000


def test_a_fault_waits_no_longer_than_half_its_time() -> None:
    world = Elapsing(then={"primary": ("b2",)})
    storm = Storm((kill(Role("primary")), pause(Role("primary"))), world=world, roles={"primary": ("b2",)})
    world.storm = storm
    storm.start(0)
    assert storm.start(1).fault is None
    assert world.passed_ns == 500_000_000


def test_nobody_waits_for_nodes_that_are_named() -> None:
    world = Elapsing()
    storm = Storm((kill(Nodes(("b2",))), kill(Nodes(("b2",)))), world=world, roles={"primary": ("b2",)})
    world.storm = storm
    storm.start(0)
    assert storm.start(1).fault is None
    assert world.passed_ns == 0


def struck_of_twenty(world: World) -> int:
    """Faults that found the one broker that is up."""
    down = [kill(Nodes((name,))) for name in ("b1", "b2")]
    storm = Storm((*down, *[kill(One("brokers"))] * 20), world=world)
    storm.start(0)
    storm.start(1)
    found = []
    for number in range(2, 22):
        found.append(storm.start(number).nodes)
        storm.stop(number)
    assert set(found) <= {(), ("b3",)}
    return found.count(("b3",))


def test_nodes_are_drawn_again_while_those_drawn_are_down_but_where_storms_are_replayed() -> None:
    assert struck_of_twenty(World(moments=object())) < 10
    assert struck_of_twenty(World()) > 15
