"""Seeds by the thousand, in tiers: the first hundred in every test run, the first thousand before a change goes in."""

from __future__ import annotations

import pytest

HUNDRED, THOUSAND = 100, 1_000


def thousands(count: int = 10) -> pytest.MarkDecorator:
    """Decorator of a test that takes `seeds`, a range of a hundred, nine hundred or a thousand."""
    parts = [
        (range(HUNDRED), pytest.mark.slow),
        (range(HUNDRED, THOUSAND), pytest.mark.gate),
        *((range(THOUSAND * part, THOUSAND * (part + 1)), pytest.mark.thorough) for part in range(1, count)),
    ]
    return pytest.mark.parametrize(
        "seeds", [pytest.param(seeds, id=f"{seeds[0]}", marks=mark) for seeds, mark in parts]
    )
