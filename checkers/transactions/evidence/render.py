"""Explanations in words, and as the plain data that the report draws.

What is shown is bounded: the first steps of a long proof that the contradiction needs, and the ends of a long list.
"""

from __future__ import annotations

import re
from typing import Any

from checkers.transactions.evidence.explanation import INITIAL_INDEX, Explanation, Sentence
from checkers.transactions.evidence.phrases import Sentences
from checkers.transactions.evidence.proof import Because
from checkers.transactions.evidence.shown_transactions import ShownTransaction, Value
from checkers.transactions.history.micro_operations import APPEND, R, W

LINES_SHOWN = 60
EDGES_SHOWN = 24
OPERATIONS_SHOWN = 8
"""The most operations of a transaction that are shown. Those on keys that the explanation is about come first."""

DRAWN_AS = {
    Because.READ.value: "wr",
    Because.VERSION_ORDER.value: "ww",
    Because.OVERWRITTEN.value: "ww",
    Because.OVERWRITES.value: "rw",
    Because.EXCLUSIVE.value: "ww",
    Because.CASE.value: "ww",
    Because.SESSION.value: "process",
}
"""The dependency that a drawing shows for each kind of step of a proof."""


def because(explanation: Explanation) -> str:
    """The whole explanation in one paragraph."""
    return " ".join(lines(explanation))


def lines(explanation: Explanation) -> list[str]:
    """The explanation as lines; the first ones describe the transactions that it names."""
    sentences = Sentences.of(explanation)
    steps = _steps(sentences, explanation)
    if len(steps) > LINES_SHOWN:
        steps[LINES_SHOWN:] = [f"{len(steps) - LINES_SHOWN} more lines are left out; the certificate has all steps."]
    mentioned = set(re.findall(r"\bT\d+\b", " ".join(steps)))
    return [*(_introduced(sentences, index) for index, name in sentences.named.items() if name in mentioned), *steps]


def details(explanation: Explanation) -> dict[str, Any]:
    """For `Example.details`: `transactions` {name, index, process, operations}, `edges` of a cycle of them {kind,
    source, target, key, because}, and `steps`, all sentences in words. Of cases, the cycle of the first that has one,
    as `case` calls it."""
    sentences = Sentences.of(explanation)
    label, cycle = next(((label, block.cycle) for label, block in explanation.blocks() if block.cycle), ("", ()))
    around = [edge for edge in cycle if edge.source != edge.target]
    drawn = around[:EDGES_SHOWN]
    shown = [index for index in sentences.named if any(index in (edge.source, edge.target) for edge in drawn)]
    return {
        "transactions": [_data(sentences, index) for index in shown],
        "edges": [
            {
                "kind": DRAWN_AS.get(edge.kind, edge.kind),
                "source": sentences.named[edge.source],
                "target": sentences.named[edge.target],
                "key": edge.key,
                "because": sentences.sentence(edge),
            }
            for edge in drawn
        ],
        "edges_left_out": len(around) - len(drawn),
        "case": label,
        "steps": lines(explanation),
    }


def _steps(sentences: Sentences, explanation: Explanation) -> list[str]:
    """All steps in words, those of a case behind what it assumes, without recursion."""
    steps: list[str] = []
    for label, one in explanation.blocks():
        for sentence in one.sentences:
            number = "" if sentence.number is None else f"({sentence.number}) "
            case = f"Case {label}: " if sentence.kind == Because.CASE.value else ""
            steps.append(f"{number}{case}{sentences.sentence(sentence)}.")
        if one.left_out:
            steps.append(f"{one.left_out} more steps are in the certificate.")
        if one.cases:
            steps.append("There are two cases, and each contradicts itself.")
        else:
            steps.append(f"{_contradiction(sentences, one.cycle)}{f' in case {label}' if label else ''}.")
    return steps


def _contradiction(sentences: Sentences, cycle: tuple[Sentence, ...]) -> str:
    around = [
        f"{sentences.named[edge.source]}{f' {edge.moments[0]}' if edge.moments else ''}"
        for edge in cycle
        if edge.moments or edge.source != edge.target
    ]
    if not around:
        return "That is a contradiction"
    around.append(around[0])
    if len(around) > EDGES_SHOWN:
        around[EDGES_SHOWN // 2 : -EDGES_SHOWN // 2] = [f"… {len(around) - EDGES_SHOWN} more …"]
    numbers = [str(edge.number) for edge in cycle]
    steps = f" ({', '.join(numbers)})" if len(numbers) <= EDGES_SHOWN and cycle[0].number is not None else ""
    return f"So {' before '.join(around)}{steps}: a contradiction"


def _introduced(sentences: Sentences, index: int) -> str:
    if index == INITIAL_INDEX:
        return f"{sentences.named[index]} (before all others): nothing is written yet."
    one = sentences.transactions.get(index)
    did = f": {', '.join(_operations(sentences, one))}" if one is not None else ""
    unknown = ", outcome unknown" if one is not None and one.indefinite else ""
    return f"{sentences.named[index]} (at {index}{unknown}){did}."


def _data(sentences: Sentences, index: int) -> dict[str, Any]:
    one = sentences.transactions.get(index)
    operations = [] if one is None else _operations(sentences, one)
    return {
        "name": sentences.named[index],
        "index": index,
        "process": None if one is None else one.process,
        "operations": ["nothing is written yet"] if index == INITIAL_INDEX else operations,
    }


def _operations(sentences: Sentences, one: ShownTransaction) -> list[str]:
    """The transaction's operations in words, in program order."""
    numbers = sorted(range(len(one.operations)), key=lambda number: _rank(sentences, *one.operations[number]))
    chosen = [one.operations[number] for number in sorted(numbers[:OPERATIONS_SHOWN])]
    words = [_operation(sentences, *operation, answered=not one.indefinite) for operation in chosen]
    more = len(numbers) - len(chosen)
    return [*words, f"… {more} more"] if more else words


def _rank(sentences: Sentences, f: int, key: str, value: Value) -> int:
    """A rank that is lower the more the explanation says of the operation."""
    if key not in sentences.about:
        return 2
    return 0 if f == R or (isinstance(value, int) and value in sentences.about[key]) else 1


def _operation(sentences: Sentences, f: int, key: str, value: Value, *, answered: bool) -> str:
    """`r x = 3`, `r x = [1, 2]`, `w x = 3`, `append x 3`."""
    if f == R:
        return f"r {key} = {sentences.value(key, value)}" if answered else f"r {key}"
    return f"{'append' if f == APPEND else 'w'} {key} {'= ' if f == W else ''}{value}"
