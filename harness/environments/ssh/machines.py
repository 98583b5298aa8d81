"""Machines of an inventory for the nodes of a run: claimed, kept hold of while it goes on, and released."""

from __future__ import annotations

import gzip
import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness.environments.impairment import OF_CLOCKS
from harness.environments.remote import real_clock
from harness.environments.remote.launch import python_files
from harness.environments.remote.machines import ByItself, Home, NodeDisk, NodeMachine, Squeezed
from harness.environments.remote.packed import tar_of
from harness.environments.ssh import machine_lease
from harness.environments.ssh.clock import clock_ahead_ns
from harness.environments.ssh.connection import Connections
from harness.environments.ssh.inventory import Inventory
from harness.environments.ssh.placement import placed
from harness.environments.ssh.requirements import require
from harness.environments.ssh.shell import PYTHON, SshShell
from harness.errors import HarnessError
from harness.lifetime.owner import owner_id
from harness.program import PythonProgram
from harness.system import NodeSpec

KEEPER = f"{machine_lease.HOME}/keeper.py"
HEARD_EVERY_S = 10.0
RELEASES_AT_ONCE = 8


class SshMachines:
    """`Machines` that are there already."""

    name = "ssh"
    kind = "machines"
    own_faults: frozenset[str] = frozenset()

    def __init__(
        self,
        inventory: Inventory,
        *,
        faults: frozenset[str],
        say: Callable[[str], None],
        real_clocks: bool = False,
    ) -> None:
        """`faults`: the kinds that the run may bring. `real_clocks`: wrong clocks are those of the machines."""
        self.run = f"stormproof-{secrets.token_hex(4)}"
        self.inventory = inventory
        self.shells: dict[str, SshShell] = {}
        self._faults = faults
        self._say = say
        self._real_clocks = real_clocks
        self._kernels = {real_clock.check({})["kernel"]: "the machine of the harness"} if real_clocks else {}
        self._connections = Connections(inventory)
        self._nodes: dict[str, NodeSpec] = {}
        self._home: Home | None = None
        self._claimed: dict[str, SshShell] = {}
        self._lost: dict[str, str] = {}
        self._ending = threading.Event()
        self._hearts: list[threading.Thread] = []
        self._packing = threading.Lock()
        self._looking = threading.Lock()
        self._packed: dict[object, tuple[str, bytes]] = {}

    def take(self, nodes: Sequence[NodeSpec], home: Home) -> Mapping[str, str]:
        hosts = placed(nodes, self.inventory)
        self._home, self._nodes = home, {spec.name: spec for spec in nodes}
        self.shells = {name: SshShell(connections=self._connections, host=host) for name, host in hosts.items()}
        for name, host in hosts.items():
            self._say(f"node {name} on {host}")
        return {name: host.inside for name, host in hosts.items()}

    def open(self, spec: NodeSpec) -> NodeMachine:
        shell = self.shells[spec.name]
        spared = _port_of_sshd(shell)
        require(shell, spec, self._faults - OF_CLOCKS if self._real_clocks else self._faults)
        if self._real_clocks:
            self._require_clock_of_its_own(shell)
        self._claim(spec.name, shell)
        environment = {}
        if isinstance(spec.program, PythonProgram):
            environment = {"PYTHONPATH": self._program(shell, spec.program), "PYTHONUNBUFFERED": "1"}
        names = {name: other.host.inside for name, other in self.shells.items()}
        return NodeMachine(
            shell=shell,
            environment=environment,
            names=names,
            spared_ports=(spared,),
            lends_clock=self._real_clocks,
        )

    def _require_clock_of_its_own(self, shell: SshShell) -> None:
        """Raises HarnessError where setting it would set another one as well, or not last."""
        told = shell.run([*PYTHON, "-c", Path(real_clock.__file__).read_text(encoding="utf-8"), "check", "{}"])
        if told.exit_code:
            raise HarnessError(f"{shell.host} cannot say whose clock it has: {told.errors.decode(errors='replace')}")
        answer = json.loads(told.output)
        with self._looking:
            other = self._kernels.setdefault(answer["kernel"], str(shell.host))
        if other != str(shell.host):
            raise HarnessError(
                f"{shell.host} and {other} run on one kernel, which has one clock: --real-clock needs whole machines, "
                "not containers; leave it out"
            )
        if answer["why_not"]:
            raise HarnessError(f"{shell.host} {answer['why_not']}; --real-clock cannot do without, so leave it out")

    def clock_ahead_ns(self, node: str, monotonic_ns: int) -> int:
        return clock_ahead_ns(self._connections.session(self.shells[node].host))

    def reached(self) -> Mapping[str, str]:
        return {
            f"{name}:{port}": f"{shell.host.clients}:{port}"
            for name, shell in self.shells.items()
            for port in self._nodes[name].ports
        }

    def disk(self, node: str) -> NodeDisk:
        raise HarnessError(
            f"the machine of {node} keeps its data on a disk of its own: power and faults of disks strike containers "
            "(--environment docker) and the simulator; kill does without"
        )

    def limit_processor(self, node: ByItself, share: float) -> None:
        node.limit_processor(share)

    def throttle(self, node: ByItself, number: int, pids: Sequence[int], share: float) -> None:
        node.throttle(number, pids, share)

    def unthrottle(self, node: ByItself, number: int) -> int:
        return node.unthrottle(number)

    def squeeze_memory(self, node: ByItself, left_bytes: int) -> Squeezed:
        return node.squeeze_memory(left_bytes)

    def release_memory(self, node: ByItself) -> Squeezed:
        return node.release_memory()

    def require_kept(self) -> None:
        for node, host in sorted(self._lost.items()):
            raise HarnessError(
                f"the machine {host} was given up, and its node {node} ended: its watchdog did not hear of the harness "
                f"for {machine_lease.FORGOTTEN_AFTER_S:g} s, or somebody cleaned up"
            )

    def release(self) -> None:
        self._ending.set()
        for heart in self._hearts:
            heart.join()
        self._hearts.clear()
        failed: list[str] = []

        def give_back(node: str) -> None:
            try:
                ask_keeper(self._claimed[node], "release", {"run": self.run, "cache": False})
                del self._claimed[node]
            except HarnessError as error:
                failed.append(str(error))

        with ThreadPoolExecutor(RELEASES_AT_ONCE) as pool:
            list(pool.map(give_back, list(self._claimed)))
        if failed:
            raise HarnessError(sorted(failed)[0])
        self._connections.close()

    def _claim(self, node: str, shell: SshShell) -> None:
        assert self._home is not None, "taken before"
        claim = {
            "run": self.run,
            "owner": owner_id(),
            "node": node,
            "logs": str(self._home.logs.absolute()),
            "start_ns": self._home.start_ns,
        }
        bring_keeper(shell)
        # Before the answer is known: a claim whose answer is lost was made all the same, and one of others is spared.
        self._claimed[node] = shell
        answer = ask_keeper(shell, "claim", {"claim": claim})
        if answer["taken_by"] is not None:
            other = answer["taken_by"]
            del self._claimed[node]
            raise HarnessError(
                f"{shell.host} is used by another run, as node {other['node']} of {other['run']} ({other['owner']}); "
                "wait for its end, or take another machine"
            )
        heart = threading.Thread(target=self._beat, args=(node, shell), daemon=True)
        heart.start()
        self._hearts.append(heart)

    def _beat(self, node: str, shell: SshShell) -> None:
        """Let the watchdog hear of this process until the end; what fails is tried again, for a minute."""
        while not self._ending.wait(HEARD_EVERY_S):
            try:
                if not ask_keeper(shell, "hear", {"run": self.run})["kept"]:
                    self._lost[node] = str(shell.host)
                    return
            except HarnessError as error:
                self._say(f"not heard of by {shell.host}: {error}")

    def _program(self, shell: SshShell, program: PythonProgram) -> str:
        """Where the program's sources are on the machine, brought there unless these very ones are there already."""
        digest, archive = self._archive(program)
        place = ask_keeper(shell, "has", {"hash": digest})["place"]
        if place is None:
            self._say(f"sources of {program.main.partition(':')[0]} go to {shell.host} ({len(archive) >> 10} KiB)")
            place = ask_keeper(shell, "unpack", {"hash": digest}, stdin=archive)["place"]
        return str(place)

    def _archive(self, program: PythonProgram) -> tuple[str, bytes]:
        key = (program.main.partition(":")[0], program.requirements)
        with self._packing:
            if key not in self._packed:
                plain = tar_of(python_files(program))
                self._packed[key] = (hashlib.sha256(plain).hexdigest()[:16], gzip.compress(plain, mtime=0))
            return self._packed[key]


def bring_keeper(shell: SshShell) -> None:
    shell.put({KEEPER: Path(machine_lease.__file__).read_bytes()})


def ask_keeper(shell: SshShell, verb: str, arguments: Mapping[str, Any], *, stdin: bytes = b"") -> Mapping[str, Any]:
    """Raises HarnessError."""
    finished = shell.run([*PYTHON, KEEPER, verb, json.dumps(dict(arguments))], stdin=stdin)
    if finished.exit_code:
        last = finished.errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise HarnessError(f"{verb} on {shell.host} failed: {last}")
    answer: Mapping[str, Any] = json.loads(finished.output)
    return answer


def _port_of_sshd(shell: SshShell) -> int:
    """As the machine itself knows it, which may be reached by another port."""
    words = shell.run_as_user(["printenv", "SSH_CONNECTION"]).output.decode(errors="replace").split()
    return int(words[3]) if len(words) == 4 and words[3].isdigit() else shell.host.port
