"""What is told of a history before its end is true of the whole, whatever follows."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from checkers.api.plan import Checker, CheckRequest, Engine
from checkers.api.verdict import CheckerResult
from checkers.linearizable.checker import Linearizable
from checkers.linearizable.objects import MODELS
from checkers.prefix import Finals, by_their_names, finals_of
from checkers.transactions.meanings import NO_ORDER
from checkers.transactions.model.lattice import ConsistencyModel
from harness.record.meaning import Meaning
from tests.histories.test_history_files import FILES, NEVER_THE_WEAKEST
from tests.references.drawn_histories import KINDS, Kind
from tests.references.history_language import VALUE_TYPES, WrittenHistory, parse_history
from tests.references.list_histories import random_lists
from tests.references.prefixes import continued, judge, told_early, undone
from tests.references.thousands import thousands
from tests.references.transaction_histories import history_rows, random_registers
from tests.references.written_judgement import checker_of, repeats_of

PREFIXES = 2
"""Of each history."""
OTHER_SEEDS = 1_000_000
"""What another history is drawn from."""


def lists(model: ConsistencyModel) -> Kind:
    return Kind(checker="list-append", options={"model": model.value}, rows=random_lists)


def registers(model: ConsistencyModel, **options: str) -> Kind:
    return Kind(
        checker="rw-register",
        options={"model": model.value, **options},
        rows=lambda rng: history_rows(random_registers(rng)),
    )


OF_MODELS: Mapping[str, Kind] = {
    **{f"lists, {model.value}": lists(model) for model in ConsistencyModel},
    **{f"registers, {model.value}": registers(model) for model in ConsistencyModel},
    **{
        f"registers with {assumed}": registers(ConsistencyModel.STRICT_SERIALIZABLE, assume=assumed)
        for assumed in ("sequential-keys", "wfr-keys", "linearizable-keys")
    },
}


def told_too_early(kind: Kind, seed: int, checker: Checker | None = None) -> list[tuple[int, set[str]]]:
    """Of prefixes of one history: their lengths, and what was told of each and is undone by what may follow."""
    history = kind.drawn(seed)
    checker = checker or checker_of(history)
    rng = random.Random(f"{kind.checker} {kind.model} {seed}")
    other = kind.drawn(seed + OTHER_SEEDS).rows
    found = []
    for length in sorted(rng.sample(range(1, len(history.rows) + 1), min(PREFIXES, len(history.rows)))):
        wrong = _undone_by_what_follows(history, history.rows[:length], other, checker, rng)
        found += [(length, wrong)] if wrong else []
    return found


def _undone_by_what_follows(
    history: WrittenHistory,
    prefix: list[dict[str, Any]],
    other: list[dict[str, Any]],
    checker: Checker,
    rng: random.Random,
) -> set[str]:
    of = VALUE_TYPES[history.checker], checker, repeats_of(history)
    early = told_early(judge(prefix, *of), checker)
    if not early:
        return set()
    wholes = continued(prefix, history.rows[len(prefix) :], other, rng)
    return set().union(*(undone(early, judge(whole, *of), checker) for whole in wholes))


@pytest.mark.parametrize("name", KINDS)
def test_what_is_told_of_a_prefix_is_true_of_the_whole(name: str) -> None:
    assert told_too_early(KINDS[name], 0) == []


@pytest.mark.parametrize("name", OF_MODELS)
def test_so_it_is_of_transactions_at_every_model(name: str) -> None:
    assert told_too_early(OF_MODELS[name], 0) == []


@thousands(5)
@pytest.mark.parametrize("name", [*KINDS, *OF_MODELS])
def test_so_it_is_of_many_more(name: str, seeds: range) -> None:
    some = seeds[::100]
    kind = {**KINDS, **OF_MODELS}[name]
    assert [(seed, wrong) for seed in some for wrong in told_too_early(kind, seed)] == []


SMALLEST = [parse_history(file.read_text()) for file in FILES]


@pytest.mark.gate
def test_so_it_is_of_the_smallest_histories() -> None:
    for place, history in enumerate(SMALLEST):
        if history.demands or not history.rows:
            continue
        rng = random.Random(place)
        length = rng.randint(1, len(history.rows))
        wrong = _undone_by_what_follows(history, history.rows[:length], [], checker_of(history), rng)
        assert (history.source, length, wrong) == (history.source, length, set())


@pytest.mark.gate
def test_everything_that_is_declared_is_told_of_some_prefix() -> None:
    """Names of no order are told where they are the weakest, as in the whole."""
    declared: dict[str, set[str]] = {}
    told: dict[str, set[str]] = {}
    drawn = [KINDS[name].drawn(seed) for name in ("delayed", "set", "consumption") for seed in range(20)]
    strict = {"model": ConsistencyModel.STRICT_SERIALIZABLE.value}
    drawn += [
        replace(one, options={**one.options, **strict})
        for one in SMALLEST
        if one.checker in ("list-append", "rw-register")
    ]
    for history in [one for one in (*SMALLEST, *drawn) if one.rows and not one.demands]:
        checker = checker_of(history)
        result = judge(history.rows, VALUE_TYPES[history.checker], checker, repeats_of(history))
        declared.setdefault(history.checker, set()).update(finals_of(checker))
        told.setdefault(history.checker, set()).update(told_early(result, checker))
    never = {
        workload: {f"{NO_ORDER}{model.value}" for model in models} for workload, models in NEVER_THE_WEAKEST.items()
    }
    silent = {name: declared[name] - told[name] - never.get(name, set()) for name in declared}
    assert {name: names for name, names in silent.items() if names} == {}
    assert sum(map(len, told.values())) > 100


@dataclass(frozen=True)
class Declaring:
    """A checker with another declaration than its own."""

    checker: Checker
    final_on_a_prefix: Finals

    @property
    def name(self) -> str:
        return self.checker.name

    @property
    def meanings(self) -> Mapping[str, Meaning]:
        return self.checker.meanings

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        return self.checker.check(request, engine)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("queue", "lost"),
        ("queue in order of producers", "duplicated"),
        ("set", "aborted-read"),
        ("rw-register", "garbage-read"),
        ("consumption", "unconsumed"),
    ],
)
def test_a_declaration_that_is_wrong_is_noticed(kind: str, name: str) -> None:
    checker = Declaring(checker_of(KINDS[kind].drawn(0)), by_their_names(name))
    assert any(told_too_early(KINDS[kind], seed, checker) for seed in range(400))


def test_a_token_that_is_still_to_be_told_is_no_reason_yet() -> None:
    checker = Linearizable(MODELS["leased-lock"])
    head = "source: here\nchecker: object\nmodel: leased-lock\nverdict: valid\n"
    asked = "0 invoke acquire l\n1 ok release l 1\n"
    told = "0 ok acquire l => 1\n"
    prefix, whole = (
        judge(parse_history(head + lines).rows, VALUE_TYPES["object"], checker, ()) for lines in (asked, asked + told)
    )
    assert prefix is not None and prefix.anomalies
    assert whole is not None and not whole.anomalies
    assert not told_early(prefix, checker)
