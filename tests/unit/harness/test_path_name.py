"""What a user or a file says becomes one part of a path, or is refused."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.path_name import LONGEST_NAME_BYTES, checked, made_of
from harness.program import PythonProgram
from harness.system import NodeSpec

WRONG = ["", ".", "..", "a/b", "../a", "/etc", ".hidden", "-x", "a b", "a\nb", "a\x00b", "\ud800", "x\u202ey", "a\\b"]


@pytest.mark.parametrize("name", WRONG, ids=ascii)
def test_a_name_that_is_no_folder_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a suite"):
        checked(name, "a suite")
    with pytest.raises(UsageError, match="cannot be the name of a node"):
        NodeSpec(name=name, groups=(), program=PythonProgram(main="m:main"))


def test_a_name_may_be_so_long_and_no_longer_in_bytes() -> None:
    assert checked("ä" * (LONGEST_NAME_BYTES // 2), "a suite")
    with pytest.raises(UsageError, match="has 122 bytes, at most 120 are allowed"):
        checked("ä" * (LONGEST_NAME_BYTES // 2 + 1), "a suite")


@pytest.mark.parametrize(
    "text", [*WRONG, "é" * 400, "rocketmq-log-isolate primary every 10 for 5", "x" * 119 + "é"], ids=ascii
)
def test_a_name_made_of_any_text_is_one(text: str) -> None:
    assert checked(made_of(text, otherwise="history"), "a history")


def test_a_name_made_of_plain_text_is_that_text() -> None:
    assert made_of("my-history_2.v1", otherwise="history") == "my-history_2.v1"
    assert made_of("///", otherwise="history") == "history"
