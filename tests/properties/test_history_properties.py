"""The vectorised parts of the history against deliberately dumb references, and generators against validation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from harness.errors import HarnessError
from harness.generator import (
    Generator,
    GeneratorLike,
    any_of,
    clients,
    concurrency_limit,
    cycle,
    delay,
    each_process,
    each_thread,
    flip_flop,
    imperfect,
    invoke,
    limit,
    mix,
    nemesis,
    phases,
    repeat,
    reserve,
    simulate,
    sleep,
    stagger,
    synchronize,
    time_limit,
    until_ok,
)
from harness.operation import Operation, OperationType
from harness.record.history import NO_PARTNER, MalformedHistory, history_schema, pairs, validate
from harness.seed import Seed

TYPES: tuple[OperationType, ...] = ("invoke", "ok", "fail", "info")
SCHEMA = history_schema(pa.struct([("value", pa.int64())]))

rows = st.lists(
    st.tuples(st.integers(-1, 4), st.sampled_from(TYPES), st.sampled_from(["send", "poll"])).map(
        lambda row: Operation(*row)
    ),
    max_size=40,
)


@st.composite
def mostly_right(draw: st.DrawFn) -> list[Operation]:
    """Histories that are right, or wrong in one place."""
    open_f: dict[int, str] = {}
    process_of = [0, 1, 2]
    made: list[Operation] = []
    for _ in range(draw(st.integers(0, 40))):
        thread = draw(st.integers(0, 2))
        process = process_of[thread]
        if process in open_f:
            ended = draw(st.sampled_from(TYPES[1:]))
            made.append(Operation(process, ended, open_f.pop(process)))
            process_of[thread] += 3 * (ended == "info")
        else:
            open_f[process] = draw(st.sampled_from(["send", "poll"]))
            made.append(Operation(process, "invoke", open_f[process]))
    if made and draw(st.booleans()):
        position = draw(st.integers(0, len(made) - 1))
        made[position] = made[position]._replace(process=draw(st.integers(0, 5)))
    return made


def first_fault(history: list[Operation]) -> int | None:
    """Row by row, as the definition reads."""
    open_f: dict[int, str] = {}
    retired: set[int] = set()
    for position, operation in enumerate(history):
        process = operation.process
        if process < 0:
            continue
        if operation.type == "invoke":
            if process in open_f or process in retired:
                return position
            open_f[process] = operation.f
        else:
            if open_f.pop(process, None) != operation.f:
                return position
            if operation.type == "info":
                retired.add(process)
    return None


def batches(history: list[Operation], size: int) -> Iterator[pa.RecordBatch]:
    numbered = [row._replace(index=index, time=index) for index, row in enumerate(history)]
    for start in range(0, len(numbered), size):
        yield pa.RecordBatch.from_pylist([row._asdict() for row in numbered[start : start + size]], schema=SCHEMA)


def refused_at(history: list[Operation], size: int) -> int | None:
    try:
        assert sum(len(batch) for batch in validate(batches(history, size))) == len(history)
    except MalformedHistory as malformed:
        return malformed.position
    return None


@given(rows | mostly_right(), st.integers(1, 41))
@settings(max_examples=400, deadline=None)
def test_validation_finds_the_same_first_fault_as_going_row_by_row(history: list[Operation], size: int) -> None:
    assert refused_at(history, size) == first_fault(history)


@given(mostly_right(), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_pairs_agrees_with_a_search_for_each_invocation(history: list[Operation], random: object) -> None:
    valid = history[: first_fault(history)]
    order = list(range(len(valid)))
    random.shuffle(order)  # type: ignore[attr-defined]
    expected = [NO_PARTNER] * len(order)
    for position, index in enumerate(order):
        if valid[index].type != "invoke":
            continue
        same = [i for i in range(index + 1, len(valid)) if valid[i].process == valid[index].process]
        if same:
            expected[position] = order.index(same[0])
            expected[order.index(same[0])] = position
    found = pairs(
        np.array(order, dtype=np.int64),
        np.array([valid[index].process for index in order], dtype=np.int32),
        np.array([valid[index].type == "invoke" for index in order], dtype=bool),
    )
    assert found.tolist() == expected


def wrapped(inner: st.SearchStrategy[GeneratorLike]) -> st.SearchStrategy[GeneratorLike]:
    pair = st.lists(inner, min_size=1, max_size=3)
    seconds = st.sampled_from([1e-9, 15e-9, 1e-7])
    seeds = st.builds(Seed, st.integers(0, 1000))
    one: st.SearchStrategy[Generator] = (
        st.builds(lambda g: limit(5, g), inner)
        | st.builds(lambda g: repeat(g, 4), inner)
        | st.builds(lambda g: cycle(g, 3), inner)
        | st.builds(time_limit, seconds, inner)
        | st.builds(delay, seconds, inner)
        | st.builds(lambda s, g, seed: stagger(s, g, seed=seed), seconds, inner, seeds)
        | st.builds(lambda n, g: concurrency_limit(n, g), st.integers(1, 2), inner)
        | st.builds(until_ok, inner)
        | st.builds(each_thread, inner)
        | st.builds(each_process, inner)
        | st.builds(synchronize, inner)
        | st.builds(clients, inner)
    )
    many: st.SearchStrategy[Generator] = (
        st.builds(lambda gs: any_of(*gs), pair)
        | st.builds(lambda gs: phases(*gs), pair)
        | st.builds(lambda gs: flip_flop(*gs), pair)
        | st.builds(lambda gs, seed: mix(gs, seed=seed), pair, seeds)
        | st.builds(lambda gs: reserve((1, gs[0]), default=gs[-1]), pair)
    )
    return one | many


generators = st.recursive(
    st.sampled_from(["a", "b", "c"]).map(invoke)
    | st.just(sleep(20e-9))
    | st.sampled_from([repeat(invoke("r"), 7), nemesis(repeat(invoke("start"), 2))]),
    wrapped,
    max_leaves=8,
)


@given(generators, st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_whatever_a_generator_does_is_a_history_and_the_same_one_again(
    generator: GeneratorLike, concurrency: int
) -> None:
    try:
        history = simulate(generator, completion=imperfect(), concurrency=concurrency, operations=300)
    except HarnessError:
        # What runs on clients only may hold something for the nemesis, which then rightly waits for ever.
        reject()
    assert first_fault(history) is None
    assert [operation.time for operation in history] == sorted(operation.time for operation in history)
    assert history == simulate(generator, completion=imperfect(), concurrency=concurrency, operations=300)
