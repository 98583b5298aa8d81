"""Images as the engine keeps them: whether one is here, pulled, or built, and names that follow content."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import requests

from harness.environments.docker.engine import speaking
from harness.environments.remote.packed import tar_of

Say = Callable[[str], None]

PULL_TIMEOUT_S = 30.0
IMAGES_KEPT = 24


def is_here(client: Any, tag: str) -> bool:
    with speaking(f"looking for image {tag}"):
        try:
            client.images.get(tag)
        except docker.errors.ImageNotFound:
            return False
    return True


def pull(image: str) -> str:
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


def build(client: Any, tag: str, context: bytes, arguments: Mapping[str, str]) -> None:
    """Build with the machine's own network, for what a Dockerfile downloads. Raises HarnessError."""
    with speaking(f"building {tag}"):
        client.images.build(
            fileobj=io.BytesIO(context),
            custom_context=True,
            tag=tag,
            buildargs=dict(arguments),
            network_mode="host",
            rm=True,
            forcerm=True,
        )


def forget_old(client: Any, repository: str) -> None:
    """Every change makes an image; the last few of a repository are kept, and those that a container uses."""
    with speaking("removing old images"):
        images = sorted(client.images.list(name=repository), key=lambda image: str(image.attrs["Created"]))
        for image in images[:-IMAGES_KEPT]:
            for tag in image.tags:
                try:
                    client.images.remove(tag)
                except docker.errors.APIError:
                    continue


def context_of(files: Mapping[str, bytes]) -> bytes:
    """A build context: the same bytes for the same files."""
    return tar_of(files, mode=0o755)


def content_hash(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Two runs that start together would both build."""
    place = Path(tempfile.gettempdir(), f"stormproof-images-{os.getuid()}.lock")
    with place.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
