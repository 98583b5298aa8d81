"""A fault that waits for a point: its text is read back, it strikes at that moment, and it is healed in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.environments.environment import Effect
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.errors import HarnessError, UsageError
from harness.membership import KINDS as MEMBERSHIP
from harness.operation import NEMESIS, Operation
from harness.program import PythonProgram
from harness.record.fault_log import FaultLog
from harness.record.fault_row import FaultRow
from harness.record.scenario import Scenario
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from nemesis import sentence
from nemesis.grammar import FORMS, Form
from nemesis.nemesis import Nemesis
from nemesis.periodic import every
from nemesis.schedule import Entry, Schedule
from nemesis.schedule_file import read_schedule, schedule_text
from nemesis.shape import CutLink, Isolate, Shape, Together, kill, pause
from nemesis.target import Nodes, One, Role
from nemesis.trigger import Trigger, after, when
from nemesis.vocabulary import Vocabulary
from stormproof.session import registry
from tests.unit.harness.environments.simulated.lending import LENT
from tests.unit.nemesis.systems import WORDS

POINTS = ("alter-proposed", "became-master", "vote-persisted")
WITH_POINTS = replace(WORDS, points=POINTS)
IT = Role("it")
SHAPES = (
    kill(IT),
    Isolate(Role("primary")),
    Together((CutLink(IT, Role("active-controller")), kill(One("brokers")))),
)

triggers = st.builds(Trigger, st.sampled_from(POINTS), st.integers(1, 999_999_999), st.sampled_from(["when", "after"]))


@given(shape=st.sampled_from(SHAPES), trigger=triggers, at_ns=st.integers(0, 10**10), length_ns=st.integers(1, 10**10))
def test_a_schedule_line_with_a_trigger_is_read_as_the_same_fault(
    shape: Shape, trigger: Trigger, at_ns: int, length_ns: int
) -> None:
    entry = Entry(at_ns=at_ns, until_ns=at_ns + length_ns, package="mine", number=3, shape=shape, trigger=trigger)
    text = schedule_text((entry,), "stormproof run rocketmq")
    assert read_schedule(text.split("\n"), WITH_POINTS, 60).entries == (entry,)


@given(shape=st.sampled_from(SHAPES), trigger=triggers)
def test_a_sentence_with_a_trigger_is_read_as_the_same_beat(shape: Shape, trigger: Trigger) -> None:
    beat = every(10, shape, heal_after_s=5, trigger=trigger)
    assert sentence.parse(str(beat), WITH_POINTS) == beat
    assert all(entry.trigger == trigger for entry in beat.schedule(Seed(1), beat.settings_type(), 30))


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("when alter-proposed", when("alter-proposed")),
        ("when 3rd alter-proposed", when("alter-proposed", nth=3)),
        ("after 2nd became-master", after("became-master", nth=2)),
        ("after 11th became-master", after("became-master", nth=11)),
        ("when 121st became-master", when("became-master", nth=121)),
    ],
)
def test_a_trigger_reads_like_english(text: str, trigger: Trigger) -> None:
    assert str(trigger) == text
    line = f"1 for 2 kill it {text} [mine 0]"
    (entry,) = read_schedule([line], WITH_POINTS, 60).entries
    assert (entry.shape, entry.trigger, entry.what) == (kill(IT), trigger, f"kill it {text}")


@pytest.mark.parametrize(
    ("what", "wrong", "meant"),
    [
        (
            "kill it when alter-propsed",
            "'alter-propsed' is no point of the system; there are: alter-",
            "alter-proposed",
        ),
        ("kill it when", "the point after 'when' is missing, e.g. alter-proposed, ", "kill it when alter-proposed"),
        ("kill it when 3rd", "the point after 'when 3rd' is missing", "kill it when 3rd alter-proposed"),
        ("kill it when 3th became-master", "1st, 2nd, 3rd …, got '3th'", "kill it when 3rd became-master"),
        ("kill it after 2nd became-master now", "nothing of the fault follows the point", "after 2nd became-master"),
        ("kil it when became-master", "the verb 'kil' is unknown", "kill it when became-master"),
        ("kill it when the end comes", "'the' is no point of the system", None),
        ("kill it when 0th became-master", "1st, 2nd, 3rd …, got '0th'", None),
        ("kill it", "'it' is the node that reaches a point, which one has to be said", None),
    ],
)
def test_what_is_wrong_with_a_trigger_is_named_with_the_nearest_that_is_right(
    what: str, wrong: str, meant: str | None
) -> None:
    for read in (
        lambda: read_schedule([f"1 for 2 {what} [mine 0]"], WITH_POINTS, 60),
        lambda: sentence.parse(f"{what} every 10 for 5", WITH_POINTS),
    ):
        with pytest.raises(UsageError) as refused:
            read()
        assert wrong in str(refused.value)
        if meant:
            assert f"{meant}" in str(refused.value).partition("did you mean ")[2]
        else:
            assert "did you mean" not in str(refused.value)


def test_of_a_system_without_points_nothing_can_wait_for_one() -> None:
    bare = replace(WORDS, points=())
    with pytest.raises(UsageError, match="the system declares no points"):
        read_schedule(["1 for 2 kill b1 when alter-proposed [mine 0]"], bare, 60)
    with pytest.raises(UsageError, match="'it' is no target"):
        read_schedule(["1 for 2 kill it [mine 0]"], bare, 60)


@pytest.mark.parametrize(
    ("words", "next_words"),
    [
        ("kill it", {"and", "when", "after", "every"}),
        ("kill it when", set(POINTS)),
        ("kill it when 3rd", set(POINTS)),
        ("kill it when 3rd became-master", {"every"}),
        ("kill it after became-master every 10", {"for"}),
    ],
)
def test_the_words_of_a_trigger_are_completed(words: str, next_words: set[str]) -> None:
    assert set(sentence.following(tuple(words.split()), WITH_POINTS)) == next_words


def test_only_the_simulator_strikes_when_a_point_is_reached() -> None:
    scenario = Scenario(system="rocketmq", workload="log", nemesis=("kill",), environment="docker", time_limit_s=60)
    parts = registry.resolve(scenario)
    beat = every(10, kill(Role("primary")), heal_after_s=5, trigger=when("became-master"))
    with pytest.raises(UsageError) as refused:
        registry.environment_of(scenario, replace(parts, packages=(beat,)))
    assert "'docker' cannot strike when a point is reached" in str(refused.value)
    assert "that needs the simulator" in str(refused.value)
    assert registry.environment_of(replace(scenario, environment="simulated"), replace(parts, packages=(beat,)))


@dataclass
class World:
    """An environment whose nodes reach points when a test says so, and whose time goes on as it says."""

    now: int = 0
    down: set[str] = field(default_factory=set)
    log: list[str] = field(default_factory=list)
    waits: bool = False
    watch: Any = None
    _points: list[Callable[[str, str], None]] = field(default_factory=list)
    _later: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    _after: list[Callable[[], None]] = field(default_factory=list)
    name = "world"

    @property
    def timeline(self) -> World:
        return self

    @property
    def moments(self) -> World:
        return self

    def now_ns(self) -> int:
        return self.now

    def on_point(self, callback: Callable[[str, str], None]) -> None:
        self._points.append(callback)

    def after_step(self, callback: Callable[[], None]) -> None:
        self._after.append(callback)

    def at(self, time_ns: int, callback: Callable[[], None]) -> None:
        self._later.append((time_ns, callback))

    def reached(self, node: str, point: str) -> None:
        for callback in self._points:
            callback(node, point)
        self.log.append(f"rest of the step of {node}")
        while self._after:
            self._after.pop(0)()

    def pass_to(self, seconds: float) -> None:
        while self._later and min(self._later)[0] <= seconds * 1e9:
            due = min(self._later, key=lambda one: one[0])
            self._later.remove(due)
            self.now = due[0]
            due[1]()
        self.now = round(seconds * 1e9)

    async def kill(self, nodes: tuple[str, ...]) -> Effect:
        if self.waits:
            await asyncio.sleep(0)
        self.down |= set(nodes)
        self.log.append(f"kill {'+'.join(nodes)}")
        return Effect(True, "kill")

    async def boot(self, nodes: tuple[str, ...]) -> Effect:
        self.down -= set(nodes)
        self.log.append(f"boot {'+'.join(nodes)}")
        return Effect(True, "boot")


class Storm:
    """Entries armed at 0 s in a storm of 20 s."""

    def __init__(self, *faults: tuple[Shape, Trigger], roles: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self.world = World()
        self.rows: list[FaultRow] = []
        entries = tuple(
            Entry.between(0, 5, "mine", number, shape, trigger) for number, (shape, trigger) in enumerate(faults)
        )
        self.due = Schedule(entries, 20 * 10**9).due()

        async def asked() -> Mapping[str, tuple[str, ...]]:
            raise AssertionError("nobody can be asked at that moment")

        self.nemesis = Nemesis(
            environment=self.world,  # type: ignore[arg-type]
            groups=WORDS.groups,
            roles=asked,
            roles_now=lambda: roles or {},
            due=self.due,
            seed=Seed(1),
            record=self.rows.append,
        )
        for position, due in enumerate(self.due):
            if due.starts:
                self.carry_out(position)

    def carry_out(self, position: int) -> None:
        coroutine = self.nemesis.invoke(Operation(NEMESIS, "invoke", "fault", {"due": position}))
        with pytest.raises(StopIteration):
            coroutine.send(None)

    def end(self) -> None:
        self.world.pass_to(20)
        for position, due in enumerate(self.due):
            if not due.starts:
                self.carry_out(position)

    def steps(self) -> list[tuple[float, str, tuple[str, ...], bool]]:
        return [(row.time_ns / 1e9, "start" if row.starts else "stop", row.nodes, row.happened) for row in self.rows]


def test_it_strikes_in_the_midst_of_the_step_and_is_healed_so_long_after_it_struck() -> None:
    storm = Storm((kill(IT), when("became-master")))
    storm.world.pass_to(3)
    storm.world.reached("b1", "alter-proposed")
    storm.world.reached("b2", "became-master")
    storm.world.reached("b3", "became-master")
    storm.end()
    assert storm.world.log == [
        "rest of the step of b1",
        "kill b2",
        "rest of the step of b2",
        "rest of the step of b3",
        "boot b2",
    ]
    assert storm.steps() == [(3, "start", ("b2",), True), (8, "stop", ("b2",), True)]
    (window,) = FaultLog.of(storm.rows).windows
    assert (window.shape, window.point) == ("kill it when became-master", "became-master")
    assert [due.f for due in storm.due] == ["arm-mine", "disarm-mine"]


def test_after_means_once_the_step_is_over() -> None:
    storm = Storm((kill(IT), after("became-master")))
    storm.world.reached("b2", "became-master")
    assert storm.world.log == ["rest of the step of b2", "kill b2"]


def test_times_count_over_all_nodes_from_when_it_was_armed() -> None:
    storm = Storm((kill(Role("primary")), when("vote-persisted", nth=3)), roles={"primary": ("b3",)})
    for node in ("c1", "c2", "c1"):
        assert storm.rows == []
        storm.world.reached(node, "vote-persisted")
    assert storm.world.down == {"b3"}


def test_two_faults_strike_at_one_point_in_the_order_of_the_schedule_and_the_second_finds_the_node_down() -> None:
    storm = Storm((kill(IT), when("became-master")), (pause(IT), when("became-master")))
    storm.world.reached("b2", "became-master")
    assert [(row.starts, row.nodes, row.happened) for row in storm.rows] == [
        (True, ("b2",), True),
        (True, (), False),
        (False, (), False),
    ]


def test_what_outlasts_the_storm_is_healed_at_its_end_and_once() -> None:
    storm = Storm((kill(IT), when("became-master")))
    storm.world.pass_to(18)
    storm.world.reached("b2", "became-master")
    storm.end()
    storm.world.pass_to(30)
    assert storm.steps() == [(18, "start", ("b2",), True), (20, "stop", ("b2",), True)]
    assert not FaultLog.of(storm.rows).unhealed


def test_a_point_that_is_never_reached_leaves_a_fault_without_effect_that_nothing_has_to_heal() -> None:
    storm = Storm((kill(IT), when("became-master", nth=2)))
    storm.world.reached("b2", "became-master")
    storm.end()
    storm.world.reached("b2", "became-master")
    log = FaultLog.of(storm.rows)
    assert storm.world.down == set()
    assert (log.struck, log.unhealed) == ((), ())
    (window,) = log.windows
    assert window.evidence == "never struck: when 2nd became-master, which was reached 1 time while it was armed"


def test_a_storm_that_is_cut_short_heals_what_struck_and_arms_nothing_any_more() -> None:
    storm = Storm((kill(IT), when("became-master")), (kill(Nodes(("b1",))), when("alter-proposed")))
    storm.world.reached("b2", "became-master")
    with pytest.raises(StopIteration):
        storm.nemesis.heal().send(None)
    storm.world.reached("b2", "alter-proposed")
    storm.world.pass_to(60)
    assert storm.world.down == set()
    assert [(row.number, row.starts, row.happened) for row in storm.rows] == [
        (0, True, True),
        (1, True, False),
        (1, False, False),
        (0, False, True),
    ]


def test_a_verb_that_waits_cannot_strike_at_a_moment() -> None:
    storm = Storm((kill(IT), when("became-master")))
    storm.world.waits = True
    with pytest.raises(HarnessError, match="has to take effect at once, but a verb waited"):
        storm.world.reached("b2", "became-master")


def test_a_fault_that_waits_can_be_armed_only_where_moments_are_seen() -> None:
    class Elsewhere:
        name = "elsewhere"
        moments = None

    storm = Storm()
    storm.nemesis.environment = Elsewhere()  # type: ignore[assignment]
    with pytest.raises(HarnessError, match="'elsewhere' cannot strike when a point is reached"):
        storm.nemesis._arm(Entry.between(0, 1, "mine", 0, kill(IT), when("became-master")))


@pytest.mark.parametrize(
    "form",
    [form for form in FORMS if form.kind in SimulatedEnvironment.faults - MEMBERSHIP],
    ids=lambda form: form.text.replace(" ", "-"),
)
def test_every_kind_of_fault_can_strike_in_the_midst_of_a_step(form: Form, tmp_path: Path) -> None:
    text = form.text.replace("TARGET", "it", 1).replace("PART", "it").replace("TARGET", "b").replace("GROUP", "all")
    text = text.replace("PATTERN", "'**'").replace("COUNT UNIT", "1 MB")
    line = f"0 for 1 {text} when here [mine 0]"
    vocabulary = Vocabulary(groups={"all": ("a", "b", "c")}, points=("here",))
    due = Schedule(read_schedule([line], vocabulary, 10).entries, 10 * 10**9).due()
    rows: list[FaultRow] = []

    async def course(environment: SimulatedEnvironment) -> None:
        program = PythonProgram(main="tests.unit.harness.environments.simulated.lending:lend")
        nodes = [NodeSpec(name=name, groups=(), program=program, upgraded=program) for name in ("a", "b", "c")]
        nemesis = Nemesis(
            environment=environment,
            groups=vocabulary.groups,
            roles=dict,  # type: ignore[arg-type]
            due=due,
            seed=Seed(1),
            record=rows.append,
        )
        await environment.start(nodes, tmp_path)
        await environment.timeline.sleep(1)
        await nemesis.invoke(Operation(NEMESIS, "invoke", "arm", {"due": 0}))
        file = LENT["a"].disk.open("data")
        file.append(b"to rot" * 99)
        await file.fsync()
        with suppress(asyncio.CancelledError):  # the end of a step in which its node dies
            LENT["a"].reached("here")
        assert [row.starts for row in rows] == [True]
        await environment.timeline.sleep(5)
        await nemesis.heal()
        await environment.stop()

    LENT.clear()
    run_simulation(course, Seed(1), Trace(), regime=Regime.calm())
    assert rows[0].happened, rows[0].evidence
    assert [row.starts for row in rows] == [True, False]
    assert FaultLog.of(rows).unhealed == ()
