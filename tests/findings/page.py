"""The page on what storms show of published releases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.findings.outcomes import Outcome

PARTS = Path(__file__).parents[2] / "docs" / "findings" / "rocketmq"


def page(outcomes: Sequence[Outcome], parts: Path) -> str:
    raise NotImplementedError
