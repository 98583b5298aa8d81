"""What is left of a command on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from harness.environments.docker.engine import LABEL_OWNER, engine
from tests.ssh.machines import Rack


def marked(variable: str, value: str) -> list[str]:
    """Processes that were given this variable, by whomever they were started: number and command."""
    wanted = f"{variable}={value}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"{entry.name} {command}")
        except OSError:
            continue
    return found


def temporary(directory: Path) -> list[str]:
    """What is left in a directory for temporary files; the lock of images stays, for others may wait for it."""
    return sorted(path.name for path in directory.iterdir() if not path.name.startswith("stormproof-images-"))


def containers_of(pid: int) -> list[str]:
    """Containers and networks that this process made."""
    with engine() as client:
        filters = {"label": LABEL_OWNER}
        containers = client.containers.list(all=True, filters=filters, ignore_removed=True)
        networks = client.networks.list(filters=filters)
        labelled = [(one.name, one.labels) for one in containers]
        labelled += [(one.name, one.attrs["Labels"] or {}) for one in networks]
    return [name for name, labels in labelled if labels.get(LABEL_OWNER, "").split(":")[1:2] == [str(pid)]]


LOOKING = """
ps -eo pid,args | grep -E ' (/[^ ]*/)?python3( |$)'
iptables-save | grep -i storm
tc qdisc show | grep -E ' (tbf|htb|netem) '
grep -l stormproof /proc/[0-9]*/environ 2>/dev/null
ls -A /dev/shm
ls -d /var/lib/stormproof /var/cache/stormproof 2>/dev/null
ls -d /sys/fs/cgroup/stormproof-$(hostname) /sys/fs/cgroup/cpu/stormproof-$(hostname) 2>/dev/null
grep -wE 'b1|b2|c1' /etc/hosts
true
"""


def left_on(machines: Rack, _: int) -> list[str]:
    """Of a run on machines over SSH: processes, rules, queues, control groups, files, and names of nodes. It had them
    for itself, so whose run it was does not matter."""
    return [
        f"{line} on {machine.name}"
        for machine in machines.machines.values()
        for line in machine.sees("sh", "-c", LOOKING).splitlines()
    ]
