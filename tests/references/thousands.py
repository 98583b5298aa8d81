"""Seeds by the thousand: the first few hundred are tried before a change goes in, the others by `make thorough`."""

from __future__ import annotations

from itertools import pairwise

import pytest

THOUSAND = 1_000
IN_THE_GATE = 300
"""So many seeds are tried before a change goes in."""


def thousands(count: int = 10) -> pytest.MarkDecorator:
    """Decorator of a test that takes `seeds`, a range of some hundred."""
    starts = (0, IN_THE_GATE, *(THOUSAND * part for part in range(1, count)), THOUSAND * count)
    parts = [
        pytest.param(range(start, end), id=f"{start}", marks=pytest.mark.thorough if start else pytest.mark.gate)
        for start, end in pairwise(starts)
    ]
    return pytest.mark.parametrize("seeds", parts)
