"""What a distribution has to be, and what is said where there is no Maven."""

from __future__ import annotations

import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from harness.environments.docker.java_image import _distribution, _fetched, _named
from harness.errors import UsageError
from harness.program import MavenArtifacts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, text in {"lib/broker.jar": "classes", "bin/mqbroker": "exec java", "conf/a.conf": ""}.items():
        place = tmp_path / "rocketmq" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return tmp_path / "rocketmq"


FILES = {"lib/broker.jar": b"classes", "bin/mqbroker": b"exec java", "conf/a.conf": b""}


def test_a_distribution_is_the_same_as_a_folder_and_as_an_archive_of_it(folder: Path, tmp_path: Path) -> None:
    zipped, tarred = tmp_path / "a.zip", tmp_path / "a.tar.gz"
    with zipfile.ZipFile(zipped, "w") as archive, tarfile.open(tarred, "w:gz") as other:
        for path in FILES:
            archive.write(folder / path, f"rocketmq-all-5.4.0-bin-release/{path}")
        other.add(folder, "rocketmq-all-5.4.0-bin-release")
    for number, named in enumerate((folder, zipped, tarred)):
        assert _distribution(named, tmp_path / f"place{number}") == FILES


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nowhere", None, "no such folder or archive"),
        ("a.rar", b"x", "no archive that can be unpacked here"),
        ("a.zip", b"x", "cannot be unpacked"),
        ("a.tar.gz", b"x", "cannot be unpacked"),
    ],
)
def test_what_is_no_distribution_is_refused(name: str, content: bytes | None, words: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=words):
        _distribution(tmp_path / name, tmp_path / "place")


def test_a_folder_without_jars_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "pom.xml").touch()
    with pytest.raises(UsageError, match=r"has no lib/\*\.jar"):
        _distribution(tmp_path / "sources", tmp_path / "place")


def test_without_maven_the_other_ways_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    wanted = MavenArtifacts(coordinates=("org.example:server:1.0",), otherwise="name a folder")
    with pytest.raises(UsageError, match=r"no Maven here.*org\.example:server:1\.0; name a folder"):
        _fetched(wanted, tmp_path, print)


@pytest.mark.parametrize(
    "complaint",
    [
        "Could not find artifact org.example:server:jar:9 in somewhere",
        "The following artifacts could not be resolved: org.example:server:jar:9, org.example:other:jar:9",
        "org.example:server:jar:9 was not found in somewhere during a previous attempt",
        "no way out",
    ],
)
def test_what_maven_says_is_handed_on(complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven = tmp_path / "mvn"
    maven.write_text(f"#!/bin/sh\necho '\033[0m[ERROR] {complaint} -> [Help 1]'; exit 1\n")
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    wanted = MavenArtifacts(coordinates=("org.example:server:9",), otherwise="name a folder")
    words = r"finds no org\.example:server:jar:9" if "server" in complaint else r"could not fetch .*: no way out"
    with pytest.raises(Exception, match=words):
        _fetched(wanted, tmp_path, print)


def test_a_source_is_compiled_with_the_jars_and_makes_another_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven = tmp_path / "mvn"
    maven.write_text("""#!/bin/sh
cd "$(dirname "$4")"
mkdir -p lib target/classes
echo jar >lib/server.jar
case "$*" in *compiler:compile*) cp src/main/java/Start.java target/classes/Start.class;; esac
""")
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    jars = MavenArtifacts(coordinates=("org.example:server:9",), otherwise="")
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    assert _fetched(jars, tmp_path / "one", print) == {"lib/server.jar": b"jar\n"}
    source = tmp_path / "Start.java"
    source.write_text("class Start {}")
    started = replace(jars, sources=(source,))
    assert _fetched(started, tmp_path / "other", print)["classes/Start.class"] == b"class Start {}"
    names = {_named(jars), _named(started)}
    source.write_text("class Start { }")
    assert len({*names, _named(started)}) == 3
