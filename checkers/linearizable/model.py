"""Models: what an object does when its operations happen one by one.

A model is a function from a state and a call to the states that may follow, each with the result that the call then
returns. An object of one's own takes a few lines:

    def light(state, call):
        return [(not state, ANYTHING)] if call.f == "toggle" else [(state, state)]

    LIGHT = Model(
        name="light", initial=False, functions=("toggle", "read"), apply=light, evidence=always(*any_ok("read"))
    )

In a module `lights` on Python's path, it is what `stormproof check --model lights:LIGHT` judges histories by.

States, arguments and results are values as `values.frozen` makes them; a model may return True and False all the same.
What else it says (which calls only read, which overwrite, what needs what) makes the search faster and changes no
verdict.
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
    """Results that are no values."""

    INDEFINITE = "indefinite"
    """The call is indefinite: its result is unknown, and so is whether it happened."""
    FAILED = "failed"
    """A compare-and-set that ran and found another value."""
    ANYTHING = "anything"
    """What a model returns where the result of the call does not depend on the state."""


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
    """It is always possible, and leaves all parts that it touches in one and the same state, whatever they were."""


class FailedCas(Enum):
    """What a failed compare-and-set without an error says."""

    IGNORED = "ignored"
    """Nothing: it did not happen."""
    ANSWER = "answer"
    """It ran, and found another value than the one that it expected."""


ASKING = ("read", "get", "dequeue", "pop")
"""Functions without an argument, which are called for their result."""


def describe(call: Call) -> str:
    argument = "" if call.argument is None else f" {render(call.argument)}"
    # A write of null is complete with its name; of a function without an argument, null is the result.
    is_silent = isinstance(call.result, Answer) or (call.result == call.argument and call.f not in ASKING)
    result = "" if is_silent else f" that returned {render(call.result)}"
    failed = " that failed" if call.result is Answer.FAILED else ""
    return f"{call.f}{argument}{result}{failed}"


# What a completion may repeat of its invocation.


Same = Callable[[Value, Value], bool]
"""Whether the value of a completion, decoded from JSON, repeats that of its invocation."""


def _equal(asked: Value, completed: Value) -> bool:
    return frozen(asked) == frozen(completed)


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """How a completion repeats the value of its invocation; null repeats anything."""

    answer: str = ""
    """A pattern of JSON that is an answer, and repeats nothing."""
    within: str = ""
    """A pattern of JSON that has what is repeated as its group, beside an answer."""
    same: Same = _equal
    """For what is neither equal nor of these patterns: numbers may be written in several ways."""


PLAINLY = Repeated()


def repeating(*functions: str, how: Repeated = PLAINLY) -> Mapping[str, Repeated]:
    return dict.fromkeys(functions, how)


# What could contradict a model.


Evidences = Callable[[State], tuple[Evidence, ...]]
"""What could contradict a model that begins in that state."""


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
    """What `--initial` takes for a model, and the state that it stands for."""

    accepts: Callable[[Value], bool] = _is_anything
    """Of a value decoded from JSON."""
    expected: str = "a value"
    """What is accepted, in the words of a message."""
    state: Callable[[Value], State] = frozen


def elements(state: Callable[[Value], State] = frozen) -> Beginning:
    """Of an object that holds elements."""
    return Beginning(accepts=is_list, expected="a list of elements, e.g. [1, 2]", state=state)


# What cannot follow.


Hopeless = Callable[[State, Sequence[int], Sequence[int]], bool]
"""Whether nothing can follow in a state; given by kind how many calls have to take effect yet, and how many may."""


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
    """How objects of a model are decided where no value is given to them twice."""

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
    """The states that may follow, each with the result that the call then has; none where the call is impossible."""
    does: Callable[[Call], Does] = _changes
    effect: Callable[[Call], Hashable] = _untraced
    """By what the effect of an indefinite call is known to those that need it; None if everything may need it."""
    needs: Callable[[Call], Collection[Hashable] | None] = _everything
    """The effects without which a call is impossible as it is; None if it may need any."""
    parts: Callable[[Call], Collection[Hashable] | None] = _everything
    """What of the object the call reads or changes, by name; None if all of it. Parts change by themselves: what a
    call does to those that it touches does not depend on the others."""
    only_in: Callable[[Call], tuple[State] | None] = _unknown
    """The only state in which the call is possible, as far as it concerns the call; None if there are several, or
    none. It only serves to explain why an object is not linearizable."""
    hopeless: Callable[[Sequence[Call]], Hopeless] | None = None
    """Of these calls, each once: from a state, how many of each have to happen yet and how many may, whether there is
    no order of them from that state. Where there is one, it says no."""
    begins: Beginning = Beginning()
    """What it can begin with instead of `initial`."""
    failed_cas: FailedCas = FailedCas.IGNORED
    evidence: Evidences
    """What could contradict this model, by the state in which it begins: a history without any proves nothing."""
    repeats: Mapping[str, Repeated] = field(default_factory=dict)
    """Functions whose ok completion can only repeat the value of the invocation; of the others it is an answer."""
    decided: Decided | None = None
    """None: all objects of this model are searched."""
    is_prefix_closed: bool = True
    """Whether an indefinite call may do all that it may do with any result that it may turn out to have. A history then
    has an order only if each prefix of it has one."""
    keyed: bool | None = None
    """Whether a pair `[a b]` in a history of others is a key and its value; False: it is an argument or a result. None:
    it is a key where all operations have pairs."""
    initial_json: str | None = None
    """The initial value as given, where it is another one than the model's."""

    def beginning_with(self, value: Value) -> Model:
        """`value`: decoded from JSON, of what `begins` accepts."""
        return replace(self, initial=self.begins.state(value))

    def step(self, state: State, call: Call) -> list[State]:
        """The states that may follow if the call had the result that it has."""
        return [
            after
            for after, result in self.apply(state, call)
            if result is ANYTHING or call.result is INDEFINITE or frozen(result) == call.result
        ]

    def replayed(self, value: Value = None) -> Callable[[str, Value, Value, bool], bool]:
        """One operation after the other, from this value (None: the model's own): whether each is possible, given its
        function, argument and result as decoded from JSON, and whether the result is known."""
        states = {self.initial if value is None else self.begins.state(value)}

        def run(f: str, argument: Value, result: Value, is_definite: bool) -> bool:
            nonlocal states
            call = Call(f=f, argument=frozen(argument), result=frozen(result) if is_definite else INDEFINITE)
            states = {after for state in states for after in self.step(state, call)}
            return bool(states)

        return run

    def says_nothing(self, call: Call) -> bool:
        """A read of null where no null can be was not seen, and what only reads is of no use without its result."""
        if self.does(call) is not Does.READS:
            return False
        return call.result is INDEFINITE or (
            call.f == "read" and call.result is None and self.initial is not None and "write" in self.functions
        )


def possible_results(model: Model, state: Any, call: Call) -> list[Any]:
    """The results that the call could have had in this state."""
    unknown = replace(call, result=INDEFINITE)
    return [result for _, result in model.apply(state, unknown) if result is not ANYTHING]
