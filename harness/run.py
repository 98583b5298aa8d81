"""A scenario is carried out in an environment: set-up, storm, healing, calm, final reads, teardown.

Nothing here judges. What happened goes into the history and the fault log while it happens; what went wrong with the
run itself goes into its facts, so that a verdict over a run cut short says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.abilities import (
    Restoring,
    Resuming,
    Separable,
    acts_of,
    invariants_of,
    membership_of,
    reporting_of,
    watch_of,
)
from harness.administration import Acts
from harness.client import Client
from harness.client_names import client_names
from harness.environments.environment import Environment, Moments, Usage
from harness.environments.impairment import OF_CLOCKS
from harness.errors import HarnessError
from harness.generator import Generator, any_of, clients, nemesis, picked, stagger, time_limit
from harness.interpreter import run_operations
from harness.invariants import Breaches
from harness.membership import Membership
from harness.nearest import unknown
from harness.operation import NEMESIS, Operation
from harness.printable import last_lines
from harness.progress import Progress, RunProgress
from harness.record.facts import Lack, RunFacts
from harness.record.fault_log import FaultLog, nodes_struck
from harness.record.fault_row import FaultRow
from harness.record.picked import picked_numbers
from harness.record.recorder import Recorder
from harness.record.scenario import Scenario
from harness.record.usage_log import UsageRow
from harness.reporting import Reporting, write_events
from harness.seed import Seed
from harness.strand_client import StrandClient, strand_of
from harness.system import Declaration, NodeSpec, System
from harness.watch import Watch
from harness.workload import Workload

START_TIMEOUT_S = 120.0
RECOVERY_TIMEOUT_S = 40.0
"""How long after the calm a healed system may still take until all of it serves."""
RESTORED_EVERY_S = 0.5
"""How often a system that serves again is asked what it lacks."""
APART_TIMEOUT_S = 10.0
"""How long it may take beyond that to serve without nodes that are damaged for good."""
LOOKED_EVERY_S = 5.0
"""How often a system that starts is looked at: whether a node of it has ended."""
OPERATION_TIMEOUT_S = 5.0
USAGE_EVERY_S = 10.0
CRASHES_SHOWN = 5
CALM = "calm"
"""What is reported once all faults are healed."""


class Nemesis(Client, Protocol):
    """A client of process -1 that can also undo all it did."""

    async def heal(self) -> None: ...


AFTER_THE_STORM = "after the storm"
Roles = Callable[[], Awaitable[Mapping[str, tuple[str, ...]]]]
Record = Callable[[FaultRow], None]


@dataclass(frozen=True, slots=True)
class Means:
    """What the system itself tells a nemesis, and does for it."""

    roles: Roles
    membership: Membership | None
    acts: Acts | None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A scenario with everything its names stand for."""

    scenario: Scenario
    system: System[Any]
    system_settings: Any
    workload: Workload
    workload_settings: Any
    nemesis: Callable[[Environment, Watch, Means, Record], Nemesis]
    nemesis_generator: Callable[[int], Generator] | None
    """The steps of the storm, from its start in ns; None without a nemesis."""
    watch: Watch | None = None
    """The watch in place of the system's own, if any."""


@dataclass(kw_only=True)
class FactsSoFar:
    """The facts of a run that goes on; they are there however it ends."""

    reasons: list[str] = field(default_factory=list)
    panics: dict[str, str] = field(default_factory=dict)
    storm_from_ns: int | None = None
    healed_ns: int | None = None
    serves_ns: int | None = None
    lack: Lack | None = None
    apart: tuple[str, ...] = ()
    breaches: Breaches | None = None
    final_from_ns: int | None = None
    complete: bool = False

    def facts(self) -> RunFacts:
        return RunFacts(
            reasons=tuple(self.reasons),
            panics=dict(self.panics),
            storm_from_ns=self.storm_from_ns,
            healed_ns=self.healed_ns,
            serves_ns=self.serves_ns,
            lack=self.lack,
            apart=self.apart,
            breaches=() if self.breaches is None else self.breaches.kept(),
            final_from_ns=self.final_from_ns,
            complete=self.complete,
        )


async def execute(
    plan: Plan,
    environment: Environment,
    recorder: Recorder,
    facts: FactsSoFar,
    progress: Progress,
) -> None:
    """Run the plan to its end and close the record, whatever happens on the way.

    Raises HarnessError where the system could not be started or the environment failed; the history then
    holds what was recorded until then.
    """
    try:
        await _Course(plan, environment, recorder, facts, progress).run()
    finally:
        recorder.close()


@dataclass
class _Course:
    plan: Plan
    environment: Environment
    recorder: Recorder
    facts: FactsSoFar
    progress: Progress
    next_process: int = 0
    sampling: asyncio.Task[None] | None = None
    observing: asyncio.Task[None] | None = None
    faults: list[FaultRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reported = RunProgress(self.progress)
        self.reporting = reporting_of(self.plan.system, self.plan.system_settings)

    async def run(self) -> None:
        plan, environment, scenario = self.plan, self.environment, self.plan.scenario
        nodes = plan.system.nodes(plan.system_settings, scenario.mutant)
        own_host: Any = None
        watch = plan.watch or watch_of(plan.system, plan.system_settings)
        declared = plan.system.cluster(plan.system_settings)
        if environment.moments is not None:
            self._keep_watch(environment.moments, watch, declared)
        self.reported.begin(f"starting {len(nodes)} nodes ({environment.name})")
        try:
            await environment.start(nodes, self.recorder.nodes)
            if environment.usage is not None:
                self.sampling = asyncio.create_task(self._sample(environment.usage), name="usage of nodes")
            own_host = environment.client_host("observer")
            await self._until_serves_first(own_host)
            if self.reporting is not None:
                self.observing = asyncio.create_task(self._observe(self.reporting), name="what nodes answer")
            self.facts.storm_from_ns = environment.timeline.now_ns()
            self.progress(f"storm of {scenario.time_limit_s:g} s")
            until_ns = self.facts.storm_from_ns + int(scenario.time_limit_s * 1e9)
            self.reported.begin(f"{environment.name} storm", until_ns=until_ns)
            nemesis_client = plan.nemesis(environment, watch, self._means(own_host, nodes), self._record_nemesis)
            try:
                await self._operate(self._storm(), nemesis_client, scenario.concurrency)
            finally:
                await nemesis_client.heal()
            self.facts.healed_ns = environment.timeline.now_ns()
            self.progress(CALM)
            self.reported.begin(f"calm of {scenario.recovery_s:g} s")
            await environment.timeline.sleep(scenario.recovery_s)
            try:
                await self._until_whole(own_host, declared)
            except HarnessError as error:
                self.facts.reasons.append(str(error))
            damaged = nodes_struck(FaultLog.of(self.faults).struck, declared.lasting_damage)
            if damaged:
                await self._set_apart(own_host, damaged)
            self.facts.final_from_ns = environment.timeline.now_ns()
            self.progress("final reads")
            self.reported.begin("final reads")
            await self._operate(self._final(nodes), None, scenario.concurrency)
            self.facts.complete = True
        finally:
            self.reported.begin("ending the nodes")
            try:
                await self._end_sampling()
                await self._end_observing()
                if self.facts.storm_from_ns is not None:
                    # Of nodes that never served the error that ends the run tells; nothing of the system was tried.
                    self.facts.panics.update(environment.panics())
            finally:
                await environment.stop()
            self._write_events([node.name for node in nodes])

    def _means(self, own_host: Any, nodes: Sequence[NodeSpec]) -> Means:
        system, settings = self.plan.system, self.plan.system_settings
        by_name = {node.name: node for node in nodes}
        return Means(
            roles=lambda: system.roles(settings, own_host),
            membership=membership_of(system, settings, own_host, by_name),
            acts=acts_of(system, settings, own_host),
        )

    async def _end_sampling(self) -> None:
        if self.sampling is not None:
            self.sampling.cancel()
            await asyncio.gather(self.sampling, return_exceptions=True)

    async def _observe(self, reporting: Reporting) -> None:
        timeline = self.environment.timeline

        def report(node: str, event: str, fields: Mapping[str, Any]) -> None:
            self.recorder.observed(node, {"time": timeline.now_ns(), "event": event, **fields})

        await reporting.observe(self.environment.client_host("reporter"), report)

    async def _end_observing(self) -> None:
        """Asking that has failed meanwhile is told, and harms nothing."""
        if self.observing is None:
            return
        self.observing.cancel()
        (ended,) = await asyncio.gather(self.observing, return_exceptions=True)
        if isinstance(ended, Exception):
            self.progress(f"nodes were not asked for their part any more: {ended!r}")

    def _write_events(self, nodes: Sequence[str]) -> None:
        if self.reporting is None or self.recorder.nodes is None:
            return
        misdated = nodes_struck(FaultLog.of(self.faults).struck, OF_CLOCKS)
        try:
            self.facts.reasons += write_events(self.reporting, self.recorder.nodes, nodes, misdated=misdated)
        except (OSError, ValueError, LookupError, TypeError) as error:
            self.progress(f"what nodes logged could not be read: {error!r}")

    async def _sample(self, ask: Callable[[], Awaitable[Mapping[str, Usage]]]) -> None:
        """For ever. A sample that fails is left out: it must not end a run, and what is missing can be seen."""
        timeline = self.environment.timeline
        while True:
            with suppress(HarnessError):
                for node, held in (await ask()).items():
                    row = UsageRow(
                        time_ns=timeline.now_ns(), node=node, memory_bytes=held.memory_bytes, handles=held.handles
                    )
                    self.recorder.usage(row)
            await timeline.sleep(USAGE_EVERY_S)

    def _keep_watch(self, moments: Moments, watch: Watch, declared: Declaration) -> None:
        breaches = Breaches(self.environment.timeline.now_ns, declared.invariants)
        invariants = invariants_of(self.plan.system, self.plan.system_settings, breaches)
        if invariants is None:
            moments.watch = watch.saw
            return

        def saw(node: str, event: str, fields: Mapping[str, object]) -> None:
            watch.saw(node, event, fields)
            invariants.saw(node, event, fields)

        moments.watch, moments.values, self.facts.breaches = saw, invariants.observe, breaches

    async def _until_serves_first(self, own_host: Any) -> None:
        """Raises HarnessError, in real time as soon as a node has ended by itself and the system does not serve."""
        environment = self.environment
        serves = self._until_ready(own_host, "after its start", START_TIMEOUT_S)
        try:
            # In virtual time nobody waits, and a task more would be another trace.
            await (serves if environment.moments is not None else self._unless_one_ends(serves))
            return
        except HarnessError as error:
            failure = error
        ended = (
            f"{node} ended by itself: {last_lines(last_words)}" for node, last_words in environment.panics().items()
        )
        raise HarnessError("; ".join((str(failure), *ended)))

    async def _unless_one_ends(self, serves: Coroutine[Any, Any, None]) -> None:
        timeline, serving = self.environment.timeline, asyncio.ensure_future(serves)
        try:
            while not serving.done():
                with suppress(TimeoutError):
                    await timeline.within(LOOKED_EVERY_S, asyncio.shield(serving))
                if not serving.done() and self.environment.panics():
                    raise HarnessError(f"{self.plan.system.name} does not serve after its start")
        finally:
            serving.cancel()
        await serving

    async def _until_ready(self, own_host: Any, when: str, timeout_s: float) -> None:
        plan = self.plan

        resuming = plan.system if when == AFTER_THE_STORM and isinstance(plan.system, Resuming) else None

        async def ready() -> None:
            for name in plan.workload.names:
                await plan.system.ready(plan.system_settings, own_host, name)
                if resuming is not None:
                    await resuming.resumed(plan.system_settings, own_host, name)

        try:
            await self.environment.timeline.within(timeout_s, ready())
        except TimeoutError:
            raise HarnessError(f"{plan.system.name} did not serve within {timeout_s:g} s {when}") from None

    async def _until_whole(self, own_host: Any, declared: Declaration) -> None:
        """Until the system serves after the storm and lacks nothing. Raises HarnessError where it does not in time."""
        plan, timeline, facts = self.plan, self.environment.timeline, self.facts
        timeout_s = max(RECOVERY_TIMEOUT_S, (declared.recovers_within_s or 0.0) - plan.scenario.recovery_s)
        until_ns = timeline.now_ns() + round(timeout_s * 1e9)
        await self._until_ready(own_host, AFTER_THE_STORM, timeout_s)
        facts.serves_ns = timeline.now_ns()
        if not isinstance(plan.system, Restoring):
            return
        restoring: Restoring[Any] = plan.system

        async def restored() -> None:
            for name in plan.workload.names:
                while (lack := await restoring.lacking(plan.system_settings, own_host, name)) is not None:
                    if lack.name not in declared.restores:
                        more = "; a system declares what it restores with meanings"
                        raise HarnessError(unknown("lack", lack.name, declared.restores, more=more))
                    facts.lack = lack
                    await timeline.sleep(RESTORED_EVERY_S)
            facts.lack = None

        try:
            await timeline.within(max(0.0, (until_ns - timeline.now_ns()) / 1e9), restored())
        except TimeoutError:
            if facts.lack is None:
                # It did not even show what it lacks.
                facts.serves_ns = None
            found = "it does not show what it lacks" if facts.lack is None else facts.lack.because
            raise HarnessError(f"{plan.system.name} was not whole {timeout_s:g} s {AFTER_THE_STORM}: {found}") from None

    async def _set_apart(self, own_host: Any, damaged: frozenset[str]) -> None:
        """What of the system has to serve without nodes that are damaged for good, if the system says that at all."""
        plan, timeline = self.plan, self.environment.timeline
        if not isinstance(plan.system, Separable):
            return
        separable: Separable[Any] = plan.system

        async def serves() -> bool:
            for name in plan.workload.names:
                if not await separable.serves_without(plan.system_settings, own_host, name, damaged):
                    return False
            return True

        try:
            if not await timeline.within(APART_TIMEOUT_S, serves()):
                return
            self.facts.lack = None
            if self.facts.serves_ns is None:
                self.facts.serves_ns = timeline.now_ns()
        except TimeoutError:
            pass
        self.facts.apart = tuple(sorted(damaged))

    def _storm(self) -> Generator:
        plan, scenario = self.plan, self.plan.scenario
        seed = Seed(scenario.seed)
        assert plan.workload.generator is not None
        load = plan.workload.generator(plan.workload_settings, seed.child("workload"), scenario.concurrency)
        if scenario.rate:
            load = stagger(1 / scenario.rate, load, seed=seed.child("stagger"))
        load = time_limit(scenario.time_limit_s, load)
        if scenario.operations:
            load = picked(picked_numbers(scenario.operations), load)
        load = clients(load)
        if plan.nemesis_generator is None:
            return load
        return any_of(load, nemesis(plan.nemesis_generator(self.environment.timeline.now_ns())))

    def _final(self, nodes: tuple[NodeSpec, ...]) -> Generator:
        plan, scenario = self.plan, self.plan.scenario
        replicas = tuple(node.name for node in nodes if node.replica)
        seed = Seed(scenario.seed).child("final")
        assert plan.workload.final_generator is not None
        return clients(plan.workload.final_generator(plan.workload_settings, seed, scenario.concurrency, replicas))

    async def _operate(self, generator: Generator, nemesis_client: Nemesis | None, concurrency: int) -> None:
        plan = self.plan
        hosts = [self.environment.client_host(name) for name in client_names(concurrency)]

        def client_of(process: int) -> Client:
            thread = process % concurrency
            name = strand_of(plan.workload, thread, concurrency)
            client = plan.system.client(name, plan.system_settings, hosts[thread], process)
            return StrandClient(name, client) if plan.workload.strands else client

        interpreted = await run_operations(
            generator,
            client_factory=client_of,
            nemesis=nemesis_client,
            timeline=self.environment.timeline,
            record=self._record,
            concurrency=concurrency,
            operation_timeout_s=OPERATION_TIMEOUT_S,
            first_process=self.next_process,
            show=self.progress,
        )
        self.next_process = interpreted.next_process
        for crash in interpreted.crashes[:CRASHES_SHOWN]:
            self.facts.reasons.append(f"the harness failed in an operation: {crash}")

    def _record(self, operation: Operation) -> None:
        self.recorder.operation(operation._replace(value=None) if operation.process == NEMESIS else operation)
        if operation.process != NEMESIS and operation.type != "invoke":
            self.reported.completed(operation)

    def _record_nemesis(self, row: FaultRow) -> None:
        self.faults.append(row)
        self.recorder.fault(row)
        self.reported.struck(row)
