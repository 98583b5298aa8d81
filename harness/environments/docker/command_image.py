"""The images of commands, with the tools of the faults: Debian packages over the base, a Dockerfile, or one by name.

The agent needs Python and iptables, and wrong clocks need libfaketime: an image that is not made on the base gets them
by apt-get, and is refused where that does not work.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.environments.docker.base_image import EQUIPPED
from harness.environments.docker.building import Say, build, content_hash, context_of, forget_old, is_here, pull
from harness.environments.docker.engine import speaking
from harness.environments.docker.java_image import java_image
from harness.errors import HarnessError
from harness.program import DebianPackages, Dockerfile, Image, Installed, JavaRelease, NamedImage

REPOSITORY = "stormproof-command"
PACKAGES_RECIPE = """ARG BASE
FROM ${BASE}
RUN printf '#!/bin/sh\\nexit 101\\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d \\
 && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends %s \\
 && rm -rf /var/lib/apt/lists/*
"""


def command_image(client: Any, image: Image, base: str, say: Say) -> str:
    """The tag of an image that is ready for faults. Raises HarnessError."""
    match image:
        case DebianPackages(names=names):
            recipe = PACKAGES_RECIPE % " ".join(names)
            return _built(client, {"Dockerfile": recipe.encode()}, base, say, f"with {', '.join(names)}")
        case Dockerfile(folder=folder):
            return _equipped(client, _built(client, _files(folder), base, say, f"from {folder}"), say)
        case JavaRelease():
            return java_image(client, image, base, say)
        case NamedImage(name=name):
            if not is_here(client, name) and (why_not := pull(name)):
                raise HarnessError(f"the image {name} is not here and cannot be pulled: {why_not}")
            return _equipped(client, name, say)
        case Installed():
            raise HarnessError("containers need an image, and a command that is to find itself installed names none")


def _built(client: Any, files: dict[str, bytes], base: str, say: Say, words: str) -> str:
    context = context_of(files)
    tag = f"{REPOSITORY}:{content_hash(base.encode(), context)}"
    if not is_here(client, tag):
        say(f"building {tag} {words}")
        build(client, tag, context, {"BASE": base})
        forget_old(client, REPOSITORY)
    return tag


def _equipped(client: Any, image: str, say: Say) -> str:
    """The image with the tools of the faults."""
    with speaking(f"looking for image {image}"):
        content = client.images.get(image).id
    tag = f"{REPOSITORY}:{content_hash(content.encode(), EQUIPPED.encode())}"
    if not is_here(client, tag):
        say(f"building {tag}: {image} with the tools of the faults")
        build(client, tag, context_of({"Dockerfile": EQUIPPED.encode()}), {"FROM": image})
    return tag


def _files(folder: Path) -> dict[str, bytes]:
    """Raises HarnessError where there is no Dockerfile."""
    if not (folder / "Dockerfile").is_file():
        raise HarnessError(f"{folder} has no Dockerfile")
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
