"""Systems, workloads, nemeses and environments by name, from entry points, which any package may add.

The packages of faults that come with Stormproof are those of `nemesis/package.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Literal

from harness.abilities import Advising, Outfitted, Particular, Preferring, Shared, mutants_of
from harness.administration import ADMINISTER
from harness.bounds import fitting, quote
from harness.environments.impairment import INSTEAD
from harness.errors import UsageError
from harness.nearest import unknown
from harness.program import Command, Program
from harness.record.scenario import NONE, Scenario, SettingValue

if TYPE_CHECKING:
    from harness.environments.kind import EnvironmentKind
    from harness.system import Declaration, System
    from harness.workload import Workload
    from nemesis.package import Package
    from nemesis.periodic import Beat
    from nemesis.schedule_file import Written
    from nemesis.vocabulary import Vocabulary

Kind = Literal["systems", "workloads", "nemeses", "environments"]
SIDE_BY_SIDE = "+"
"""Stands between the names of workloads that run at once."""
USUAL = "log"
"""The workload of a run that names none, of systems that serve it."""
LEAST_CLIENTS = 2
"""The fewest clients of a workload that runs beside others: one that writes and one that reads."""
_SINGULAR: Mapping[Kind, str] = {
    "systems": "system",
    "workloads": "workload",
    "nemeses": "nemesis",
    "environments": "environment",
}


@cache
def _points(kind: Kind) -> Mapping[str, EntryPoint]:
    """The entry points of a kind. They are cached, because what is installed does not change while a process lives, and
    looking takes milliseconds."""
    return {point.name: point for point in reversed(tuple(entry_points(group=f"stormproof.{kind}")))}


def names(kind: Kind) -> tuple[str, ...]:
    return tuple(sorted({*_own(kind), *_points(kind)}))


def _own(kind: Kind) -> Mapping[str, Any]:
    """What is found by its name without an entry point."""
    if kind != "nemeses":
        return {}
    from nemesis.package import PACKAGES

    return PACKAGES


def find(kind: Kind, name: str) -> Any:
    """The object of that name. Raises UsageError with the known names."""
    if name in _own(kind):
        return _own(kind)[name]
    point = _points(kind).get(name)
    if point is None:
        raise _unknown(kind, name)
    return point.load()


def require_known(kind: Kind, name: str) -> None:
    """Whether there is something of this name; the module of an entry point is not imported. Raises UsageError."""
    if name not in names(kind):
        raise _unknown(kind, name)


def _unknown(kind: Kind, name: str) -> UsageError:
    if kind != "nemeses":
        return UsageError(unknown(_SINGULAR[kind], name, names(kind)))
    from nemesis.sentence import EXAMPLE

    known = (*names(kind), NONE)
    return UsageError(unknown(_SINGULAR[kind], name, known, more=f", or a sentence such as '{EXAMPLE}'"))


def system(name: str) -> System[Any]:
    """Raises UsageError where there is none of this name, or a package that it needs is not installed."""
    try:
        found: System[Any] = find("systems", name)
        return found
    except ModuleNotFoundError as error:
        package, wanted = _package_of(name), f"{name} needs the Python module {error.name}, which is not installed"
        raise UsageError(f"system {wanted}: pip install {package}") from None


def configured_system(name: str, pairs: Mapping[str, SettingValue]) -> tuple[System[Any], Any]:
    """A system, and its settings from those of the pairs that it declares. Raises UsageError."""
    found = system(name)
    return found, typed_settings(found.settings_type, pairs)


def usual_workload(name: str) -> str:
    """The workload of a run that names none. Raises UsageError as `system` does."""
    chosen = system(name)
    return chosen.usual_workload if isinstance(chosen, Preferring) else chosen.workloads[0]


def _package_of(system: str) -> str:
    """What pip has to install for a system whose module lacks another one."""
    distribution = _points("systems")[system].dist
    if distribution is None:
        return "what it needs"
    extras = distribution.metadata.get_all("Provides-Extra") or ()
    return f"'{distribution.name}[{system}]'" if system in extras else f"what {distribution.name} requires"


def workload(name: str) -> Workload:
    """The workload of this name, or several side by side: `log+pop`. Raises UsageError."""
    if SIDE_BY_SIDE not in name:
        found: Workload = find("workloads", name)
        return found
    from workloads.combined import combined

    return combined([find("workloads", strand) for strand in name.split(SIDE_BY_SIDE)])


def workloads() -> Mapping[str, Workload]:
    """All of them by name, imported, and with them every checker."""
    return {name: workload(name) for name in names("workloads")}


def vocabulary(system: System[Any], settings: Any, mutant: str | None = None) -> Vocabulary:
    """The names that sentences may use in this system. Raises UsageError where it declares what cannot be."""
    from nemesis.vocabulary import vocabulary_of

    return vocabulary_of(system.cluster(settings), system.nodes(settings, mutant))


def _is_sentence(nemesis: str) -> bool:
    return " " in nemesis.strip() and nemesis not in names("nemeses")


def environment(name: str) -> EnvironmentKind:
    """Raises UsageError with the known names."""
    found: EnvironmentKind = find("environments", name)
    return found


def environment_of(scenario: Scenario, parts: Parts) -> EnvironmentKind:
    """The kind of environment that the scenario runs in.

    Raises UsageError where it is unknown, or cannot apply a fault that is asked for, or not at a point, or cannot run
    the system's programs or clients, or has no machine for a node, or a sentence cannot be kept in this storm. (A
    stored run is judged all the same: its faults were what they were.)
    """
    from harness.environments.kind import LendsClocks
    from nemesis.able import require_able, require_of_clients
    from nemesis.periodic import Beat

    found = environment(scenario.environment)
    _require_runnable(scenario, parts, found)
    if isinstance(parts.system, Outfitted):
        parts.system.require_clients(parts.system_settings, scenario.environment)
    for package in parts.packages:
        require_able(package, scenario.system, parts.declaration, parts.vocabulary)
        if isinstance(package, Beat):
            package.require_kept()
            package.require_strikes(scenario.time_limit_s - scenario.liveness_s)
        require_of_clients(package)
        _require_applicable(package, scenario.environment, found)
        if package.waits_for_points and not found.has_moments:
            raise UsageError(
                f"environment {scenario.environment!r} cannot strike when a point is reached "
                f"(nemesis {package.name!r}): that needs the simulator; leave the trigger out or --environment"
            )
    if scenario.capture and not found.has_packets:
        raise UsageError(
            f"environment {scenario.environment!r} has no packets that could be captured; leave --capture out, or say "
            "--environment docker or ssh"
        )
    nodes = parts.system.nodes(parts.system_settings, scenario.mutant)
    found.require_placed(nodes, scenario.inventory)
    if scenario.real_clock:
        if not isinstance(found, LendsClocks):
            raise UsageError(
                f"environment {scenario.environment!r} has no machines whose own clocks could be set; leave "
                "--real-clock out, or say --environment ssh"
            )
        found.require_lent_clocks(nodes, scenario.inventory)
    return found


def can_apply(environment_name: str, package: Package | Beat | Written) -> bool:
    """Whether the environment has all kinds of faults of a package, and reaches all whom it strikes."""
    from nemesis.able import strikes_clients

    kind = environment(environment_name)
    return _applies(kind, package.fault) and (kind.reaches_clients or not strikes_clients(package))


def _applies(kind: EnvironmentKind, fault: str) -> bool:
    """Administrators need nothing of it."""
    return (kind.faults | {ADMINISTER}).issuperset(fault.split("+"))


def _require_applicable(package: Package | Beat | Written, environment: str, kind: EnvironmentKind) -> None:
    """Raises UsageError for a kind of fault that the environment has not, and where it cannot strike clients."""
    from nemesis.able import strikes_clients

    if not kind.reaches_clients and strikes_clients(package):
        raise UsageError(
            f"environment {environment!r} cannot strike single clients (nemesis {package.name!r}): they are threads of "
            "one process there; that needs the simulator: leave clients out, or --environment"
        )
    if _applies(kind, package.fault):
        return
    kinds = package.fault.split("+")
    shapes = dict.fromkeys(INSTEAD[one] for one in kinds if one in INSTEAD and one not in kind.faults)
    instead = f"; where a node is one process, say {' and '.join(map(repr, shapes))} instead" if shapes else ""
    raise UsageError(
        f"environment {environment!r} cannot apply {package.fault!r} (nemesis {package.name!r}){instead}; "
        f"it can apply: {', '.join(sorted(kind.faults))}"
    )


def _require_runnable(scenario: Scenario, parts: Parts, kind: EnvironmentKind) -> None:
    """Raises UsageError for nodes whose programs the environment cannot run; names those that can."""
    nodes = parts.system.nodes(parts.system_settings, scenario.mutant)
    upgrading = next((package.name for package in parts.packages if "upgrade" in package.fault.split("+")), None)
    if upgrading is not None and all(node.upgraded is None for node in nodes):
        raise UsageError(
            f"nemesis {upgrading!r} upgrades nodes, but {scenario.system} has no other version of any, as it is set; "
            "let nodes begin as an older one, or leave the nemesis out"
        )
    for node in nodes:
        if not isinstance(node.program, kind.programs):
            able = [
                name
                for name in names("environments")
                if all(isinstance(node.program, environment(name).programs) for node in nodes)
            ]
            raise UsageError(
                f"environment {scenario.environment!r} cannot run {scenario.system}: its node {node.name} is "
                f"{_program_in_words(node.program)}; it can be run in: {', '.join(able) or 'none of those installed'}"
            )


def _program_in_words(program: Program) -> str:
    return f"a command ({program.argv[0]})" if isinstance(program, Command) else f"the Python program {program.main}"


def parse_setting(text: str) -> tuple[str, SettingValue]:
    """`key=value`, the value read as true/false, a whole number, a number, or text. Raises UsageError."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"a setting reads key=value, got {quote(text)}")
    if not value.strip():
        raise UsageError(f"a setting reads key=value, the value of {quote(key.strip())} is empty")
    return key.strip(), _value(value.strip())


def _value(text: str) -> SettingValue:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parts:
    """What a scenario's names stand for, with their typed settings."""

    system: System[Any]
    system_settings: object
    declaration: Declaration
    vocabulary: Vocabulary
    workload: Workload
    workload_settings: object
    packages: tuple[Package | Beat | Written, ...]
    nemesis_settings: tuple[Any, ...]
    """The settings of each package."""


def resolve(scenario: Scenario) -> Parts:
    """Look everything up and check it. Raises UsageError for unknown names, settings, mutants, wrong values, or a
    setting of the workload that a run cannot make true."""
    require_names(scenario)
    chosen_system, chosen_workload = system(scenario.system), workload(scenario.workload)
    _require_run(chosen_workload, scenario, chosen_system)
    system_settings = typed_settings(chosen_system.settings_type, scenario.settings)
    planted = mutants_of(chosen_system, system_settings)
    if scenario.mutant is not None and scenario.mutant not in planted:
        raise UsageError(unknown("mutant", scenario.mutant, planted, of=f" of {scenario.system}"))
    if chosen_workload.strands:
        system_settings = _shared(chosen_system, system_settings, chosen_workload, scenario.concurrency)
    declaration = chosen_system.cluster(system_settings)
    for name in chosen_workload.names:
        require_served(name, declaration)
    words = vocabulary(chosen_system, system_settings, scenario.mutant)
    packages = _packages(scenario.nemesis, declaration, words) + _schedule(scenario, words)
    types_ = [chosen_system.settings_type, chosen_workload.settings_type, *(p.settings_type for p in packages)]
    known = {field.name for type_ in types_ for field in dataclasses.fields(type_)}
    for name in sorted(set(scenario.settings) - known):
        raise UsageError(unknown("setting", name, sorted(known)))
    given = {**advised(chosen_system, system_settings, chosen_workload), **scenario.settings}
    workload_settings = typed_settings(chosen_workload.settings_type, given)
    chosen_workload.require_runnable(workload_settings)
    for one in chosen_workload.strands or (chosen_workload,):
        require_fitting(chosen_system, system_settings, typed_settings(one.settings_type, given))
    return Parts(
        system=chosen_system,
        system_settings=system_settings,
        declaration=declaration,
        vocabulary=words,
        workload=chosen_workload,
        workload_settings=workload_settings,
        packages=packages,
        nemesis_settings=tuple(typed_settings(package.settings_type, scenario.settings) for package in packages),
    )


def _require_run(workload: Workload, scenario: Scenario, system: System[Any]) -> None:
    """Raises UsageError for a workload that the system does not serve, or that nobody can run."""
    for name in workload.names:
        if name not in system.workloads:
            raise UsageError(
                f"{scenario.system} does not serve workload {name!r}; it serves {', '.join(system.workloads)}"
            )
    if workload.generator is None:
        judging = next(one.name for one in (*workload.strands, workload) if one.generator is None)
        raise UsageError(f"workload {judging!r} judges histories and cannot be run: it has no generator")


def least_clients(workload: str) -> int:
    """So many clients a run of this workload needs, which may be several with `+` between."""
    strands = workload.count("+") + 1
    return LEAST_CLIENTS * strands if strands > 1 else 1


def _shared(system: System[Any], settings: object, workload: Workload, concurrency: int) -> Any:
    """The system's settings with which strands keep out of each other's way. Raises UsageError."""
    least = least_clients(workload.name)
    if concurrency < least:
        raise UsageError(
            f"workload {workload.name} needs {LEAST_CLIENTS} clients for each of its workloads; set --concurrency to "
            f"at least {least}, got {concurrency}"
        )
    if not isinstance(system, Shared):
        raise UsageError(
            f"{system.name} cannot serve several workloads at once, as it has no places of its own for each; run "
            f"them one after the other: {', '.join(workload.names)}"
        )
    return system.shared(settings, workload.names)


def require_served(workload: str, declaration: Declaration) -> None:
    """Raises UsageError for a workload that the system cannot run as it is set."""
    why = declaration.unserved.get(workload)
    if why is not None:
        raise UsageError(f"workload {workload!r} cannot be run with these settings: {why}")


def require_fitting(system: System[Any], settings: object, workload_settings: object) -> None:
    """Raises UsageError for settings of a workload that do not go with those of the system, where the system says so
    (`harness.abilities.Particular`)."""
    if isinstance(system, Particular):
        system.require_fitting(settings, workload_settings)


def advised(system: System[Any], settings: object, workload: Workload) -> dict[str, SettingValue]:
    """What the system says of the workload's settings, where it does (`harness.abilities.Advising`)."""
    if not isinstance(system, Advising):
        return {}
    return {name: value for strand in workload.names for name, value in system.advised(settings, strand).items()}


def require_names(scenario: Scenario) -> None:
    """Raises UsageError for a system, workload or nemesis that there is not; imports no module of any."""
    require_known("systems", scenario.system)
    for name in scenario.workload.split(SIDE_BY_SIDE):
        require_known("workloads", name)
    _require_nemeses(scenario.nemesis)


def _require_nemeses(nemeses: Sequence[str]) -> None:
    """Raises UsageError, also for nothing where a name should be: that is no way to ask for a run without faults."""
    named = ",".join(nemeses)
    if not all(name.strip() for name in nemeses):
        raise UsageError(
            f"empty nemesis in {quote(named)}: name faults (stormproof list nemeses); for a run without faults "
            f"say {NONE}"
        )
    if NONE in nemeses and len(nemeses) > 1:
        raise UsageError(f"{NONE} means no faults and stands alone, got {quote(named)}; leave it or the others out")
    for name in nemeses:
        if name != NONE and not _is_sentence(name):
            require_known("nemeses", name)


def _packages(nemeses: Sequence[str], declaration: Declaration, words: Vocabulary) -> tuple[Package | Beat, ...]:
    """Packages by name, beats by sentence. Raises UsageError."""
    from nemesis.sentence import parse

    packages = tuple(
        parse(name, words) if _is_sentence(name) else find("nemeses", name)(declaration)
        for name in nemeses
        if name != NONE
    )
    for position, package in enumerate(packages):
        if package.name in (earlier.name for earlier in packages[:position]):
            named = ",".join(nemeses)
            raise UsageError(f"nemesis {package.name} is named twice in {quote(named)}; name each once")
    return packages


def _schedule(scenario: Scenario, words: Vocabulary) -> tuple[Written, ...]:
    """The scenario's schedule, if it has one. Raises UsageError."""
    from nemesis.schedule_file import read_schedule

    if not scenario.schedule:
        return ()
    return (read_schedule(scenario.schedule, words, scenario.time_limit_s - scenario.liveness_s),)


def typed_settings(type_: type, pairs: Mapping[str, SettingValue]) -> Any:
    """An instance of a settings dataclass from those of the pairs that it declares. Raises UsageError."""
    values = {
        field.name: fitting(type_, field.name, pairs[field.name], what=f"setting {field.name}")
        for field in dataclasses.fields(type_)
        if field.name in pairs
    }
    try:
        return type_(**values)
    except (TypeError, ValueError) as error:  # how dataclasses refuse what is missing, or does not go together
        raise UsageError(f"settings cannot be used: {error}") from None
