"""What runs left on machines, found by the claims that they made, and removed; machines of living runs are spared.

Before what a node left goes its logs are brought home, if the directory of its run is still there.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness.environments.leftover import Cleaned, Leftover
from harness.environments.remote.logs import bring_home
from harness.environments.ssh import machine_lease
from harness.environments.ssh.clock import clock_ahead_ns
from harness.environments.ssh.connection import Connections
from harness.environments.ssh.inventory import Host, read_inventory
from harness.environments.ssh.machines import ask_keeper, bring_keeper
from harness.environments.ssh.shell import SshShell
from harness.errors import HarnessError
from harness.lifetime.owner import State, state_of

CLEANED_AT_ONCE = 8


def cleanup_machines(where: str) -> Cleaned:
    """Release every machine of an inventory whose run is over, and forget the sources kept there. Raises UsageError."""
    inventory = read_inventory(where)
    connections, cleaned = Connections(inventory), Cleaned()
    try:
        with ThreadPoolExecutor(CLEANED_AT_ONCE) as pool:
            for one in pool.map(lambda host: _clean(connections, host), inventory.machines):
                cleaned.add(one)
    finally:
        connections.close()
    return cleaned


def _clean(connections: Connections, host: Host) -> Cleaned:
    shell, cleaned = SshShell(connections=connections, host=host), Cleaned()
    try:
        bring_keeper(shell)
        found = ask_keeper(shell, "found", {})
        claim = found["claim"]
        if claim is not None and (reason := _living(claim, found["silent_s"])):
            cleaned.spared[_leftover(host, claim)] = reason
            return cleaned
        if claim is not None:
            _save_logs(shell, claim, cleaned)
        ask_keeper(shell, "release", {"run": claim and claim["run"], "cache": True})
    except HarnessError as error:
        cleaned.not_looked_at[f"machine {host.name}"] = str(error)
        return cleaned
    if claim is not None:
        cleaned.removed.append(_leftover(host, claim))
    if found["cache"]:
        cleaned.removed.append(Leftover(kind="sources", name=f"{host.name}:{machine_lease.CACHE}"))
    return cleaned


def _leftover(host: Host, claim: Mapping[str, Any]) -> Leftover:
    return Leftover(kind="node", name=f"{claim['node']} of {claim['run']} on {host.name}")


def _living(claim: Mapping[str, Any], silent_s: float) -> str:
    """Why the machine is spared; empty if it is not."""
    state = state_of(claim["owner"])
    if state is State.LIVING:
        return "it belongs to a run that still goes on"
    if state is State.ELSEWHERE and silent_s < machine_lease.FORGOTTEN_AFTER_S:
        return f"it belongs to a run of another machine ({claim['owner']}), heard of {silent_s:.0f} s ago"
    return ""


def _save_logs(shell: SshShell, claim: Mapping[str, Any], cleaned: Cleaned) -> None:
    """The node is removed whether or not that works."""
    logs = Path(claim["logs"])
    if not logs.is_dir():
        return
    place = logs / claim["node"]
    try:
        ahead_ns = clock_ahead_ns(shell.connections.session(shell.host))
        bring_home(shell, place, zero_ns=claim["start_ns"] + ahead_ns)
    except (HarnessError, OSError) as error:
        cleaned.failed[Leftover(kind="logs", name=str(place))] = f"not brought home: {error}"
    else:
        cleaned.brought_home.append(str(place))
