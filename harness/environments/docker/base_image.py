"""The base image of nodes: Python 3.11 and the tools of the faults.

It comes from a registry where one is reachable, otherwise from Debian packages by debootstrap; which one, is said. It
is kept by a name with a hash of what it is made of, so that the second time costs nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

from harness.environments.docker.building import Say, build, content_hash, context_of, is_here, pull
from harness.environments.docker.engine import speaking
from harness.errors import HarnessError
from harness.lifetime import scratch, supervised

PUBLIC_PYTHON = "python:3.11-slim-bookworm"
BASE = "stormproof-base"
SUITE = "bookworm"
TOOLS = ("iptables", "iproute2", "libfaketime", "procps")
PYTHON_PACKAGES = ("python3-minimal", "python3")
EQUIPPED = """ARG FROM
FROM ${FROM}
USER root
RUN (command -v python3 && command -v iptables && ls /usr/lib/*/faketime/libfaketime.so.1) >/dev/null 2>&1 \\
 || (apt-get update -qq && apt-get install -y -qq --no-install-recommends %s && rm -rf /var/lib/apt/lists/*)
""" % " ".join(("python3", *TOOLS))  # noqa: UP031  # the recipe has braces of its own
RECIPE = f"""{EQUIPPED}RUN python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'
"""
LEFT_OUT = ("./var/cache/apt", "./var/lib/apt/lists", "./usr/share/doc", "./usr/share/man", "./proc/*", "./sys/*")


def base_image(client: Any, asked: str | None, say: Say) -> str:
    """The tag of the base: on the image asked for, or what can be had. Raises HarnessError."""
    if asked is not None:
        tag = _of_registry(asked)
        if not is_here(client, tag):
            if not is_here(client, asked) and (why_not := pull(asked)):
                raise HarnessError(f"the base image {asked} is not here and cannot be pulled: {why_not}")
            _equip(client, asked, tag, say)
        return tag
    from_registry, from_packages = _of_registry(PUBLIC_PYTHON), f"{BASE}:debian-{content_hash(_packages().encode())}"
    for tag in (from_registry, from_packages):
        if is_here(client, tag):
            return tag
    why_not = "" if is_here(client, PUBLIC_PYTHON) else pull(PUBLIC_PYTHON)
    if not why_not:
        try:
            _equip(client, PUBLIC_PYTHON, from_registry, say)
        except HarnessError as error:
            why_not = str(error)
        else:
            return from_registry
    say(f"base image from Debian packages ({PUBLIC_PYTHON} is not to be had: {why_not})")
    _from_packages(client, from_packages, say)
    return from_packages


def _of_registry(image: str) -> str:
    return f"{BASE}:registry-{content_hash(image.encode(), RECIPE.encode())}"


def _equip(client: Any, image: str, tag: str, say: Say) -> None:
    say(f"base image from the registry's {image}, with {', '.join(TOOLS)}")
    build(client, tag, context_of({"Dockerfile": RECIPE.encode()}), {"FROM": image})


def _packages() -> str:
    return ",".join((*PYTHON_PACKAGES, *TOOLS))


def _from_packages(client: Any, tag: str, say: Say) -> None:
    debootstrap = _debootstrap(say)
    with scratch.directory() as root:
        command = [debootstrap, "--variant=minbase", f"--include={_packages()}", SUITE, str(root)]
        made = supervised.run(command, stderr=subprocess.STDOUT)
        if made.returncode:
            raise HarnessError(f"debootstrap could not make a base image: {made.stdout.strip().rpartition(chr(10))[2]}")
        # Two steps, with a file between them: half an archive from a tar that failed must not become an image.
        archive = root / "image.tar"
        root.chmod(0o755)
        tar = ["tar", "-C", str(root), "--exclude=./image.tar", *(f"--exclude={path}" for path in LEFT_OUT)]
        with archive.open("wb") as file:
            packed = supervised.run([*tar, "-c", "."], stdout=file)
        if packed.returncode:
            raise HarnessError(f"the base image could not be packed: {packed.stderr.strip()}")
        repository, _, version = tag.partition(":")
        with speaking(f"importing {tag}"):
            client.api.import_image_from_file(str(archive), repository=repository, tag=version)


def _debootstrap(say: Say) -> str:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    found = shutil.which("debootstrap", path=path)
    needs = "a base image can be built from Debian packages only by root, on Debian or Ubuntu, with debootstrap"
    ways_out = "start a registry's proxy, or name an image that has Python 3.11 in STORMPROOF_BASE_IMAGE"
    if os.geteuid() != 0:
        raise HarnessError(f"no image registry is reachable, and {needs}; {ways_out}")
    if found is None and shutil.which("apt-get"):
        say("installing the Debian package debootstrap")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "debootstrap"]):
            subprocess.run(["apt-get", *arguments], env=quiet, capture_output=True, check=False)
        found = shutil.which("debootstrap", path=path)
    if found is None:
        raise HarnessError(f"no image registry is reachable, and {needs}; it is not installed; {ways_out}")
    return found
