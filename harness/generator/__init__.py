"""Generators: values that say what clients shall do next.

    storm = clients(stagger(0.01, mix([repeat(invoke("read", key="r0")), indexed(write)], seed=a), seed=b))
    faults = nemesis(cycle([sleep(10), invoke("start-partition"), sleep(5), invoke("stop-partition")]))
    test = phases(
        time_limit(60, any_of(storm, faults)),
        nemesis(invoke("stop-partition")),
        log("final reads"),
        clients(each_thread(until_ok(repeat(invoke("final-read"))))),
    )

A generator has two functions. `op(context)` gives the next operation and the generator that follows it,
or PENDING (nothing can be done before something happens), or None (it is exhausted). `update(context,
event)` gives the generator as it is after an invocation or completion. Both are pure: asking changes nothing, and
the interpreter may ask, see something happen first, and ask again. A third is optional: `quiet_until(context)` says
until when there is no need to ask, whatever happens.

Plain values are generators, too: None is exhausted; an `Operation` (see `invoke`) is emitted once; a list or
tuple of generators runs them one after the other; a function of the context is called for a generator again
and again until it returns None, and must be pure.

Operations carry the time at which they want to be invoked. Free threads are taken in the order in which they
became free, so that load is spread evenly. The nemesis has a thread of its own (`NEMESIS`).
"""

from harness.generator.combinators import (
    any_of,
    concat,
    concurrency_limit,
    cycle,
    f_map,
    filter_operations,
    flip_flop,
    limit,
    map_operations,
    mix,
    on_update,
    once,
    picked,
    process_limit,
    repeat,
    reserve,
    until_ok,
)
from harness.generator.context import UNASSIGNED, Context
from harness.generator.core import (
    LOG,
    PENDING,
    SLEEP,
    Emission,
    Generator,
    GeneratorLike,
    Pending,
    as_generator,
    drawn,
    indexed,
    invoke,
    quiet_until,
)
from harness.generator.keys import concurrent_keys, sequential_keys
from harness.generator.simulation import Completion, imperfect, perfect, seeded_latency, simulate
from harness.generator.threads import (
    clients,
    each_process,
    each_thread,
    nemesis,
    on_threads,
    phases,
    synchronize,
    then,
)
from harness.generator.timing import delay, log, sleep, stagger, time_limit

__all__ = [
    "LOG",
    "PENDING",
    "SLEEP",
    "UNASSIGNED",
    "Completion",
    "Context",
    "Emission",
    "Generator",
    "GeneratorLike",
    "Pending",
    "any_of",
    "as_generator",
    "clients",
    "concat",
    "concurrency_limit",
    "concurrent_keys",
    "cycle",
    "delay",
    "drawn",
    "each_process",
    "each_thread",
    "f_map",
    "filter_operations",
    "flip_flop",
    "imperfect",
    "indexed",
    "invoke",
    "limit",
    "log",
    "map_operations",
    "mix",
    "nemesis",
    "on_threads",
    "on_update",
    "once",
    "perfect",
    "phases",
    "picked",
    "process_limit",
    "quiet_until",
    "repeat",
    "reserve",
    "seeded_latency",
    "sequential_keys",
    "simulate",
    "sleep",
    "stagger",
    "synchronize",
    "then",
    "time_limit",
    "until_ok",
]
