"""The Docker engine: reached or not, its errors in one line, and the labels by which leftovers are found."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import requests

from harness.errors import HarnessError

LABEL_RUN = "stormproof.run"
LABEL_CREATED = "stormproof.created"
LABEL_OWNER = "stormproof.owner"
"""Which process made it: `host:pid:start`, so that clean-up spares runs that still go on."""
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


def owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def is_alive(owner_: str) -> bool:
    """Whether the process that made something still runs. Of other machines we know nothing: they count as gone."""
    host, _, rest = owner_.rpartition(":")[0].rpartition(":")
    started = owner_.rpartition(":")[2]
    if host != socket.gethostname() or not rest.isdigit():
        return False
    return _started(int(rest)) == started != ""


def _started(pid: int) -> str:
    """When a process began, as the kernel tells it; empty where there is none."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return _exists(pid)
    return stat.rpartition(")")[2].split()[19]


def _exists(pid: int) -> str:
    """For systems without /proc."""
    if Path("/proc/self").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "runs"


def labels(run: str, created: str) -> Mapping[str, str]:
    return {LABEL_RUN: run, LABEL_CREATED: created, LABEL_OWNER: owner()}
