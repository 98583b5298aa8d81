"""Proofs as text, on their way from the kernel that found them to their explanation: only with what they are about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from checkers.kernels.columns import Int64
from checkers.transactions.evidence.proof import Because, Proof, ProofStep
from checkers.transactions.history.committed import INITIAL


@dataclass(frozen=True, kw_only=True)
class CompactProof:
    """A proof whose transactions and keys are numbered anew, without gaps."""

    proof: Proof
    start: Int64
    """The history index of each transaction's invocation; -1 for INITIAL."""
    keys: tuple[int, ...]
    """The number of each key among RESOLVED rows."""


def encoded_proof(proof: Proof, events: int, start: Int64, keys: Int64) -> str:
    """The proof as text. `events`: how many each transaction has, 1, or 2 if begin and commit are apart. `start` and
    `keys` are indexed by the numbers that the proof uses."""
    steps = list(_steps(proof))
    ends = [end // events for step in steps for end in (step.source, step.target)]
    used = sorted({INITIAL, *ends, *(number for step in steps for number in (step.reader, step.writer) if number >= 0)})
    named = sorted({step.key for step in steps if step.key >= 0})
    transaction = {number: i for i, number in enumerate(used)}
    key = {number: i for i, number in enumerate(named)} | {-1: -1}

    def renumbered(step: ProofStep) -> list[Any]:
        source, target = (transaction[end // events] * events + end % events for end in (step.source, step.target))
        reader, writer = (transaction.get(number, -1) for number in (step.reader, step.writer))
        return [source, target, step.because.value, key[step.key], reader, writer, list(step.path)]

    def block(of: Proof) -> dict[str, Any]:
        return {"steps": [renumbered(step) for step in of.steps], "cycle": list(of.cycle)}

    blocks: list[dict[str, Any]] = []
    waiting = [(proof, -1)]
    while waiting:
        of, within = waiting.pop()
        blocks.append(block(of) | {"within": within})
        waiting += [(case, len(blocks) - 1) for case in reversed(of.cases or ())]
    return json.dumps({"blocks": blocks, "start": start[used].tolist(), "keys": keys[named].tolist()})


def _steps(proof: Proof) -> Iterator[ProofStep]:
    waiting = [proof]
    while waiting:
        block = waiting.pop()
        yield from block.steps
        waiting += block.cases or ()


def decoded_proof(text: str) -> CompactProof:
    """The proof that `encoded_proof` wrote."""
    read = json.loads(text)
    cases: list[list[Proof]] = [[] for _ in read["blocks"]]
    for number in range(len(read["blocks"]) - 1, -1, -1):
        block = read["blocks"][number]
        found = Proof(
            steps=tuple(_step(*fields) for fields in block["steps"]),
            cycle=tuple(block["cycle"]),
            cases=(cases[number][1], cases[number][0]) if cases[number] else None,
        )
        if block["within"] >= 0:
            cases[block["within"]].append(found)
    return CompactProof(proof=found, start=np.array(read["start"], dtype=np.int64), keys=tuple(read["keys"]))


def _step(source: int, target: int, because: str, key: int, reader: int, writer: int, path: list[int]) -> ProofStep:
    return ProofStep(
        source=source,
        target=target,
        because=Because(because),
        key=key,
        reader=reader,
        writer=writer,
        path=tuple(path),
    )
