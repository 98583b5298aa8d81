"""Containers that act as machines somebody else made: Debian with sshd, sudo and what faults need.

They hold a key of their own each, let one key in, and know nothing of Stormproof. Beside them, a machine that only
leads to others may be made, from which alone the others are reached.
"""

from __future__ import annotations

import secrets
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.environments.docker.base_image import base_image
from harness.environments.docker.building import one_at_a_time
from harness.environments.docker.command_image import command_image
from harness.environments.docker.network import make_network
from harness.program import DebianPackages, Image

PACKAGES = DebianPackages(("openssh-server", "sudo"))
CAPABILITIES = ["NET_ADMIN", "SYS_PTRACE", "SYS_ADMIN"]
"""As far as a container needs them to be like a machine: root may filter packets, look into processes, and mount."""
USER = "storm"
SETTING_UP = f"""
set -e
rm -f /etc/ssh/ssh_host_*
ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
mkdir -p /run/sshd /root/.ssh
useradd -m -s /bin/sh {USER}
echo '{USER} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/{USER}
mkdir -p /home/{USER}/.ssh
printf '%s\\n' "$KEY" >/root/.ssh/authorized_keys
printf '%s\\n' "$KEY" >/home/{USER}/.ssh/authorized_keys
chown -R {USER} /home/{USER}/.ssh
exec /usr/sbin/sshd -D -e
"""
PATIENCE_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One of them, as its owner sees it."""

    name: str
    address: str
    host_key: str
    container: Any

    def sees(self, *argv: str) -> str:
        """What a command in it prints, whatever its exit code."""
        return str(self.container.exec_run(list(argv)).output.decode())


@dataclass(frozen=True, kw_only=True)
class Rack:
    """Some machines, and the key that they let in."""

    machines: Mapping[str, Machine]
    key: Path

    def inventory(self, places: Mapping[str, str], *, user: str = "root", more: str = "") -> str:
        """An inventory: machine -> the lines that say which nodes it is for. `more` goes into the defaults."""
        lines = ["[defaults]", f'user = "{user}"', f'key = "{self.key}"', *(["sudo = true"] if user != "root" else [])]
        lines.append(more)
        for name, place in places.items():
            machine = self.machines[name]
            lines += [f"[hosts.{name}]", f'address = "{machine.address}"', f'host_key = "{machine.host_key}"', place]
        return "\n".join(lines) + "\n"


def machine_image(client: Any, installed: Image | None) -> str:
    with one_at_a_time():
        base = base_image(client, None, print)
        below = base if installed is None else command_image(client, installed, base, print)
        return command_image(client, PACKAGES, below, print)


@contextmanager
def rack(client: Any, names: Sequence[str], directory: Path, installed: Image | None = None) -> Iterator[Rack]:
    """So many machines, that answer on port 22, with something installed; gone afterwards. Their key is kept in the
    directory."""
    key = directory / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    run, image = f"machines-{secrets.token_hex(4)}", machine_image(client, installed)
    made: list[Any] = []
    network, addresses = make_network(client, run, {}, names)
    try:
        machines = {}
        for name in names:
            container = _container(client, f"{run}-{name}", image, network.name, addresses[name], key)
            made.append(container)
            container.start()
        for name, container in zip(names, made, strict=True):
            machines[name] = Machine(
                name=name, address=addresses[name], host_key=_host_key(container), container=container
            )
        yield Rack(machines=machines, key=key)
    finally:
        for container in made:
            container.remove(force=True, v=True)
        network.remove()


def _container(client: Any, name: str, image: str, network: str, address: str, key: Path) -> Any:
    api = client.api
    made = api.create_container(
        image,
        command=["sh", "-c", SETTING_UP],
        environment={"KEY": key.with_suffix(".pub").read_text().strip()},
        name=name,
        hostname=name,
        host_config=api.create_host_config(
            cap_add=CAPABILITIES, security_opt=["apparmor=unconfined"], binds=["/sys/fs/cgroup:/sys/fs/cgroup:rw"]
        ),
        networking_config=api.create_networking_config({network: api.create_endpoint_config(ipv4_address=address)}),
    )
    return client.containers.get(made["Id"])


def _host_key(container: Any) -> str:
    """Its public key, once sshd listens."""
    deadline = time.monotonic() + PATIENCE_S
    while b"Server listening" not in container.logs():
        assert time.monotonic() < deadline, container.logs().decode()
        time.sleep(0.02)
    words = container.exec_run(["cat", "/etc/ssh/ssh_host_ed25519_key.pub"]).output.decode().split()
    return " ".join(words[:2])
