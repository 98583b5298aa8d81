"""ZooKeeper by the number of a release: its jars, instead of Debian's package."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.program import Command, DebianPackages, JavaRelease, MavenArtifacts
from workloads.systems.zookeeper.adapter import SYSTEM, ZookeeperSettings


def commands(settings: ZookeeperSettings) -> list[Command]:
    programs = [node.program for node in SYSTEM.nodes(settings, None)]
    return [program for program in programs if isinstance(program, Command)]


@pytest.mark.parametrize("reconfig", [False, True])
def test_all_servers_are_of_the_release(reconfig: bool) -> None:
    chosen = commands(ZookeeperSettings(release="3.9.5", reconfig=reconfig))
    assert len(chosen) == 3
    for command in chosen:
        assert isinstance(command.image, JavaRelease)
        assert isinstance(command.image.content, MavenArtifacts)
        assert command.image.content.coordinates[0] == "org.apache.zookeeper:zookeeper:3.9.5"
        assert command.argv[-1] in {f"{command.image.directory}/{path}" for path, _ in command.image.files}


def test_without_a_number_they_are_debians() -> None:
    assert all(isinstance(command.image, DebianPackages) for command in commands(ZookeeperSettings()))


@pytest.mark.parametrize("release", ["3.9", "newest", "3.9.5/../.."])
def test_what_is_no_release_is_refused(release: str) -> None:
    with pytest.raises(UsageError, match=r"as 3\.9\.5, got"):
        ZookeeperSettings(release=release)
