"""For a name that is misspelt the nearest is shown."""

from __future__ import annotations

import pytest

from harness.nearest import nearest, unknown

NAMES = ("partition", "kill", "pause", "snapshot-isolation", "PL-3")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("partitoin", ("partition",)),
        ("KILL", ("kill",)),
        ("puase", ("pause",)),
        ("Snapshot_isolaton", ("snapshot-isolation",)),
        ("pl3", ("PL-3",)),
        ("meteor", ()),
        ("", ()),
    ],
)
def test_the_nearest_is_found_however_case_and_dashes_are_written(name: str, meant: tuple[str, ...]) -> None:
    assert nearest(name, NAMES) == meant


def test_one_line_says_what_was_meant_and_what_is_known() -> None:
    assert (
        unknown("nemesis", "kil", ["kill", "pause"])
        == "unknown nemesis 'kil'; did you mean kill? Known are: kill, pause"
    )
    assert unknown("mutant", "x", [], of=" of memo") == "unknown mutant 'x' of memo; known are: none"
    assert len(unknown("system", "a" * 100_000, ["rocketmq"])) < 200
    assert "\n" not in unknown("system", "a\nb", ["rocketmq"])
