"""What runs left behind, found by their labels and removed; runs whose harness still lives are spared."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import docker

from harness.environments.containers import scratch
from harness.environments.containers.engine import LABEL_OWNER, LABEL_RUN, engine, is_alive, speaking

REMOVALS_AT_ONCE = 8


def cleanup() -> list[str]:
    """Remove containers, networks and scratch directories of runs that are over; returns what was removed."""
    with engine() as client:
        removed = _remove(client, {"label": LABEL_RUN}, sparing=True)
    return removed + scratch.remove_orphans()


def remove_run(client: Any, run: str) -> list[str]:
    """Remove what is left of one run; returns what was removed. Raises HarnessError."""
    return _remove(client, {"label": f"{LABEL_RUN}={run}"}, sparing=False)


def _remove(client: Any, filters: dict[str, str], *, sparing: bool) -> list[str]:
    with speaking("finding what was left behind"):
        containers = client.containers.list(all=True, filters=filters, ignore_removed=True)
        networks = client.networks.list(filters=filters)
    if sparing:
        containers = [container for container in containers if not is_alive(container.labels.get(LABEL_OWNER, ""))]
        networks = [
            network for network in networks if not is_alive((network.attrs["Labels"] or {}).get(LABEL_OWNER, ""))
        ]
    with ThreadPoolExecutor(REMOVALS_AT_ONCE) as pool:
        list(pool.map(_remove_container, containers))
    for network in networks:
        with speaking(f"removing network {network.name}"):
            try:
                network.remove()
            except docker.errors.NotFound:
                continue
    return [f"container {container.name}" for container in containers] + [f"network {n.name}" for n in networks]


def _remove_container(container: Any) -> None:
    with speaking(f"removing container {container.name}"):
        try:
            container.remove(force=True, v=True)
        except docker.errors.NotFound:
            return
