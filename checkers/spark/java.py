"""Is there a Java that Spark can run on?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OLDEST = 17
HOW_TO_GET_IT = (
    f"install a Java {OLDEST} or newer (Debian, Ubuntu: apt-get install default-jre-headless; elsewhere: "
    "python -c 'import jdk; print(jdk.install(\"17\"))' and set JAVA_HOME to what it prints), "
    "or check without Spark (--engine inprocess)"
)
VERSION_TIMEOUT_S = 20.0


class JavaMissing(Exception):
    """Spark needs a Java that this machine does not have; says what was found and how to get one."""


@dataclass(frozen=True, kw_only=True)
class Java:
    """A Java runtime."""

    executable: Path
    version: int
    """The feature version: 8, 11, 17, 21, …"""


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """The Java that Spark would use: that of JAVA_HOME, else the one in PATH. Raises JavaMissing."""
    home = environment.get("JAVA_HOME", "")
    if home:
        executable = Path(home) / "bin" / "java"
        if not os.access(executable, os.X_OK):
            raise JavaMissing(f"JAVA_HOME is {home}, but there is no {executable}; {HOW_TO_GET_IT}")
    else:
        found = shutil.which("java", path=environment.get("PATH", ""))
        if found is None:
            raise JavaMissing(f"Spark needs Java, and there is none; {HOW_TO_GET_IT}")
        executable = Path(found)
    version = _released_version(executable) or _printed_version(executable)
    if version is None:
        raise JavaMissing(f"{executable} does not tell its version; {HOW_TO_GET_IT}")
    if version < OLDEST:
        raise JavaMissing(f"{executable} is Java {version}, too old for Spark; {HOW_TO_GET_IT}")
    return Java(executable=executable, version=version)


def feature_version(text: str) -> int | None:
    """The feature version in the output of `java -version` or in a `release` file: 1.8.0_292 is 8, 17.0.15 is 17."""
    match = re.search(r'(?:version |JAVA_VERSION=)"(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


def _released_version(executable: Path) -> int | None:
    """From the file `release`, which is there in most installations and costs no process."""
    release = executable.resolve().parent.parent / "release"
    return feature_version(release.read_text(errors="replace")) if release.is_file() else None


def _printed_version(executable: Path) -> int | None:
    try:
        ran = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return feature_version(ran.stderr + ran.stdout)
