"""The images that nodes run in: a base with Python and the tools of the faults, and on it what a node's program needs.

Each is kept by a name with a hash of what it is made of: a changed file of a program makes a new image.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.environments.docker.base_image import base_image
from harness.environments.docker.building import (
    Say,
    build,
    content_hash,
    context_of,
    forget_old,
    is_here,
    one_at_a_time,
)
from harness.environments.docker.command_image import command_image
from harness.environments.docker.engine import speaking
from harness.environments.remote.launch import python_files
from harness.errors import HarnessError
from harness.lifetime import scratch, supervised
from harness.program import PythonProgram, image_of
from harness.system import NodeSpec

PYTHON_REPOSITORY = "stormproof-node"
PYTHON_RECIPE = b"""ARG BASE
FROM ${BASE}
COPY program /opt/program
ENV PYTHONPATH=/opt/program PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
RUN python3 -m compileall -q /opt/program || true
"""
PLATFORMS = ("manylinux_2_28", "manylinux2014")


def node_images(client: Any, nodes: Sequence[NodeSpec], *, base: str | None, say: Say) -> dict[str, str]:
    """Node -> the tag of its image, built if it is missing. `base`: an image with Python 3.11 or newer.

    Raises HarnessError.
    """
    with one_at_a_time():
        base_tag = base_image(client, base, say)
        made: dict[object, str] = {}
        for spec in nodes:
            if spec.upgraded is not None and image_of(spec.upgraded) != image_of(spec.program):
                raise HarnessError(
                    f"{spec.name} cannot be upgraded in its container: its other version needs another image"
                )
            if (wanted := image_of(spec.program)) in made:
                continue
            if isinstance(spec.program, PythonProgram):
                made[wanted] = _python_image(client, spec.program, base_tag, say)
            else:
                made[wanted] = command_image(client, spec.program.image, base_tag, say)
        return {spec.name: made[image_of(spec.program)] for spec in nodes}


def _python_image(client: Any, program: PythonProgram, base: str, say: Say) -> str:
    requirements = "\n".join(program.requirements).encode()
    files = {f"program/{path}": data for path, data in python_files(program).items()}
    tag = f"{PYTHON_REPOSITORY}:{content_hash(base.encode(), PYTHON_RECIPE, requirements, context_of(files))}"
    if not is_here(client, tag):
        say(f"building {tag} on {base} for {program.main.partition(':')[0]}")
        installed = _installed(client, program.requirements, base) if program.requirements else {}
        context = context_of({"Dockerfile": PYTHON_RECIPE, **files, **installed})
        build(client, tag, context, {"BASE": base})
        forget_old(client, PYTHON_REPOSITORY)
    return tag


def _installed(client: Any, requirements: Sequence[str], base: str) -> dict[str, bytes]:
    """What pip installs for the base's Python. It runs here, so that an image needs no way to a package index."""
    show = "import sys; print('%d.%d' % sys.version_info[:2])"
    with speaking(f"asking {base} for its Python"):
        version = client.containers.run(base, ["python3", "-c", show], remove=True).decode().strip()
    with scratch.directory() as target:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        command += ["--only-binary=:all:", f"--python-version={version}", "--implementation=cp", f"--target={target}"]
        command += [f"--platform={name}_{platform.machine()}" for name in PLATFORMS]
        done = supervised.run([*command, *requirements], stderr=subprocess.STDOUT)
        if done.returncode:
            last = done.stdout.strip().rpartition("\n")[2]
            raise HarnessError(f"pip could not install {', '.join(requirements)} for Python {version}: {last}")
        return {f"program/{path.relative_to(target)}": path.read_bytes() for path in _files_below(target)}


def _files_below(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())
