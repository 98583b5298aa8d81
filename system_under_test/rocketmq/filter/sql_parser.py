"""SQL92 filters as RocketMQ's consumers write them, from words to an expression.

    or         := and { OR and }
    and        := equality { AND equality }
    equality   := comparison { = comparison | <> comparison | IS [NOT] NULL }
    comparison := unary { (< | <= | > | >=) unary | [NOT] BETWEEN unary AND unary | [NOT] IN ( text {, text} )
                        | [NOT] (CONTAINS | STARTSWITH | ENDSWITH) text }
    unary      := + unary | - unary | NOT unary | text | number | TRUE | FALSE | NULL | name | ( or )

As in RocketMQ, NOT holds on to what stands right behind it: `NOT a = 1` is `(NOT a) = 1`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from system_under_test.rocketmq.filter.sql_expression import (
    All,
    AnyOf,
    Constant,
    Equal,
    Expression,
    HasPart,
    In,
    IsNull,
    Negative,
    Not,
    Order,
    Ordered,
    Part,
    Property,
    PropertyAsTruth,
)
from system_under_test.rocketmq.filter.sql_lexer import Kind, SqlError, Token, tokens_of

MAX_DEPTH: Final = 64
"""How deep parentheses, what stands behind NOT, + and -, and comparisons of comparisons may be nested."""
_LONG: Final = range(-(2**63), 2**63)
_ORDERS: Final = {order.value: order for order in Order}
_PARTS: Final = {part.value: part for part in Part}
_CONSTANTS: Final = {"TRUE": True, "FALSE": False, "NULL": None}


@lru_cache(maxsize=256)
def parse_sql(expression: str) -> Expression:
    """Raises SqlError."""
    parser = _Parser(tokens_of(expression))
    result = parser.truth(parser.disjunction)
    if parser.next.kind is not Kind.END:
        raise parser.error("AND, OR or the end")
    return result


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    def error(self, expected: str, token: Token | None = None) -> SqlError:
        token = token or self.next
        return SqlError(token.position, expected, str(token))

    def truth(self, rule: Callable[[], Expression]) -> Expression:
        """What this rule reads, which has to be true or false."""
        begin = self.next
        return self._as_truth(rule(), begin)

    def disjunction(self) -> Expression:
        begin = self.next
        first = self._conjunction()
        if not self.next.is_word("OR"):
            return first
        operands = [self._as_truth(first, begin)]
        while self._take("OR"):
            operands.append(self.truth(self._conjunction))
        return AnyOf(tuple(operands))

    def _conjunction(self) -> Expression:
        begin = self.next
        first = self._equality()
        if not self.next.is_word("AND"):
            return first
        operands = [self._as_truth(first, begin)]
        while self._take("AND"):
            operands.append(self.truth(self._equality))
        return All(tuple(operands))

    def _equality(self) -> Expression:
        begin = self.next
        left = self._comparison()
        depth = self._depth
        while self.next.is_word("=", "<>", "IS"):
            self._deeper()
            word = self._advance()
            if word.text == "IS":
                is_negated = self._take("NOT")
                self._expect("NULL")
                left = Not(IsNull(left)) if is_negated else IsNull(left)
                continue
            right_begin = self.next
            right = self._comparison()
            for side, token in ((left, begin), (right, right_begin)):
                if side == Constant(None):
                    raise self.error("a value that can be equal (or IS NULL)", token)
            if isinstance(left, Constant) and left.is_truth and isinstance(right, Constant) and not right.is_truth:
                raise self.error("TRUE, FALSE or a property to compare a truth value with", right_begin)
            left = Not(Equal(left, right)) if word.text == "<>" else Equal(left, right)
        self._depth = depth
        return left

    def _comparison(self) -> Expression:
        begin = self.next
        left = self._unary()
        depth = self._depth
        while True:
            token = self.next
            after = self._tokens[self._at + 1] if token.is_word("NOT") else token
            if not after.is_word("BETWEEN", "IN", *_PARTS, *(() if after is not token else _ORDERS)):
                self._depth = depth
                return left
            self._deeper()
            is_negated = self._take("NOT")
            word = self._advance()
            if word.text in _ORDERS:
                right_begin = self.next
                right = self._number(self._unary(), right_begin)
                left = Ordered(self._number(left, begin), _ORDERS[word.text], right)
            elif word.text == "BETWEEN":
                left = self._between(self._number(left, begin), is_negated)
            elif word.text == "IN":
                left = self._in(left, begin, is_negated)
            else:
                left = HasPart(left, _PARTS[word.text], self._text(), is_negated)

    def _between(self, value: Expression, is_negated: bool) -> Expression:
        begin = self.next
        low = self._number(self._unary(), begin)
        self._expect("AND")
        high_begin = self.next
        high = self._number(self._unary(), high_begin)
        if isinstance(low, Constant) and isinstance(high, Constant):
            least, most = low.value, high.value
            assert isinstance(least, (int, float)) and isinstance(most, (int, float))
            if most < least:
                raise self.error(f"a number from {least} on", high_begin)
        if is_negated:
            return AnyOf((Ordered(value, Order.LESS, low), Ordered(value, Order.GREATER, high)))
        return All((Ordered(value, Order.GREATER_OR_EQUAL, low), Ordered(value, Order.LESS_OR_EQUAL, high)))

    def _in(self, operand: Expression, begin: Token, is_negated: bool) -> Expression:
        if not isinstance(operand, Property):
            raise self.error("a property before IN", begin)
        self._expect("(")
        texts = [self._text()]
        while self._take(","):
            texts.append(self._text())
        self._expect(")")
        found = In(operand, frozenset(texts))
        return Not(found) if is_negated else found

    def _unary(self) -> Expression:
        token = self._advance()
        depth = self._depth
        self._deeper()
        result: Expression
        if token.is_word("+"):
            result = self._unary()
        elif token.is_word("-"):
            result = Negative(self._unary())
        elif token.is_word("NOT"):
            result = Not(self.truth(self._unary))
        elif token.is_word("("):
            result = self.disjunction()
            self._expect(")")
        elif token.kind is Kind.NAME:
            result = Property(token.text)
        else:
            result = Constant(self._value(token))
        self._depth = depth
        return result

    def _value(self, token: Token) -> bool | int | float | str | None:
        if token.is_word(*_CONSTANTS):
            return _CONSTANTS[token.text]
        if token.kind is Kind.TEXT:
            return token.text[1:-1].replace("''", "'")
        if token.kind is Kind.FRACTION:
            fraction = float(token.text)
            if fraction == float("inf"):
                raise self.error("a number within the range of 64-bit fractions", token)
            return fraction
        if token.kind is Kind.WHOLE:
            digits = token.text.rstrip("lL")
            if len(digits) > len(str(_LONG.stop)) or int(digits) not in _LONG:
                raise self.error("a whole number of at most 64 bits", token)
            return int(digits)
        raise self.error("a property, a number, a text, TRUE, FALSE, NULL or (", token)

    def _as_truth(self, expression: Expression, begin: Token) -> Expression:
        if isinstance(expression, Property):
            return PropertyAsTruth(expression)
        if not expression.is_truth:
            raise self.error("what is true or false", begin)
        return expression

    def _number(self, expression: Expression, begin: Token) -> Expression:
        is_text = isinstance(expression, Constant) and isinstance(expression.value, str)
        if expression.is_truth or is_text:
            raise self.error("a number or a property to compare by order", begin)
        return expression

    def _text(self) -> str:
        token = self._advance()
        if token.kind is not Kind.TEXT:
            raise self.error("a text in quotes", token)
        return token.text[1:-1].replace("''", "'")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(f"at most {MAX_DEPTH} levels")

    def _advance(self) -> Token:
        token = self.next
        if token.kind is not Kind.END:
            self._at += 1
        return token

    def _take(self, word: str) -> bool:
        if not self.next.is_word(word):
            return False
        self._at += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self.error(word)
