"""The nemesis: carries a schedule out, one step an operation of process -1, and leaves the world healed.

A fault with a trigger is armed and disarmed by such steps; in between it strikes within the step of the node
that reaches the point, and is healed by the environment's own timer.
It finds out which nodes a shape strikes when it strikes (who plays which role now?), keeps packages from colliding
(nothing is sent to a process that another fault holds down), and reports every fault with the effect read back.
Where everything is seen as it happens, nobody is asked for roles: in a world of slow links the answer takes seconds,
and a fault of less would strike after its own stop. Which nodes the system can do without it always says itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from harness.administration import ADMINISTER, Acts
from harness.environments.environment import Effect, Environment, Link, Moments
from harness.errors import HarnessError
from harness.membership import Membership
from harness.operation import Operation
from harness.record.fault_log import QUORUM
from harness.record.fault_row import FINAL_HEALING, FaultRow
from harness.seed import Seed
from nemesis.administration import UnderWay
from nemesis.asking import ASKING
from nemesis.cluster import Cluster
from nemesis.fault import ClockSkew, Compound, Fault, ImpairedNodes, Kill, Partition, Pause, PowerLoss, Skew
from nemesis.membership import Departure
from nemesis.pending_recoveries import PendingRecoveries
from nemesis.schedule import Due, Entry
from nemesis.vocabulary import IT

ROLES_TIMEOUT_S = 4.0
VACANT_S, ASKED_AGAIN_EVERY_S = 5.0, 0.5
"""So long a fault waits for a role whose last player is down to pass on to another node, if it lasts twice as long."""
DRAWS = 5
"""So often the nodes of a fault are drawn while those that are drawn are down already, where nothing is replayed."""
NOTHING = Effect(False, "no node fits: it is not known who plays the role, or all are down already")
NOBODY_LEAVES = Effect(False, "no node fits: nobody is known to play the role, all are down, or another one is out")
NOT_TWICE = Effect(False, "the same was begun before, and has not ended")
RETURN_TIMEOUT_S = 60.0
"""How long nodes that are out may take to be let in, after the storm, once all else is healed."""
QUORUM_TIMEOUT_S = 20.0
"""The same before nodes are taken down that the system can do without: of a smaller cluster it may not be."""


T = TypeVar("T")


def _nobody(entry: Entry) -> Effect:
    if entry.shape.kind == ADMINISTER:
        return NOT_TWICE
    return NOBODY_LEAVES if entry.shape.kind in ASKING else NOTHING


def _may_wait_ns(entry: Entry, cluster: Cluster) -> int:
    """For a role whose players are all down, where somebody has to be asked who takes it over."""
    vacant = {role for role, nodes in cluster.roles.items() if nodes and cluster.unavailable.issuperset(nodes)}
    if vacant.isdisjoint(str(entry.shape).split()):
        return 0
    return min(int(VACANT_S * 1e9), (entry.until_ns - entry.at_ns) // 2)


def _at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """What verbs of the environment return that have no need to wait. Raises HarnessError where one does."""
    try:
        coroutine.send(None)
    except StopIteration as returned:
        result: T = returned.value
        return result
    coroutine.close()
    raise HarnessError("a fault that strikes when a point is reached has to take effect at once, but a verb waited")


def _parts(fault: Fault) -> tuple[Fault, ...]:
    return fault.faults if isinstance(fault, Compound) else (fault,)


def _links(fault: Fault) -> tuple[Link, ...]:
    return tuple(link for part in _parts(fault) if isinstance(part, Partition) for link in part.links)


def _without(fault: Fault, earlier: Sequence[Fault], later: Sequence[Fault]) -> Fault:
    """The fault as it is to be stopped while others are active, which started before it or after it.

    Links that others hold cut stay cut. A clock that another fault has set since stays so; otherwise it goes back to
    what the last one before has set it to.
    """
    if isinstance(fault, Compound):
        return Compound(tuple(_without(part, earlier, later) for part in fault.faults))
    if isinstance(fault, Partition):
        held = {link for other in (*earlier, *later) for link in _links(other)}
        return Partition(tuple(link for link in fault.links if link not in held), fault.shape)
    if isinstance(fault, ClockSkew):
        set_since, set_before = _skews(later), _skews(earlier)
        skews = tuple(skew for skew in fault.skews if skew.node not in set_since)
        return ClockSkew(skews, tuple(set_before[skew.node] for skew in skews if skew.node in set_before))
    return fault


def _skews(faults: Sequence[Fault]) -> dict[str, Skew]:
    """Node -> what the last of these faults has set its clock to."""
    parts = (part for fault in faults for part in _parts(fault) if isinstance(part, ClockSkew))
    return {skew.node: skew for part in parts for skew in part.skews}


def _held_down(fault: Fault) -> tuple[str, ...]:
    """The nodes whose process a fault stops for as long as it is active."""
    return tuple(node for part in _parts(fault) if _stops_process(part) for node in part.nodes)


def _stops_process(part: Fault) -> bool:
    if isinstance(part, ImpairedNodes):
        return part.impairment.stops_process
    return isinstance(part, Kill | PowerLoss | Pause) or _is_out(part)


def _is_out(fault: Fault) -> bool:
    return isinstance(fault, Departure) and fault.is_open


def _is_open(fault: Fault) -> bool:
    """Whether the system has to be asked for its end, which may take long."""
    return isinstance(fault, Departure | UnderWay) and fault.is_open


@dataclass
class _Armed:
    """A fault that waits for a point."""

    entry: Entry
    times: int = 0
    """How often the point was reached since."""


@dataclass(kw_only=True)
class Nemesis:
    """A `harness.client.Client` whose operations are the starts and stops of one schedule."""

    environment: Environment
    groups: Mapping[str, tuple[str, ...]]
    roles: Callable[[], Awaitable[Mapping[str, tuple[str, ...]]]]
    """Asks the system which nodes play which role; those that are known."""
    roles_now: Callable[[], Mapping[str, tuple[str, ...]]] | None = None
    """The same as far as it is known at once, without asking; None where nobody sees what every node does."""
    due: tuple[Due, ...]
    seed: Seed
    record: Callable[[FaultRow], None]
    """Takes one row of the fault log for every start and stop."""
    machines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Node -> all nodes on its machine, where it shares it."""
    membership: Membership | None = None
    """Lets nodes go and in, as the system offers it; None where it does not."""
    acts: Acts | None = None
    """What administrators do, as the system declares it; None where it declares nothing."""
    active: dict[tuple[str, int], Fault] = field(default_factory=dict)
    last_roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _armed: dict[tuple[str, int], _Armed] = field(default_factory=dict, init=False)
    _began_ns: dict[tuple[str, int], int] = field(default_factory=dict, init=False)
    """When what is being started began to take effect: it may be felt long before all of it is there."""
    _recoveries: PendingRecoveries = field(default_factory=PendingRecoveries, init=False)
    _heeds_points: bool = field(default=False, init=False)

    async def open(self) -> None:
        """Before the first fault: a role that is vacant when that strikes has been played before, perhaps."""
        self._see_roles()

    async def close(self) -> None:
        return None

    async def invoke(self, operation: Operation) -> Operation:
        if operation.value is None:
            raise ValueError("a nemesis operation carries the number of what is due")
        self._see_roles()
        due = self.due[operation.value["due"]]
        entry = due.entry
        if entry.trigger is not None:
            if due.starts:
                self._arm(entry)
            else:
                await self._disarm(entry)
            return operation._replace(type="info", value=None)
        if not due.starts:
            await self._end(entry)
            return operation._replace(type="info", value=None)
        if entry.package == QUORUM:
            await self._recoveries.over_within(self.environment.timeline, QUORUM_TIMEOUT_S)
        fault, effect = await self._start(entry)
        self._record(entry, entry.what, fault, effect, starts=True)
        return operation._replace(type="info", value=None)

    async def _end(self, entry: Entry) -> None:
        fault = self.active.get(entry.key)
        if fault is not None and _is_open(fault):
            self._recoveries.begin(entry.key, self._stop_and_record(entry, entry.what))
        else:
            await self._stop_and_record(entry, entry.what)

    async def _stop_and_record(self, entry: Entry, shape: str) -> None:
        fault, effect = await self._stop(entry)
        self._record(entry, shape, fault, effect, starts=False)

    async def heal(self) -> None:
        """Stop every fault still active. Called after the storm, however it ended.

        Raises the first HarnessError after all faults were tried.
        """
        for armed in list(self._armed.values()):
            self._give_up(armed)
        failures: list[HarnessError] = []
        for key in sorted(self.active):
            fault = self.active.get(key)
            if fault is None:
                continue  # it ended while others were healed
            if _is_open(fault):
                if key not in self._recoveries:
                    self._recoveries.begin(key, self._stop_and_record(self._entry(key), FINAL_HEALING))
                continue
            try:
                effect = await self._undo(key)
            except HarnessError as error:
                failures.append(error)
                continue
            self._record(self._entry(key), FINAL_HEALING, fault, effect, starts=False)
        failures += await self._finish_asking()
        if failures:
            raise failures[0]

    async def _finish_asking(self) -> list[HarnessError]:
        """What the system refuses after a while still stays so, and is recorded. A run that is being ended does not
        wait."""
        if not any(isinstance(fault, Departure | UnderWay) for fault in self.active.values()):
            return []
        task = asyncio.current_task()
        is_ending = task is not None and task.cancelling() > 0
        failures = await self._recoveries.finish(self.environment.timeline, 0.0 if is_ending else RETURN_TIMEOUT_S)
        for key, fault in sorted(self.active.items()):
            if isinstance(fault, Departure | UnderWay) and not failures:
                why = fault.refusal or "the run was ended before"
                self._record(
                    self._entry(key), FINAL_HEALING, fault, Effect(False, f"{fault.left}: {why}"), starts=False
                )
        return failures

    def _entry(self, key: tuple[str, int]) -> Entry:
        return next(due.entry for due in self.due if due.entry.key == key)

    def _record(self, entry: Entry, shape: str, fault: Fault | None, effect: Effect, *, starts: bool) -> None:
        now_ns = self.environment.timeline.now_ns()
        self.record(
            FaultRow(
                time_ns=self._began_ns.pop(entry.key, now_ns) if starts else now_ns,
                package=entry.package,
                number=entry.number,
                starts=starts,
                kind=fault.kind if fault else entry.shape.kind,
                shape=shape,
                nodes=fault.nodes if fault else (),
                fault=fault.to_json() if fault else None,
                happened=effect.happened,
                evidence=effect.evidence,
                point=entry.trigger.point if entry.trigger else "",
            )
        )

    # Faults that wait for a point ----------------------------------------------------------------------------------

    @property
    def _moments(self) -> Moments:
        moments = self.environment.moments
        if moments is None:
            raise HarnessError(f"environment {self.environment.name!r} cannot strike when a point is reached")
        return moments

    def _arm(self, entry: Entry) -> None:
        if not self._heeds_points:
            self._heeds_points = True
            self._moments.on_point(self._reached)
        self._armed[entry.key] = _Armed(entry)

    def _reached(self, node: str, point: str) -> None:
        """Called within the node's step."""
        for armed in list(self._armed.values()):
            trigger = armed.entry.trigger
            assert trigger is not None
            if trigger.point != point:
                continue
            armed.times += 1
            if armed.times == trigger.nth:
                del self._armed[armed.entry.key]
                if trigger.moment == "when":
                    self._strike(armed.entry, node)
                else:
                    self._moments.after_step(lambda entry=armed.entry: self._strike(entry, node))  # type: ignore[misc]

    def _strike(self, entry: Entry, node: str) -> None:
        self._see_roles()
        fault, effect = _at_once(self._begin(entry, self._cluster_of({**self.last_roles, IT: (node,)})))
        self._record(entry, entry.what, fault, effect, starts=True)
        if fault is None:
            self._record(entry, entry.what, None, NOTHING, starts=False)
            return
        length_ns = entry.until_ns - entry.at_ns
        self._moments.at(self.environment.timeline.now_ns() + length_ns, lambda: self._end_struck(entry))

    def _end_struck(self, entry: Entry) -> None:
        """Its time is over, unless the storm's end came before."""
        if entry.key in self.active:
            fault, effect = _at_once(self._stop(entry))
            self._record(entry, entry.what, fault, effect, starts=False)

    async def _disarm(self, entry: Entry) -> None:
        """The storm is over for this one."""
        if entry.key in self._armed:
            self._give_up(self._armed[entry.key])
        elif entry.key in self.active:
            fault, effect = await self._stop(entry)
            self._record(entry, entry.what, fault, effect, starts=False)

    def _give_up(self, armed: _Armed) -> None:
        """It never struck: there is nothing to heal."""
        entry = armed.entry
        del self._armed[entry.key]
        times = f"{armed.times} time{'' if armed.times == 1 else 's'}"
        never = Effect(False, f"never struck: {entry.trigger}, which was reached {times} while it was armed")
        for starts in (True, False):
            self._record(entry, entry.what, None, never, starts=starts)

    # Faults that strike --------------------------------------------------------------------------------------------

    async def _start(self, entry: Entry) -> tuple[Fault | None, Effect]:
        cluster = await self._cluster(entry)
        fault, effect = await self._begin(entry, cluster)
        if fault is not None or self.environment.moments is not None or entry.package == QUORUM:
            return fault, effect
        waits_until_ns = self.environment.timeline.now_ns() + _may_wait_ns(entry, cluster)
        while fault is None and self.environment.timeline.now_ns() < waits_until_ns:
            await self.environment.timeline.sleep(ASKED_AGAIN_EVERY_S)
            cluster = await self._cluster(entry)
            fault, effect = await self._begin(entry, cluster)
        for draw in range(1, DRAWS):
            if fault is None:
                fault, effect = await self._begin(entry, cluster, draw)
        return fault, effect

    async def _begin(self, entry: Entry, cluster: Cluster, number: int = 0) -> tuple[Fault | None, Effect]:
        """`number`: of the draw."""
        again = (str(number),) if number else ()
        draw = self.seed.child(entry.package, str(entry.number), "strike", *again).stream()
        fault = entry.shape.strike(cluster, draw)
        if fault is None:
            return None, _nobody(entry)
        # Before it starts: what a start that fails half-way has done is healed in the end as well.
        self.active[entry.key] = fault
        self._began_ns[entry.key] = self.environment.timeline.now_ns()
        return fault, await fault.start(self.environment)

    async def _stop(self, entry: Entry) -> tuple[Fault | None, Effect]:
        fault = self.active.get(entry.key)
        return (None, _nobody(entry)) if fault is None else (fault, await self._undo(entry.key))

    async def _undo(self, key: tuple[str, int]) -> Effect:
        keys = list(self.active)
        place = keys.index(key)
        earlier, later = ([self.active[each] for each in part] for part in (keys[:place], keys[place + 1 :]))
        effect = await _without(self.active[key], earlier, later).stop(self.environment)
        del self.active[key]
        return effect

    async def _cluster(self, entry: Entry) -> Cluster:
        if self.roles_now is None or entry.package == QUORUM:
            await self._ask_for_roles()
        else:
            self._see_roles()
        return self._cluster_of(self.last_roles)

    async def _ask_for_roles(self) -> None:
        try:
            reported = await self.environment.timeline.within(ROLES_TIMEOUT_S, self.roles())
        except TimeoutError:
            reported = {}
        self._know(reported)

    def _see_roles(self) -> None:
        if self.roles_now is not None:
            self._know(self.roles_now())

    def _know(self, roles: Mapping[str, tuple[str, ...]]) -> None:
        """Of roles that cannot be found out now, the nodes last seen in them are the best guess."""
        self.last_roles = {**self.last_roles, **roles}

    def _cluster_of(self, roles: Mapping[str, tuple[str, ...]]) -> Cluster:
        out = {node for fault in self.active.values() for node in _held_down(fault)}
        away = {node for fault in self.active.values() if _is_out(fault) for node in fault.nodes}
        return Cluster(
            groups=self.groups,
            machines=self.machines,
            roles=roles,
            unavailable=frozenset(out),
            out=frozenset(away),
            let_go=frozenset(
                node for fault in self.active.values() if isinstance(fault, Departure) for node in fault.let_go
            ),
            membership=self.membership,
            acts=self.acts,
            under_way=frozenset(fault.name for fault in self.active.values() if isinstance(fault, UnderWay)),
        )
