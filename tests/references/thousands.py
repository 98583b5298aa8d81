"""Seeds by the thousand: the first thousand are tried before a change goes in, the others by `make thorough`."""

from __future__ import annotations

import pytest

THOUSAND = 1_000


def thousands(count: int = 10) -> pytest.MarkDecorator:
    """Decorator of a test that takes `seeds`, a range of a thousand."""
    parts = [
        pytest.param(
            range(THOUSAND * part, THOUSAND * (part + 1)),
            id=f"{THOUSAND * part}",
            marks=pytest.mark.thorough if part else pytest.mark.gate,
        )
        for part in range(count)
    ]
    return pytest.mark.parametrize("seeds", parts)
