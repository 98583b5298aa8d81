"""Changes are one token each, at every place that decides something, and the same in every run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutation.campaign import Fate, Outcome, chosen, fate_of, table
from tests.mutation.changes import changed_tree, changes
from tests.mutation.concerns import CONCERNS, ROOT

SOURCE = '''"""A module: 1 < 2."""

LIMIT = 5


@cache(3)
def decide(a: Literal[4], b=6):
    """Whether a < b."""
    if a < b and not a == 7:
        return f"{a + 1} words"
    mask = ~(a & b)
    mask += 1
    nobody = -1
    assert mask > 8
    return a is not None or b in (True,)


class Decider:
    def of(self, x):
        return x - 2
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    return path


def test_every_place_that_decides_is_changed_and_nothing_else(module: Path) -> None:
    found = [(one.function, one.before, one.after) for one in changes(module, "module.py")]
    assert found == [
        ("decide", "a < b and (not a == 7)", "a < b or not a == 7"),
        ("decide", "a < b", "a <= b"),
        ("decide", "not a == 7", "not not a == 7"),
        ("decide", "a == 7", "a != 7"),
        ("decide", "7", "8"),
        ("decide", "7", "6"),
        ("decide", "~(a & b)", "~~(a & b)"),
        ("decide", "a & b", "a | b"),
        ("decide", "mask += 1", "mask -= 1"),
        ("decide", "1", "2"),
        ("decide", "1", "0"),
        ("decide", "a is not None or b in (True,)", "a is not None and b in (True,)"),
        ("decide", "a is not None", "a is None"),
        ("decide", "b in (True,)", "b not in (True,)"),
        ("decide", "True", "False"),
        ("Decider.of", "x - 2", "x + 2"),
        ("Decider.of", "2", "3"),
        ("Decider.of", "2", "1"),
    ]


def test_each_change_is_one_of_the_module_and_leaves_the_rest(module: Path) -> None:
    unchanged = ast.unparse(ast.parse(SOURCE)).splitlines()
    for one in changes(module, "module.py"):
        changed = ast.unparse(changed_tree(module, one.place)).splitlines()
        differing = [(old, new) for old, new in zip(unchanged, changed, strict=True) if old != new]
        ((old, new),) = differing
        assert one.before in old
        assert one.after in new or f"({one.after})" in new
    with pytest.raises(ValueError, match="has no place"):
        changed_tree(module, 1_000)


def test_the_seed_decides_which_changes_are_tried() -> None:
    one, same, other = ([change.name for _, change in chosen(20, seed, "checkers/log")] for seed in (1, 1, 2))
    assert one == same != other
    assert len(set(one)) == 20
    assert all(name.startswith("checkers/log/") for name in one)


def test_every_deciding_module_has_tests_that_concern_it() -> None:
    covered = {path.relative_to(ROOT) for concern in CONCERNS for path in concern.paths()}
    assert Path("checkers/transactions/isolation/weak/levels.py") in covered
    for concern in CONCERNS:
        assert concern.stages()
        for argument in (argument for stage in concern.stages() for argument in stage):
            assert (ROOT / argument.partition("::")[0]).exists(), argument


@pytest.mark.parametrize(
    ("ended", "fate"),
    [
        (0, Fate.SURVIVED),
        (1, Fate.KILLED),
        (2, Fate.KILLED),
        (-24, Fate.ENDLESS),
        (-9, Fate.ENDLESS),
        (-11, Fate.UNDECIDED),
    ],
)
def test_how_the_tests_end_decides(ended: int, fate: Fate) -> None:
    assert fate_of(ended, "one\nlast words\n")[0] is fate


def test_the_table_counts_by_package_and_names_what_was_not_killed(module: Path) -> None:
    first, second, *_ = changes(module, "checkers/log/module.py")
    printed = table([Outcome(change=first, fate=Fate.KILLED), Outcome(change=second, fate=Fate.SURVIVED)])
    assert printed.splitlines()[1:] == [
        "package       changes  killed  endless  survived  not decided",
        "checkers/log        2       1        0         1            0",
        "all                 2       1        0         1            0",
        "survived: checkers/log/module.py:9 decide: a < b  →  a <= b",
    ]
