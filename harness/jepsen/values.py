"""What the value of a recorded operation means: its key, the fields of a struct, or the error that stands in its place.

A value that is no map is the field `value`; a cas `[a b]` is `expected` a and `value` b; a sequence is the field
`values` where there is one, a map from accounts to amounts the field `balances`, one from keys to values the field
`reads`, a sequence of `[f key value]` the field `txn`, the value of a read being a list or not (of a log see
`log_parts`); a key is called what
it reads, an integer 4 `4`, a keyword or string x `x`, and one that reads like an integer has its quotes, `"4"`,
for another key is meant. Fields `position`
and `link` are what the operation has by these names beside its value, as text. Where the struct is but `json`, any
value is kept as JSON text. In a history without `:key` the first value of an invocation decides: if it is a pair
where a single one belongs, it is taken as lifted by its key, `[k v]`, and so are all that follow. A failed or
indefinite operation may carry its error in place of a value.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pyarrow as pa

from harness.jepsen import edn
from harness.jepsen.log_parts import POSITIONING, NoPart, is_log_part, log_parts
from harness.jepsen.shape import Shape
from harness.jepsen.transactions import A_TRANSACTION, FUNCTIONS, MICRO_OPERATION
from harness.record.history.named_values import LEAST_INTEGER, NULL, Numbering

ECHO = "echo"
"""What is answered may be the message that has it."""
_INTEGERS = {int}
_LIKE_A_NUMBER = re.compile(r'"*-?\d+"*')

EXHAUSTED = edn.Keyword("exhausted")
"""What queues of Jepsen's older tests answer when nothing is left."""


class Meaning(NamedTuple):
    """Of one value."""

    key: str | None
    cells: tuple[Any, ...]
    """A value for each field of the struct."""
    error: str | None


class Values:
    """Values as they were recorded, into the fields of a struct."""

    def __init__(self, shape: Shape, numbering: Numbering) -> None:
        value_type = shape.value_type
        self.value_type = value_type
        names = [value_type.field(number).name for number in range(value_type.num_fields)]
        self.none: tuple[Any, ...] = (None,) * len(names)
        self._shape = shape
        self._numbering = numbering
        self._position = {name: number for number, name in enumerate(names)}
        self._single = self._position.get("value")
        self._swaps = self._single is not None and "expected" in self._position
        self._before = self.none[: self._single or 0]
        self._after = self.none[(self._single or 0) + 1 :]
        kind = None if self._single is None else value_type.field(self._single).type
        self._is_text = kind is not None and pa.types.is_string(kind)
        self._lists = {number for number, field in enumerate(value_type) if pa.types.is_list(field.type)}
        self._structs = {at for at in self._lists if pa.types.is_struct(value_type.field(at).type.value_type)}
        self._sequence = self._position.get("values")
        self._balances = self._position.get("balances")
        self._txn = self._position.get("txn")
        self._reads = self._position.get("reads")
        self.of_log = self._txn is not None and is_log_part(value_type.field(self._txn).type.value_type)
        """Whether transactions are those of a log."""
        self._is_sequence = kind is not None and pa.types.is_list(kind)
        self._has_floats = "float" in str(value_type) or "double" in str(value_type)
        self.lifted = shape.keyed
        """Whether values come as `[k v]`; None while that is not decided."""
        self._has_pairs = False
        self._puts_lists = False
        """Whether a list was ever put in."""

    def meaning(self, f: str, value: Any, failed: bool, has_key: bool) -> Meaning:
        """Of a value that an operation has, which has a key of its own or not. Raises Malformed."""
        if self.of_log and f in POSITIONING:
            return Meaning(None, self.none, None)
        if value.__class__ is int and self.lifted is False:
            return Meaning(None, self.fields(f, value), None)
        if value is A_TRANSACTION:
            if self.lifted and not has_key:
                raise Malformed("value must be [key value], as in the operations before, it is a transaction alone")
            return Meaning(None, self.none, None)
        if failed and isinstance(value, str) and not self.may_be(f, value):
            return Meaning(None, self.none, text(value))
        key = None
        if value is not None and not has_key and self.lifted is not False:
            key, value = self.split(f, value)
        return Meaning(None if key is None else text(key), self.fields(f, value), None)

    def learn(self, f: Any, value: Any, *, is_invoked: bool, has_key: bool) -> None:
        """Decide from an operation whether values are lifted, where none has decided it before."""
        if has_key or not isinstance(f, str) or (self.of_log and f in POSITIONING):
            return
        if not is_invoked:
            # Of an answer to what was invoked without a value.
            self.lifted = False if value is not None and not self._shape.answering else None
        elif isinstance(value, edn.Lifted):
            self.lifted = True
        elif f in self._shape.answering:
            self.lifted = _is_pair(value)
        elif value is not None and not (_is_pair(value) and self._is_lifted(f, value)):
            self.lifted = False
        elif value is not None:
            self._has_pairs = True
            # Where nothing is known of functions, or a pair is nothing else.
            is_transaction = self._txn is not None and (self._single is None or f == "txn")
            self.lifted = True if not self._shape.answering or is_transaction else None

    def settle(self) -> None:
        """Nothing more is known of it than what was learnt."""
        if self.lifted is None and self._has_pairs:
            self.lifted = True

    def taken(self, f: str, drained: Any, taken: list[Any]) -> Any:
        """What a drain showed at its end and before it."""
        elements = [self.split(f, one)[1] if _is_pair(one) else one for one in taken]
        last = self.split(f, drained)[1] if _is_pair(drained) else drained
        return (*(one for one in elements if one is not None), *(last if isinstance(last, tuple | list) else ()))

    def look_for_lists(self, f: str, value: Any) -> None:
        """Of an invocation: note whether what is put in is a list."""
        if f in self._shape.puts and self._shape.batches:
            element = value[1] if self.lifted and _is_pair(value) else value
            self._puts_lists |= isinstance(element, tuple | list)

    def may_be(self, f: str, value: str) -> bool:
        return self._is_text and not isinstance(value, edn.Keyword)

    def split(self, f: str, value: Any) -> tuple[Any, Any]:
        """Key and value of an operation that has a value and no key beside it. Raises Malformed."""
        if not self.lifted:
            return None, value
        if not _is_pair(value):
            raise Malformed(f"value must be [key value], as in the operations before, it is {edn.written(value)}")
        return value[0], value[1]

    def fields(self, f: str, value: Any) -> tuple[Any, ...]:
        """Raises Malformed."""
        if value is None:
            return self.none
        if value.__class__ is int and self._single is not None and f != "cas" and f not in self._shape.lists:
            return (*self._before, self._one(value), *self._after)
        if self._txn is not None and isinstance(value, tuple | list) and (self._single is None or f == "txn"):
            row = list(self.none)
            row[self._txn] = self._parts(value)
            return tuple(row)
        if not self._shape.any_values and not self._has_floats and _holds_float(value):
            # Arrow would cut it off without a word.
            raise Malformed(f"value must be made of {self.value_type}, it is {edn.written(value)}")
        cells: list[Any] = [None] * len(self.none)
        if isinstance(value, dict) and not self._is_one(value):
            self._fill(cells, value)
        elif f in self._shape.lists and self._sequence is not None:
            cells[self._sequence] = self._listed(f, value)
        elif self._is_batch(f, value) and self._sequence is not None:
            cells[self._sequence] = self._several(value)
        elif self._single is None:
            known = ", ".join(self._position)
            raise Malformed(f"value must be a map with {known}, it is {edn.written(value)}")
        elif f == "cas" and self._swaps:
            if not isinstance(value, tuple | list) or len(value) != 2:
                raise Malformed(f"the value of a cas must be [expected new], it is {edn.written(value)}")
            cells[self._position["expected"]], cells[self._single] = map(self._one, value)
        else:
            cells[self._single] = self._one(value)
        return tuple(cells)

    def hold(self, cells: tuple[Any, ...]) -> bool:
        """Whether columns take what the fields of a value are."""
        return all(cell is None or fits(cell, field.type) for cell, field in zip(cells, self.value_type, strict=True))

    def put_null(self, f: str) -> tuple[Any, ...]:
        """Of an operation that is to put null in. Raises Malformed."""
        if not self._shape.any_values or f not in self._shape.puts or self._single is None:
            return self.none
        if self._shape.batches:
            raise Malformed(f"{f} puts null in, which cannot be distinguished from the answer that nothing was there")
        return (*self._before, self._numbering.of(edn.identity(None)), *self._after)

    def _fill(self, cells: list[Any], value: dict[Any, Any]) -> None:
        """The fields of a map. Raises Malformed."""
        is_struct = value.keys() <= self._position.keys()
        if self._balances is not None and not is_struct:
            cells[self._balances] = [{"account": _number(name), "amount": amount} for name, amount in value.items()]
        elif self._reads is not None and not is_struct:
            cells[self._reads] = [{"key": text(name), "value": cell} for name, cell in value.items()]
        else:
            for name, cell in value.items():
                if name not in self._position:
                    known = ", ".join(self._position)
                    raise Malformed(f"value has a field {edn.written(name)}; known are {known}")
                if isinstance(cell, str) and self._position[name] in self._lists:
                    # Arrow takes a text for the list of its characters.
                    raise Malformed(f"{name} must be a list, it is {edn.written(cell)}")
                if self._position[name] in self._structs and isinstance(cell, tuple | list) and None in cell:
                    raise Malformed(f"{name} must be a list of maps, it is {edn.written(cell)}")
                if self._shape.any_values and name in ("value", "expected"):
                    cell = self._one(cell)
                elif self._shape.any_values and name == "values" and cell is not None:
                    cell = self._listed("values", cell)
                cells[self._position[name]] = cell

    def _is_one(self, value: dict[Any, Any]) -> bool:
        """Whether a map is a value of its own, rather than one of ours with the names of its fields."""
        return (
            self._shape.any_values
            and self._single is not None
            and not (value and value.keys() <= self._position.keys())
        )

    def _is_batch(self, f: str, value: Any) -> bool:
        """Whether a list is several elements."""
        if not isinstance(value, tuple | list):
            return False
        shape = self._shape
        if not shape.any_values:
            is_known = shape.asking or shape.answering
            return not is_known or f in shape.lists | shape.batches
        return f in shape.batches and not self._puts_lists

    def _listed(self, f: str, value: Any) -> Any:
        """Raises Malformed."""
        if value == EXHAUSTED and isinstance(value, edn.Keyword):
            return []
        if not isinstance(value, tuple | list):
            raise Malformed(f"{f} must show a list of elements, it is {edn.written(value)}")
        return self._several(value)

    def _one(self, value: Any) -> Any:
        """A value as an integer of 64 bits. Raises Malformed."""
        if not self._shape.any_values:
            return _plain(value)
        if value.__class__ is float and value.is_integer():
            value = int(value)
        if value is None or (value.__class__ is int and LEAST_INTEGER <= value < -NULL):
            return value
        return self._numbering.of(edn.identity(value))

    def _several(self, values: Any) -> Any:
        """The same of elements, of which null is one. Raises Malformed."""
        if not self._shape.any_values or not values:
            return values
        if set(map(type, values)) == _INTEGERS and min(values) >= LEAST_INTEGER and max(values) < -NULL:
            return values
        return [self._numbering.of(edn.identity(None)) if value is None else self._one(value) for value in values]

    def _parts(self, value: Any) -> list[dict[str, Any]]:
        """Raises Malformed."""
        if not self.of_log:
            return [self._micro_operation(part) for part in value]
        try:
            return [one for part in value for one in log_parts(part)]
        except NoPart as error:
            raise Malformed(str(error)) from None

    def _micro_operation(self, part: Any) -> dict[str, Any]:
        """Raises Malformed."""
        if isinstance(part, dict):
            return self._named_parts(part)
        if not isinstance(part, tuple | list) or len(part) != 3:
            raise Malformed(f"a part of a transaction must be [f key value], it is {edn.written(part)}")
        f, key, value = part
        if f not in FUNCTIONS:
            of = ", ".join(FUNCTIONS)
            raise Malformed(f"a part of a transaction must be [f key value] with f of {of}, it is {edn.written(part)}")
        several = isinstance(value, tuple | list) and (not self._shape.any_values or f in self._shape.lists)
        if self._shape.any_values:
            one = self._one(value) if not several else None
            if value is None and f == "append":
                one = self._numbering.of(edn.identity(None))
            return {"f": str(f), "key": _key(key), "value": one, "values": self._several(value) if several else None}
        _require_integers(value if several else () if value is None else (value,), value)
        elements = [_plain(element) for element in value] if several else None
        return {"f": str(f), "key": _key(key), "value": None if several else _plain(value), "values": elements}

    def _named_parts(self, part: dict[str, Any]) -> dict[str, Any]:
        """As our columns have it, where a key has its name already. Raises Malformed."""
        if not part.keys() <= set(MICRO_OPERATION.names):
            raise Malformed(
                f"a part of a transaction has {', '.join(MICRO_OPERATION.names)}, it is {edn.written(part)}"
            )
        key, values = part.get("key"), part.get("values")
        named = self._micro_operation((part.get("f"), key, part.get("value") if values is None else values))
        return named | {"key": key} if isinstance(key, str) else named

    def _is_lifted(self, f: str, value: Any) -> bool:
        """Whether a pair is a key and what belongs to it, rather than a value of its own."""
        if f == "cas" and self._swaps:
            return isinstance(value[1], tuple | list)
        if self._txn is not None and (self._single is None or f == "txn"):
            return not isinstance(value[0], tuple | list | dict)
        return not self._is_sequence or value[1] is None or isinstance(value[1], tuple | list)


class JsonValues(Values):
    """Any values, as JSON."""

    def may_be(self, f: str, value: str) -> bool:
        return f != "cas" and not isinstance(value, edn.Keyword)

    def fields(self, f: str, value: Any) -> tuple[Any, ...]:
        """Raises Malformed."""
        if f == "cas" and value is not None and not (isinstance(value, tuple | list) and len(value) == 2):
            raise Malformed(f"the value of a cas must be [expected new], it is {edn.written(value)}")
        if f == ECHO and isinstance(value, dict):
            value = value.get(ECHO, value)
        if value.__class__ is int:
            return (repr(value),)
        return (json.dumps(with_text_keys(value)),)

    def _is_lifted(self, f: str, value: Any) -> bool:
        if f == "cas":
            return isinstance(value[1], tuple | list)
        return not isinstance(value[0], tuple | list)


def with_text_keys(value: Any) -> Any:
    """The same value with keys that JSON has."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else edn.identity(key): with_text_keys(item) for key, item in value.items()}
    return [with_text_keys(item) for item in value] if isinstance(value, tuple | list) else value


class Malformed(Exception):
    """An operation that does not fit those before it, or that is none."""


def _holds_float(value: Any) -> bool:
    kind = value.__class__
    if kind is dict:
        value = value.values()
    elif not isinstance(value, tuple | list):
        return kind is float
    return any(cell.__class__ is not int and _holds_float(cell) for cell in value)


def _require_integers(numbers: Any, value: Any) -> None:
    """Raises Malformed."""
    for number in numbers:
        if number.__class__ is not int or not NULL <= number < -NULL:
            kind = "values of transactions must be integers of 64 bits, or lists of them"
            raise Malformed(f"{kind}, it is {edn.written(value)}")


def _key(key: Any) -> str:
    """An integer is never called like a string."""
    if key.__class__ is not int and not isinstance(key, str):
        raise Malformed(f"a key must be an integer, a keyword or a string, it is {edn.written(key)}")
    is_quoted = isinstance(key, str) and _LIKE_A_NUMBER.fullmatch(key)
    return edn.written(str(key)) if is_quoted else text(key)


def key_of(name: str) -> int | str:
    """The key of a transaction that is called so."""
    if not _LIKE_A_NUMBER.fullmatch(name):
        return name
    return int(name) if name[0] != '"' else str(json.loads(name))


def _number(name: Any) -> Any:
    """Names in JSON are always text."""
    try:
        return int(name)
    except (TypeError, ValueError):
        raise Malformed(f"an account must be a number, it is {edn.written(name)}") from None


def fits(cell: Any, kind: pa.DataType) -> bool:
    """Whether a column of this type takes the value."""
    if cell.__class__ is int and pa.types.is_int64(kind):
        return bool(NULL <= cell < -NULL)
    try:
        pa.array([cell], kind)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return False
    return True


def text(value: Any) -> str:
    """As a key or an error is written."""
    return str(value) if isinstance(value, str) else edn.written(value)


def _is_pair(value: Any) -> bool:
    return value.__class__ in (tuple, list, edn.Lifted) and len(value) == 2


def _plain(value: Any) -> Any:
    """Raises Malformed."""
    if value.__class__ is int and value == NULL:
        raise Malformed(f"value must be more than {NULL}, which stands for null")
    return value
