"""SQL92 filters: what they say of a message, and what is said of those that are none."""

from __future__ import annotations

import pytest

from system_under_test.rocketmq.filter.sql_lexer import MAX_CHARACTERS, SqlError
from system_under_test.rocketmq.filter.sql_parser import MAX_DEPTH, parse_sql

MESSAGE = {
    "a": "5",
    "b": "text",
    "t": "True",
    "half": "0.5",
    "big": "9223372036854775807",
    "many": "9" * 400,
    "TAGS": "tagA",
    "q": "it's",
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a = 5", True),
        ("a = 5.0", True),
        ("a <> 5", False),
        ("a = '5'", True),
        ("a = '5.0'", False),
        ("b = 'text'", True),
        ("b = 5", None),
        ("b <> 5", None),
        ("b > 5", None),
        ("missing = 5", None),
        ("missing <> 5", None),
        ("a = missing", None),
        ("missing IS NULL", True),
        ("missing IS NOT NULL", False),
        ("a IS NULL", False),
        ("5 IS NOT NULL", True),
        ("a > 4 AND a < 6", True),
        ("a >= 5 AND a <= 5", True),
        ("a > 5 OR a < 5", False),
        ("half < 1", True),
        ("half > -.5", True),
        ("half = 5e-1", True),
        ("many > 1.5E300", True),
        ("big = 9223372036854775807", True),
        ("big > 9223372036854775806", True),
        ("a BETWEEN 1 AND 5", True),
        ("a NOT BETWEEN 1 AND 5", False),
        ("missing NOT BETWEEN 1 AND 5", None),
        ("a BETWEEN -1 AND +9", True),
        ("TAGS IN ('tagA', 'tagB')", True),
        ("TAGS NOT IN ('tagB')", True),
        ("missing IN ('x')", None),
        ("missing NOT IN ('x')", None),
        ("q = 'it''s'", True),
        ("b CONTAINS 'ex'", True),
        ("b NOT CONTAINS 'ex'", False),
        ("b STARTSWITH 'te'", True),
        ("b ENDSWITH 'xt'", True),
        ("b NOT ENDSWITH 'te'", True),
        ("b CONTAINS ''", False),
        ("b NOT CONTAINS ''", False),
        ("missing NOT CONTAINS 'x'", False),
        ("t = TRUE", True),
        ("b = TRUE", False),
        ("b = FALSE", True),
        ("5 = TRUE", False),
        ("(a = 5) = TRUE", True),
        ("TRUE", True),
        ("NULL", None),
        ("NULL OR TRUE", True),
        ("NULL AND FALSE", False),
        ("NULL AND TRUE", None),
        ("NOT NULL", None),
        ("a", False),
        ("missing", None),
        ("NOT (a = 5)", False),
        ("NOT a = 5", False),
        ("NOT a", True),
        ("missing = 1 OR a = 5", True),
        ("a = 5 OR missing = 1 AND missing = 2", True),
        ("a = - 5", False),
        ("-a = 5", None),
        ("-'5' IS NULL", True),
        ("a/* a comment */= --and another\n 5", True),
        ("tags = 'tagA'", None),
        ("a IS NULL = FALSE", True),
        ("a between 1 and 5 and b in ('text')", True),
    ],
)
def test_what_an_expression_says_of_a_message(expression: str, expected: bool | None) -> None:
    assert parse_sql(expression).evaluate(MESSAGE) is expected


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("", "character 1: expected a property, a number, a text, TRUE, FALSE, NULL or (, got the end"),
        ("a =", "character 4: expected a property, a number, a text, TRUE, FALSE, NULL or (, got the end"),
        ("a = 5 b = 6", "character 7: expected AND, OR or the end, got 'b'"),
        ("a == 5", "character 4: expected a property, a number, a text, TRUE, FALSE, NULL or (, got '='"),
        ("a = 'open", "character 5: expected a text that ends with ', got \"'open\""),
        ("a = #", "character 5: expected a name, a number, a text or a sign, got '#'"),
        ("(a = 5", "character 7: expected ), got the end"),
        ("a = NULL", "character 5: expected a value that can be equal (or IS NULL), got 'NULL'"),
        ("NULL = a", "character 1: expected a value that can be equal (or IS NULL), got 'NULL'"),
        ("TRUE = 5", "character 8: expected TRUE, FALSE or a property to compare a truth value with, got '5'"),
        ("a > 'x'", "character 5: expected a number or a property to compare by order, got \"'x'\""),
        ("a > TRUE", "character 5: expected a number or a property to compare by order, got 'TRUE'"),
        ("(a = 5) > 1", "character 1: expected a number or a property to compare by order, got '('"),
        ("a BETWEEN 5 AND 1", "character 17: expected a number from 5 on, got '1'"),
        ("a BETWEEN 5 OR 1", "character 13: expected AND, got 'OR'"),
        ("5 IN ('x')", "character 1: expected a property before IN, got '5'"),
        ("a IN (5)", "character 7: expected a text in quotes, got '5'"),
        ("a IN ()", "character 7: expected a text in quotes, got ')'"),
        ("a CONTAINS b", "character 12: expected a text in quotes, got 'b'"),
        ("a IS 5", "character 6: expected NULL, got '5'"),
        ("5", "character 1: expected what is true or false, got '5'"),
        ("a = 5 AND 'x'", "character 11: expected what is true or false, got \"'x'\""),
        ("a = 9223372036854775808", "character 5: expected a whole number of at most 64 bits"),
        ("a = " + "9" * 5000, "character 5: expected a whole number of at most 64 bits"),
        ("a = 1e999", "character 5: expected a number within the range of 64-bit fractions, got '1e999'"),
        ("a = 05", "character 6: expected AND, OR or the end, got '5'"),
        ("a NOT 5", "character 3: expected AND, OR or the end, got 'NOT'"),
        ("(" * (MAX_DEPTH + 1) + "a", f"character {MAX_DEPTH + 2}: expected at most {MAX_DEPTH} levels"),
        ("NOT " * 10_000 + "a", f"expected at most {MAX_DEPTH} levels"),
        ("a" + " = 1" * 10_000, f"expected at most {MAX_DEPTH} levels"),
        ("a" + " > 1" * 2, "character 1: expected a number or a property to compare by order"),
        (" " * (MAX_CHARACTERS + 1), f"expected at most {MAX_CHARACTERS} characters"),
    ],
)
def test_what_is_no_expression_is_refused_with_its_place(expression: str, complaint: str) -> None:
    with pytest.raises(SqlError) as refusal:
        parse_sql(expression)
    assert complaint in str(refusal.value)


def test_long_lists_are_no_deep_ones() -> None:
    assert parse_sql(" AND ".join(["a = 5"] * 5000)).evaluate(MESSAGE) is True
    assert parse_sql(" OR ".join(["a = 6"] * 5000)).evaluate(MESSAGE) is False
