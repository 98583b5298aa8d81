"""Models: what an object does when its operations happen one by one.

A model is a function from a state and a call to the states that may follow, each with what it would tell the caller.
Somebody else's object takes a few lines:

    def light(state, call):
        return [(not state, ANYTHING)] if call.f == "toggle" else [(state, state)]

    Model(name="light", initial=False, functions=("toggle", "read"), apply=light, evidence=lambda _: any_ok("read"))

States, arguments and results are hashable: lists arrive as tuples, maps as `Map`, and true and false as `Truth`, for
Python takes its own for 1 and 0. A model may tell True and False all the same. What else it says (which calls only
read, which overwrite, what needs what) makes the search faster and changes no verdict.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

from checkers.evidence import Evidence, any_ok, in_json, shows_a_value, without_error

State = Any
Value = Any

Same = Callable[[Value, Value], bool]
"""Whether what was told, decoded from JSON, repeats what was asked."""


def _equal(asked: Value, told: Value) -> bool:
    return frozen(asked) == frozen(told)


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """How a completion repeats what its call asked with; null repeats anything."""

    answer: str = ""
    """A pattern of JSON that is an answer, and repeats nothing."""
    within: str = ""
    """A pattern of JSON that has what is repeated as its group, beside an answer."""
    same: Same = _equal
    """For what is neither equal nor of these patterns: numbers may be written in several ways."""


PLAINLY = Repeated()


def _repeating(*functions: str, how: Repeated = PLAINLY) -> Mapping[str, Repeated]:
    return dict.fromkeys(functions, how)


Evidences = Callable[[State], tuple[Evidence, ...]]
"""What could contradict a model that begins in that state."""


def _always(*evidence: Evidence) -> Evidences:
    return partial(_whatever_the_state, evidence)


def _whatever_the_state(evidence: tuple[Evidence, ...], state: State) -> tuple[Evidence, ...]:
    return evidence


class Answer(Enum):
    """Results that are no values."""

    UNTOLD = "untold"
    """The call is indefinite: nobody knows what it would have told, or whether it happened."""
    FAILED = "failed"
    """A compare-and-set that ran and found another value."""
    ANYTHING = "anything"
    """What a model tells where the caller's result says nothing about the state."""


UNTOLD, FAILED, ANYTHING = Answer.UNTOLD, Answer.FAILED, Answer.ANYTHING


class Truth(Enum):
    """The true and false of JSON, which equal no number."""

    FALSE = False
    TRUE = True

    def __bool__(self) -> bool:
        return bool(self.value)


@dataclass(frozen=True, order=True)
class Map:
    """A map of JSON, which equals no list."""

    entries: tuple[tuple[Hashable, Hashable], ...]
    """By key."""


class Does(Enum):
    CHANGES = "changes"
    READS = "reads"
    """It never changes a state."""
    OVERWRITES = "overwrites"
    """It is always possible, and leaves all parts that it touches in one and the same state, whatever they were."""


class FailedCas(Enum):
    """What a failed compare-and-set without an error says."""

    IGNORED = "ignored"
    """Nothing: it did not happen."""
    ANSWER = "answer"
    """It ran, and found another value than the one that it expected."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One operation on an object: its name, what it was asked with, and what it told."""

    f: str
    argument: Hashable
    result: Hashable


def _changes(call: Call) -> Does:
    return Does.CHANGES


def _untraced(call: Call) -> Hashable:
    return None


def _everything(call: Call) -> Collection[Hashable] | None:
    return None


def frozen(value: Value) -> Hashable:
    """The same value, hashable, and equal to nothing that JSON takes for something else (but 1.0 is 1)."""
    if isinstance(value, bool):
        return Truth(value)
    if isinstance(value, list | tuple):
        return tuple(frozen(item) for item in value)
    if isinstance(value, Mapping):
        return Map(tuple(sorted(((key, frozen(item)) for key, item in value.items()), key=repr)))
    return value  # type: ignore[no-any-return]


def shown(value: Any) -> str:
    """As JSON, cut where it is long; sets in the order of their JSON."""
    if isinstance(value, frozenset):
        text = f"{{{', '.join(sorted(shown(item) for item in value))}}}"
    else:
        text = json.dumps(value, default=_written)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _written(value: Any) -> Any:
    if isinstance(value, Map):
        return dict(value.entries)
    return bool(value) if isinstance(value, Truth) else str(value)


ASKING = ("read", "get", "dequeue", "pop")
"""Functions without an argument, which are called for what they tell."""


def describe(call: Call) -> str:
    argument = "" if call.argument is None else f" {shown(call.argument)}"
    # A write of null says all with its name; of whoever asks, null is the answer.
    says_nothing = isinstance(call.result, Answer) or (call.result == call.argument and call.f not in ASKING)
    result = "" if says_nothing else f" that told {shown(call.result)}"
    failed = " that failed" if call.result is Answer.FAILED else ""
    return f"{call.f}{argument}{result}{failed}"


@dataclass(frozen=True, kw_only=True)
class Model:
    name: str
    initial: State
    functions: tuple[str, ...]
    apply: Callable[[State, Call], Iterable[tuple[State, Value]]]
    """The states that may follow, each with what the caller would be told; none where the call is impossible."""
    does: Callable[[Call], Does] = _changes
    effect: Callable[[Call], Hashable] = _untraced
    """By what the effect of an indefinite call is known to those that need it; None if everything may need it."""
    needs: Callable[[Call], Collection[Hashable] | None] = _everything
    """The effects without which a call is impossible as it is; None if it may need any."""
    parts: Callable[[Call], Collection[Hashable] | None] = _everything
    """What of the object the call reads or changes, by name; None if all of it. Parts change by themselves: what a
    call does to those that it touches does not depend on the others."""
    begin: Callable[[Value], State] = frozen
    """The state for an initial value as people write it in JSON."""
    failed_cas: FailedCas = FailedCas.IGNORED
    evidence: Evidences
    """What could contradict this model, by the state in which it begins: a history without any proves nothing."""
    repeats: Mapping[str, Repeated]
    """Functions whose ok completion can only repeat what was asked; of the others it is an answer."""
    initial_json: str | None = None
    """The initial value as somebody wrote it, who wanted another one than the model's."""

    def beginning_with(self, value: Value) -> Model:
        return replace(self, initial=self.begin(value))

    def step(self, state: State, call: Call) -> list[State]:
        """The states that may follow if the call told what it told."""
        return [
            after
            for after, told in self.apply(state, call)
            if told is ANYTHING or call.result is UNTOLD or frozen(told) == call.result
        ]

    def tells_nothing(self, call: Call) -> bool:
        """A read of null where no null can be was not seen, and what only reads is of no use without its result."""
        if self.does(call) is not Does.READS:
            return False
        return call.result is UNTOLD or (
            call.f == "read" and call.result is None and self.initial is not None and "write" in self.functions
        )


def tellable(model: Model, state: Any, call: Call) -> list[Any]:
    """What the call could have told in this state."""
    untold = replace(call, result=UNTOLD)
    return [told for _, told in model.apply(state, untold) if told is not ANYTHING]


# Registers: read, write value, cas [expected, new].


def _register(state: State, call: Call) -> list[tuple[State, Value]]:
    if call.f == "read":
        return [(state, state)]
    if call.f == "write":
        return [(call.argument, ANYTHING)]
    expected, new = _pair(call.argument)
    if call.result is FAILED:
        return [] if state == expected else [(state, ANYTHING)]
    return [(new, ANYTHING)] if state == expected else []


def _pair(value: Hashable) -> tuple[Hashable, Hashable]:
    if not isinstance(value, tuple) or len(value) != 2:
        raise ValueError(f"expected a pair, got {value!r}")
    return value


def _register_does(call: Call) -> Does:
    if call.f == "write":
        return Does.OVERWRITES
    return Does.READS if call.f == "read" or call.result is FAILED else Does.CHANGES


def _register_effect(call: Call) -> Hashable:
    value = call.argument if call.f == "write" else _pair(call.argument)[1]
    return ("value", value)


def _register_needs(call: Call) -> Collection[Hashable] | None:
    if call.result is FAILED:
        return None
    if call.f == "cas":
        return (("value", _pair(call.argument)[0]),)
    return (("value", call.result),) if call.f == "read" else ()


def _register_evidence(state: State) -> tuple[Evidence, ...]:
    """Where null cannot be, a read of it was not seen."""
    return any_ok("read") if state is None else (shows_a_value("read"),)


def _cas_register_evidence(failed_cas: FailedCas, state: State) -> tuple[Evidence, ...]:
    answer = Evidence(f="cas", type="fail", which=without_error, columns=("error",), words="without an error")
    return (*_register_evidence(state), *any_ok("cas"), *([answer] if failed_cas is FailedCas.ANSWER else []))


REGISTER = Model(
    name="register",
    initial=None,
    functions=("read", "write"),
    apply=_register,
    does=_register_does,
    effect=_register_effect,
    needs=_register_needs,
    repeats=_repeating("write"),
    evidence=_register_evidence,
)


def cas_register(failed_cas: FailedCas) -> Model:
    return replace(
        REGISTER,
        name="cas-register",
        functions=("read", "write", "cas"),
        failed_cas=failed_cas,
        repeats=_repeating("write", "cas"),
        evidence=partial(_cas_register_evidence, failed_cas),
    )


WRITES = ("write", "w")


def _multi_register(state: State, call: Call) -> list[tuple[State, Value]]:
    """Each call is a list of [read|write, register, value], which take effect together."""
    values = dict(state)
    for f, register, value in _told_operations(call):
        if f in WRITES:
            values[register] = value
        elif values.get(register) != value:
            return []
    return [(frozenset(values.items()), ANYTHING)]


def _micro_operations(value: Hashable) -> list[tuple[str, Hashable, Hashable]]:
    if not isinstance(value, tuple) or not all(isinstance(part, tuple) and len(part) == 3 for part in value):
        raise ValueError(f"expected a list of [f, register, value], got {value!r}")
    return [tuple(part) for part in value]


def _told_operations(call: Call) -> list[tuple[str, Hashable, Hashable]]:
    """Nobody knows what an indefinite call read."""
    if call.result is not UNTOLD:
        return _micro_operations(call.result)
    return [one for one in _micro_operations(call.argument) if one[0] in WRITES]


def _reads_a_register(value: object) -> bool:
    """Of what a call of a multi-register told."""
    return isinstance(value, list) and any(isinstance(one, list) and one and one[0] not in WRITES for one in value)


def _same_micro_operations(asked: object, told: object) -> bool:
    """What is no list of micro-operations is told of elsewhere."""
    if not isinstance(asked, list) or not isinstance(told, list):
        return True
    parts = [*asked, *told]
    if not all(isinstance(part, list) and len(part) == 3 for part in parts):
        return True
    return [_asked_for(part) for part in asked] == [_asked_for(part) for part in told]


def _asked_for(part: list[Value]) -> Value:
    return frozen(part if part[0] in WRITES else part[:2])


def _multi_register_does(call: Call) -> Does:
    writes = [f in WRITES for f, _, _ in _told_operations(call)]
    if not any(writes):
        return Does.READS
    return Does.OVERWRITES if all(writes) else Does.CHANGES


def _multi_register_parts(call: Call) -> Collection[Hashable]:
    return {register for _, register, _ in _told_operations(call)}


def _multi_register_effect(call: Call) -> Hashable:
    """Of several writes nobody can tell which one is needed, unless all are of one register: then it is the last."""
    written = [(register, value) for f, register, value in _told_operations(call) if f in WRITES]
    return written[-1] if len({register for register, _ in written}) == 1 else None


def _multi_register_needs(call: Call) -> Collection[Hashable]:
    return [(register, value) for f, register, value in _told_operations(call) if f not in WRITES]


def _map(state: State, call: Call) -> list[tuple[State, Value]]:
    """One entry of a map, for maps compose by key. What was never put is null; appended to, it is empty."""
    if call.f == "get":
        empty = state is None and call.result == ""
        return [(state, "" if empty else state)]
    if call.f == "put":
        return [(call.argument, ANYTHING)]
    added: Any = call.argument
    if state is None or isinstance(state, type(added)):
        return [(added if state is None else state + added, ANYTHING)]
    return []


def _map_does(call: Call) -> Does:
    return {"get": Does.READS, "put": Does.OVERWRITES}.get(call.f, Does.CHANGES)


def _set(state: State, call: Call) -> list[tuple[State, Value]]:
    """add x, remove x, contains x, and read, which tells all elements. A boolean told by add or remove says whether
    something changed."""
    if call.f == "read":
        same = isinstance(call.result, tuple) and frozenset(call.result) == state
        return [(state, call.result if same else tuple(sorted(state, key=repr)))]
    present = call.argument in state
    if call.f == "contains":
        return [(state, present)]
    after = state | {call.argument} if call.f == "add" else state - {call.argument}
    return [(after, present is (call.f == "remove") if isinstance(call.result, Truth) else ANYTHING)]


def _set_does(call: Call) -> Does:
    if call.f in ("read", "contains"):
        return Does.READS
    return Does.CHANGES if isinstance(call.result, Truth) else Does.OVERWRITES


def _set_parts(call: Call) -> Collection[Hashable] | None:
    return None if call.f == "read" else (call.argument,)


def _set_effect(call: Call) -> Hashable:
    return ("element", call.argument) if call.f == "add" else None


def _set_needs(call: Call) -> Collection[Hashable] | None:
    if call.f == "read":
        elements = call.result if isinstance(call.result, tuple) else ()
        return [("element", element) for element in elements]
    # An add that was told that the element had been there needs it, as does a remove that was told so.
    had = bool(call.result) is (call.f != "add") if isinstance(call.result, Truth) else False
    return (("element", call.argument),) if had else ()


def _mutex(state: State, call: Call) -> list[tuple[State, Value]]:
    return [(not state, ANYTHING)] if state is (call.f == "release") else []


def _mutex_evidence(held: State) -> tuple[Evidence, ...]:
    """Who releases held it; who acquires needs that nobody else does."""
    return (Evidence(f="release"), Evidence(f="acquire", at_least=1 if held else 2))


def _fenced_lock(state: State, call: Call) -> list[tuple[State, Value]]:
    """acquire tells a token greater than all before; release may name the token that it got.

    State: whether it is held, the last token, and whether that is only the least that it can have been, because the
    acquire that got it was indefinite.
    """
    held, last, is_least = state
    if call.f == "acquire":
        if held or (call.result is not UNTOLD and not (isinstance(call.result, int) and call.result > last)):
            return []
        return [((True, last + 1, True) if call.result is UNTOLD else (True, call.result, False), ANYTHING)]
    if not held:
        return []
    if not isinstance(call.argument, int):
        return [((False, last, is_least), ANYTHING)]
    fits = call.argument >= last if is_least else call.argument == last
    return [((False, call.argument, False), ANYTHING)] if fits else []


def _counter(state: State, call: Call) -> list[tuple[State, Value]]:
    return [(state, state)] if call.f == "read" else [(state + call.argument, ANYTHING)]


def _fifo_queue(state: State, call: Call) -> list[tuple[State, Value]]:
    if call.f == "enqueue":
        return [((*state, call.argument), ANYTHING)]
    return [(state[1:], state[0])] if state else [(state, None)]


def _stack(state: State, call: Call) -> list[tuple[State, Value]]:
    if call.f == "push":
        return [((*state, call.argument), ANYTHING)]
    return [(state[:-1], state[-1])] if state else [(state, None)]


def _priority_queue(state: State, call: Call) -> list[tuple[State, Value]]:
    """dequeue tells the least element."""
    if call.f == "enqueue":
        return [(tuple(sorted((*state, call.argument))), ANYTHING)]
    return [(state[1:], state[0])] if state else [(state, None)]


def _unordered_queue(state: State, call: Call) -> list[tuple[State, Value]]:
    """State: how often each element is there."""
    counts = Counter(dict(state))
    if call.f == "enqueue":
        counts[call.argument] += 1
        return [(frozenset(counts.items()), ANYTHING)]
    wanted = [call.result] if call.result is not UNTOLD and call.result in counts else sorted(counts, key=repr)
    return [(frozenset((counts - Counter([one])).items()), one) for one in wanted] or [(state, None)]


def _queue_effect(call: Call) -> Hashable:
    return ("element", call.argument) if call.f in ("enqueue", "push") else None


def _queue_needs(call: Call) -> Collection[Hashable] | None:
    return (("element", call.result),) if call.f in ("dequeue", "pop") else ()


def _bag_effect(call: Call) -> Hashable:
    return ("element", call.argument) if call.f == "enqueue" else "emptiness"


def _bag_needs(call: Call) -> Collection[Hashable]:
    """Who dequeues null needs that elements were taken; whoever takes one needs only that it was there."""
    if call.f == "enqueue" or call.result is UNTOLD:
        return ()
    return ("emptiness",) if call.result is None else (("element", call.result),)


def _bag_parts(call: Call) -> Collection[Hashable] | None:
    """An element is a part. Null is told of all of them, and a dequeue that nobody saw end may have taken any."""
    if call.f == "enqueue":
        return (call.argument,)
    return None if call.result is UNTOLD or call.result is None else (call.result,)


def _counted(value: Value) -> State:
    return frozenset(Counter(map(frozen, value)).items())


def _append_log(state: State, call: Call) -> list[tuple[State, Value]]:
    """append value, told as [position, value] where the position is known; read, which tells all from position 0 on."""
    if call.f == "read":
        return [(state, state)]
    told = isinstance(call.result, tuple) and call.result != call.argument
    return [((*state, call.argument), (len(state), call.argument) if told else ANYTHING)]


def _append_log_effect(call: Call) -> Hashable:
    return ("element", call.argument)


def _append_log_needs(call: Call) -> Collection[Hashable] | None:
    if call.f == "read":
        return [("element", element) for element in call.result] if isinstance(call.result, tuple) else ()
    return None if isinstance(call.result, tuple) else ()


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)


def _reads(*names: str) -> Callable[[Call], Does]:
    return partial(_does_by_name, names)


def _does_by_name(names: tuple[str, ...], call: Call) -> Does:
    return Does.READS if call.f in names else Does.CHANGES


_ALL = (
    REGISTER,
    cas_register(FailedCas.IGNORED),
    Model(
        name="multi-register",
        initial=frozenset(),
        functions=("read", "write", "txn"),
        apply=_multi_register,
        does=_multi_register_does,
        effect=_multi_register_effect,
        needs=_multi_register_needs,
        parts=_multi_register_parts,
        begin=lambda value: frozenset(frozen(list(value.items()))),  # type: ignore[call-overload]
        repeats=_repeating("read", "write", "txn", how=Repeated(same=_same_micro_operations)),
        evidence=_always(*(in_json(f, _reads_a_register, "that reads") for f in ("read", "txn"))),
    ),
    Model(
        name="map",
        initial=None,
        functions=("get", "put", "append"),
        apply=_map,
        does=_map_does,
        repeats=_repeating("put", "append"),
        evidence=_always(*any_ok("get")),
    ),
    Model(
        name="set",
        initial=frozenset(),
        functions=("add", "remove", "contains", "read"),
        apply=_set,
        does=_set_does,
        effect=_set_effect,
        needs=_set_needs,
        parts=_set_parts,
        begin=lambda value: frozenset(map(frozen, value)),
        repeats=_repeating("add", "remove", how=Repeated(answer="^(true|false)$")),
        evidence=_always(
            *any_ok("read", "contains"),
            *(in_json(f, _is_boolean, "that says whether it changed anything") for f in ("add", "remove")),
        ),
    ),
    Model(
        name="mutex",
        initial=False,
        functions=("acquire", "release"),
        apply=_mutex,
        begin=bool,
        repeats={},
        evidence=_mutex_evidence,
    ),
    Model(
        name="fenced-lock",
        initial=(False, 0, False),
        functions=("acquire", "release"),
        apply=_fenced_lock,
        begin=lambda token: (False, frozen(token), False),
        repeats=_repeating("release"),
        evidence=_always(*any_ok("acquire", "release")),
    ),
    Model(
        name="counter",
        initial=0,
        functions=("add", "read"),
        apply=_counter,
        does=_reads("read"),
        repeats=_repeating("add"),
        evidence=_always(*any_ok("read")),
    ),
    Model(
        name="fifo-queue",
        initial=(),
        repeats=_repeating("enqueue"),
        evidence=_always(*any_ok("dequeue")),
        functions=("enqueue", "dequeue"),
        apply=_fifo_queue,
        effect=_queue_effect,
        needs=_queue_needs,
    ),
    Model(
        name="unordered-queue",
        initial=frozenset(),
        repeats=_repeating("enqueue"),
        evidence=_always(*any_ok("dequeue")),
        functions=("enqueue", "dequeue"),
        apply=_unordered_queue,
        effect=_bag_effect,
        needs=_bag_needs,
        parts=_bag_parts,
        begin=_counted,
    ),
    Model(
        name="priority-queue",
        initial=(),
        repeats=_repeating("enqueue"),
        evidence=_always(*any_ok("dequeue")),
        functions=("enqueue", "dequeue"),
        apply=_priority_queue,
        effect=_queue_effect,
        needs=_queue_needs,
        begin=lambda value: tuple(sorted(map(frozen, value))),
    ),
    Model(
        name="stack",
        initial=(),
        functions=("push", "pop"),
        apply=_stack,
        effect=_queue_effect,
        needs=_queue_needs,
        repeats=_repeating("push"),
        evidence=_always(*any_ok("pop")),
    ),
    Model(
        name="append-log",
        initial=(),
        functions=("append", "read"),
        apply=_append_log,
        does=_reads("read"),
        effect=_append_log_effect,
        needs=_append_log_needs,
        repeats=_repeating("append", how=Repeated(within=r"^\[\d+, ?(.*)\]$")),
        evidence=_always(*any_ok("read"), in_json("append", _is_list, "that says where")),
    ),
)

MODELS: Mapping[str, Model] = {model.name: model for model in _ALL}
