"""Unique ids: no id is given out twice.

Operation (key: the source of ids): `generate` {}: ok with an id that is now the caller's.
"""

from __future__ import annotations

from checkers.api.evidence import shows_a_value
from checkers.elements.rows import ELEMENTS
from checkers.elements.unique_ids import UniqueIdsChecker
from harness.generator import Generator, as_generator, invoke, repeat
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import NoSettings, Workload
from workloads.final_reads import OK_SHARE

GENERATE: Operation = invoke("generate", {"value": None, "values": None}, key="ids")


def generator(settings: NoSettings, seed: Seed, concurrency: int) -> Generator:
    return repeat(GENERATE)


def final_generator(settings: NoSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    """Nothing: an id that was given out twice was seen by then."""
    return as_generator(None)


WORKLOAD = Workload(
    name="unique-ids",
    about="no id is given out twice",
    value_type=ELEMENTS,
    functions=("generate",),
    any_values=True,
    evidence=(shows_a_value("generate", at_least=2),),
    checkers=lambda settings: {"unique-ids": UniqueIdsChecker()},
    generator=generator,
    final_generator=final_generator,
    required_ok={"generate": 20},
    required_share={"generate": OK_SHARE},
)
