"""What a machine must have so that nodes can run on it and faults can strike it: looked at, never installed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.environments.impairment import LINK_IMPAIRMENTS, ResetLink, ScarceMemory, SlowedProcesses
from harness.environments.remote import agent, control_groups
from harness.environments.ssh.shell import NO_SUCH_COMMAND, SshShell
from harness.errors import HarnessError
from harness.program import Command, DebianPackages, PythonProgram
from harness.system import NodeSpec

PYTHON_OF_NODES, PYTHON_OF_TOOLS = (3, 11), (3, 9)
"""The oldest that Python programs run on, and the agent beside any other program."""
TELLING = """import glob, json, os, shutil, sys, importlib.metadata
wanted, libraries, groups = json.loads(sys.argv[1])
distributions = {(one.metadata["Name"] or "").lower().replace("_", "-") for one in importlib.metadata.distributions()}
print(json.dumps({
    "version": list(sys.version_info[:2]),
    "root": os.geteuid() == 0,
    "iptables": shutil.which("iptables", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is not None,
    "libfaketime": any(glob.glob(library) for library in libraries),
    "groups": [kind for kind in ("memory", "cpu") if os.access(
        groups if os.path.exists(groups + "/cgroup.subtree_control") else groups + "/" + kind, os.W_OK)],
    "missing": [name for name in wanted if name not in distributions],
}))
"""
TO_INSTALL = "Stormproof installs nothing on machines"


@dataclass(frozen=True)
class Needed:
    """What a node on a machine needs, beside Python."""

    version: tuple[int, int]
    distributions: tuple[str, ...]
    faults: frozenset[str]


def needs(spec: NodeSpec, faults: frozenset[str]) -> Needed:
    """`faults`: the kinds that this run may bring."""
    if isinstance(spec.program, PythonProgram):
        distributions = tuple(_distribution(requirement) for requirement in spec.program.requirements)
        return Needed(PYTHON_OF_NODES, distributions, faults)
    return Needed(PYTHON_OF_TOOLS, (), faults)


def require(shell: SshShell, spec: NodeSpec, faults: frozenset[str]) -> None:
    """Raises HarnessError for the first thing that is missing, with what to do."""
    needed, host = needs(spec, faults), shell.host
    if host.sudo and shell.run(["true"]).exit_code:
        raise HarnessError(f"{host} does not let {host.user} use sudo without a password, which sudo = true needs")
    arguments = json.dumps([needed.distributions, agent.LIBFAKETIME, control_groups.CGROUPS])
    # With its packages, unlike the agent: requirements lie among them.
    told = shell.run(["python3", "-c", TELLING, arguments])
    if told.exit_code:
        words = "there is none" if told.exit_code == NO_SUCH_COMMAND else _last_line(told.errors)
        raise HarnessError(f"{host} has no python3 that can be used ({words}): install Python; {TO_INSTALL}")
    missing = _missing(json.loads(told.output), needed, spec.name, host.user)
    if missing:
        raise HarnessError(f"{host} {missing}")
    if isinstance(spec.program, Command) and isinstance(spec.program.image, DebianPackages):
        _require_packages(shell, spec.program.image.names)


def _missing(found: Mapping[str, Any], needed: Needed, node: str, user: str) -> str:
    """What is missing first, after the machine's name; empty where nothing is."""
    if not found["root"]:
        return f"lets {user} do only what a user may; faults need root: say user = root, or sudo = true"
    if tuple(found["version"]) < needed.version:
        have, want = (".".join(map(str, version)) for version in (found["version"], needed.version))
        return f"has Python {have} as python3, node {node} needs {want} or newer; {TO_INSTALL}"
    if found["missing"]:
        names = ", ".join(found["missing"])
        return f"lacks Python packages that node {node} needs: {names}; install them for python3; {TO_INSTALL}"
    of_links = sorted(needed.faults & {"partition", *(one.kind for one in LINK_IMPAIRMENTS if one is not ResetLink)})
    if of_links and not found["iptables"]:
        kinds = ", ".join(of_links)
        return f"has no iptables, which {kinds} cannot do without: install it, or leave that out; {TO_INSTALL}"
    if "clock" in needed.faults and not found["libfaketime"]:
        return f"has no libfaketime, which wrong clocks need: install it, or leave clock faults out; {TO_INSTALL}"
    for kind, limited in ((ScarceMemory.kind, control_groups.MEMORY), (SlowedProcesses.kind, control_groups.PROCESSOR)):
        if kind in needed.faults and limited not in found["groups"]:
            return f"lets nobody write control groups of {limited}, which {kind} needs: leave it out"
    return ""


def _require_packages(shell: SshShell, names: Sequence[str]) -> None:
    asked = shell.run(["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *names])
    installed = {line.partition(" ")[0] for line in asked.output.decode().splitlines() if line.endswith(" installed")}
    missing = [name for name in names if name not in installed]
    if missing:
        raise HarnessError(f"{shell.host} lacks Debian packages: apt-get install {' '.join(missing)}; {TO_INSTALL}")


def _distribution(requirement: str) -> str:
    """The name in a requirement, as package indexes compare names."""
    name = next((requirement[:end] for end, sign in enumerate(requirement) if sign in "<>=!~;[ "), requirement)
    return name.strip().lower().replace("_", "-")


def _last_line(errors: bytes) -> str:
    return errors.decode(errors="replace").strip().rpartition("\n")[2]
