"""Images of released Java programs: jars that Maven fetched, or a distribution, and Debian's Java runtime on the base.

What Maven fetches is named by its coordinates, which never mean other bytes, so an image that is here is used without
asking it. A distribution is somebody's own: its files are read each time, and a changed one makes another image.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from harness.environments.docker.building import Say, build, content_hash, context_of, forget_old, is_here
from harness.errors import HarnessError, UsageError
from harness.lifetime import scratch, supervised
from harness.program import JavaRelease, MavenArtifacts

RUNTIME_REPOSITORY, REPOSITORY = "stormproof-java", "stormproof-release"
RUNTIME_RECIPE = b"""ARG BASE
FROM ${BASE}
RUN apt-get update -qq \\
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless \\
 && rm -rf /var/lib/apt/lists/* && java -Xshare:dump
"""
RELEASE_RECIPE = """ARG BASE
FROM ${BASE}
COPY release %(directory)s
WORKDIR %(directory)s
RUN sh %(directory)s/%(prepare)s
"""
PREPARE = ".stormproof-prepare"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>stormproof</groupId><artifactId>release</artifactId><version>1</version>
<dependencies>%s</dependencies></project>
"""
DEPENDENCY = "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>"
COMPILED_FOR = ("-Dmaven.compiler.source=11", "-Dmaven.compiler.target=11")
"""A Java that every Maven of today can compile for; the runtime of the image is newer."""
ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar")
NOT_FOUND = re.compile(
    r"(?:Could not find artifact|artifacts could not be resolved:) (?P<new>[^\s,]+)|(?P<again>\S+) was not found in"
)
"""What Maven says of an artifact that there is not; in other words where it asked for it before."""


def java_image(client: Any, release: JavaRelease, base: str, say: Say) -> str:
    """The tag of its image. Raises HarnessError, and UsageError for what a user named and is not there."""
    with scratch.directory() as place:
        content = release.content
        if isinstance(content, MavenArtifacts):
            files, named = dict[str, bytes](), _named(content)
        else:
            files, named = _distribution(content, place), ""
        added = {path: text.encode() for path, text in release.files if path not in files}
        added[PREPARE] = release.prepare.encode()
        recipe = (RELEASE_RECIPE % {"directory": release.directory, "prepare": PREPARE}).encode()
        contents = context_of(files | added)
        tag = f"{REPOSITORY}:{content_hash(base.encode(), RUNTIME_RECIPE, recipe, named.encode(), contents)}"
        if is_here(client, tag):
            return tag
        if isinstance(content, MavenArtifacts):
            files = _fetched(content, place, say)
        runtime = _runtime_image(client, base, say)
        say(f"building {tag}: {_words(content)} on Debian's Java runtime")
        released = {f"release/{path}": data for path, data in (files | added).items()}
        build(client, tag, context_of({"Dockerfile": recipe, **released}), {"BASE": runtime})
        forget_old(client, REPOSITORY)
        return tag


def _named(content: MavenArtifacts) -> str:
    """All that decides what Maven makes of it."""
    return "\n".join((*content.coordinates, *(path.read_text("utf-8") for path in content.sources)))


def _words(content: MavenArtifacts | Path) -> str:
    return ", ".join(content.coordinates) if isinstance(content, MavenArtifacts) else str(content)


def _runtime_image(client: Any, base: str, say: Say) -> str:
    tag = f"{RUNTIME_REPOSITORY}:{content_hash(base.encode(), RUNTIME_RECIPE)}"
    if not is_here(client, tag):
        say(f"building {tag}: {base} with Debian's Java runtime")
        build(client, tag, context_of({"Dockerfile": RUNTIME_RECIPE}), {"BASE": base})
    return tag


def _fetched(wanted: MavenArtifacts, place: Path, say: Say) -> dict[str, bytes]:
    """Path below the release's directory -> content."""
    maven = shutil.which("mvn")
    if maven is None:
        raise UsageError(f"there is no Maven here (no command mvn) to fetch {_words(wanted)}; {wanted.otherwise}")
    say(f"Maven fetches {_words(wanted)}")
    dependencies = [DEPENDENCY % tuple(map(escape, one.split(":"))) for one in wanted.coordinates]
    pom, jars, classes = place / "pom.xml", place / "lib", place / "target" / "classes"
    pom.write_text(POM % "".join(dependencies))
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime"]
    if wanted.sources:
        command += ["compiler:compile", *COMPILED_FOR]
        sources = place / "src" / "main" / "java"
        sources.mkdir(parents=True)
        for path in wanted.sources:
            shutil.copy(path, sources)
    done = supervised.run([*command, f"-DoutputDirectory={jars}"], stderr=subprocess.STDOUT)
    if done.returncode:
        words = next(filter(None, (line.strip() for line in done.stdout.split("[ERROR]")[1:])), "it said nothing")
        words = words.partition("\n")[0].partition(" -> ")[0]
        if missing := NOT_FOUND.search(words):
            named = missing["new"] or missing["again"]
            raise UsageError(f"Maven finds no {named}: is there such a release? Otherwise {wanted.otherwise}")
        raise HarnessError(f"Maven could not fetch {_words(wanted)}: {words}; {wanted.otherwise}")
    found = {f"lib/{path.name}": path.read_bytes() for path in sorted(jars.glob("*.jar"))}
    say(f"{len(found)} jars, {sum(map(len, found.values())) / 2**20:.0f} MiB")
    return found | {f"classes/{path.name}": path.read_bytes() for path in sorted(classes.glob("*.class"))}


def require_distribution(path: Path) -> None:
    """Raises UsageError where there is none that could be one."""
    if path.is_dir():
        return
    if not path.is_file():
        raise UsageError(f"{path}: no such folder or archive of a distribution")
    if not path.name.endswith(ARCHIVES):
        raise UsageError(f"{path} is no archive that can be unpacked here: expected a folder, or {', '.join(ARCHIVES)}")


def _distribution(path: Path, place: Path) -> dict[str, bytes]:
    """Path below its top folder -> content. Raises UsageError."""
    with _unpacked(path, place / "distribution") as folder:
        inside = list(folder.iterdir())
        while len(inside) == 1 and inside[0].is_dir():
            folder = inside[0]
            inside = list(folder.iterdir())
        found = {one.relative_to(folder).as_posix(): one for one in sorted(folder.rglob("*")) if one.is_file()}
        if not any(name.startswith("lib/") and name.endswith(".jar") for name in found):
            raise UsageError(f"{path} is no distribution of a Java program: it has no lib/*.jar; name its top folder")
        return {name: one.read_bytes() for name, one in found.items()}


@contextmanager
def _unpacked(path: Path, place: Path) -> Iterator[Path]:
    require_distribution(path)
    if path.is_dir():
        yield path
        return
    os.makedirs(place)
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                packed.extractall(place)
        else:
            with tarfile.open(path) as packed_tar:
                packed_tar.extractall(place, filter="data")
    except (tarfile.TarError, zipfile.BadZipFile, OSError) as error:
        raise UsageError(f"{path} cannot be unpacked: {error}") from error
    yield place
