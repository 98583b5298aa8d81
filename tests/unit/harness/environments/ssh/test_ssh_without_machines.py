"""What is refused before any machine is reached, and what is quoted on the way to one."""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.environments.remote import agent, capture, control_groups, real_clock, relay
from harness.environments.ssh import machine_lease
from harness.environments.ssh.connection import Connections
from harness.environments.ssh.inventory import parse_inventory
from harness.environments.ssh.kind import SSH
from harness.environments.ssh.machines import SshMachines
from harness.environments.ssh.requirements import PYTHON_OF_TOOLS, require
from harness.environments.ssh.shell import SshShell
from harness.errors import HarnessError, UsageError
from harness.program import Command, DebianPackages, Installed, NamedImage, PythonProgram
from harness.system import NodeSpec
from stormproof.cli.main import run
from stormproof.session import registry

INVENTORY = '[defaults]\nagent = true\n[hosts.m1]\naddress = "192.0.2.1"\ngroups = ["all"]\n'


@pytest.fixture
def hosts(tmp_path: Path) -> str:
    (tmp_path / "hosts.toml").write_text(INVENTORY)
    return str(tmp_path / "hosts.toml")


def node(program: PythonProgram | Command) -> NodeSpec:
    return NodeSpec(name="b1", groups=("brokers",), program=program)


def test_the_environment_is_found_by_its_name() -> None:
    assert registry.environment("ssh") is SSH
    assert SSH.faults == {
        *("partition", "kill", "pause", "clock", "upgrade", "reset"),
        *("slow-links", "lossy-links", "narrow-links", "flapping-links", "held-links"),
        *("slow-nodes", "restart-loop", "rolling-restart", "strobe"),
        *("kill-process", "pause-process", "slow-process", "scarce-memory"),
        *("duplicating-links", "corrupting-links", "reordering-links"),
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--environment", "ssh"], "environment 'ssh' needs machines: say --inventory with a TOML file"),
        (["--environment", "docker", "--inventory", "hosts.toml"], "leave --inventory out, or say --environment ssh"),
        (["--inventory", "hosts.toml"], "environment 'simulated' makes what its nodes run on; leave --inventory out"),
        (
            ["--environment", "ssh", "--inventory", "nowhere.toml"],
            "inventory nowhere.toml cannot be read: No such file",
        ),
        (["--environment", "ssh", "--inventory", "hosts.toml", "--nemesis", "power"], "cannot apply 'power'"),
        (["--environment", "ssh", "--inventory", "hosts.toml", "--nemesis", "disk"], "cannot apply 'disk-errors"),
        (["--environment", "ssh", "--inventory", "hosts.toml"], "no machine is left for node c2"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    arguments: list[str],
    words: str,
    hosts: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["run", "rocketmq", *arguments]) == 254
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("image", "path", "words"),
    [
        (NamedImage("redis"), "${home}/a", "makes no images: the command of node b1 (redis) needs NamedImage"),
        (Installed(), "/etc/a", "writes nothing outside of a node's own directory: the command of node b1 has a file"),
    ],
)
def test_a_command_that_machines_cannot_have_is_refused(image: Any, path: str, words: str, hosts: str) -> None:
    program = Command(argv=("redis",), image=image, files={path: ""})
    with pytest.raises(UsageError) as raised:
        SSH.require_placed([node(program)], hosts)
    assert words in str(raised.value)


def test_a_command_that_finds_itself_installed_is_taken(hosts: str) -> None:
    for image in (Installed(), DebianPackages(("redis-server",))):
        SSH.require_placed([node(Command(argv=("redis",), image=image, files={"${home}/a": ""}))], hosts)


def test_only_machines_that_are_lent_for_it_have_their_clocks_set(tmp_path: Path) -> None:
    hosts, two = tmp_path / "hosts.toml", ("m1", "m2")
    specs = [NodeSpec(name=f"b{name}", groups=(), program=PythonProgram(main="m:main")) for name in two]
    text = "[defaults]\nagent = true\n" + "".join(
        f'[hosts.{name}]\naddress = "192.0.2.{name[1:]}"\ngroups = ["all"]\nreal_clock = {lent}\n'
        for name, lent in zip(two, ("true", "false"), strict=True)
    )
    hosts.write_text(text)
    with pytest.raises(UsageError, match=r"for which these are not lent: m2; say real_clock = true there"):
        SSH.require_lent_clocks(specs, str(hosts))
    hosts.write_text(text.replace("false", "true"))
    SSH.require_lent_clocks(specs, str(hosts))


def test_a_machine_that_shares_its_kernel_with_the_harness_keeps_its_clock(
    shell: SshShell,
) -> None:
    """As this one does, which acts as a machine here."""
    machines = SshMachines(shell.connections.inventory, faults=frozenset(), say=print, real_clocks=True)
    with pytest.raises(
        HarnessError, match=r"m1 \(.*\) and the machine of the harness run on one kernel, which has one"
    ):
        machines._require_clock_of_its_own(shell)
    machines._kernels = {"another": "m2"}
    with contextlib.suppress(HarnessError):  # unless nobody but the kernel sets its clock here
        machines._require_clock_of_its_own(shell)
    with pytest.raises(HarnessError, match=r"m7 \(.*\) and m1 \(.*\) run on one kernel"):
        machines._require_clock_of_its_own(replace(shell, host=replace(shell.host, name="m7")))


class Channel:
    """Carries out on this machine what would be carried out on another, by the shell that sshd would use."""

    def exec_command(self, line: str) -> None:
        self.line = line
        self.process = subprocess.Popen(
            ["sh", "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def sendall(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def shutdown_write(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def recv(self, count: int) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.read(count)

    def recv_stderr(self, count: int) -> bytes:
        assert self.process.stderr is not None
        return self.process.stderr.read(count)

    def recv_exit_status(self) -> int:
        return self.process.wait()

    def close(self) -> None:
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> SshShell:
    inventory = parse_inventory(INVENTORY, "hosts.toml")
    connections = Connections(inventory)
    monkeypatch.setattr(connections, "session", lambda host: Channel())
    return SshShell(connections=connections, host=inventory.hosts["m1"])


def test_words_arrive_as_they_were_whatever_is_in_them(shell: SshShell) -> None:
    words = ["a b", "$HOME", "`id`", "'", '"', ";", "\n", "", "*", "ä", "-n", "\\"]
    code = "import json, sys; print(json.dumps(sys.argv[1:])); sys.stderr.write(sys.stdin.read()); sys.exit(3)"
    finished = shell.run(["python3", "-c", code, *words], stdin=b"given")
    assert json.loads(finished.output) == words
    assert (finished.exit_code, finished.errors) == (3, b"given")


def test_files_arrive_and_come_back_byte_by_byte(shell: SshShell, tmp_path: Path) -> None:
    files = {f"{tmp_path}/deep/er/{name}": bytes(range(256)) * 100 for name in ("a", "b c", "$d")}
    shell.put(files)
    assert {path: shell.fetch(path) for path in files} == files
    assert shell.fetch(f"{tmp_path}/nothing") == b""
    with pytest.raises(HarnessError, match=r"fetching .* on m1 .* failed: IsADirectoryError"):
        shell.fetch(str(tmp_path))


def test_sudo_comes_before_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    inventory = parse_inventory(INVENTORY.replace("agent = true", "agent = true\nsudo = true"), "hosts.toml")
    lines: list[str] = []

    class Noting(Channel):
        def exec_command(self, line: str) -> None:
            lines.append(line)
            super().exec_command("true")

    connections = Connections(inventory)
    monkeypatch.setattr(connections, "session", lambda host: Noting())
    SshShell(connections=connections, host=inventory.hosts["m1"]).run(["kill", "a b"])
    assert [shlex.split(line) for line in lines] == [["sudo", "-n", "--", "kill", "a b"]]


@pytest.mark.parametrize(
    ("program", "faults", "answer", "words"),
    [
        (
            PythonProgram(main="m:main"),
            (),
            {"version": [3, 9]},
            "has Python 3.9 as python3, node b1 needs 3.11 or newer",
        ),
        (PythonProgram(main="m:main"), (), {"root": False}, "faults need root: say user = root, or sudo = true"),
        (PythonProgram(main="m:main"), (), {"missing": ["numpy"]}, "lacks Python packages that node b1 needs: numpy"),
        (
            PythonProgram(main="m:main"),
            ("partition",),
            {"iptables": False},
            "has no iptables, which partition cannot do without: install it",
        ),
        (
            PythonProgram(main="m:main"),
            ("clock",),
            {"libfaketime": False},
            "has no libfaketime, which wrong clocks need",
        ),
        (
            PythonProgram(main="m:main"),
            ("scarce-memory",),
            {"groups": ["cpu"]},
            "lets nobody write control groups of memory, which scarce-memory needs",
        ),
        (
            PythonProgram(main="m:main"),
            ("slow-process",),
            {"groups": ["memory"]},
            "lets nobody write control groups of cpu, which slow-process needs",
        ),
        (Command(argv=("x",), image=Installed()), (), {"version": [3, 8]}, "needs 3.9 or newer"),
    ],
)
def test_what_a_machine_lacks_is_named_with_what_to_do(
    program: Any, faults: tuple[str, ...], answer: dict[str, Any], words: str, shell: SshShell
) -> None:
    class Telling(SshShell):
        def run(self, argv: Any, *, stdin: bytes = b"") -> Any:
            tools = dict.fromkeys(("root", "iptables", "libfaketime"), True) | {"groups": ["cpu", "memory"]}
            found = {"version": [3, 11], **tools, "missing": []}
            return shell.run(["echo", json.dumps({**found, **answer})])

    machine = Telling(connections=shell.connections, host=shell.host)
    with pytest.raises(HarnessError) as raised:
        require(machine, node(program), frozenset(faults))
    assert words in str(raised.value)
    assert str(raised.value).startswith("m1 (root@192.0.2.1:22) ")
    lacking_others = frozenset({"kill", "pause"})
    if not faults:
        return
    require(machine, node(program), lacking_others)


def test_this_machine_has_what_is_asked_of_one_or_says_so(shell: SshShell) -> None:
    """The question itself is understood by a real Python."""
    with pytest.raises(HarnessError, match=r"lacks Python packages .*: no-such-distribution"):
        require(shell, node(PythonProgram(main="m:main", requirements=("no_such_distribution>=1",))), frozenset())


@pytest.mark.parametrize("module", [agent, machine_lease, relay, control_groups, capture, real_clock])
def test_what_runs_on_machines_is_plain_enough_for_their_python(module: Any) -> None:
    source = inspect.getsource(module)
    tree = ast.parse(source, feature_version=PYTHON_OF_TOOLS)
    imported = {
        alias.name.partition(".")[0] if isinstance(statement, ast.Import) else str(statement.module).partition(".")[0]
        for statement in ast.walk(tree)
        if isinstance(statement, (ast.Import, ast.ImportFrom))
        for alias in statement.names
    }
    assert not imported & {"harness", "system_under_test"}


def test_keeper_and_agent_mean_the_same_places() -> None:
    assert (machine_lease.HOME, machine_lease.STATE) == (agent.HOME, agent.STATE)
