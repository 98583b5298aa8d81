"""What runs left behind, found by their labels and removed; what belongs to a living process is spared.

Before a container goes its node's logs are brought home, if the directory of its run is still there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import docker

from harness.environments.docker.command import run_command
from harness.environments.docker.container import ContainerShell
from harness.environments.docker.control_groups import forget_groups
from harness.environments.docker.engine import (
    LABEL_LOGS,
    LABEL_NODE,
    LABEL_OWNER,
    LABEL_RUN,
    LABEL_START,
    SAME_CLOCK_NS,
    engine,
    speaking,
)
from harness.environments.leftover import Cleaned, Leftover
from harness.environments.remote.logs import bring_home
from harness.errors import HarnessError
from harness.lifetime.owner import State, state_of

REMOVALS_AT_ONCE = 8
LONGEST_REMOVAL_S = 30.0
"""How long a container that somebody else is removing already may take to go."""
LOCAL_SOCKET = Path("/var/run/docker.sock")
CLOCK = ["python3", "-I", "-S", "-c", "import time; print(time.monotonic_ns())"]
SPARED = {
    State.LIVING: "it belongs to a run that still goes on",
    State.ELSEWHERE: "it belongs to a run of another machine; stormproof cleanup removes it there",
}


def cleanup() -> Cleaned:
    """Remove containers, networks and control groups of runs that are over, after their logs were brought home."""
    if "DOCKER_HOST" not in os.environ and not LOCAL_SOCKET.exists():
        return Cleaned()  # where no engine is, none left anything
    try:
        with engine() as client:
            cleaned = _remove(client, {"label": LABEL_RUN}, sparing=_owner_is_living, before=_save_logs)
            living = [one.name for one in (*cleaned.spared, *cleaned.failed)]
            groups = forget_groups(lambda name: not any(name.startswith(f"{run}-") for run in living))
            cleaned.removed += [Leftover(kind="control group", name=name) for name in groups]
            return cleaned
    except HarnessError as error:
        return Cleaned(not_looked_at={"docker": str(error)})


def remove_run(client: Any, run: str) -> list[Leftover]:
    """Remove what is left of one run; returns what was removed. Raises HarnessError that names what is still there."""
    cleaned = _remove(client, {"label": f"{LABEL_RUN}={run}"}, sparing=lambda labels: "", before=_nothing)
    if cleaned.failed:
        reason = next(iter(cleaned.failed.values()))
        raise HarnessError(f"{', '.join(map(str, cleaned.failed))} could not be removed: {reason}")
    return cleaned.removed


def _owner_is_living(labels: dict[str, str]) -> str:
    """Why it is spared; empty if it is not."""
    return SPARED.get(state_of(labels.get(LABEL_OWNER, "")), "")


def _remove(
    client: Any,
    filters: dict[str, str],
    *,
    sparing: Callable[[dict[str, str]], str],
    before: Callable[[Any, Cleaned], None],
) -> Cleaned:
    """`before` is called with each container that is about to go."""
    with speaking("finding what was left behind"):
        containers = client.containers.list(all=True, filters=filters, ignore_removed=True)
        networks = client.networks.list(filters=filters)
    cleaned = Cleaned()
    doomed: list[tuple[Leftover, Any]] = []
    for kind, one, labels in [
        *(("container", container, container.labels) for container in containers),
        *(("network", network, network.attrs["Labels"] or {}) for network in networks),
    ]:
        leftover, reason = Leftover(kind=kind, name=one.name), sparing(labels)
        if reason:
            cleaned.spared[leftover] = reason
        else:
            doomed.append((leftover, one))

    def remove_container(one: tuple[Leftover, Any]) -> None:
        _attempt(cleaned, one[0], lambda: _container_gone(one[1], before, cleaned))

    with ThreadPoolExecutor(REMOVALS_AT_ONCE) as pool:
        list(pool.map(remove_container, [one for one in doomed if one[0].kind == "container"]))
    for leftover, network in doomed:
        if leftover.kind == "network":
            _attempt(cleaned, leftover, network.remove)
    cleaned.removed.sort()
    cleaned.brought_home.sort()
    return cleaned


def _attempt(cleaned: Cleaned, leftover: Leftover, remove: Callable[[], None]) -> None:
    try:
        with speaking(f"removing {leftover}"):
            try:
                remove()
            except docker.errors.NotFound:
                return
    except HarnessError as error:
        cleaned.failed[leftover] = str(error)
    else:
        cleaned.removed.append(leftover)


def _container_gone(container: Any, before: Callable[[Any, Cleaned], None], cleaned: Cleaned) -> None:
    before(container, cleaned)
    try:
        container.remove(force=True, v=True)
    except docker.errors.APIError as error:
        if "already in progress" not in str(error):
            raise
        deadline = time.monotonic() + LONGEST_REMOVAL_S
        while time.monotonic() < deadline:
            container.reload()  # NotFound when it is gone
            time.sleep(0.05)
        raise


def _nothing(container: Any, cleaned: Cleaned) -> None:
    """Its logs are at home already, or nobody wants them."""


def _save_logs(container: Any, cleaned: Cleaned) -> None:
    """Bring a node's logs home, if its run still has a place for them; the container goes whether or not that works."""
    node, logs = container.labels.get(LABEL_NODE, ""), Path(container.labels.get(LABEL_LOGS, ""))
    if not node or not logs.is_absolute() or not logs.is_dir():
        return
    try:
        start_ns = int(container.labels.get(LABEL_START, ""))
        shell = ContainerShell(client=container.client, container=container, name=node)
        bring_home(shell, logs / node, zero_ns=start_ns + _clock_ahead_ns(container))
    except (HarnessError, OSError, ValueError) as error:
        if not _somebody_else_removes(container):
            cleaned.failed[Leftover(kind="logs", name=str(logs / node))] = f"not brought home: {error}"
    else:
        cleaned.brought_home.append(str(logs / node))


def _somebody_else_removes(container: Any) -> bool:
    """Who removes a container brings its logs home before, as another clean-up at the same time does."""
    try:
        container.reload()
    except docker.errors.NotFound:
        return True
    except docker.errors.APIError:
        return False
    return container.status in ("removing", "dead")


def _clock_ahead_ns(container: Any) -> int:
    """Of the container's CLOCK_MONOTONIC, if its engine is in a machine of its own; 0 where it does not run."""
    try:
        here = time.monotonic_ns()
        read = run_command(container.client, container.id, CLOCK)
    except (docker.errors.APIError, HarnessError):
        return 0
    ahead_ns = int(read.output) - here if read.exit_code == 0 else 0
    return ahead_ns if abs(ahead_ns) > SAME_CLOCK_NS else 0
