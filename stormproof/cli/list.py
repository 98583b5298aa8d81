"""`stormproof list`: what can be run, and what was."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.arrow import start_arrow
from harness.bounds import INT64, bounds_of, kind_of, quote
from harness.errors import UsageError
from harness.reading import json_kept
from harness.record.run_directory import SCENARIO, RunDirectory
from harness.record.run_record import RunRecord, read_run_record
from harness.system import Declaration
from stormproof.cli.attribute_docs import meanings_of
from stormproof.cli.console import Console
from stormproof.cli.options import console_of, example
from stormproof.cli.usage import OneOf
from stormproof.session import registry
from stormproof.session.suite_file import load_suite, shipped

if TYPE_CHECKING:
    from harness.workload import Workload

RUNS_SHOWN = 20

EXAMPLES = """
stormproof list
stormproof list mutants
stormproof list shapes
stormproof list points rocketmq
stormproof list settings cmq
stormproof list models
stormproof list runs --runs runs --json
"""

Entry = dict[str, Any]

_ON_DEMAND = ("checks", "invariants", "models", "points", "settings", "shapes", "targets")
_OF_A_SYSTEM = ("invariants", "mutants", "points", "settings", "targets")
_SHOWN_TOGETHER = {"shapes": ["shapes", "targets"]}


@click.command("list", epilog=example(EXAMPLES))
@click.argument(
    "what",
    required=False,
    type=OneOf(
        "kind of list",
        [
            "systems",
            "workloads",
            "checks",
            "models",
            "nemeses",
            "shapes",
            "targets",
            "points",
            "invariants",
            "settings",
            "environments",
            "mutants",
            "suites",
            "runs",
        ],
    ),
)
@click.argument("system", required=False)
@click.option(
    "--runs", type=click.Path(path_type=Path, file_okay=False), default=Path("runs"), show_default=True, metavar="DIR"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(what: str | None, system: str | None, runs: Path, as_json: bool) -> int:
    """Show systems, workloads, nemeses, environments, mutants, suites and past runs; or only one kind of them.

    Shown only when asked for: `checks`, what histories can be judged as by check --workload, and for what; `models`,
    what check --consistency-model can demand of transactions; `shapes`, how faults are written in sentences such as
    'kill one of all every 10 for 5'; `targets`, the names that each system has for them; `points`, moments at which
    faults can strike, as in 'kill it when alter-proposed every 10 for 5'; `invariants`, what a system is judged by at
    every moment of a simulated run, and what it means that one does not hold; and `settings`, what can be set of a
    system with --set, and what it means. Behind mutants, targets, points, invariants and settings the name of a SYSTEM
    shows only its own.
    """
    if system is not None:
        if what not in _OF_A_SYSTEM:
            known = ", ".join(_OF_A_SYSTEM)
            raise UsageError(f"list {what} is not of one system, got {quote(system)}; these are: {known}")
        registry.require_known("systems", system)
    sources: Mapping[str, Callable[[], list[Entry]]] = {
        "systems": _systems,
        "workloads": _workloads,
        "checks": _checks,
        "models": _models,
        "nemeses": _nemeses,
        "shapes": _shapes,
        "targets": _targets,
        "points": lambda: _declared(lambda declaration: declaration.points),
        "invariants": lambda: _declared(_invariants),
        "settings": _settings,
        "environments": lambda: _plugins("environments"),
        "mutants": _mutants,
        "suites": _suites,
        "runs": lambda: past_runs(runs),
    }
    wanted = _SHOWN_TOGETHER.get(what, [what]) if what else [name for name in sources if name not in _ON_DEMAND]
    chosen = {
        name: [entry for entry in sources[name]() if system in (None, entry.get("system", entry.get("name")))]
        for name in wanted
    }
    console = console_of(as_json, False)
    console.result(chosen)
    if not as_json:
        for name, entries in chosen.items():
            _show(name, entries, console)
    return 0


def past_runs(runs: Path) -> list[Entry]:
    """The newest runs first, with their verdicts; None where a run was cut short."""
    found = []
    for path in runs.glob(f"*/*/{SCENARIO}"):
        if path.parent.is_symlink() or path.parents[1].is_symlink():
            continue
        record = _record(path.parent)
        verdict = _json(RunDirectory(path.parent).verdict)
        found.append(
            {
                "directory": str(path.parent),
                "seed": record.scenario.seed if record else None,
                "verdict": verdict.get("verdict"),
                "replay": record.replay if record else None,
            }
        )
    return sorted(found, key=lambda entry: str(entry["directory"]).rpartition("/")[2], reverse=True)


def _record(directory: Path) -> RunRecord | None:
    """None for one that cannot be read; `stormproof check` says why."""
    try:
        return read_run_record(directory)
    except UsageError:
        return None


def _systems() -> list[Entry]:
    entries = _plugins("systems")
    for entry in entries:
        if "problem" not in entry:
            system = registry.system(entry["name"])
            entry |= {"workloads": list(system.workloads), "mutants": len(system.mutants)}
    return entries


def _workloads() -> list[Entry]:
    """Each with the systems that it can be run on; of one that only judges there are none."""
    systems = _systems()
    entries = _plugins("workloads")
    for entry in entries:
        entry["runs on"] = [system["name"] for system in systems if entry["name"] in system.get("workloads", ())]
    return entries


def _mutants() -> list[Entry]:
    return [
        {"name": mutant, "breaks": promise, "system": entry["name"]}
        for entry in _plugins("systems")
        if "problem" not in entry
        for mutant, promise in sorted(registry.system(entry["name"]).mutants.items())
    ]


def _checks() -> list[Entry]:
    return [
        _describe_workload(registry.workload(entry["name"]))
        for entry in _plugins("workloads")
        if "problem" not in entry
    ]


def _describe_workload(workload: Workload) -> Entry:
    settings = workload.settings_type
    return {
        "name": workload.name,
        "about": workload.about,
        "operations": list(workload.functions),
        "anomalies": list(workload.anomalies),
        "settings": {field.name: kind_of(settings, field.name) for field in dataclasses.fields(settings)},
    }


def _models() -> list[Entry]:
    from checkers.transactions.model.lattice import ALIASES, PROMISES, ConsistencyModel

    return [
        {
            "name": model.value,
            "aliases": [alias for alias, of in ALIASES.items() if of is model],
            "about": PROMISES[model].about,
            "implies": [weaker.value for weaker in PROMISES[model].weaker],
            "forbids": list(PROMISES[model].forbids),
            "source": PROMISES[model].source,
        }
        for model in ConsistencyModel
    ]


def _nemeses() -> list[Entry]:
    """Packages as they are of a system that declares nothing: what they do and their settings are the same."""
    return [_described("nemeses", name, lambda package: package(Declaration())) for name in registry.names("nemeses")]


def _shapes() -> list[Entry]:
    from nemesis.grammar import FORMS

    return [{"name": form.whole_text, "fault": form.kind} for form in FORMS]


def _targets() -> list[Entry]:
    """The names that targets may use, by system, with the nodes that its default settings make."""
    entries = []
    for entry in _plugins("systems"):
        if "problem" not in entry:
            words = registry.vocabulary(*registry.configured_system(entry["name"], {}))
            names = {"roles": list(words.roles), "groups": list(words.groups), "nodes": list(words.nodes)}
            entries.append({"name": entry["name"], **names, "acts": list(words.acts)})
    return entries


def _declared(named: Callable[[Declaration], Mapping[str, str]]) -> list[Entry]:
    """What each system declares by name, with its default settings, and what it means."""
    entries = []
    for entry in _plugins("systems"):
        if "problem" not in entry:
            system, settings = registry.configured_system(entry["name"], {})
            declared = named(system.cluster(settings))
            entries += [{"name": name, "about": about, "system": entry["name"]} for name, about in declared.items()]
    return entries


def _invariants(declaration: Declaration) -> Mapping[str, str]:
    return {name: meaning.says for name, meaning in declaration.invariants.items()}


def _settings() -> list[Entry]:
    """What can be set of each system, by the words behind each field."""
    entries = []
    for entry in _plugins("systems"):
        if "problem" not in entry:
            about = meanings_of(registry.system(entry["name"]).settings_type)
            entries += [
                {
                    "name": name,
                    "about": about.get(name, "").removesuffix("."),
                    "default": default,
                    "values": _values(entry["bounds"].get(name)),
                    "system": entry["name"],
                }
                for name, default in entry["settings"].items()
            ]
    return entries


def _values(bounds: list[float] | None) -> str:
    return "" if bounds is None else f"{bounds[0]:g} to {bounds[1]:.12g}"


def _suites() -> list[Entry]:
    return [{"name": name, "scenarios": len(load_suite(name).scenarios)} for name in shipped()]


def _plugins(kind: registry.Kind) -> list[Entry]:
    return [_described(kind, name) for name in registry.names(kind)]


def _described(kind: registry.Kind, name: str, describe: Callable[[Any], Any] = lambda loaded: loaded) -> Entry:
    """One plug-in, as `describe` makes it of what its entry point names; a broken one is shown as such, others too."""
    if kind in ("systems", "workloads"):  # which import pyarrow
        start_arrow()
    try:
        loaded = describe(registry.find(kind, name))
    except (ImportError, AttributeError) as error:
        return {"name": name, "problem": f"{type(error).__name__}: {error}"}
    entry: Entry = {"name": name}
    if getattr(loaded, "about", ""):
        entry["about"] = loaded.about
    if hasattr(loaded, "faults"):
        entry["faults"] = sorted(loaded.faults)
    settings = getattr(loaded, "settings_type", None)
    if isinstance(settings, type) and dataclasses.is_dataclass(settings):
        entry["settings"] = {
            field.name: None if field.default is dataclasses.MISSING else _plain(field.default)
            for field in dataclasses.fields(settings)
        }
        entry["bounds"] = {
            name: [bounds.least, bounds.most] for name, bounds in bounds_of(settings).items() if bounds != INT64
        }
    return entry


def _plain(default: Any) -> Any:
    """As it is written behind --set: of several values of an enum, with commas between them."""
    if isinstance(default, frozenset):
        return ",".join(sorted(member.value for member in default))
    return default.value if isinstance(default, Enum) else default


def _show(name: str, entries: list[Entry], console: Console) -> None:
    console.say(name)
    if not entries:
        console.say("  none")
    width = max((len(str(entry.get("name", ""))) for entry in entries), default=0)
    for entry in entries[:RUNS_SHOWN] if name == "runs" else entries:
        console.say(f"  {_line(entry, width)}")
        if entry.get("settings"):
            bounds = entry.get("bounds", {})
            settings = ", ".join(_setting(key, value, bounds) for key, value in entry["settings"].items())
            console.say(f"      --set {settings}")
    if name == "runs" and len(entries) > RUNS_SHOWN:
        console.say(f"  … and {len(entries) - RUNS_SHOWN} older ones (--json shows all)")
    if name == "nemeses":
        console.say("  … or a sentence: 'kill one of all every 10 for 5' (stormproof list shapes)")
    if name == "shapes":
        console.say("  TARGET: a node, several (n1+n2), a group, all, a role, or one, minority or majority of GROUP,")
        console.say("  or machine of a node, a role, or one of GROUP: all nodes that run on the same machine;")
        console.say("  PART: the same without all; NODE: a node, a role, or one of GROUP, which stands alone")
        console.say("  'and' joins shapes that strike at one moment")
        console.say("  PATTERN: files where a node keeps its data, such as 'store/**/*.blk'; COUNT UNIT: such as 1 MB")
        console.say("  ACT: what administrators of a system do; clients are no nodes: they are cut off or paused")
        console.say("  behind the shapes: when POINT, when 3rd POINT, after POINT (stormproof list points); the target")
        console.say("  'it' is then the node that reached the point")


def _line(entry: Entry, width: int) -> str:
    if "directory" in entry:
        return f"{entry['verdict'] or 'cut short':<9}  seed {entry['seed']}  {entry['directory']}"
    parts = []
    for key, value in entry.items():
        if key in ("name", "settings", "bounds") or value in (None, "", []):
            continue
        words = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        words = words.lower() if isinstance(value, bool) else words
        parts.append(words if key in ("about", "problem") else f"{key}: {words}")
    return f"{entry['name']:<{width}}  {'; '.join(parts)}".rstrip()


def _setting(key: str, default: Any, bounds: Mapping[str, list[float]]) -> str:
    within = f" ({_values(bounds[key])})" if key in bounds else ""
    return f"{key}={json.dumps(default)}{within}"


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json_kept(path)
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
