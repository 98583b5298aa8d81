"""Sets: what was added is seen by every later read.

Operations (key: the set):
- `add` {value}: ok if the set has it. No element is added twice.
- `read` {}: ok with all `values` that the set has; an empty list, or null, before the first add.

Nothing is ever removed. In the end each set is read until a read succeeds, so that whatever was acknowledged has been
looked for. `reads=current` demands of every read that it shows what was acknowledged before it began; the default,
`eventual`, demands it of the last one alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from checkers.api.evidence import any_ok
from checkers.api.plan import Checker
from checkers.completions import members
from checkers.elements.rows import ELEMENTS
from checkers.elements.set import Reads, SetChecker
from harness.bounds import Bounds
from harness.draw import Draw
from harness.generator import Generator, drawn, invoke
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import Workload
from workloads.final_reads import OK_SHARE, each_until_ok


@dataclass(frozen=True, kw_only=True)
class SetSettings:
    sets: Annotated[int, Bounds(1, 1_000)] = 5
    read_share: Annotated[float, Bounds(0, 0.9)] = 0.1
    """Share of reads among the operations of the storm; many are expensive, for each shows all that its set has."""
    reads: Reads = Reads.EVENTUAL


def _read(position: int) -> Operation:
    return invoke("read", {"value": None, "values": None}, key=f"s{position}")


def generator(settings: SetSettings, seed: Seed, concurrency: int) -> Generator:
    def operation(draw: Draw, number: int) -> Operation:
        position = draw.below(settings.sets)
        if draw.uniform() < settings.read_share:
            return _read(position)
        return invoke("add", {"value": number, "values": None}, key=f"s{position}")

    return drawn(seed, operation)


def final_generator(settings: SetSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    return each_until_ok(_read(position) for position in range(settings.sets))


def checkers(settings: SetSettings) -> dict[str, Checker]:
    return {"set": SetChecker(reads=settings.reads)}


WORKLOAD = Workload(
    name="set",
    about="what was added is seen by every later read",
    settings_type=SetSettings,
    value_type=ELEMENTS,
    functions=("add", "read"),
    any_values=True,
    lists=("read",),
    puts=("add",),
    repeats=(members("add"),),
    evidence=any_ok("read"),
    checkers=checkers,
    generator=generator,
    final_generator=final_generator,
    required_ok={"add": 20, "read": 5},
    required_share={"add": OK_SHARE},
)
