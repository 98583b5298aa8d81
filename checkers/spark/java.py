"""Which Java this machine offers to Spark, and how to get one.

Standard library only: the set-up runs it before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError

LEAST_VERSION = 17
CHECKOUT = Path(__file__).resolve().parents[2]
CHECKOUT_JDKS = CHECKOUT / ".jdk"
PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless")
"""Headless JREs of Debian and Ubuntu, most wanted first; each release carries some of them."""

HOW_TO_GET = (
    f"install Java {LEAST_VERSION} or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; "
    "elsewhere any JDK), point JAVA_HOME at it, or use --engine inprocess, which needs none"
)


class JavaMissing(HarnessError):
    """Spark needs a Java that this machine does not have; says what was found and how to get one."""


@dataclass(frozen=True)
class Java:
    """A Java runtime."""

    home: Path
    version: int
    """The feature release: 17, 21, …"""


def find_java(environ: Mapping[str, str] = os.environ, jdks: Path = CHECKOUT_JDKS) -> Java | None:
    """The first Java that is new enough: JAVA_HOME's, then the PATH's, then the checkout's own."""
    for candidate in _candidates(environ, jdks):
        java = java_at(candidate)
        if java is not None and java.version >= LEAST_VERSION:
            return java
    return None


def java_at(executable: Path) -> Java | None:
    """The Java of this executable: by the file `release` of its installation, which costs no process, else by what it
    prints. None where there is none, or none that says its version."""
    if not os.access(executable, os.X_OK):
        return None
    release = executable.resolve().parents[1] / "release"
    version = version_of(release.read_text(errors="replace")) if release.is_file() else None
    version = version or version_of(_printed(executable))
    return None if version is None else Java(executable.resolve().parents[1], version)


def _printed(executable: Path) -> str:
    """What it prints of its version; nothing where it does not run."""
    try:
        ran = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if ran.returncode else ran.stderr + ran.stdout


def version_of(text: str) -> int | None:
    """The feature release in a `release` file or printed by `java -version`: 8 for "1.8.0_392", 17 for "17.0.15"."""
    found = re.search(r'(?:version |JAVA_VERSION=)"(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def adopt_java() -> None:
    """Let Spark, which knows only JAVA_HOME or else the PATH, find the Java that `find_java` found."""
    candidates = list(_candidates(os.environ, CHECKOUT_JDKS))
    if len(candidates) < 2:
        return
    java = find_java()
    if java is not None and java != java_at(candidates[0]):
        os.environ["JAVA_HOME"] = str(java.home)


def require_java() -> None:
    """Adopt a Java. Raises JavaMissing."""
    adopt_java()
    if find_java() is None:
        old = [java for java in map(java_at, _candidates(os.environ, CHECKOUT_JDKS)) if java is not None]
        what = f"only Java {old[0].version} at {old[0].home}" if old else "none"
        raise JavaMissing(f"Spark needs Java {LEAST_VERSION} or newer, and there is {what}; {HOW_TO_GET}")


def get_java(say: Callable[[str], None], install_jdk: Callable[[Path], None]) -> Java | None:
    """Install a Java: the distribution's as root on Debian and Ubuntu, otherwise a JDK inside the checkout.

    `install_jdk(directory)` unpacks one there and raises OSError or subprocess.CalledProcessError.
    Returns None where neither worked; what failed has been said.
    """
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _install_package(say)
        java = find_java()
        if java is not None:
            return java
    say(f"no Java {LEAST_VERSION}+ found: fetching a JDK into {CHECKOUT_JDKS.relative_to(CHECKOUT)}/ with install-jdk")
    try:
        CHECKOUT_JDKS.mkdir(exist_ok=True)
        install_jdk(CHECKOUT_JDKS)
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"fetching a JDK failed: {error}")
    return find_java()


def _install_package(say: Callable[[str], None]) -> None:
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    if _first_available() is None:
        say("refreshing the package lists: apt-get update")
        subprocess.run(["apt-get", "update", "-qq"], env=environ, check=False)
    package = _first_available()
    if package is None:
        say(f"apt-get offers none of {', '.join(PACKAGES)}")
        return
    say(f"no Java {LEAST_VERSION}+ found: apt-get install {package}")
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    if subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=False).returncode:
        say(f"apt-get could not install {package}")


def _first_available() -> str | None:
    for package in PACKAGES:
        shown = subprocess.run(["apt-cache", "policy", package], capture_output=True, text=True, check=False)
        if re.search(r"Candidate: (?!\(none\))", shown.stdout):
            return package
    return None


def _candidates(environ: Mapping[str, str], jdks: Path) -> Iterator[Path]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"], "bin", "java")
    found = shutil.which("java", path=environ.get("PATH"))
    if found:
        yield Path(found)
    yield from sorted(jdks.glob("*/bin/java"), reverse=True)
    yield from sorted(jdks.glob("*/Contents/Home/bin/java"), reverse=True)
