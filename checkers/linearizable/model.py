"""Models: what an object does when its operations happen one by one.

A model is a function from a state and a call to the states that may follow, each with the result that the call then
returns. An object of one's own takes a few lines:

    def light(state, call):
        return [(not state, ANYTHING)] if call.f == "toggle" else [(state, state)]

    LIGHT = Model(
        name="light", initial=False, functions=("toggle", "read"), apply=light, evidence=always(*any_ok("read"))
    )

In a module `lights` on Python's path, it is what `stormproof check --model lights:LIGHT` judges histories by.

States, arguments and results are values as `values.frozen` makes them; a model may also return True and False. Its
other fields (which calls only read, which overwrite, which need which) make the search faster and change no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any

from checkers.api.evidence import Evidence
from checkers.linearizable.deciders.spans import Decider
from checkers.linearizable.values import frozen, render

State = Any
Value = Any


# What a call does and returns.


class Answer(Enum):
    """Results that are not values."""

    INDEFINITE = "indefinite"
    """The call is indefinite: its result is unknown, and so is whether it happened."""
    FAILED = "failed"
    """A compare-and-set that ran and found another value."""
    ANYTHING = "anything"
    """What a model returns if the result of the call does not depend on the state."""


INDEFINITE, FAILED, ANYTHING = Answer.INDEFINITE, Answer.FAILED, Answer.ANYTHING


@dataclass(frozen=True, kw_only=True)
class Call:
    """One operation on an object: its function, its argument, and its result."""

    f: str
    argument: Hashable
    result: Hashable


class Does(Enum):
    CHANGES = "changes"
    READS = "reads"
    """It never changes a state."""
    OVERWRITES = "overwrites"
    """It is always possible, and the state in which it leaves the parts that it touches does not depend on the one
    before."""


class FailedCas(Enum):
    """What a failed compare-and-set without an error says."""

    IGNORED = "ignored"
    """Nothing, because it did not happen."""
    ANSWER = "answer"
    """It ran, and found another value than the one that it expected."""


ASKING = ("read", "get", "dequeue", "pop")
"""Functions without an argument, which are called for their result."""


def describe(call: Call) -> str:
    argument = "" if call.argument is None else f" {render(call.argument)}"
    # For a write, null is the argument, which was shown already; for a function without an argument it is the result.
    is_silent = isinstance(call.result, Answer) or (call.result == call.argument and call.f not in ASKING)
    result = "" if is_silent else f" that returned {render(call.result)}"
    failed = " that failed" if call.result is Answer.FAILED else ""
    return f"{call.f}{argument}{result}{failed}"


# What a completion may repeat from its invocation.


Same = Callable[[Value, Value], bool]
"""A function that says whether the value of a completion, decoded from JSON, repeats that of its invocation."""


def _equal(asked: Value, completed: Value) -> bool:
    return frozen(asked) == frozen(completed)


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """How a completion repeats the value of its invocation; null repeats anything."""

    answer: str = ""
    """A pattern of JSON that is an answer and repeats nothing."""
    within: str = ""
    """A pattern of JSON whose group is what is repeated, next to an answer."""
    same: Same = _equal
    """Compares values that are neither equal nor match these patterns: numbers may be written in several ways."""


PLAINLY = Repeated()


def repeating(*functions: str, how: Repeated = PLAINLY) -> Mapping[str, Repeated]:
    return dict.fromkeys(functions, how)


# What could contradict a model.


Evidences = Callable[[State], tuple[Evidence, ...]]
"""A function from the state in which a model begins to what could contradict it."""


def always(*evidence: Evidence) -> Evidences:
    return partial(_whatever_the_state, evidence)


def _whatever_the_state(evidence: tuple[Evidence, ...], state: State) -> tuple[Evidence, ...]:
    return evidence


def is_boolean(value: object) -> bool:
    return isinstance(value, bool)


def is_list(value: object) -> bool:
    return isinstance(value, list)


# What an object can begin with.


def _is_anything(value: object) -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """The values that `--initial` takes for a model, and the states that they stand for."""

    accepts: Callable[[Value], bool] = _is_anything
    """Whether a value decoded from JSON is accepted."""
    expected: str = "a value"
    """The values that are accepted, in the words of a message."""
    state: Callable[[Value], State] = frozen


def elements(state: Callable[[Value], State] = frozen) -> Beginning:
    """The beginning of an object that holds elements."""
    return Beginning(accepts=is_list, expected="a list of elements, e.g. [1, 2]", state=state)


# What cannot follow.


Hopeless = Callable[[State, Sequence[int], Sequence[int]], bool]
"""A function that says whether a state is hopeless: whether no order of the remaining calls is possible from it. It
gets, by kind, how many calls still have to take effect, and how many may."""


# How an object is decided without a search.


class Columns(Enum):
    """How the rows of an object become the numbers that its decider takes."""

    VALUES = "values"
    """Each call has one value (`history.columns`)."""
    ORDERED_VALUES = "ordered values"
    """The same, and the decider asks which of two values is less."""
    CONTENTS = "contents"
    """Some calls read all that the object holds (`history.contents`)."""
    APPENDED = "appended"
    """Values are put and appended, and calls read what they are together (`history.appended`)."""


@dataclass(frozen=True, kw_only=True)
class Decided:
    """How objects of a model are decided if no value is given to them twice."""

    by: Decider
    columns: Columns = Columns.VALUES
    holds: Callable[[State], Sequence[Hashable]] = tuple
    """What an object in this state holds, in its own order."""


# Models.


def _changes(call: Call) -> Does:
    return Does.CHANGES


def reading(*names: str) -> Callable[[Call], Does]:
    """These functions only read, all others change the state."""
    return partial(_does_by_name, names)


def _does_by_name(names: tuple[str, ...], call: Call) -> Does:
    return Does.READS if call.f in names else Does.CHANGES


def _untraced(call: Call) -> Hashable:
    return None


def _everything(call: Call) -> Collection[Hashable] | None:
    return None


def _unknown(call: Call) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Model:
    name: str
    initial: State
    functions: tuple[str, ...]
    apply: Callable[[State, Call], Iterable[tuple[State, Value]]]
    """The states that may follow, each with the result that the call then has; none if the call is impossible."""
    does: Callable[[Call], Does] = _changes
    effect: Callable[[Call], Hashable] = _untraced
    """A name for the effect of an indefinite call, as `needs` uses it; None if any call may need it."""
    needs: Callable[[Call], Collection[Hashable] | None] = _everything
    """The effects without which a call with this result is impossible; None if it may need any."""
    parts: Callable[[Call], Collection[Hashable] | None] = _everything
    """The names of the object's parts that the call reads or changes; None if it may be all of them. Parts are
    independent: what a call does to those that it touches does not depend on the others."""
    only_in: Callable[[Call], tuple[State] | None] = _unknown
    """The only state in which the call is possible, as far as it concerns the call; None if there are several, or
    none. It only serves to explain why an object is not linearizable."""
    hopeless: Callable[[Sequence[Call]], Hopeless] | None = None
    """Makes a function for these calls, each of which occurs once, that says whether a state is hopeless. It must not
    say so if there is an order."""
    begins: Beginning = Beginning()
    """The values that it can begin with in place of `initial`."""
    failed_cas: FailedCas = FailedCas.IGNORED
    evidence: Evidences
    """What could contradict this model, by the state in which it begins. A history without any of it proves nothing."""
    repeats: Mapping[str, Repeated] = field(default_factory=dict)
    """Functions whose ok completion can only repeat the value of the invocation. For others it is an answer."""
    decided: Decided | None = None
    """How objects of this model are decided; None: all of them are searched."""
    is_prefix_closed: bool = True
    """Whether an indefinite call may do everything that it may do with any result. Then a history has an order only if
    each prefix of it has one."""
    keyed: bool | None = None
    """Whether a pair `[a b]` in a foreign history is a key and its value. False: it is an argument or a result. None:
    it is a key if all operations have pairs."""
    initial_json: str | None = None
    """The initial value as given, if it is not the model's own."""

    def beginning_with(self, value: Value) -> Model:
        """The model that begins with this value, decoded from JSON, which `begins` accepts."""
        return replace(self, initial=self.begins.state(value))

    def step(self, state: State, call: Call) -> list[State]:
        """The states that may follow the call with the result that it has."""
        return [
            after
            for after, result in self.apply(state, call)
            if result is ANYTHING or call.result is INDEFINITE or frozen(result) == call.result
        ]

    def replayed(self, value: Value = None) -> Callable[[str, Value, Value, bool], bool]:
        """A function that is called for one operation after the other, beginning with this value (None: the model's
        own). It gets an operation's function, argument and result as decoded from JSON, and whether the result is
        known, and returns whether the operation is possible."""
        states = {self.initial if value is None else self.begins.state(value)}

        def run(f: str, argument: Value, result: Value, is_definite: bool) -> bool:
            nonlocal states
            call = Call(f=f, argument=frozen(argument), result=frozen(result) if is_definite else INDEFINITE)
            states = {after for state in states for after in self.step(state, call)}
            return bool(states)

        return run

    def says_nothing(self, call: Call) -> bool:
        """Whether a call shows nothing: a read of null where there can be no null has no answer, and a call that only
        reads is of no use without one."""
        if self.does(call) is not Does.READS:
            return False
        return call.result is INDEFINITE or (
            call.f == "read" and call.result is None and self.initial is not None and "write" in self.functions
        )


def possible_results(model: Model, state: Any, call: Call) -> list[Any]:
    """The results that the call could have had in this state."""
    unknown = replace(call, result=INDEFINITE)
    return [result for _, result in model.apply(state, unknown) if result is not ANYTHING]
