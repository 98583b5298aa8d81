"""The images that nodes run in: a base with Python and the tools of the faults, and on it the package on trial.

Both are kept by name and by a hash of what they are made of, so that the second time costs nothing. The base
comes from a registry where one is reachable, otherwise from Debian packages by debootstrap; which one, is said.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import requests

from harness.environments.docker.engine import speaking
from harness.errors import HarnessError
from harness.lifetime import guarded, scratch

Say = Callable[[str], None]

PUBLIC_PYTHON = "python:3.11-slim-bookworm"
PULL_TIMEOUT_S = 30.0
BASE, NODE = "stormproof-base", "stormproof-node"
IMAGES_KEPT = 8
SUITE = "bookworm"
TOOLS = ("iptables", "iproute2", "libfaketime", "procps")
PYTHON_PACKAGES = ("python3-minimal", "python3")
RECIPE = """ARG FROM
FROM ${FROM}
RUN command -v iptables >/dev/null && ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 \\
 || (apt-get update -qq && apt-get install -y -qq --no-install-recommends %s && rm -rf /var/lib/apt/lists/*)
RUN python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'
""" % " ".join(TOOLS)  # noqa: UP031  # the recipe has braces of its own
LEFT_OUT = ("./var/cache/apt", "./var/lib/apt/lists", "./usr/share/doc", "./usr/share/man", "./proc/*", "./sys/*")


def node_image(client: Any, *, package: Path, base: str | None, say: Say) -> str:
    """The tag of an image that holds `package`, built if it is missing. `base`: an image with Python 3.11 or newer.

    Raises HarnessError.
    """
    with _alone():
        base_tag = _base(client, base, say)
        context = _context(package)
        tag = f"{NODE}:{_hash(base_tag.encode(), context)}"
        if not _is_here(client, tag):
            say(f"building {tag} on {base_tag}")
            _build(client, tag, context, {"BASE": base_tag})
            _forget_old(client)
    return tag


def _forget_old(client: Any) -> None:
    """Every change of the package makes an image; the last few are kept, and those that a container uses."""
    with speaking("removing old images"):
        images = sorted(client.images.list(name=NODE), key=lambda image: str(image.attrs["Created"]))
        for image in images[:-IMAGES_KEPT]:
            for tag in image.tags:
                try:
                    client.images.remove(tag)
                except docker.errors.APIError:
                    continue


def _base(client: Any, asked: str | None, say: Say) -> str:
    if asked is not None:
        tag = _of_registry(asked)
        if not _is_here(client, tag):
            if not _is_here(client, asked) and (why_not := _pull(asked)):
                raise HarnessError(f"the base image {asked} is not here and cannot be pulled: {why_not}")
            _equip(client, asked, tag, say)
        return tag
    from_registry, from_packages = _of_registry(PUBLIC_PYTHON), f"{BASE}:debian-{_hash(_packages().encode())}"
    for tag in (from_registry, from_packages):
        if _is_here(client, tag):
            return tag
    why_not = "" if _is_here(client, PUBLIC_PYTHON) else _pull(PUBLIC_PYTHON)
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
    return f"{BASE}:registry-{_hash(image.encode(), RECIPE.encode())}"


def _is_here(client: Any, tag: str) -> bool:
    with speaking(f"looking for image {tag}"):
        try:
            client.images.get(tag)
        except docker.errors.ImageNotFound:
            return False
    return True


def _pull(image: str) -> str:
    """One try; empty if it came, otherwise why it did not."""
    try:
        hasty = docker.from_env(timeout=PULL_TIMEOUT_S)
        try:
            hasty.images.pull(image)
        finally:
            hasty.close()
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        return str(getattr(error, "explanation", None) or error).strip().partition("\n")[0]
    return ""


def _equip(client: Any, image: str, tag: str, say: Say) -> None:
    say(f"base image from the registry's {image}, with {', '.join(TOOLS)}")
    _build(client, tag, _tar({"Dockerfile": RECIPE.encode()}), {"FROM": image})


def _build(client: Any, tag: str, context: bytes, arguments: dict[str, str]) -> None:
    with speaking(f"building {tag}"):
        client.images.build(
            fileobj=io.BytesIO(context), custom_context=True, tag=tag, buildargs=arguments, rm=True, forcerm=True
        )


def _packages() -> str:
    return ",".join((*PYTHON_PACKAGES, *TOOLS))


def _from_packages(client: Any, tag: str, say: Say) -> None:
    debootstrap = _debootstrap(say)
    with scratch.directory() as root:
        command = [debootstrap, "--variant=minbase", f"--include={_packages()}", SUITE, str(root)]
        made = guarded.run(command, stderr=subprocess.STDOUT)
        if made.returncode:
            raise HarnessError(f"debootstrap could not make a base image: {made.stdout.strip().rpartition(chr(10))[2]}")
        # Two steps, with a file between them: half an archive from a tar that failed must not become an image.
        archive = root / "image.tar"
        root.chmod(0o755)
        tar = ["tar", "-C", str(root), "--exclude=./image.tar", *(f"--exclude={path}" for path in LEFT_OUT)]
        with archive.open("wb") as file:
            packed = guarded.run([*tar, "-c", "."], stdout=file)
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


def _context(package: Path) -> bytes:
    """The installed package's own files and its Dockerfile; the same bytes for the same files."""
    files = {"Dockerfile": (package / "image" / "Dockerfile").read_bytes()}
    for path in sorted(package.rglob("*.py")):
        files[f"{package.name}/{path.relative_to(package)}"] = path.read_bytes()
    return _tar(files)


def _tar(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def _hash(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


@contextmanager
def _alone() -> Iterator[None]:
    """Two runs that start together would both build."""
    place = Path(tempfile.gettempdir(), f"stormproof-images-{os.getuid()}.lock")
    with place.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
