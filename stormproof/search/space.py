"""What storms are drawn from: the choices that a system and its faults leave open.

A storm draws which kinds of faults it has at all (swarm testing: a fault that is always there hides those that it
masks), what the clients do, the deployment of the system, settings among the values that this deployment and the
workload give for exploring, the load, and the lengths.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from harness.errors import UsageError
from harness.record.scenario import DRAWN, NEAR, SIMULATED, Scenario, SettingValue
from harness.system import Declaration
from nemesis.asking import ASKING
from nemesis.cluster import Cluster
from nemesis.impair import with_drawn_amounts
from nemesis.shape import Shape
from nemesis.target import Group, MachineOf, Nodes, One, Role, Target
from nemesis.vocabulary import EVERYBODY, IT, Vocabulary
from stormproof.session import registry

UNUSUAL_SETTINGS = (0, 1, 2, 2, 3, 4)
"""How many settings of the system are not the usual ones, or sets of them that go together: with many at once it is
easily the storm that is unusual."""
UNUSUAL_SETTINGS_OF_WORKLOAD = (0, 1, 1, 2)
"""The same of the workload, whose settings are few."""
KINDS_AT_ONCE = (1, 2, 3, 3, 4, 4, 6)
"""How many packages of faults a storm draws from. With all of them, each hides what the others could show."""
NEAR_SHARE = 0.75
"""How often hosts are near each other, so that a system may be quick to act."""
WEIGHTS = {
    "power": 6.0,
    **dict.fromkeys(("kill", "partition"), 4.0),
    **dict.fromkeys(("pause",), 3.0),
    **dict.fromkeys(("flapping-links", "held-links", "links", "restarts"), 2.0),
    **dict.fromkeys(("disk-damage", "misdirected-writes", "strobe"), 0.5),
}
"""Package of faults -> how likely a storm draws from it, 1 for all others: without any that takes nodes from each
other, nobody has to take over, and the rest is noise."""
LATER_WORKLOADS = 0.5
"""How much rarer clients do what the system lists later: as the place in its list to the power of minus this."""
RATES = (10.0, 25.0, 50.0, 100.0)
FEWEST_OPERATIONS = 200
"""How many operations a storm should have: with fewer, it proves nothing."""
CONCURRENCIES = (2, 5, 10, 20)
CROWDS = (100, 300)
CROWD_SHARE = 0.02
"""The share of storms whose operations are shared by a crowd of clients."""
SELDOM_SHARE = 0.1
"""How often a storm has settings that are drawn seldom."""
CALM_S, NEAR_CALM_S = 20.0, 4.0
"""The calm before the final reads, in which every replica must be whole; where hosts are near each other that is
sooner."""
LIVENESS_SHARE = 0.3
"""How often progress is demanded of a quorum after the storm."""
THE_NODE = Role(IT)
"""The node that reached the point."""
MOST_TRIES = 50


@dataclass(frozen=True, kw_only=True)
class Tempo:
    """How long a storm lasts without its liveness phase, and how much strikes in it."""

    shortest_s: float
    longest_s: float
    motifs_a_second: float
    """The mean number of motifs in a second."""
    at_own_pace: bool = False
    """Whether the system waits as long as it does for its users."""

    def storm_s(self, draw: random.Random) -> float:
        return round(math.exp(draw.uniform(math.log(self.shortest_s), math.log(self.longest_s))), 1)


BUSY = Tempo(shortest_s=5.0, longest_s=24.0, motifs_a_second=0.8)
QUIET = Tempo(shortest_s=20.0, longest_s=50.0, motifs_a_second=0.1)
"""What takes time without faults to show, as they excuse nearly every delay."""
LIVE = Tempo(shortest_s=45.0, longest_s=90.0, motifs_a_second=0.12)
"""The tempo in real time: a cluster needs time to start, to notice that a node is away, and to agree on another."""
UNHURRIED = Tempo(shortest_s=30.0, longest_s=90.0, motifs_a_second=0.15, at_own_pace=True)
"""The tempo for what a system shows only while its periods have their own proportion to links and disks."""
QUIET_SHARE = 0.12
UNHURRIED_SHARE = 0.2


def drawn_tempo(environment: str, draw: random.Random, *, has_own_pace: bool) -> Tempo:
    if environment != SIMULATED:
        return LIVE
    tempi, shares = (QUIET, UNHURRIED), (QUIET_SHARE, UNHURRIED_SHARE if has_own_pace else 0.0)
    return draw.choices((*tempi, BUSY), weights=(*shares, 1 - sum(shares)))[0]


def drawn_concurrency(workload: str, draw: random.Random) -> int:
    return max(draw.choice(CONCURRENCIES), registry.least_clients(workload))


@dataclass(frozen=True, kw_only=True)
class Space:
    """All storms of one system; what is given by name is not drawn."""

    system: str
    workload: str | None = None
    mutant: str | None = None
    settings: Mapping[str, SettingValue]
    """Those that are the same in every storm."""
    nemesis: tuple[str, ...] = ()
    """Packages of faults of which storms are made; empty: of all."""
    environment: str = SIMULATED

    @property
    def is_simulated(self) -> bool:
        return self.environment == SIMULATED

    @property
    def fixed_settings(self) -> dict[str, SettingValue]:
        """Settings that are the same in every storm, the workload among them; without the planted bug and packages of
        faults."""
        workload = {} if self.workload is None else {"workload": self.workload}
        return {**workload, **dict(sorted(self.settings.items()))}

    def scenario(self, seed: int, tempo: Tempo, draw: random.Random) -> Scenario:
        """A storm without faults: world, settings, load."""
        is_demanding = draw.random() < LIVENESS_SHARE
        storm_s = tempo.storm_s(draw)
        workload = self.workload or self._drawn_workload(draw)
        own_pace = self._declaration({}).own_pace if tempo.at_own_pace else {}
        near = draw.random() < NEAR_SHARE or (tempo.at_own_pace and registry.workload(workload).timed)
        # What works on one message after the other falls behind on far links, and in a long storm by more than may be.
        world = NEAR if near and self.is_simulated else DRAWN
        settings = {**self.drawn_settings(workload, world, draw), **own_pace, **self.settings}
        liveness_s = self._declaration(settings).progresses_within_s if is_demanding else 0.0
        return Scenario(
            system=self.system,
            workload=workload,
            environment=self.environment,
            settings=settings,
            mutant=self.mutant,
            concurrency=drawn_concurrency(workload, draw),
            rate=drawn_rate(storm_s, draw),
            time_limit_s=storm_s + liveness_s,
            liveness_s=liveness_s,
            recovery_s=NEAR_CALM_S if world == NEAR and not own_pace else CALM_S,
            seed=seed,
            world=world,
        )

    def varied(self, scenario: Scenario, draw: random.Random) -> Scenario:
        """The storm as it is, but for few that have a crowd of clients, most of them idle, or settings that are drawn
        seldom."""
        if draw.random() < CROWD_SHARE and self.is_simulated:
            return replace(scenario, concurrency=draw.choice(CROWDS))
        seldom = self._declaration(scenario.settings).explored_seldom
        if draw.random() >= SELDOM_SHARE or not seldom:
            return scenario
        chosen = draw.choice(seldom)
        agrees = all(self.settings.get(name, value) == value for name, value in chosen.items())
        drawn = {**scenario.settings, **chosen}
        return replace(scenario, settings=drawn) if agrees and self.is_possible(scenario.workload, drawn) else scenario

    @property
    def has_own_pace(self) -> bool:
        return bool(self._declaration({}).own_pace)

    def _drawn_workload(self, draw: random.Random) -> str:
        """A workload. One that is served by more groups of nodes is more likely, because more can go wrong. Workloads
        served by the same groups share that probability."""
        declared = self._declaration({})
        kinds: dict[tuple[str, ...], list[str]] = {}
        for workload in self._served():
            kinds.setdefault(declared.serving.get(workload, declared.groups), []).append(workload)
        weights = {
            workload: max(1, len(groups)) * weight
            for groups, workloads in kinds.items()
            for workload, weight in zip(workloads, _shares(len(workloads)), strict=True)
        }
        return draw.choices([*weights], weights=[*weights.values()])[0]

    def _served(self) -> tuple[str, ...]:
        """The system's workloads that can be run with the given settings."""
        unserved = self._declaration({}).unserved
        return tuple(workload for workload in registry.system(self.system).workloads if workload not in unserved)

    def _declaration(self, settings: Mapping[str, SettingValue]) -> Declaration:
        """The declaration of the cluster with these settings and the given ones."""
        system, typed = registry.configured_system(self.system, {**settings, **self.settings})
        declared: Declaration = system.cluster(typed)
        return declared

    def drawn_settings(self, workload: str, world: str, draw: random.Random) -> dict[str, SettingValue]:
        """A deployment, and settings of system and workload that go with it; usually the usual ones."""
        return self.settings_within(self._drawn_deployment(workload, draw), workload, world, draw)

    def settings_within(
        self, deployment: Mapping[str, SettingValue], workload: str, world: str, draw: random.Random
    ) -> dict[str, SettingValue]:
        """The deployment's, and others that go with it."""
        declared, of_workload = self._declaration(deployment), _each_alone(registry.workload(workload).explored)
        of_system = [*_each_alone(declared.explored), *((together,) for together in declared.explored_together)]
        paces = {name: draw.choice(values) for name, values in sorted(declared.paces.items())} if world == NEAR else {}
        usual = {**paces, **deployment}
        for _ in range(MOST_TRIES):
            unusual = [
                *_drawn(of_system, draw.choice(UNUSUAL_SETTINGS), draw),
                *_drawn(of_workload, draw.choice(UNUSUAL_SETTINGS_OF_WORKLOAD), draw),
            ]
            drawn = {name: value for settings in (usual, *unusual) for name, value in settings.items()}
            if self.is_possible(workload, drawn):
                return drawn
        return usual

    def _drawn_deployment(self, workload: str, draw: random.Random) -> Mapping[str, SettingValue]:
        """One that the workload can be run in, and that does not contradict what is given."""
        deployments = self._declaration({}).deployments or ({},)
        for _ in range(MOST_TRIES):
            drawn = draw.choice(deployments)
            agrees = all(self.settings.get(name, value) == value for name, value in drawn.items())
            if agrees and self.is_possible(workload, drawn):
                return drawn
        return {}

    def deployment_of(self, scenario: Scenario) -> Mapping[str, SettingValue]:
        """As much of its settings as may have been drawn before the others, which could be drawn within it."""
        deployments = self._declaration({}).deployments
        agreeing = {frozenset(one.items()): one for one in deployments if one.items() <= scenario.settings.items()}

        def others(deployment: Mapping[str, SettingValue]) -> int:
            explored = self._declaration(deployment).explored
            return sum(name not in explored for name in scenario.settings.keys() - deployment.keys())

        return min(agreeing.values(), key=lambda one: (others(one), -len(one)), default={})

    def require_possible(self) -> None:
        """Raises UsageError for a mutant, a workload or settings that the system does not have, and for a system that
        the environment cannot run."""
        system = registry.system(self.system)
        workload = self.workload or (*self._served(), *system.workloads)[0]
        scenario = Scenario(
            system=self.system,
            workload=workload,
            environment=self.environment,
            mutant=self.mutant,
            settings=self.settings,
        )
        registry.environment_of(scenario, registry.resolve(scenario))
        for package in self.nemesis:
            registry.require_known("nemeses", package)

    def is_possible(self, workload: str, settings: Mapping[str, SettingValue]) -> bool:
        """Whether system and workload can be set so, with what is given."""
        every = {**settings, **self.settings}
        try:
            system, judged_by = registry.system(self.system), registry.workload(workload)
            of_system = registry.typed_settings(system.settings_type, every)
            advised = registry.advised(system, of_system, judged_by)
            of_workload = registry.typed_settings(judged_by.settings_type, {**advised, **every})
            registry.require_served(workload, system.cluster(of_system))
            registry.require_fitting(system, of_system, of_workload)
        except UsageError:
            return False
        return True


def drawn_rate(storm_s: float, draw: random.Random) -> float:
    return draw.choice([rate for rate in RATES if rate * storm_s >= FEWEST_OPERATIONS] or RATES[-1:])


def _shares(count: int) -> list[float]:
    """The shares of this number of workloads, in the order in which a system lists them."""
    weights = [place**-LATER_WORKLOADS for place in range(1, count + 1)]
    return [weight / sum(weights) for weight in weights]


Choice = Sequence[Mapping[str, SettingValue]]
"""Sets of settings of which at most one is drawn."""


def _each_alone(explored: Mapping[str, Sequence[SettingValue]]) -> list[Choice]:
    return [[{name: value} for value in values] for name, values in sorted(explored.items())]


def _drawn(choices: Sequence[Choice], count: int, draw: random.Random) -> list[Mapping[str, SettingValue]]:
    return [draw.choice(choice) for choice in draw.sample(choices, min(len(choices), count))]


@dataclass(frozen=True, kw_only=True)
class Faults:
    """The shapes that strike one storm, by package, and the targets they can be aimed at."""

    packages: Mapping[str, tuple[tuple[float, Shape], ...]]
    every: Mapping[str, tuple[tuple[float, Shape], ...]]
    """The shapes of all packages, also those that this storm does not draw from, but a motif may ask for."""
    targets: tuple[Target, ...]
    points: tuple[str, ...] = ()
    """Points at which a fault can strike, instead of at a time."""
    cluster: Cluster
    """A cluster with every role played, for shapes to be tried."""

    def shape(self, draw: random.Random) -> tuple[str, Shape]:
        """The package that it comes from, and a shape of it, which says how badly it strikes."""
        package = draw.choice(sorted(self.packages))
        weights, shapes = zip(*self.packages[package], strict=True)
        (shape,) = draw.choices(shapes, weights=weights)
        return package, with_drawn_amounts(shape, draw)

    def of_one(self, names: Sequence[str], target: Target, draw: random.Random) -> tuple[str, Shape] | None:
        """A shape of one of these packages at this target; None where none can be aimed there."""
        shapes = [
            (name, aimed_at(shape, target))
            for name in names
            for _, shape in self.every.get(name, ())
            if is_aimable(shape) and fits(aimed_at(shape, target), self.cluster)
        ]
        if not shapes:
            return None
        name, shape = draw.choice(shapes)
        return name, with_drawn_amounts(shape, draw)

    def aimed(self, target: Target, draw: random.Random) -> tuple[str, Shape]:
        """A shape at a target of one's own choice; another one where none drawn can be aimed."""
        for _ in range(MOST_TRIES):
            package, shape = self.shape(draw)
            if is_aimable(shape) and fits(aimed_at(shape, target), self.cluster):
                return package, aimed_at(shape, target)
        return package, shape


def is_aimable(shape: Shape) -> bool:
    """What asks the system is for those alone whom it can let go."""
    has_target = is_dataclass(shape) and any(field.name == "target" for field in fields(shape))
    return has_target and shape.kind not in ASKING


def aims_at_it(shape: Any) -> bool:
    """At the node that reached the point, so that there must be a point."""
    return is_aimable(shape) and shape.target == THE_NODE


def aimed_at(shape: Any, target: Target) -> Shape:
    aimed: Shape = replace(shape, target=target)
    return aimed


def faults_of(
    declaration: Declaration,
    vocabulary: Vocabulary,
    applicable: frozenset[str],
    names: Sequence[str] = (),
    draw: random.Random | None = None,
) -> Faults:
    """All shapes that fit, of the packages with these names (none: of all) whose kinds can be applied; with `draw`,
    those of some kinds only, at least one."""
    packages = {}
    cluster = _whole_cluster(declaration, vocabulary)
    for name in sorted(names) or registry.names("nemeses"):
        package = registry.find("nemeses", name)(declaration)
        if applicable.issuperset(package.fault.split("+")):
            shapes = tuple(each for each in package.shapes if fits(each[1], cluster))
            packages.update({name: shapes} if shapes else {})
    every = packages
    if draw is not None:
        count = min(len(packages), draw.choice(KINDS_AT_ONCE))
        packages = {name: packages[name] for name in _sample(sorted(packages), count, draw)}
    targets = _targets(declaration, vocabulary)
    return Faults(
        packages=packages, every=every, targets=targets, points=tuple(sorted(declaration.points)), cluster=cluster
    )


def _sample(names: Sequence[str], count: int, draw: random.Random) -> list[str]:
    """Different ones, by their weights."""
    return sorted(names, key=lambda name: draw.random() ** (1 / WEIGHTS.get(name, 1.0)), reverse=True)[:count]


def fits(shape: Shape, cluster: Cluster) -> bool:
    """Whether it finds nodes or links there."""
    return shape.strike(cluster, random.Random(0)) is not None


def _whole_cluster(declaration: Declaration, vocabulary: Vocabulary) -> Cluster:
    """Every role is played, and nobody is down."""
    roles = {role: vocabulary.groups[group][:1] for role, group in declaration.roles.items()}
    roles[IT] = vocabulary.nodes[:1]
    return Cluster(groups=vocabulary.groups, roles=roles, machines=vocabulary.machines)


def _targets(declaration: Declaration, vocabulary: Vocabulary) -> tuple[Target, ...]:
    """Roles, nodes, one of a group, groups, machines: where sequences of faults are aimed. Roles are as many as nodes,
    for with them most depends on one node."""
    roles = tuple(Role(role) for role in declaration.roles)
    on_machines: tuple[Target, ...] = (*roles, One(EVERYBODY)) if declaration.shares_machines else ()
    return (
        *(roles * max(1, len(vocabulary.nodes) // max(1, len(roles)))),
        *(Nodes((node,)) for node in vocabulary.nodes),
        *(One(group) for group in declaration.groups),
        *(Group(group) for group in declaration.groups),
        *map(MachineOf, on_machines),
    )
