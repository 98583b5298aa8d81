"""The table of modules and their tests, `tests/MODULES.md`: current, and without a gap."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.mutation.concerns import CONCERNS, OTHERS, ROOT
from tests.mutation.page import PAGE, Module, modules, own_tests, page, without_tests

Tests = Mapping[str, tuple[str, ...]]

EVERY = modules()


@pytest.fixture(scope="module")
def own() -> Tests:
    return own_tests(EVERY)


def test_the_page_is_what_the_script_makes_of_imports_and_concerns(own: Tests) -> None:
    assert PAGE.read_text("utf-8") == page(EVERY, own), "run: make modules"


def test_every_module_has_tests_that_notice_a_mistake_in_it(own: Tests) -> None:
    lacking = without_tests(EVERY, own)
    assert not lacking, f"no test imports {', '.join(lacking)}: name one in OTHERS of tests/mutation/concerns.py"


def test_a_module_without_tests_is_named() -> None:
    lonely = Module("checkers.lonely", Path("checkers/lonely.py"))
    assert without_tests({"checkers.lonely": lonely}, {"checkers.lonely": ()}) == ["checkers/lonely.py"]
    assert without_tests({"checkers.lonely": lonely}, {"checkers.lonely": ("unit/checkers/test_lonely.py",)}) == []


@pytest.mark.parametrize(
    ("module", "test"),
    [
        (
            "checkers.transactions.orders.incremental_topological_order",
            "properties/test_topological_order.py",
        ),
        ("harness.record.history.pairing", "properties/test_history_properties.py"),  # by way of its package
        ("harness.lifetime.owner", "unit/harness/lifetime/test_owner_and_scratch.py"),  # in the text of a program
        (
            "harness.environments.simulated.network",
            "unit/harness/environments/simulated/test_simulated_network.py",
        ),  # named alike
    ],
)
def test_a_module_has_the_tests_that_import_it_or_are_named_like_it(own: Tests, module: str, test: str) -> None:
    assert test in own[module]


def test_entries_name_only_what_is_there_and_no_module_twice() -> None:
    named = [module for concern in (*CONCERNS, *OTHERS) for module in concern.modules]
    assert sorted(set(named)) == sorted(named)
    assert [module for module in named if not (ROOT / module).exists()] == []
    asked = {argument.partition("::")[0] for concern in OTHERS for argument in concern.arguments()}
    assert [path for path in sorted(asked) if not (ROOT / path).exists()] == []
