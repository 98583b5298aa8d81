"""The Docker engine: reached or not, its errors in one line, and the labels by which leftovers are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import docker
import requests

from harness.errors import HarnessError
from harness.lifetime.owner import owner_id

LABEL_RUN = "stormproof.run"
LABEL_CREATED = "stormproof.created"
LABEL_OWNER = "stormproof.owner"
"""Which process made it (`harness.lifetime.owner`), so that clean-up spares runs that still go on."""
LABEL_NODE = "stormproof.node"
LABEL_LOGS = "stormproof.logs"
"""The run's directory for its nodes' logs."""
LABEL_START = "stormproof.start"
"""This machine's CLOCK_MONOTONIC in ns when the harness's clock was 0."""
SAME_CLOCK_NS = 1_000_000_000
"""An engine in a virtual machine has a CLOCK_MONOTONIC of its own; one on this machine differs by less."""
ANSWER_TIMEOUT_S = 120.0
CONNECTIONS = 32


@contextmanager
def speaking(what: str) -> Iterator[None]:
    """Raise HarnessError, in one line, for whatever the engine or the way to it says instead of doing `what`."""
    try:
        yield
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        words = str(getattr(error, "explanation", None) or error).strip().partition("\n")[0]
        raise HarnessError(f"Docker: {what} failed: {words}") from error


@contextmanager
def engine() -> Iterator[Any]:
    """A client of the engine that answers here. Raises HarnessError where none does."""
    try:
        client = docker.from_env(timeout=ANSWER_TIMEOUT_S, max_pool_size=CONNECTIONS)
    except docker.errors.DockerException as error:
        raise HarnessError(_unreachable(error)) from error
    try:
        try:
            client.ping()
        except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
            raise HarnessError(_unreachable(error)) from error
        yield client
    finally:
        client.close()


def _unreachable(error: Exception) -> str:
    words = str(error).partition("\n")[0]
    return (
        f"no Docker engine answers ({words}); start one or point DOCKER_HOST at it, "
        "or use --environment simulated, which needs none"
    )


def labels(run: str, created: str) -> Mapping[str, str]:
    return {LABEL_RUN: run, LABEL_CREATED: created, LABEL_OWNER: owner_id()}
