"""Members of the public library: which members run it, and with which settings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.errors import UsageError
from harness.program import Command, JavaRelease, MavenArtifacts, PythonProgram
from workloads.systems.dledger.adapter import SYSTEM
from workloads.systems.dledger.settings import DledgerSettings


def programs(**settings: Any) -> list[Command | PythonProgram]:
    return [node.program for node in SYSTEM.nodes(DledgerSettings(**settings), None)]


def settings_of(program: Command | PythonProgram) -> dict[str, Any]:
    if isinstance(program, PythonProgram):
        return dict(program.config)
    (text,) = program.files.values()
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(("originals", "commands"), [(0, 3), (1, 1), (2, 2), (3, 3)])
def test_the_first_members_run_the_release_and_the_others_are_ours(originals: int, commands: int) -> None:
    found = programs(release="0.3.1", originals=originals)
    assert [isinstance(program, Command) for program in found] == [True] * commands + [False] * (3 - commands)
    nodes = SYSTEM.nodes(DledgerSettings(release="0.3.1", originals=originals), None)
    assert [node.replica for node in nodes] == [False] * commands + [True] * (3 - commands)


def test_both_kinds_of_members_have_the_same_settings() -> None:
    original, ours = programs(release="0.3.1", originals=2, batch_push=True, preferred=3)[1:]
    public, own = settings_of(original), settings_of(ours)
    assert public.pop("enableBatchPush") is own.pop("isEnableBatchPush") is True
    assert own.pop("ackDurable") is False
    assert (public.pop("selfId"), own.pop("selfId")) == ("n2", "n3")
    assert public.pop("storeBaseDir") == "${home}/store"
    assert public == own
    assert public["preferredLeaderIds"] == "n3"


def test_its_image_is_made_of_the_library_and_a_class_that_starts_it() -> None:
    (program, *_) = programs(release="0.3.1")
    assert isinstance(program, Command)
    assert isinstance(program.image, JavaRelease)
    content = program.image.content
    assert isinstance(content, MavenArtifacts)
    assert content.coordinates[0] == "io.openmessaging.storage:dledger:0.3.1"
    (source,) = content.sources
    assert f"public class {source.stem} " in source.read_text()
    assert program.argv[-2:] == (source.stem, next(iter(program.files)))
    assert f"{program.image.directory}/classes:" in program.argv[program.argv.index("-cp") + 1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"originals": 1}, r"originals is about a release .* release=0\.3\.1"),
        ({"release": "newest"}, r"as 0\.3\.1, got 'newest'"),
        ({"release": "0.3.1", "originals": 4}, r"takes 0 to 3, got 4"),
        ({"release": "0.3.1", "ack_durable": True}, "ack_durable is no setting of the public DLedger"),
    ],
)
def test_what_the_library_has_not_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        DledgerSettings(**settings)


def test_nothing_is_planted_beside_members_of_the_library() -> None:
    with pytest.raises(UsageError, match="nothing is planted beside the public DLedger"):
        SYSTEM.nodes(DledgerSettings(release="0.3.1", originals=1), "late-truncate")


def test_storms_draw_no_settings_that_the_library_has_not() -> None:
    assert "ack_durable" in SYSTEM.cluster(DledgerSettings()).explored
    explored = SYSTEM.cluster(DledgerSettings(release="0.3.1")).explored
    for name, values in explored.items():
        for value in values:
            given: dict[str, Any] = {name: value}
            assert DledgerSettings(release="0.3.1", members=given.pop("members", 3), **given)
