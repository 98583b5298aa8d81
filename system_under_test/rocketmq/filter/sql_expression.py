"""What an SQL92 filter means: expressions over a message's properties, in three-valued logic.

A property that a message does not have is unknown (None), and so is every comparison with it; a message passes if the
whole is true. Properties are texts: compared with a number they are read as one, and what is no number is unknown;
compared with TRUE or FALSE they are true if they say `true`, in any case of letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

Value = bool | int | float | str | None
Properties = Mapping[str, str]

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?P<point>\.[0-9]*)?|\.[0-9]+)(?P<exponent>[eE][+-]?[0-9]+)?")
_WHOLE_DIGITS: Final = 20


class Expression(Protocol):
    @property
    def is_truth(self) -> bool:
        """Whether it gives true, false or unknown, rather than a text or a number."""

    def evaluate(self, properties: Properties) -> Value: ...


@dataclass(frozen=True, slots=True)
class Constant:
    value: Value

    @property
    def is_truth(self) -> bool:
        return self.value is None or isinstance(self.value, bool)

    def evaluate(self, properties: Properties) -> Value:
        return self.value


@dataclass(frozen=True, slots=True)
class Property:
    name: str
    is_truth = False

    def evaluate(self, properties: Properties) -> Value:
        return properties.get(self.name)


@dataclass(frozen=True, slots=True)
class Negative:
    """Of anything but a number: unknown."""

    operand: Expression
    is_truth = False

    def evaluate(self, properties: Properties) -> Value:
        value = self.operand.evaluate(properties)
        return -value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class PropertyAsTruth:
    """A property that stands where a truth value is expected is a text, and so never true; missing, it is unknown."""

    operand: Property
    is_truth = True

    def evaluate(self, properties: Properties) -> Value:
        return None if self.operand.evaluate(properties) is None else False


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression
    is_truth = True

    def evaluate(self, properties: Properties) -> Value:
        value = self.operand.evaluate(properties)
        return None if value is None else not value


@dataclass(frozen=True, slots=True)
class All:
    """AND: false if any is, else unknown if any is."""

    operands: tuple[Expression, ...]
    is_truth = True

    def evaluate(self, properties: Properties) -> Value:
        result: Value = True
        for operand in self.operands:
            value = operand.evaluate(properties)
            if value is False:
                return False
            if value is None:
                result = None
        return result


@dataclass(frozen=True, slots=True)
class AnyOf:
    """OR: true if any is, else unknown if any is."""

    operands: tuple[Expression, ...]
    is_truth = True

    def evaluate(self, properties: Properties) -> Value:
        result: Value = False
        for operand in self.operands:
            value = operand.evaluate(properties)
            if value is True:
                return True
            if value is None:
                result = None
        return result


@dataclass(frozen=True, slots=True)
class Equal:
    left: Expression
    right: Expression
    is_truth = True

    def evaluate(self, properties: Properties) -> Value:
        left, right = self.left.evaluate(properties), self.right.evaluate(properties)
        if left is None or right is None:
            return None
        if isinstance(left, bool) or isinstance(right, bool):
            truths = _truth(left), _truth(right)
            return None not in truths and truths[0] == truths[1]
        if isinstance(left, str) and isinstance(right, str):
            return left == right
        numbers = number_of(left), number_of(right)
        return None if None in numbers else numbers[0] == numbers[1]


class Order(Enum):
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


_COMPARE: Final[Mapping[Order, Callable[[float, float], bool]]] = {
    Order.LESS: lambda left, right: left < right,
    Order.LESS_OR_EQUAL: lambda left, right: left <= right,
    Order.GREATER: lambda left, right: left > right,
    Order.GREATER_OR_EQUAL: lambda left, right: left >= right,
}


@dataclass(frozen=True, slots=True)
class Ordered:
    """Both sides are read as numbers."""

    left: Expression
    order: Order
    right: Expression
    is_truth = True

    def evaluate(self, properties: Properties) -> Value:
        left, right = number_of(self.left.evaluate(properties)), number_of(self.right.evaluate(properties))
        return None if left is None or right is None else _COMPARE[self.order](left, right)


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expression
    is_truth = True

    def evaluate(self, properties: Properties) -> Value:
        return self.operand.evaluate(properties) is None


@dataclass(frozen=True, slots=True)
class In:
    operand: Property
    texts: frozenset[str]
    is_truth = True

    def evaluate(self, properties: Properties) -> Value:
        value = self.operand.evaluate(properties)
        return None if value is None else value in self.texts


class Part(Enum):
    CONTAINS = "CONTAINS"
    STARTSWITH = "STARTSWITH"
    ENDSWITH = "ENDSWITH"


_HAS_PART: Final[Mapping[Part, Callable[[str, str], bool]]] = {
    Part.CONTAINS: lambda text, part: part in text,
    Part.STARTSWITH: str.startswith,
    Part.ENDSWITH: str.endswith,
}


@dataclass(frozen=True, slots=True)
class HasPart:
    """Never unknown: of what is no text, and for an empty part, it is false, with NOT or without it."""

    operand: Expression
    part: Part
    text: str
    is_negated: bool
    is_truth = True

    def evaluate(self, properties: Properties) -> Value:
        value = self.operand.evaluate(properties)
        if not isinstance(value, str) or not self.text:
            return False
        return _HAS_PART[self.part](value, self.text) is not self.is_negated


def number_of(value: Value) -> int | float | None:
    """A number as it is, a text as the number it says; None for everything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        if match is None:
            return None
        is_whole = match["point"] is None and match["exponent"] is None and value.lstrip("+-")[:1] != "."
        return int(value) if is_whole and len(value) <= _WHOLE_DIGITS else float(value)
    return value


def _truth(value: Value) -> bool | None:
    """None for numbers, which equal no truth value."""
    if isinstance(value, str):
        return value.lower() == "true"
    return value if isinstance(value, bool) else None
