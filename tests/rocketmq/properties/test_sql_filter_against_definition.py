"""SQL92 filters against a definition by tables: what each operator gives for each pair of true, false and unknown."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from system_under_test.rocketmq.filter.sql_lexer import SqlError
from system_under_test.rocketmq.filter.sql_parser import parse_sql
from system_under_test.rocketmq.filter.subscription import filter_of
from system_under_test.storage.message import encode_message, encode_properties
from system_under_test.storage.tags_code import tags_code

T, F, U = True, False, None
AND = {(T, T): T, (T, F): F, (T, U): U, (F, T): F, (F, F): F, (F, U): F, (U, T): U, (U, F): F, (U, U): U}
OR = {(T, T): T, (T, F): T, (T, U): T, (F, T): T, (F, F): F, (F, U): U, (U, T): T, (U, F): U, (U, U): U}
NOT = {T: F, F: T, U: U}
NAMES = ("a", "b", "c")
TEXTS = ("", "x", "xy", "true", "7", "-7", "7.5", "1e1", "it's")
PROPERTIES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(TEXTS))
NUMBERS = ("7", "0", "10", "7.5", ".5", "1E1")


def number(text: Any) -> Fraction | None:
    with suppress(ValueError, TypeError):
        return Fraction(text)
    return None


@st.composite
def atoms(draw: st.DrawFn) -> tuple[str, Any]:
    """An expression without AND, OR and NOT, and what it means: properties -> true, false or unknown."""
    name = draw(st.sampled_from(NAMES))
    text = draw(st.sampled_from(TEXTS))
    digits = draw(st.sampled_from(NUMBERS))
    quoted = "'" + text.replace("'", "''") + "'"
    limit = Fraction(digits)

    def compared(decide: Any) -> Any:
        def meaning(p: Any) -> bool | None:
            own = number(p.get(name))
            return U if own is None else decide(own)

        return meaning

    def of_text(decide: Any) -> Any:
        return lambda p: U if name not in p else decide(p[name])

    return draw(
        st.sampled_from(
            [
                (f"{name} = {digits}", compared(lambda own: own == limit)),
                (f"{name} <> {digits}", compared(lambda own: own != limit)),
                (f"{digits} < {name}", compared(lambda own: own > limit)),
                (f"{name} <= {digits}", compared(lambda own: own <= limit)),
                (f"{name} >= -{digits}", compared(lambda own: own >= -limit)),
                (f"{name} BETWEEN -1 AND {digits}", compared(lambda own: -1 <= own <= limit)),
                (f"{name} NOT BETWEEN -1 AND {digits}", compared(lambda own: not -1 <= own <= limit)),
                (f"{name} = {quoted}", of_text(lambda own: own == text)),
                (f"{quoted} <> {name}", of_text(lambda own: own != text)),
                (f"{name} = TRUE", of_text(lambda own: own == "true")),
                (f"{name} IN ({quoted}, 'x')", of_text(lambda own: own in (text, "x"))),
                (f"{name} NOT IN ({quoted}, 'x')", of_text(lambda own: own not in (text, "x"))),
                (f"{name} IS NULL", lambda p: name not in p),
                (f"{name} IS NOT NULL", lambda p: name in p),
                (f"{name} CONTAINS {quoted}", lambda p: name in p and text != "" and text in p[name]),
                (f"{name} NOT STARTSWITH {quoted}", lambda p: name in p and text != "" and p[name].find(text) != 0),
                (f"{name} ENDSWITH {quoted}", lambda p: name in p and text != "" and p[name][-len(text) :] == text),
                ("TRUE", lambda p: T),
                ("FALSE", lambda p: F),
                ("NULL", lambda p: U),
            ]
        )
    )


def combined(children: st.SearchStrategy[tuple[str, Any]]) -> st.SearchStrategy[tuple[str, Any]]:
    pairs = st.tuples(children, children)
    return (
        pairs.map(lambda ab: (f"({ab[0][0]}) AND ({ab[1][0]})", lambda p: AND[ab[0][1](p), ab[1][1](p)]))
        | pairs.map(lambda ab: (f"({ab[0][0]}) OR ({ab[1][0]})", lambda p: OR[ab[0][1](p), ab[1][1](p)]))
        | children.map(lambda a: (f"NOT ({a[0]})", lambda p: NOT[a[1](p)]))
    )


@given(st.recursive(atoms(), combined, max_leaves=8), PROPERTIES)
def test_an_expression_means_what_its_tables_say(expression: tuple[str, Any], properties: dict[str, str]) -> None:
    text, meaning = expression
    assert parse_sql(text).evaluate(properties) is meaning(properties)


@given(st.lists(st.lists(atoms(), min_size=1, max_size=3), min_size=1, max_size=3), PROPERTIES)
def test_and_holds_closer_than_or(terms: list[list[tuple[str, Any]]], properties: dict[str, str]) -> None:
    text = " OR ".join(" AND ".join(atom for atom, _ in term) for term in terms)
    whole: bool | None = F
    for term in terms:
        part: bool | None = T
        for _, meaning in term:
            part = AND[part, meaning(properties)]
        whole = OR[whole, part]
    assert parse_sql(text).evaluate(properties) is whole


@given(st.text(st.sampled_from("ab= '()<>,.+-5eE/*\nNOTANDORINULL"), max_size=40) | st.text(max_size=20))
def test_any_text_is_an_expression_or_refused_at_a_place_in_it(text: str) -> None:
    try:
        expression = parse_sql(text)
    except SqlError as error:
        position = error.position
    else:
        position = 1
        assert expression.evaluate({"a": "1"}) in (True, False, None)
    assert 1 <= position <= len(text) + 1


TAGS = st.text(st.sampled_from("AaBb\U0001f600"), max_size=3)


@given(st.lists(TAGS, min_size=1, max_size=4), TAGS, st.booleans())
def test_tags_pass_exactly_those_messages_that_have_one_of_them(wanted: list[str], tag: str, has_tag: bool) -> None:
    expression = " || ".join(wanted)
    if not any(wanted) and expression:
        return
    chosen = filter_of(expression)
    if not any(wanted):
        assert chosen is None
        return
    properties = {"KEYS": "k", "TAGS": tag} if has_tag else {"KEYS": "k"}
    message = encode_message(
        topic=b"t",
        queue_id=0,
        queue_offset=0,
        physical_offset=0,
        body=b"TAGS\x01AA\x02",
        properties=encode_properties(properties),
        born_timestamp_ms=0,
        store_timestamp_ms=0,
        born_host=bytes(8),
        store_host=bytes(8),
    )
    assert chosen is not None
    expected = has_tag and tag != "" and tag in wanted
    assert chosen.matches(message) == expected
    assert chosen.may_match(tags_code(tag)) or not expected
