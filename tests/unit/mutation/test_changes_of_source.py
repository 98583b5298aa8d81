"""Changes are one token each, at every place that decides something, and the same in every run."""

from __future__ import annotations

import ast
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutation.campaign import chosen
from tests.mutation.changes import changed_tree, changes
from tests.mutation.children import Ended, in_child
from tests.mutation.concerns import CONCERNS, ROOT
from tests.mutation.exemptions import gone, parse, read_exemptions
from tests.mutation.functions import functions_by_file, mark, put
from tests.mutation.outcomes import Fate, Kept, Outcome, table
from tests.mutation.trials import fate_of

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
    pairs = zip(a, b, strict=True)
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
    one, same, other = ([change.name for _, change in chosen(20, seed, ["checkers/log"])] for seed in (1, 1, 2))
    assert one == same != other
    assert len(set(one)) == 20
    assert all(name.startswith("checkers/log/") for name in one)


def test_every_deciding_module_has_tests_that_concern_it() -> None:
    covered = {path.relative_to(ROOT) for concern in CONCERNS for path in concern.paths()}
    assert Path("checkers/transactions/orders/weak/levels.py") in covered
    for concern in CONCERNS:
        assert concern.arguments()
        for argument in concern.arguments():
            assert (ROOT / argument.partition("::")[0]).exists(), argument


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DECIDER = """
def decide(a, b):
    if a < b:
        return "less"
    else:
        for i in range(b, a):
            return "more"
    return "equal"
"""


def test_functions_that_were_imported_elsewhere_are_changed_too(tmp_path: Path) -> None:
    path = tmp_path / "decider.py"
    path.write_text(DECIDER)
    decide = imported(path).decide
    assert decide(1, 1) == "equal"
    functions = functions_by_file([path])[str(path)]
    (change,) = [one for one in changes(path, "decider.py") if one.after == "a <= b"]
    put(changed_tree(path, change.place), path, functions)
    assert decide(1, 1) == "less"


def test_marks_tell_which_changes_a_call_reaches(tmp_path: Path) -> None:
    path = tmp_path / "decider.py"
    path.write_text(DECIDER)
    decide = imported(path).decide
    marks = mark(path, functions_by_file([path])[str(path)])
    assert decide(1, 1) == "equal"
    assert sum(marks) == len(marks) - 2, "not the two other returns"
    assert all(marks[change.statement] for change in changes(path, "decider.py"))


@pytest.mark.parametrize(
    ("reports", "code", "fate"),
    [
        ([True, True], 0, Fate.SURVIVED),
        ([True, False], 0, Fate.KILLED),
        ([True], -signal.SIGXCPU, Fate.ENDLESS),
        ([True], -signal.SIGKILL, Fate.ENDLESS),
        ([True], -signal.SIGSEGV, Fate.UNDECIDED),
        ([], 3, Fate.UNDECIDED),
    ],
)
def test_what_was_told_and_how_it_ended_decides(reports: list[bool], code: int, fate: Fate) -> None:
    assert fate_of(Ended(reports=reports, code=code, words="")) is fate


def test_a_child_tells_until_it_ends() -> None:
    def work(tell: Callable[[object], None]) -> None:
        tell("first")
        raise ValueError("second")

    ended = in_child(work)
    assert (ended.reports, ended.code, "second" in ended.words) == (["first"], 3, True)
    assert in_child(lambda tell: os.kill(os.getpid(), signal.SIGKILL)).code == -signal.SIGKILL


STARTED = """
import os, sys, time
from tests.mutation.children import in_child

def work(tell):
    os.write(int(sys.argv[1]), b"begun")
    time.sleep(60)
    os.write(int(sys.argv[1]), b"outlived")

in_child(work)
"""


def test_no_child_outlives_who_started_it() -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen([sys.executable, "-c", STARTED, str(writing)], cwd=ROOT, pass_fds=[writing])
    os.close(writing)
    assert os.read(reading, 5) == b"begun"
    process.kill()
    process.wait()
    assert os.read(reading, 1) == b"", "the pipe ends with whoever could write"
    os.close(reading)


def test_the_table_counts_by_package_and_names_what_nobody_knows(module: Path) -> None:
    first, second, third, *_ = changes(module, "checkers/log/module.py")
    fates = [(first, Fate.KILLED), (second, Fate.SURVIVED), (third, Fate.EXEMPT)]
    printed = table(Outcome(change=change, fate=fate) for change, fate in fates)
    assert printed.splitlines()[1:] == [
        "package       changes  killed  endless  known  survived  not decided",
        "checkers/log        3       1        0      1         1            0",
        "all                 3       1        0      1         1            0",
        "survived: checkers/log/module.py:9 decide: a < b  →  a <= b",
    ]


def test_outcomes_are_known_again_when_lines_were_written_above(module: Path, tmp_path: Path) -> None:
    kept = Kept(tmp_path / "outcomes.jsonl")
    change = changes(module, "module.py")[-1]
    kept.add(Outcome(change=change, fate=Fate.SURVIVED))
    kept.add(Outcome(change=change, fate=Fate.KILLED, by="a test"))
    module.write_text("import math\n" + SOURCE.replace("mask = ~(a & b)", "mask = ~(a & b) + 5"))
    again = Kept(tmp_path / "outcomes.jsonl")
    found = [again.get(one) for one in changes(module, "module.py")]
    assert [one for one in found if one is not None] == [found[-1]]
    assert found[-1] is not None and (found[-1].fate, found[-1].by) == (Fate.KILLED, "a test")


def test_every_change_is_known_apart_from_all_others(tmp_path: Path) -> None:
    path = tmp_path / "twice.py"
    path.write_text("def f(a):\n    a += 1\n    a += 1\n    match a:\n        case 1:\n            return 5\n")
    found = [one.wording for one in changes(path, "twice.py")]
    assert len(set(found)) == len(found)
    assert all(wording.before != wording.after for wording in found)


def test_what_is_known_is_written_as_it_must_be() -> None:
    assert all(entry.why for entry in read_exemptions().values())
    one = "a.py f\n- return 1\n+ return 2\nequivalent: nobody asks"
    (wording,) = parse(one)
    assert (wording.path, wording.function, wording.before, wording.after) == ("a.py", "f", "return 1", "return 2")
    assert gone(parse(one)) == [wording]
    for wrong in (f"{one}\n\n{one}", one.replace("equivalent", "boring"), "a.py f\n- return 1"):
        with pytest.raises(ValueError, match=r"not an entry|there twice"):
            parse(wrong)
