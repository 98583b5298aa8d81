"""Draws: the same everywhere, and distributed as they say."""

from __future__ import annotations

import math
from collections import Counter

from harness.draw import Draw
from harness.seed import Seed

BASE = Seed(1729).integer()
GOLDEN = [11830340345065515892, 2386281289838151681, 8217175675880351264]


def test_draws_are_the_same_on_every_machine() -> None:
    draw = Draw.at(42, 7)
    assert [draw.bits() for _ in range(3)] == GOLDEN
    assert Draw.at(42, 7).bits() == GOLDEN[0]


def test_neighbouring_numbers_and_bases_have_unrelated_draws() -> None:
    firsts = {Draw.at(base, number).bits() for base in range(50) for number in range(50)}
    assert len(firsts) == 2500
    ones = sum(bin(Draw.at(1, n).bits() ^ Draw.at(1, n + 1).bits()).count("1") for n in range(1000))
    assert abs(ones / 64_000 - 0.5) < 0.01


def test_uniform_stays_within_its_bounds_and_below_reaches_every_number() -> None:
    values = [Draw.at(BASE, number).uniform(2.0, 5.0) for number in range(10_000)]
    assert all(2.0 <= value < 5.0 for value in values)
    assert abs(sum(values) / len(values) - 3.5) < 0.05
    counts = Counter(Draw.at(BASE, number).below(7) for number in range(7_000))
    assert sorted(counts) == list(range(7))
    assert all(850 < count < 1150 for count in counts.values())


def test_exponential_has_its_mean_and_memoryless_tail() -> None:
    values = [Draw.at(BASE, number).exponential(3.0) for number in range(20_000)]
    assert abs(sum(values) / len(values) - 3.0) < 0.1
    assert abs(sum(value > 6.0 for value in values) / len(values) - math.exp(-2)) < 0.01


def test_weighted_follows_weights_and_never_draws_zero() -> None:
    counts = Counter(Draw.at(BASE, number).weighted([1, 0, 3]) for number in range(8_000))
    assert set(counts) == {0, 2}
    assert abs(counts[2] / 8_000 - 0.75) < 0.02


def test_zipf_halves_from_rank_to_rank_as_its_skew_says() -> None:
    counts = Counter(Draw.at(BASE, number).zipf(1_000, 1.0) for number in range(50_000))
    assert abs(counts[0] / counts[1] - 2) < 0.2
    assert abs(counts[0] / counts[3] - 4) < 0.5
    assert max(counts) < 1_000


def test_shuffled_is_a_permutation_and_leaves_its_argument() -> None:
    items = list(range(20))
    mixed = Draw.at(BASE, 0).shuffled(items)
    assert mixed != items == list(range(20))
    assert sorted(mixed) == items
