"""What commands may name in their texts."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.program import filled, places

NAMES = places("r1", {"r1": "10.0.0.1", "r-2": "10.0.0.2"}, "/home")


def test_places_are_filled_and_other_dollars_stay() -> None:
    text = "${home} ${name} ${address} ${r-2.address} $0 $HOME $(date) $${HOME}"
    assert filled(text, NAMES) == "/home r1 10.0.0.1 10.0.0.2 $0 $HOME $(date) ${HOME}"


@pytest.mark.parametrize("place", ["${HOME}", "${r3.address}", "${}"])
def test_a_place_that_names_nothing_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match=r"name, address, home, r1\.address, r-2\.address"):
        filled(place, NAMES)
