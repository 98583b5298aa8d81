"""What a node runs: a Python program written against a `Host`, or any command in an image of its own.

A Python program runs in every environment, and its image is made of the files of the packages it imports. A command
runs in containers and on machines; the simulator refuses it by name. The texts of a command (its words, files and
environment variables) may name nodes: `${name}` and `${address}` are the node's own, `${r2.address}` is that of node
r2, and `${home}` is a directory for what the node keeps; `$${` is a plain `${`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import UsageError

Main = Callable[[Any, Mapping[str, Any]], Awaitable[None]]
"""A Python program: `await main(host, config)`, until it is cancelled."""
PLACE = re.compile(r"\$(\$\{)|\$\{([^}]*)\}")
PLACE_OF_HOME = "${home}"


@dataclass(frozen=True, kw_only=True)
class PythonProgram:
    """A program written against a `Host`: the same in every environment."""

    main: str
    """`package.module:function`, a `Main`. Whatever it imports is copied into its image, package by package."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON data."""
    logs: str = ""
    """A directory on its disk, which comes home with its output."""
    requirements: tuple[str, ...] = ()
    """Requirements that pip installs into the image instead of copying: packages with compiled parts."""


@dataclass(frozen=True)
class DebianPackages:
    """Debian packages over the base image, which brings Python, iptables and libfaketime."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Dockerfile:
    """A folder with a Dockerfile. Its build argument BASE is the base image; another base gets the tools of the faults
    by apt-get."""

    folder: Path


@dataclass(frozen=True)
class MavenArtifacts:
    """Jars that Maven fetches, with all that they need at run time, from wherever it is set up to find them."""

    coordinates: tuple[str, ...]
    """`group:artifact:version` each."""
    otherwise: str
    """What a user does where there is no Maven, or where it does not find them; for messages."""
    sources: tuple[Path, ...] = ()
    """Files of Java that Maven compiles with them, into `classes` of the release: where jars have no program."""


@dataclass(frozen=True)
class JavaRelease:
    """A published release of a Java program, with a Java runtime, over the base image."""

    content: MavenArtifacts | Path
    """Jars, which lie in `lib` below the directory; or a distribution, as a folder or as an archive with one."""
    directory: str
    """Absolute; where it lies in the image."""
    files: tuple[tuple[str, str], ...] = ()
    """(path below the directory, text) of what is added to it, as start scripts; what a distribution has stays."""
    prepare: str = ""
    """Lines for `sh`, run once in the directory when the image is made: what makes later starts quick."""


@dataclass(frozen=True)
class NamedImage:
    """An image of the engine or of a registry; the tools of the faults are added by apt-get where they are missing."""

    name: str


@dataclass(frozen=True)
class Installed:
    """No image: what the command needs is installed on the machine on which it runs."""


Image = DebianPackages | Dockerfile | JavaRelease | NamedImage | Installed


@dataclass(frozen=True)
class Listening:
    """Ready when a TCP connection to this port of the node comes about."""

    port: int


@dataclass(frozen=True)
class Succeeding:
    """Ready when this command, run in the node, ends with exit code 0."""

    argv: tuple[str, ...]


Probe = Listening | Succeeding


@dataclass(frozen=True, kw_only=True)
class Command:
    """A program of any kind, run as root; its output is the node's log.

    It ends when the last of its processes has. What it writes stays from one life to the next, as on a machine.
    """

    argv: tuple[str, ...]
    image: Image
    files: Mapping[str, str] = field(default_factory=dict)
    """Absolute path, which may begin with `${home}` -> text, written before each boot."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables, beside those of the image."""
    logs: str = ""
    """A directory, as `${home}/logs`, in which it keeps logs beside its output; they come home with it."""
    stops_within_s: float = 10.0
    """So long it may take to end by itself once a run is over, by force after that: less where its clean stop takes
    seconds and leaves nothing that a run needs."""
    ready: Probe | None = None
    """Waited for after the first start of all nodes. None: whatever the system's adapter waits for."""


Program = PythonProgram | Command


def image_of(program: Program) -> object:
    """Equal for programs that can run in one image."""
    if isinstance(program, PythonProgram):
        return program.main.partition(":")[0], program.requirements
    return program.image


def filled(text: str, names: Mapping[str, str]) -> str:
    """The text with the places `${…}` replaced. Raises UsageError for one that names nothing."""

    def place(found: re.Match[str]) -> str:
        if found[1]:
            return found[1]
        if found[2] not in names:
            raise UsageError(f"no node has {found[0]}; there are {', '.join(names)}, and $${{ for a plain ${{")
        return names[found[2]]

    return PLACE.sub(place, text)


def places(node: str, addresses: Mapping[str, str], home: str) -> dict[str, str]:
    """What the texts of a node may name; `addresses`: node -> address, `home`: a directory of the node's own."""
    others = {f"{name}.address": address for name, address in addresses.items()}
    return {"name": node, "address": addresses[node], "home": home, **others}
