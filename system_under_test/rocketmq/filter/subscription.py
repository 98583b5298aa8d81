"""Which messages of a topic a group of consumers wants, as it says in its pulls and its heartbeats.

By tags: `tagA || tagB`; `*`, or nothing at all, is every message. Or by an SQL92 filter over properties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from system_under_test.rocketmq.filter.sql_expression import Expression
from system_under_test.rocketmq.filter.sql_parser import parse_sql
from system_under_test.storage.message import MessageInvalid, properties_of
from system_under_test.storage.message_filter import MessageFilter
from system_under_test.storage.tags_code import tags_code

TAG: Final = "TAG"
SQL92: Final = "SQL92"
ALL: Final = "*"
TAGS: Final = "TAGS"


@dataclass(frozen=True, slots=True)
class TagFilter:
    """RocketMQ's brokers compare codes of tags alone, and leave it to consumers to compare tags; this one does both."""

    tags: frozenset[str]
    codes: frozenset[int]

    def may_match(self, code: int) -> bool:
        return code in self.codes

    def matches(self, message: bytes) -> bool:
        properties = _properties(message)
        return properties is None or properties.get(TAGS) in self.tags


@dataclass(frozen=True, slots=True)
class SqlFilter:
    expression: Expression

    def may_match(self, code: int) -> bool:
        return True

    def matches(self, message: bytes) -> bool:
        properties = _properties(message)
        return properties is None or self.expression.evaluate(properties) is True


def _properties(message: bytes) -> dict[str, str] | None:
    """None for a message that a bad disk has harmed: it goes to the reader, who sees that."""
    try:
        return properties_of(message)
    except MessageInvalid:
        return None


def filter_of(expression: str, expression_type: str = TAG) -> MessageFilter | None:
    """None where every message is wanted. Raises ValueError, for SQL92 with the position of what is wrong."""
    if expression_type in ("", TAG):
        tags = [tag for part in expression.split("||") if (tag := part.strip())]
        if expression in ("", ALL):
            return None
        if not tags:
            raise ValueError(f"expected {ALL} or tags with || between, got {expression[:40]!r}")
        return TagFilter(frozenset(tags), frozenset(map(tags_code, tags)))
    if expression_type != SQL92:
        raise ValueError(f"expected an expression of type {TAG} or {SQL92}, got {expression_type[:40]!r}")
    return SqlFilter(parse_sql(expression))
