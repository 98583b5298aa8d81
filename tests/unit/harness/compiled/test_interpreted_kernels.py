"""Kernels are interpreted on short arrays, with the results of machine code, and leave what they cannot do alike."""

from __future__ import annotations

import numpy as np
import pytest

from checkers.kernels.hashing import mixed, place_of
from harness.compiled import Kernel, compiled, interpreted


def _total(values: np.ndarray, into: np.ndarray) -> int:
    total = 0
    for i in range(len(values)):
        total += values[i]
        into[i] = total
    return total


def _product(values: np.ndarray, into: np.ndarray) -> int:
    into[0] = 7
    product = values[0]
    for i in range(1, len(values)):
        product *= values[i]
    return int(product)


@pytest.fixture(autouse=True)
def _allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreted.allowance, "left_s", interpreted.MOST_S)


def is_loaded(kernel: object) -> bool:
    assert isinstance(kernel, Kernel)
    return kernel._dispatcher is not None


def test_short_arrays_are_interpreted_and_long_ones_are_not() -> None:
    kernel = compiled(_total)
    into = np.zeros(3, np.int64)
    assert kernel(np.array([1, 2, 3]), into) == 6
    assert into.tolist() == [1, 3, 6]
    assert not is_loaded(kernel)
    many = np.ones(interpreted.MOST_BYTES // 8, np.int64)
    assert kernel(many, many.copy()) == len(many)
    assert is_loaded(kernel)


def test_nothing_is_interpreted_once_the_allowance_is_spent() -> None:
    interpreted.allowance.left_s = 0.0
    kernel = compiled(_total)
    assert kernel(np.array([1, 2]), np.zeros(2, np.int64)) == 3
    assert is_loaded(kernel)


def test_what_is_interpreted_is_taken_off_the_allowance() -> None:
    compiled(_total)(np.arange(1000), np.zeros(1000, np.int64))
    assert interpreted.allowance.left_s < interpreted.MOST_S


def test_kernels_are_loaded_where_the_rest_would_take_longer_than_that() -> None:
    kernel = compiled(_total)
    interpreted.allowance.left_s = 0.95 * interpreted.MOST_S
    interpreted.foresee(0.1)
    assert kernel(np.array([1, 2]), np.zeros(2, np.int64)) == 3
    assert not is_loaded(kernel)
    interpreted.allowance.left_s = 0.95 * interpreted.MOST_S
    interpreted.foresee(0.01)
    assert kernel(np.array([1, 2]), np.zeros(2, np.int64)) == 3
    assert is_loaded(kernel)


def test_numbers_that_overflow_in_numpy_alone_are_left_to_machine_code() -> None:
    """Kernels multiply numbers of 32 bits as ones of 64."""
    kernel = compiled(_product)
    into = np.zeros(1, np.int64)
    assert kernel(np.full(3, 1_000, np.int32), into) == 1_000_000_000
    assert not is_loaded(kernel)
    assert kernel(np.full(5, 1_000, np.int32), into) == 10**15
    assert is_loaded(kernel)


def test_a_call_that_is_given_up_has_changed_nothing() -> None:
    into = np.zeros(1, np.int64)
    values = np.full(5, 1_000, np.int32)
    with pytest.raises(interpreted.GivenUp):
        interpreted.interpret(_product, (values, into), {})
    with pytest.raises(interpreted.GivenUp):
        interpreted.interpret(lambda both: _product(*both), ((values, into),), {})
    assert into.tolist() == [0]
    assert not interpreted.is_interpreting()


def test_an_error_of_a_kernel_is_one_when_it_is_interpreted() -> None:
    with pytest.raises(IndexError):
        compiled(_product)(np.array([], np.int64), np.zeros(1, np.int64))


def test_hashes_are_those_of_machine_code() -> None:
    numbers = np.array([0, 1, -1, 2**62, -(2**63)], np.int64)
    places = [(int(a), int(b)) for a in numbers for b in numbers]
    here = interpreted.interpret(lambda: [place_of(a, b, 1 << 20) for a, b in places], (), {})

    @compiled
    def in_machine_code(first: np.ndarray, second: np.ndarray, found: np.ndarray) -> None:
        for i in range(len(first)):
            found[i] = place_of(first[i], second[i], 1 << 20)

    found = np.zeros(len(places), np.int64)
    interpreted.allowance.left_s = 0.0
    in_machine_code(*np.array(places).T.copy(), found)
    assert here == found.tolist()
    interpreted.allowance.left_s = interpreted.MOST_S
    short = mixed(numbers, 5)
    assert short.tolist() == mixed(np.tile(numbers, interpreted.MOST_BYTES), 5)[: len(numbers)].tolist()
