"""Machines as a kind of environment: an inventory first, then the test, and nothing is left whatever happens."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.environments.environment import Environment
from harness.environments.kind import Setting
from harness.environments.remote.environment import RemoteEnvironment
from harness.environments.remote.launch import RUNNER
from harness.environments.remote.session import carry_out
from harness.environments.ssh.inventory import read_inventory
from harness.environments.ssh.placement import placed
from harness.errors import UsageError
from harness.program import PLACE_OF_HOME, Command, DebianPackages, Installed, PythonProgram
from harness.system import NodeSpec

T = TypeVar("T")

DONE = "nodes are ended and machines released"


@dataclass(frozen=True)
class Ssh:
    """`EnvironmentKind`."""

    name: str = "ssh"
    faults: frozenset[str] = RemoteEnvironment.faults
    has_moments: bool = False
    takes_inventory: bool = True
    has_packets: bool = True
    reaches_clients: bool = False
    programs: tuple[type, ...] = (PythonProgram, Command)
    about: str = "machines that an inventory names, over SSH: real processes, packets and disks; needs --inventory"

    def require_placed(self, nodes: Sequence[NodeSpec], inventory: str) -> None:
        if not inventory:
            raise UsageError(
                "environment 'ssh' needs machines: say --inventory with a TOML file that names them "
                "(docs/guide/environments.md has one)"
            )
        placed(nodes, read_inventory(inventory))
        for spec in nodes:
            if isinstance(spec.program, Command):
                _require_possible(spec.name, spec.program)

    def require_lent_clocks(self, nodes: Sequence[NodeSpec], inventory: str) -> None:
        """Raises UsageError where the inventory does not say of each node's machine that its own clock may be set."""
        hosts = placed(nodes, read_inventory(inventory)).values()
        if kept := sorted({host.name for host in hosts if not host.real_clock}):
            raise UsageError(
                f"{inventory}: --real-clock sets the clocks of whole machines, for which these are not lent: "
                f"{', '.join(kept)}; say real_clock = true there, or in the defaults, or leave --real-clock out"
            )

    def run(
        self, main: Callable[[Environment], Coroutine[Any, Any, T]], setting: Setting
    ) -> tuple[T, Mapping[str, Any]]:
        # Not with the module: paramiko takes a third of a second, also where only names of environments are asked for.
        ssh_machines = importlib.import_module("harness.environments.ssh.machines").SshMachines
        machines = ssh_machines(
            read_inventory(setting.inventory), faults=setting.faults, say=setting.say, real_clocks=setting.real_clocks
        )
        environment = RemoteEnvironment(
            machines,
            client_hosts=importlib.import_module(RUNNER).RealHost,
            wanted=setting.faults,
            captures=setting.captures,
        )
        remedy = f"watchdogs end nodes within a minute, and this removes the rest: {clean_line(setting.inventory)}"
        result = carry_out(main, environment, done=DONE, remedy=remedy)
        return result, {"machines": {name: str(shell.host) for name, shell in machines.shells.items()}}


def clean_line(inventory: str) -> str:
    return f"stormproof cleanup --inventory {inventory}"


def _require_possible(node: str, program: Command) -> None:
    """Machines are nobody's image, and what was on them before stays. Raises UsageError."""
    if not isinstance(program.image, (Installed, DebianPackages)):
        raise UsageError(
            f"environment 'ssh' makes no images: the command of node {node} ({program.argv[0]}) needs "
            f"{type(program.image).__name__}; install it there and name Installed() as the image, or use docker"
        )
    for path in program.files:
        if not path.startswith(f"{PLACE_OF_HOME}/"):
            raise UsageError(
                f"environment 'ssh' writes nothing outside of a node's own directory: the command of node {node} has a "
                f"file {path}; let it be {PLACE_OF_HOME}/… instead"
            )


SSH = Ssh()
