"""What can stand where the cursor is, for shell completion: each source is read only when its option is completed.

A source takes the context of what was typed so far (options before the cursor are in its `params`, all words are its
`obj`) and gives all that it knows. One that fails offers nothing: an error message has no place between two keys.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from harness.record.run_directory import LATEST, SCENARIO, RunDirectory
from harness.record.scenario import NONE
from harness.system import Declaration
from stormproof.session import registry

Source = Callable[[click.Context], Iterable[str]]
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]

MOST_RUNS = 100
"""How many runs are offered at most, the newest ones."""


def one_of(source: Source) -> Complete:
    """Names that begin as what was typed."""

    def complete(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem[str]]:
        return _beginning(begun, _read(source, context))

    return complete


def several_of(source: Source) -> Complete:
    """The same after each comma, without those that are named already."""

    def complete(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem[str]]:
        before, comma, last = begun.rpartition(",")
        taken = {name.strip() for name in before.split(",")} | ({NONE} if comma else set())
        names = [name for name in _read(source, context) if name not in taken]
        return [CompletionItem(f"{before}{comma}{item.value}") for item in _beginning(last.strip(), names)]

    return complete


def one_or_a_file(source: Source) -> Complete:
    """Names that begin as what was typed; where none does, the shell offers files."""

    def complete(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem[str]]:
        return _beginning(begun, _read(source, context)) or [CompletionItem(begun, type="file")]

    return complete


def named(kind: registry.Kind) -> Source:
    """What has an entry point; nothing of it is imported."""
    return lambda context: registry.names(kind)


def nemeses(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem[str]]:
    """Names of packages; in a sentence, which has a space, the next word in the vocabulary of the system typed."""
    before, _, word = begun.rpartition(" ")
    sentence = before.rpartition(",")[2]
    if not sentence.strip():
        return several_of(lambda _: (*registry.names("nemeses"), NONE))(context, parameter, begun)
    words = _read(lambda _: _next_words(context, sentence), context)
    return [CompletionItem(f"{before} {item.value}") for item in _beginning(word, words)]


def _next_words(context: click.Context, sentence: str) -> Iterable[str]:
    from nemesis.sentence import following

    (name,) = _systems(context)
    pairs = dict(map(registry.parse_setting, context.params.get("settings") or ()))
    words = registry.vocabulary(*registry.configured_system(name, pairs))
    return following(tuple(sentence.split()), words)


def mutants(context: click.Context) -> Iterable[str]:
    """The mutants of the system that was typed, otherwise of all systems."""
    return (*(mutant for system in _systems(context) for mutant in registry.system(system).mutants), NONE)


def settings_of_run(context: click.Context) -> Iterable[str]:
    """`key=` for each setting of the system, the workload and the packages of faults that were typed."""
    systems = list(_systems(context))
    parts: list[Any] = [registry.system(system) for system in systems]
    usual = registry.usual_workload(systems[0]) if len(systems) == 1 else registry.USUAL
    parts.append(registry.workload(context.params.get("workload") or usual))
    for name in (context.params.get("nemesis") or "").split(","):
        if name.strip() in registry.names("nemeses"):
            parts.append(registry.find("nemeses", name.strip())(Declaration()))
    return _keys(field.name for part in parts for field in dataclasses.fields(part.settings_type))


def settings_of_check(context: click.Context) -> Iterable[str]:
    """`key=` for each setting of the workload that was typed."""
    workload = registry.workload(str(context.params.get("workload")))
    return _keys(field.name for field in dataclasses.fields(workload.settings_type))


def consistency_models(context: click.Context) -> Iterable[str]:
    from stormproof.session.check_spec import consistency_models

    return consistency_models()


def suites(context: click.Context) -> Iterable[str]:
    from stormproof.session.suite_file import shipped

    return (*shipped(), *sorted(map(str, Path().glob("*.toml"))))


def run_directories(context: click.Context) -> Iterable[str]:
    """Those under --runs, the newest first."""
    runs = Path(context.params.get("runs") or "runs")
    found = [path.parent for path in runs.glob(f"*/*/{SCENARIO}")]
    newest = sorted(found, key=lambda directory: directory.name, reverse=True)[:MOST_RUNS]
    latest = [runs / LATEST] if RunDirectory(runs / LATEST).scenario.exists() else []
    return [str(directory) for directory in (*latest, *newest)]


def _systems(context: click.Context) -> tuple[str, ...]:
    known, typed = registry.names("systems"), context.find_object(list) or []
    return tuple(name for name in known if name in typed) or known


def _keys(names: Iterable[str]) -> list[str]:
    return [f"{name}=" for name in dict.fromkeys(names)]


def _read(source: Source, context: click.Context) -> list[str]:
    try:
        return list(source(context))
    except Exception:  # noqa: BLE001  # a plug-in that fails offers nothing; completion has nowhere to report it
        return []


def _beginning(begun: str, names: Iterable[str]) -> list[CompletionItem[str]]:
    return [CompletionItem(name) for name in names if name.startswith(begun)]
