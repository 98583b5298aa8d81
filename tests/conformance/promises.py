"""What `harness.environments.environment` promises of its verbs, as checks of an environment in which two beacons run.

Each promise is a function that raises AssertionError where the environment breaks it. They take a world as they find
it (files may have grown, nodes may have died before) and leave it healed, so that all of them can be asked of one.
`PROMISES` names them all; an environment that keeps them may be trusted with a storm.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import beacon
from beacon import NAP_S, PATIENCE_S, answer_from, ask

from harness.environments.environment import Environment, Link
from harness.errors import HarnessError
from harness.operation import NEMESIS, Operation
from harness.program import PythonProgram
from harness.record.fault_row import FaultRow
from harness.record.healing import unhealed
from harness.seed import Seed
from harness.system import NodeSpec
from nemesis.nemesis import Nemesis
from nemesis.schedule import Due, Entry
from nemesis.shape import ClockShape, CutLink, Shape, kill, pause, power_off
from nemesis.target import Nodes
from system_under_test.runtime.host import Connection, ConnectionClosed
from tests.between import Between, narrowest

Promise = Callable[[Environment], Coroutine[Any, Any, None]]

ATTEMPTS = 200
READINGS = 3
"""Of what takes time, one of which even a busy machine leaves alone."""
KILLS = 3
LOSSES_OF_POWER = 12
"""So many are enough for one that takes something, wherever a loss of power takes anything."""
QUIET_S = 1.0
"""For so long nothing may be heard of a node that should be silent."""
A_TO_B, B_TO_A = Link("a", "b"), Link("b", "a")


def nodes(main: str = "beacon:main") -> list[NodeSpec]:
    """Two nodes, a and b, each of which knows the other."""
    return [
        NodeSpec(
            name=name,
            groups=(),
            program=PythonProgram(main=main, config={"other": other}),
            upgraded=PythonProgram(main=main, config={"other": other, "version": 2}),
            ports=(beacon.PORT,),
        )
        for name, other in (("a", "b"), ("b", "a"))
    ]


# Asking


async def answered(environment: Environment, node: str, question: str = "w") -> Any:
    """What a node that is well answers."""
    for _ in range(ATTEMPTS):
        answer = await ask(environment.client_host("client"), node, question, 10.0)
        if answer is not None:
            return answer
        await environment.timeline.sleep(0.1)
    raise AssertionError(f"{node} never answered")


async def is_silent(environment: Environment, node: str) -> bool:
    return await ask(environment.client_host("client"), node, "w") is None


async def until(environment: Environment, node: str, question: str, expected: Any, words: str) -> None:
    for _ in range(ATTEMPTS):
        if await answered(environment, node, question) == expected:
            return
        await environment.timeline.sleep(0.1)
    raise AssertionError(words)


async def connections_kept(environment: Environment) -> None:
    """Both nodes keep a connection to the other."""
    for node in ("a", "b"):
        await until(environment, node, ">", True, f"{node} never reached the other node")
        assert await answered(environment, node, "h") is True


async def client_connection(environment: Environment, node: str) -> Connection:
    await answered(environment, node)
    connection: Connection = await environment.client_host("client").network.connect(
        f"{node}:{beacon.PORT}", PATIENCE_S
    )
    return connection


async def notes_pass(environment: Environment, *, a_to_b: bool, b_to_a: bool) -> None:
    """Over connections that exist, bytes pass in these directions and in no other."""
    ways = (("a", "b", a_to_b), ("b", "a", b_to_a))
    before = {target: await answered(environment, target, "c") for _, target, _ in ways}
    for source, _, _ in ways:
        assert await answered(environment, source, "n") is True
    for source, target, passes in ways:
        if passes:
            words = f"bytes within a connection do not pass from {source} to {target}, though that way is open"
            await until(environment, target, "c", before[target] + 1, words)
    await environment.timeline.sleep(QUIET_S)
    for source, target, passes in ways:
        came = await answered(environment, target, "c") - before[target]
        assert came == int(passes), f"{came} notes came from {source} to {target}, where that way is {passes=}"


async def is_cut_off(environment: Environment, connection: Connection) -> bool:
    """Whether the client is told within a while that its connection is no more; nothing must come over it."""
    try:
        await environment.timeline.within(QUIET_S, connection.read_exactly(1))
    except TimeoutError:
        return False
    except ConnectionClosed:
        return True
    raise AssertionError("an answer came that nobody had asked for")


async def refuses(verb: Callable[[], Awaitable[Any]]) -> str:
    """What the verb answers where it cannot be carried out."""
    try:
        await verb()
    except HarnessError as error:
        return str(error)
    raise AssertionError("a verb that cannot be carried out was not refused")


async def at_most_once(verb: Callable[[], Awaitable[Any]]) -> None:
    """The verb has an effect, and none when it is repeated."""
    assert (await verb()).happened, "the verb says that it had no effect"
    assert not (await verb()).happened, "the verb says that it had an effect where nothing was left to do"


async def ahead_s(environment: Environment, node: str) -> Between:
    """How far a node's wall time is ahead of the environment's time, which was right somewhere between question and
    answer."""

    async def read() -> Between:
        asked_ns = environment.timeline.now_ns()
        wall_ns = await answered(environment, node, "w")
        return Between((wall_ns - environment.timeline.now_ns()) / 1e9, (wall_ns - asked_ns) / 1e9)

    return narrowest([await read() for _ in range(READINGS)])


# Links


async def a_cut_stops_one_direction_and_leaves_the_other(environment: Environment) -> None:
    await connections_kept(environment)
    await at_most_once(lambda: environment.cut([B_TO_A]))
    # First of all: a sender whose earlier bytes go unacknowledged may hold back what comes after them.
    await notes_pass(environment, a_to_b=True, b_to_a=False)
    assert await answered(environment, "a", ">") is False, "new connections pass a cut"
    assert await answered(environment, "a", "s") is False, "connections that were there pass a cut"
    assert not await is_silent(environment, "b"), "clients are outside of partitions"
    assert not (await environment.heal([A_TO_B])).happened, "a direction was healed that was not cut"
    assert await answered(environment, "a", ">") is False, "the healing of one direction opened the other"
    await at_most_once(environment.heal)
    await until(environment, "a", ">", True, "a link that was healed stays cut")


async def a_cut_of_both_directions_stops_both_until_each_is_healed(environment: Environment) -> None:
    await connections_kept(environment)
    await at_most_once(lambda: environment.cut([A_TO_B, B_TO_A]))
    for node in ("a", "b"):
        assert await answered(environment, node, ">") is False, "new connections pass a cut"
    await notes_pass(environment, a_to_b=False, b_to_a=False)
    await at_most_once(lambda: environment.heal([A_TO_B]))
    await connections_still_stalled(environment)
    await at_most_once(lambda: environment.heal([B_TO_A]))
    for node in ("a", "b"):
        await until(environment, node, ">", True, "a link that was healed stays cut")
    assert not (await environment.heal()).happened


async def connections_still_stalled(environment: Environment) -> None:
    """From b to a, while the way from a to b was healed."""
    before = await answered(environment, "a", "c")
    assert await answered(environment, "b", "n") is True
    await environment.timeline.sleep(QUIET_S)
    assert await answered(environment, "a", "c") == before, "the healing of one direction opened the other"


async def what_was_sent_into_a_cut_arrives_once_after_the_healing(environment: Environment) -> None:
    await connections_kept(environment)
    before = await answered(environment, "b", "c")
    assert (await environment.cut([A_TO_B])).happened
    for _ in range(3):
        assert await answered(environment, "a", "n") is True
    await environment.timeline.sleep(QUIET_S)
    assert await answered(environment, "b", "c") == before, "connections that were there pass a cut"
    assert (await environment.heal([A_TO_B])).happened
    await until(environment, "b", "c", before + 3, "what a connection holds back while its link is cut is lost")
    assert await answered(environment, "a", "s") is True
    assert await answered(environment, "b", "c") == before + 3, "what was sent once arrived twice"


# Processes


async def a_killed_node_is_gone_until_it_boots_on_its_own_disk(environment: Environment) -> None:
    for _ in range(KILLS):
        finished = await answered(environment, "a", "f")
        for _ in range(5):
            written = await answered(environment, "a", "+")
        connection = await client_connection(environment, "a")
        await at_most_once(lambda: environment.kill(["a"]))
        assert await is_silent(environment, "a"), "a killed node answers"
        assert await is_cut_off(environment, connection), "the machine of a killed process is as silent as it"
        await at_most_once(lambda: environment.boot(["a"]))
        assert await answered(environment, "a", "r") == written, "a kill took or changed what was written"
        assert await answered(environment, "a", "f") == finished, "a killed process carried out a finally"
    assert environment.panics() == {}


async def an_upgraded_node_ends_cleanly_and_is_another_version_on_its_own_disk(environment: Environment) -> None:
    assert [await answered(environment, node, "v") for node in ("a", "b")] == [1, 1]
    finished, written = await answered(environment, "a", "f"), await answered(environment, "a", "+")
    await at_most_once(lambda: environment.upgrade(["a"]))
    await until(environment, "a", "v", 2, "an upgraded node runs what it ran before")
    assert await answered(environment, "a", "f") > finished, "an upgraded process carried out no finally"
    assert await answered(environment, "a", "r") == written, "an upgrade took or changed what was written"
    assert (await environment.kill(["a"])).happened and (await environment.boot(["a"])).happened
    assert await answered(environment, "a", "v") == 2, "an upgraded node that was killed runs what it ran before"
    assert await answered(environment, "b", "v") == 1, "a node was upgraded that was not named"
    assert (await environment.kill(["b"])).happened
    assert (await environment.upgrade(["b"])).happened, "a node that is down cannot be upgraded"
    await until(environment, "b", "v", 2, "a node that was down runs what it ran before")
    assert environment.panics() == {}


async def another_program_runs_from_the_next_boot_on(environment: Environment) -> None:
    before, written = await answered(environment, "a", "v"), await answered(environment, "a", "+")
    of_the_other = await answered(environment, "b", "v")
    another, first = (
        PythonProgram(main="beacon:main", config={"other": "b", "version": version}) for version in (9, before)
    )
    await at_most_once(lambda: environment.replace_program("a", another))
    assert await answered(environment, "a", "v") == before, "a program was replaced while it ran"
    assert (await environment.kill(["a"])).happened and (await environment.boot(["a"])).happened
    assert await answered(environment, "a", "v") == 9, "a node that was booted runs what it ran before"
    assert await answered(environment, "a", "r") == written, "another program took or changed what was written"
    assert (await environment.kill(["a"])).happened
    assert (await environment.replace_program("a", first)).happened, "a node that is down cannot get another program"
    assert (await environment.boot(["a"])).happened
    assert await answered(environment, "a", "v") == before, "a node that was down runs what it ran before"
    assert await answered(environment, "b", "v") == of_the_other, "a node got a program that was not named"
    assert environment.panics() == {}


async def a_paused_node_does_nothing_and_forgets_nothing(environment: Environment) -> None:
    timeline = environment.timeline
    await answered(environment, "a")
    connection = await client_connection(environment, "a")
    await at_most_once(lambda: environment.pause(["a"]))
    from_ns = timeline.now_ns()
    connection.write(b"w")
    assert not await is_cut_off(environment, connection), "a paused node closes its connections"
    assert await is_silent(environment, "a"), "a paused node answers"
    assert not await is_silent(environment, "b"), "a node answers no more while another one is paused"
    paused_ns = timeline.now_ns() - from_ns
    await at_most_once(lambda: environment.resume(["a"]))
    await gets_answer(environment, connection)
    gap_ns = await answered(environment, "a", "g")
    assert gap_ns > 0.99 * paused_ns, f"timers ran while the node was paused: {gap_ns} ns between ticks, {paused_ns=}"


async def gets_answer(environment: Environment, connection: Connection) -> None:
    try:
        await environment.timeline.within(10.0, answer_from(connection))
    except (TimeoutError, ConnectionClosed) as error:
        raise AssertionError("what was asked of a paused node is never answered") from error
    connection.close()


async def a_paused_node_can_be_killed(environment: Environment) -> None:
    finished = await answered(environment, "a", "f")
    assert (await environment.pause(["a"])).happened
    assert (await environment.kill(["a"])).happened, "a paused process cannot be killed"
    assert not (await environment.resume(["a"])).happened, "a process that is gone was resumed"
    assert (await environment.boot(["a"])).happened
    assert await answered(environment, "a", "f") == finished, "a killed process carried out a finally"


# Power


async def a_loss_of_power_takes_what_was_not_synced_and_that_alone(environment: Environment) -> None:
    if "power" not in environment.faults:
        return
    lost = 0
    for _ in range(LOSSES_OF_POWER):
        finished = await answered(environment, "a", "f")
        replaced = await answered(environment, "a", "x")
        synced = await answered(environment, "a", "!")
        for _ in range(5):
            written = await answered(environment, "a", "+")
        assert (await environment.power_off(["a"])).happened
        assert (await environment.boot(["a"])).happened
        kept = await answered(environment, "a", "r")
        assert kept.startswith(synced), "what an fsync was to make durable is gone"
        assert await answered(environment, "a", "y") == replaced, "a file that replaced another one is gone"
        assert len(kept) <= len(written), "after a loss of power there is more than was written"
        assert all(found in (was, "\0") for found, was in zip(kept, written, strict=False)), (
            "after a loss of power there is what was never written"
        )
        assert await answered(environment, "a", "f") == finished, "a process that lost its power carried out a finally"
        lost += kept != written
    assert lost, f"in {LOSSES_OF_POWER} losses of power nothing was lost that had not been synced"


async def a_node_without_power_is_silent_on_connections_that_exist(environment: Environment) -> None:
    if "power" not in environment.faults:
        return
    connection = await client_connection(environment, "a")
    await at_most_once(lambda: environment.power_off(["a"]))
    assert await is_silent(environment, "a"), "a node without power answers"
    assert not await is_cut_off(environment, connection), "a machine that lost its power closes its connections"
    await at_most_once(lambda: environment.boot(["a"]))
    await answered(environment, "a")
    assert environment.panics() == {}


# Clocks


async def a_clock_is_wrong_on_one_node_alone(environment: Environment) -> None:
    before_s = {node: await ahead_s(environment, node) for node in ("a", "b")}
    for offset_s in (-500.0, 500.0):
        assert (await environment.set_clock("a", offset_s=offset_s, rate=1.0)).happened
        for node, wrong_s in (("a", offset_s), ("b", 0.0)):
            change_s = (await ahead_s(environment, node)).minus(before_s[node])
            assert change_s.may_be(wrong_s, 1.0), f"wall time of {node} is wrong by {change_s} s"
    assert (await environment.set_clock("a", offset_s=0.0, rate=1.0)).happened
    assert (await ahead_s(environment, "a")).may_be(before_s["a"], 1.0), "wall time of a stays wrong"


async def a_wrong_clock_leaves_monotonic_time_and_timers_alone(environment: Environment) -> None:
    for offset_s, rate in ((-500.0, 1.0), (500.0, 1.0), (0.0, 0.5), (0.0, 3.0)):
        async with Stopwatch(environment, "a", "m") as stopwatch:
            assert (await environment.set_clock("a", offset_s=offset_s, rate=rate)).happened
            from_ns = environment.timeline.now_ns()
            await answered(environment, "a", "z")
            napped_s = (environment.timeline.now_ns() - from_ns) / 1e9
            assert napped_s > 0.99 * NAP_S, f"a nap of {NAP_S} s took {napped_s} s while wall time was wrong"
        stopwatch.must_have_run(1.0, "monotonic time")
    assert (await environment.set_clock("a", offset_s=0.0, rate=1.0)).happened


async def a_clock_drifts_at_the_rate_that_was_set(environment: Environment) -> None:
    for rate in (3.0, 0.2, 1.0):
        await environment.set_clock("a", offset_s=0.0, rate=rate)
        for _ in range(READINGS):
            async with Stopwatch(environment, "a", "w") as stopwatch:
                await environment.timeline.sleep(2 * QUIET_S)
            if stopwatch.ran(rate):
                break  # what moves a clock may have to wait on a busy machine, but not each time
        stopwatch.must_have_run(rate, "wall time")


class Stopwatch:
    """How much of a node's time went by between two readings, against the true time.

    The true time of a reading lies between its question and its answer, so a slow answer widens what is accepted and
    never makes a healthy clock look wrong.
    """

    STEP_S = 0.75
    """A clock that drifts may do so in steps, on a busy machine in long ones."""

    def __init__(self, environment: Environment, node: str, question: str) -> None:
        self._environment = environment
        self._node = node
        self._question = question

    async def __aenter__(self) -> Stopwatch:
        self._asked_ns = self._environment.timeline.now_ns()
        self._first_ns = await answered(self._environment, self._node, self._question)
        self._answered_ns = self._environment.timeline.now_ns()
        return self

    async def __aexit__(self, *_: object) -> None:
        least_ns = self._environment.timeline.now_ns() - self._answered_ns
        last_ns = await answered(self._environment, self._node, self._question)
        most_ns = self._environment.timeline.now_ns() - self._asked_ns
        self._bounds_s = (least_ns / 1e9, most_ns / 1e9)
        self._went_by_s = (last_ns - self._first_ns) / 1e9

    def ran(self, rate: float) -> bool:
        least_s, most_s = self._bounds_s
        return 0.99 * rate * least_s - self.STEP_S <= self._went_by_s <= 1.01 * rate * most_s + self.STEP_S

    def must_have_run(self, rate: float, words: str) -> None:
        least_s, most_s = self._bounds_s
        assert self.ran(rate), (
            f"{words} of {self._node} went by {self._went_by_s} s in {least_s} to {most_s} s, not at a rate of {rate}"
        )


# All verbs


async def a_verb_for_a_node_that_is_not_there_says_so(environment: Environment) -> None:
    verbs: list[Callable[[], Awaitable[Any]]] = [
        lambda: environment.kill(["nobody"]),
        lambda: environment.upgrade(["nobody"]),
        lambda: environment.replace_program("nobody", PythonProgram(main="beacon:main")),
        lambda: environment.boot(["a", "nobody"]),
        lambda: environment.pause(["nobody"]),
        lambda: environment.resume(["nobody"]),
        lambda: environment.set_clock("nobody", offset_s=1.0, rate=1.0),
        lambda: environment.cut([Link("a", "nobody")]),
    ]
    for verb in verbs:
        assert "nobody" in await refuses(verb)
    try:
        environment.client_host("a")
    except HarnessError:
        return
    raise AssertionError("a client was given the name of a node")


async def a_fault_that_the_environment_has_not_is_refused(environment: Environment) -> None:
    if "power" not in environment.faults:
        await refuses(lambda: environment.power_off(["a"]))
        assert not await is_silent(environment, "a"), "a fault that was refused struck nevertheless"


async def a_nemesis_leaves_the_world_as_it_was(environment: Environment, kind: type[Nemesis] = Nemesis) -> None:
    """Faults of every kind overlap; some are stopped in time, the rest in the end."""
    a, b = Nodes(("a",)), Nodes(("b",))
    storms = (
        (ClockShape(a), CutLink(a, b), kill(a), CutLink(b, a), pause(b)),
        (pause(a), CutLink(a, b), ClockShape(b), power_off(b), ClockShape(a)),
    )
    before_s = {node: await ahead_s(environment, node) for node in ("a", "b")}
    for shapes in storms:
        await connections_kept(environment)
        await _storm(environment, kind, *shapes)
        for node in ("a", "b"):
            await until(environment, node, ">", True, f"after the storm {node} does not reach the other node")
            wrong_s = (await ahead_s(environment, node)).minus(before_s[node])
            assert wrong_s.may_be(0.0, 1.0), f"after the storm the clock of {node} is wrong by {wrong_s} s"


async def _storm(environment: Environment, kind: type[Nemesis], *shapes: Shape) -> None:
    """Those of the shapes that the environment has, all at once; two are stopped, the others are healed in the end."""
    entries = [
        Entry.between(0, 1, "test", number, shape)
        for number, shape in enumerate(shapes)
        if shape.kind in environment.faults
    ]
    due = [Due(0, True, entry) for entry in entries] + [Due(1, False, entry) for entry in entries[1::2]]
    rows: list[FaultRow] = []

    async def no_roles() -> dict[str, tuple[str, ...]]:
        return {}

    nemesis = kind(
        environment=environment,
        groups={"all": ("a", "b")},
        roles=no_roles,
        due=tuple(due),
        seed=Seed(1729),
        record=rows.append,
    )
    for position in range(len(due)):
        await nemesis.invoke(Operation(NEMESIS, "invoke", due[position].f, {"due": position}))
    struck = {row.kind for row in rows if row.starts and row.happened}
    assert struck == {entry.shape.kind for entry in entries}, f"only these faults had an effect: {sorted(struck)}"
    await nemesis.heal()
    assert unhealed(rows) == (), f"left unhealed: {unhealed(rows)}"


PROMISES: tuple[Promise, ...] = (
    a_cut_stops_one_direction_and_leaves_the_other,
    a_cut_of_both_directions_stops_both_until_each_is_healed,
    what_was_sent_into_a_cut_arrives_once_after_the_healing,
    a_killed_node_is_gone_until_it_boots_on_its_own_disk,
    a_paused_node_does_nothing_and_forgets_nothing,
    a_paused_node_can_be_killed,
    a_loss_of_power_takes_what_was_not_synced_and_that_alone,
    a_node_without_power_is_silent_on_connections_that_exist,
    an_upgraded_node_ends_cleanly_and_is_another_version_on_its_own_disk,
    another_program_runs_from_the_next_boot_on,
    a_clock_is_wrong_on_one_node_alone,
    a_wrong_clock_leaves_monotonic_time_and_timers_alone,
    a_clock_drifts_at_the_rate_that_was_set,
    a_verb_for_a_node_that_is_not_there_says_so,
    a_fault_that_the_environment_has_not_is_refused,
    a_nemesis_leaves_the_world_as_it_was,
)
