"""Whether the values of a table can be what its workload's operations hold.

Arrow casts a boolean, a decimal or a text of digits to an integer without a word, and what came of it would be judged
as if it had been recorded. So a member that means something has the type that it means, in any width and encoding; it
may be missing, or null throughout. Members that the workload does not know may be of any type.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from harness.record.history.schema import MalformedHistory


def require_values(
    came: pa.DataType, expected: pa.DataType, *, path: Path | None = None, member: str = "value"
) -> None:
    """Raises MalformedHistory at the first member of another type."""
    came = came.value_type if pa.types.is_dictionary(came) else came
    if pa.types.is_null(came):
        return
    if pa.types.is_struct(expected) and pa.types.is_struct(came):
        for field in expected:
            at = came.get_field_index(field.name)
            if at >= 0:
                require_values(came.field(at).type, field.type, path=path, member=f"{member}.{field.name}")
    elif is_list(expected) and is_list(came):
        require_values(came.value_type, expected.value_type, path=path, member=f"{member}[]")
    elif not _means_the_same(came, expected):
        raise _other(member, came, str(expected) if not pa.types.is_nested(expected) else _nested(expected), path)


def require_json(came: pa.DataType, *, path: Path | None = None, member: str = "value") -> None:
    """The same where values may be anything that JSON has; a member `json` is its text."""
    came = came.value_type if pa.types.is_dictionary(came) else came
    if pa.types.is_struct(came):
        for field in came:
            if field.name == "json" and member == "value":
                require_values(field.type, pa.string(), path=path, member="value.json")
            else:
                require_json(field.type, path=path, member=f"{member}.{field.name}")
    elif is_list(came):
        require_json(came.value_type, path=path, member=f"{member}[]")
    elif not any(
        is_one(came)
        for is_one in (pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, _is_text)
    ):
        raise _other(member, came, "a number, a string, a boolean, a list or a struct", path)


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _means_the_same(came: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_string(expected):
        return _is_text(came)
    if pa.types.is_integer(expected):
        return bool(pa.types.is_signed_integer(came))
    return bool(came == expected)


def _nested(expected: pa.DataType) -> str:
    return "a struct" if pa.types.is_struct(expected) else f"a list of {expected.value_type}"


def _other(member: str, came: pa.DataType, expected: str, path: Path | None) -> MalformedHistory:
    reason = f"column {member!r} must be {expected}, it is {came}; write it with that type"
    return MalformedHistory(None, reason, path=path)
