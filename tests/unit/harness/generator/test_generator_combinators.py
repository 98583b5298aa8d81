"""What each combinator makes of a small generator, as the history of an imagined system.

Rows read "time process f value"; invocations only, unless a test is about completions. Answers take 10 ns,
there are two client threads (0 and 1) and the nemesis (-1).
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from harness.errors import HarnessError
from harness.generator import (
    PENDING,
    Context,
    Generator,
    GeneratorLike,
    any_of,
    as_generator,
    clients,
    concat,
    concurrency_limit,
    concurrent_keys,
    cycle,
    delay,
    drawn,
    each_process,
    each_thread,
    f_map,
    filter_operations,
    flip_flop,
    imperfect,
    indexed,
    invoke,
    limit,
    log,
    map_operations,
    mix,
    nemesis,
    on_threads,
    on_update,
    once,
    perfect,
    phases,
    process_limit,
    repeat,
    reserve,
    seeded_latency,
    sequential_keys,
    simulate,
    sleep,
    stagger,
    synchronize,
    then,
    time_limit,
    until_ok,
)
from harness.generator.simulation import Completion
from harness.operation import Operation
from harness.seed import Seed

SEED = Seed(1729)
SECOND = 1_000_000_000


def count(f: str = "w") -> Generator:
    return indexed(lambda n: invoke(f, {"value": n}))


def row(operation: Operation) -> str:
    value = "" if operation.value is None else f" {operation.value['value']}"
    key = f" {operation.key}" if operation.key else ""
    return f"{operation.time} {operation.process} {operation.f}{value}{key}"


def invocations(generator: GeneratorLike, completion: Completion | None = None, **world: int) -> list[str]:
    history = simulate(generator, completion=completion, **world)
    return [row(operation) for operation in history if operation.type == "invoke"]


def fs(generator: GeneratorLike, completion: Completion | None = None, **world: int) -> str:
    history = simulate(generator, completion=completion, **world)
    return " ".join(operation.f for operation in history if operation.type == "invoke")


def test_nothing_is_an_exhausted_generator() -> None:
    assert simulate(None) == []
    assert simulate([]) == []


def test_an_operation_is_emitted_once_by_the_first_free_process_and_completed() -> None:
    assert simulate(invoke("read", key="r0")) == [
        Operation(0, "invoke", "read", None, "r0", 0, index=0),
        Operation(0, "ok", "read", None, "r0", 10, index=1),
    ]


def test_a_list_runs_one_after_the_other_without_waiting_for_completions() -> None:
    assert invocations([invoke("a"), [invoke("b"), None, invoke("c")], invoke("d")], nemesis=False) == [
        "0 0 a",
        "0 1 b",
        "10 0 c",
        "10 1 d",
    ]


def test_concat_is_the_list_of_its_arguments() -> None:
    assert fs(concat(limit(2, repeat(invoke("a"))), invoke("b"))) == "a a b"


def test_a_function_is_called_for_a_generator_until_it_returns_none() -> None:
    def until_20(context: Context) -> GeneratorLike:
        return None if context.time >= 20 else [invoke("a"), invoke("b")]

    assert invocations(until_20, concurrency=1, nemesis=False) == ["0 0 a", "10 0 b"]


def test_a_function_that_gives_nothing_but_exhausted_generators_is_exhausted() -> None:
    assert simulate(lambda context: []) == []


def test_indexed_gives_every_number_once() -> None:
    assert invocations(limit(3, count()), nemesis=False) == ["0 0 w 0", "0 1 w 1", "10 0 w 2"]


def test_indexed_ends_where_its_function_ends() -> None:
    assert fs(indexed(lambda n: invoke(f"f{n}") if n < 3 else None)) == "f0 f1 f2"


def test_drawn_operations_depend_on_the_seed_alone() -> None:
    def keys(seed: Seed) -> str:
        return fs(limit(20, drawn(seed, lambda draw, n: invoke(draw.choice("abcdef")))))

    assert keys(SEED) == keys(Seed(1729))
    assert keys(SEED) != keys(SEED.child("another"))


def test_map_operations_changes_every_operation() -> None:
    assert fs(map_operations(lambda o: o._replace(f=o.f.upper()), [invoke("a"), invoke("b")])) == "A B"


def test_f_map_renames_and_leaves_other_names() -> None:
    assert fs(f_map({"start": "start-kill"}, [invoke("start"), invoke("stop")])) == "start-kill stop"


def test_filter_operations_drops_the_others() -> None:
    even = filter_operations(lambda o: o.value is not None and o.value["value"] % 2 == 0, limit(5, count()))
    assert invocations(even, concurrency=1, nemesis=False) == ["0 0 w 0", "10 0 w 2", "20 0 w 4"]


def test_on_update_lets_events_replace_the_generator() -> None:
    def confirm(generator: Generator, context: Context, event: Operation) -> GeneratorLike:
        return once(invoke("confirm")) if event.type == "ok" and event.f == "w" else generator

    assert fs(on_update(confirm, repeat(invoke("w"), 5)), concurrency=1, nemesis=False) == "w confirm"


def test_any_of_lets_those_that_are_equally_soon_take_turns() -> None:
    assert fs(any_of(repeat(invoke("a"), 3), repeat(invoke("b"), 3)), concurrency=1) == "a b a b a b"


def test_any_of_takes_the_generator_that_is_soonest() -> None:
    assert invocations(
        any_of(delay(30e-9, repeat(invoke("slow"), 2)), delay(20e-9, repeat(invoke("fast"), 3))), nemesis=False
    ) == ["0 0 slow", "0 1 fast", "20 0 fast", "30 1 slow", "40 0 fast"]


def test_mix_draws_by_weight_and_goes_on_with_the_generators_left() -> None:
    rare_and_common = limit(1000, mix([repeat(invoke("rare")), repeat(invoke("common"))], seed=SEED, weights=[1, 9]))
    assert 50 < fs(rare_and_common).split().count("rare") < 150
    assert sorted(fs(mix([repeat(invoke("a"), 2), repeat(invoke("b"), 5)], seed=SEED)).split()) == list("aabbbbb")


def test_mix_refuses_weights_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="expected 2 weights above 0"):
        mix([None, None], seed=SEED, weights=[1.0])


def test_limit_and_once_bound_the_number_of_operations() -> None:
    assert fs(limit(3, repeat(invoke("a")))) == "a a a"
    assert fs(once([invoke("a"), invoke("b")])) == "a"
    assert fs(limit(0, invoke("a"))) == ""


def test_log_shows_something_and_leaves_no_trace_in_the_history() -> None:
    assert fs([invoke("a"), log("half way"), invoke("b")]) == "a b"


def test_repeat_never_moves_on_but_cycle_starts_over() -> None:
    assert fs(repeat([invoke("a"), invoke("b")], 3)) == "a a a"
    assert fs(cycle([invoke("a"), invoke("b")], 2)) == "a b a b"
    assert fs(limit(5, cycle([invoke("a"), invoke("b")]))) == "a b a b a"


def test_cycling_nothing_is_exhausted() -> None:
    assert simulate(cycle(None)) == []


def test_process_limit_ends_before_more_processes_would_be_used() -> None:
    history = simulate(process_limit(4, repeat(invoke("a"))), completion=imperfect(), nemesis=False)
    assert sorted({operation.process for operation in history}) == [0, 1, 2, 3]


def test_concurrency_limit_bounds_what_is_open_at_once() -> None:
    history = simulate(concurrency_limit(2, repeat(invoke("a"), 20)), concurrency=5)
    open_now = most = 0
    for operation in history:
        open_now += 1 if operation.type == "invoke" else -1
        most = max(most, open_now)
    assert most == 2
    assert len(history) == 40


def test_until_ok_tries_until_one_of_its_own_operations_is_ok() -> None:
    def third_time_lucky(operation: Operation, number: int) -> Operation:
        return operation._replace(type="ok" if number == 2 else "fail", time=operation.time + 10)

    assert fs(clients(until_ok(repeat(invoke("a")))), third_time_lucky, concurrency=1) == "a a a"


def test_until_ok_does_not_take_the_success_of_others_for_its_own() -> None:
    def only_b_works(operation: Operation, number: int) -> Operation:
        return operation._replace(type="ok" if operation.f == "b" else "fail", time=operation.time + 10)

    both = any_of(on_threads([0], limit(4, until_ok(repeat(invoke("a"))))), on_threads([1], invoke("b")))
    assert fs(both, only_b_works).split().count("a") == 4


def test_flip_flop_alternates_and_ends_with_the_first_to_end() -> None:
    assert fs(flip_flop(repeat(invoke("a")), repeat(invoke("b"), 2))) == "a b a b a"


def test_on_threads_and_clients_and_nemesis_keep_to_their_threads() -> None:
    def processes(generator: GeneratorLike) -> set[int]:
        return {operation.process for operation in simulate(generator, concurrency=4)}

    assert processes(on_threads([1, 3], repeat(invoke("a"), 10))) == {1, 3}
    assert processes(clients(repeat(invoke("a"), 10))) == {0, 1, 2, 3}
    assert processes(nemesis(repeat(invoke("a"), 10))) == {-1}


def test_the_nemesis_completes_with_info_and_keeps_its_process() -> None:
    assert [(o.process, o.type) for o in simulate(nemesis(repeat(invoke("start"), 2)))] == [
        (-1, "invoke"),
        (-1, "info"),
    ] * 2


def test_each_thread_gives_every_thread_a_copy_of_its_own() -> None:
    assert invocations(each_thread([invoke("a"), invoke("b")])) == [
        "0 0 a",
        "0 1 a",
        "0 -1 a",
        "10 0 b",
        "10 1 b",
        "10 -1 b",
    ]


def test_each_thread_is_not_exhausted_while_a_busy_thread_may_have_more_to_do() -> None:
    assert fs(clients(each_thread(until_ok(repeat(invoke("a"))))), imperfect(), concurrency=1) == "a"
    history = simulate(clients(each_thread([invoke("a"), invoke("b")])), completion=seeded_latency(SEED, 100.0))
    assert sorted(o.f for o in history if o.type == "invoke") == ["a", "a", "b", "b"]


def test_each_process_starts_anew_after_an_info() -> None:
    history = simulate(
        clients(limit(6, each_process([invoke("first"), invoke("second"), invoke("third"), invoke("fourth")]))),
        completion=imperfect(),
        concurrency=1,
    )
    assert [(o.process, o.f) for o in history if o.type == "invoke"] == [
        (0, "first"),
        (0, "second"),
        (0, "third"),
        (1, "first"),
        (1, "second"),
        (1, "third"),
    ]


def test_reserve_gives_the_first_threads_to_the_first_and_the_rest_to_the_default() -> None:
    shared = limit(
        60, clients(reserve((2, repeat(invoke("a"))), (1, repeat(invoke("b"))), default=repeat(invoke("c"))))
    )
    who: dict[str, set[int]] = {}
    for operation in simulate(shared, concurrency=5):
        who.setdefault(operation.f, set()).add(operation.process)
    assert who == {"a": {0, 1}, "b": {2}, "c": {3, 4}}


def test_synchronize_waits_until_all_own_threads_are_free() -> None:
    assert invocations([repeat(invoke("a"), 3), synchronize(invoke("b"))], nemesis=False) == [
        "0 0 a",
        "0 1 a",
        "10 0 a",
        "20 1 b",
    ]


def test_phases_never_overlap() -> None:
    slow_first = seeded_latency(SEED, 1000.0)
    history = simulate(phases(repeat(invoke("a"), 7), repeat(invoke("b"), 7)), completion=slow_first, concurrency=3)
    assert [operation.f for operation in history] == ["a"] * 14 + ["b"] * 14


def test_then_waits_for_the_first_to_complete() -> None:
    assert invocations(then(invoke("a"), invoke("b"))) == ["0 0 a", "10 1 b"]


def test_time_limit_runs_from_the_first_operation() -> None:
    limited = [invoke("before"), synchronize(time_limit(25e-9, repeat(invoke("a"))))]
    assert invocations(limited, concurrency=1, nemesis=False) == ["0 0 before", "10 0 a", "20 0 a", "30 0 a"]


def test_time_limit_drops_an_operation_that_would_come_too_late() -> None:
    assert invocations(time_limit(25e-9, delay(20e-9, repeat(invoke("a"))))) == ["0 0 a", "20 1 a"]


def test_delay_spaces_operations_evenly() -> None:
    assert invocations(delay(3e-9, repeat(invoke("a"), 4)), concurrency=4, nemesis=False) == [
        "0 0 a",
        "3 1 a",
        "6 2 a",
        "9 3 a",
    ]


def test_delay_catches_nothing_up_after_a_shortage_of_threads() -> None:
    assert invocations(delay(3e-9, repeat(invoke("a"), 4)), concurrency=1, nemesis=False) == [
        "0 0 a",
        "10 0 a",
        "20 0 a",
        "30 0 a",
    ]


def test_stagger_keeps_the_rate_with_irregular_intervals() -> None:
    history = simulate(stagger(0.01, repeat(invoke("a"), 2000), seed=SEED), concurrency=10)
    times = [operation.time for operation in history if operation.type == "invoke"]
    intervals = [later - earlier for earlier, later in pairwise(times)]
    assert 0.0095 < times[-1] / SECOND / 1999 < 0.0105
    assert min(intervals) < 0.001 * SECOND
    assert 0.019 * SECOND < max(intervals) <= 0.02 * SECOND


def test_sleep_occupies_its_thread_and_is_not_in_the_history() -> None:
    faults = nemesis([sleep(100e-9), invoke("start"), sleep(50e-9), invoke("stop")])
    assert invocations(faults) == ["100 -1 start", "160 -1 stop"]


def test_sequential_keys_finish_one_before_the_next() -> None:
    lifted = sequential_keys(["x", "y"], lambda key: limit(2, count()))
    assert invocations(lifted, concurrency=1, nemesis=False) == ["0 0 w 0 x", "10 0 w 1 x", "20 0 w 0 y", "30 0 w 1 y"]


def test_concurrent_keys_keep_groups_of_threads_on_their_own_keys() -> None:
    history = simulate(
        clients(concurrent_keys(2, ["x", "y", "z"], lambda key: limit(10, count()))),
        completion=seeded_latency(SEED, 50.0),
        concurrency=4,
    )
    invoked = [operation for operation in history if operation.type == "invoke"]
    assert {key: sum(o.key == key for o in invoked) for key in "xyz"} == {"x": 10, "y": 10, "z": 10}
    groups = {key: {o.process // 2 for o in invoked if o.key == key} for key in "xyz"}
    assert groups["x"] == {0}
    assert groups["y"] == {1}
    assert len(groups["z"]) == 1


def test_concurrent_keys_refuse_threads_that_make_no_whole_groups() -> None:
    with pytest.raises(ValueError, match="concurrency 5 cannot be cut into groups of 2"):
        simulate(concurrent_keys(2, ["x"], lambda key: count()), concurrency=5)


def test_load_is_spread_evenly_over_the_threads() -> None:
    quick = simulate(clients(stagger(1e-6, repeat(invoke("a"), 4000), seed=SEED)), completion=perfect(1), concurrency=8)
    uneven = simulate(clients(repeat(invoke("a"), 4000)), completion=seeded_latency(SEED, 10.0), concurrency=8)
    for history in (quick, uneven):
        loads = [sum(o.process == process and o.type == "invoke" for o in history) for process in range(8)]
        assert sum(loads) == 4000
        assert min(loads) > 450, loads


def test_load_is_spread_evenly_within_reserved_threads() -> None:
    shared = clients(limit(3000, reserve((3, repeat(invoke("a"))), default=repeat(invoke("b")))))
    history = simulate(stagger(1e-6, shared, seed=SEED), completion=perfect(1), concurrency=6)
    loads = [sum(o.process == process and o.type == "invoke" for o in history) for process in range(6)]
    assert max(loads) - min(loads) <= 2


def test_asking_twice_gives_the_same_answer() -> None:
    generator = as_generator(stagger(0.01, mix([count("a"), count("b")], seed=SEED), seed=SEED.child("stagger")))
    context = Context.start(concurrency=2, nemesis=True)
    for _ in range(50):
        first, again = generator.op(context), generator.op(context)
        assert first is not None
        assert again is not None
        assert first[0] is not PENDING
        assert first[0] == again[0]
        generator, context = first[1], context.at(first[0].time)


def test_a_generator_that_waits_for_a_thread_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(HarnessError, match="wait for ever"):
        simulate(nemesis(invoke("start")), nemesis=False)


def test_something_that_is_no_generator_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"expected a generator.*got 17"):
        as_generator(17)  # type: ignore[arg-type]
