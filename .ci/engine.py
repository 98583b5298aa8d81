#!/usr/bin/env python3
"""Sees to it that a Docker engine answers, for a machine on which none runs before somebody starts it.

    .ci/engine.py start        prints the pid of the engine that it had to start, nothing where one answers already
    .ci/engine.py stop PID     ends that one again

Debian's engine is installed where there is none. `start` ends with 1 and one reason where no engine can be had.
Standard library only: it runs before the checkout is set up.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ANSWERS_WITHIN_S = 60.0
STARTS_WITHIN_S = 5.0
ENDS_WITHIN_S = 30.0
LOOKED_EACH_S = 0.25
INSTALLED_WITHIN_S = 900.0
LAST_LINES = 8
DEBIAN_PACKAGES = ("docker.io", "iptables")
SOCKET = Path("/var/run/docker.sock")
PID_FILES = (Path("/var/run/docker.pid"), Path("/var/run/docker/containerd/containerd.pid"))
"""An engine that was killed leaves them, and the next one ends at once where another process has its number by then."""
SETTINGS = Path("/etc/docker/daemon.json")
SMALL_PACKETS = '{"mtu": 1400}\n'
"""Fit through the tunnels that machines of continuous integration tend to be behind."""


class NoEngine(Exception):
    """Why none answers, in words for whoever reads the log of the gate."""


def main(arguments: list[str]) -> int:
    match arguments:
        case ["start"]:
            try:
                pid = start()
            except NoEngine as error:
                print(f".ci/engine.py: {error}", file=sys.stderr)
                return 1
            print(pid or "")
        case ["stop", pid]:
            stop(int(pid))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


def start() -> int | None:
    """The pid of the engine that was started; None where one answers already. Raises NoEngine."""
    if answers():
        return None
    if elsewhere := os.environ.get("DOCKER_HOST"):
        raise NoEngine(f"no Docker engine answers at DOCKER_HOST={elsewhere}, and one started here would not be asked")
    if os.geteuid() != 0:
        raise NoEngine("no Docker engine answers, and only root may start one here")
    if _install() and _until(answers, STARTS_WITHIN_S):
        return None  # where services run, the package starts its own, and that stays as any other service
    forget_dead_engines(PID_FILES)
    if PID_FILES[0].exists() and _until(answers, ANSWERS_WITHIN_S):
        return None  # somebody else's was just about to
    if not SETTINGS.exists():
        SETTINGS.parent.mkdir(parents=True, exist_ok=True)
        SETTINGS.write_text(SMALL_PACKETS)
    log = Path(os.environ.get("TMPDIR", "/tmp"), "stormproof-ci-dockerd.log")
    return launch(["dockerd"], log, answers, ANSWERS_WITHIN_S)


def answers() -> bool:
    """Whether the engine that the tests would ask says that it is well."""
    host = os.environ.get("DOCKER_HOST") or f"unix://{SOCKET}"
    scheme, _, place = host.partition("://")
    asked = http.client.HTTPConnection("localhost" if scheme == "unix" else place, timeout=10)
    try:
        if scheme == "unix":
            asked.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            asked.sock.settimeout(10)
            asked.sock.connect(place)
        asked.request("GET", "/_ping")
        return asked.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        asked.close()


def _install() -> bool:
    """Whether anything had to be."""
    missing = [name for name in ("dockerd", "iptables") if shutil.which(name) is None]
    if not missing:
        return False
    if shutil.which("apt-get") is None:
        raise NoEngine(f"no Docker engine answers, {' and '.join(missing)} cannot be found, and there is no apt-get")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", *DEBIAN_PACKAGES]):
        print(f".ci/engine.py: {' '.join(command)}", file=sys.stderr)
        try:
            subprocess.run(command, env=environment, stdout=sys.stderr, timeout=INSTALLED_WITHIN_S, check=False)
        except subprocess.TimeoutExpired:
            raise NoEngine(f"{' '.join(command)} did not end within {INSTALLED_WITHIN_S:g} s") from None
    if shutil.which("dockerd") is None:
        raise NoEngine(f"no Docker engine answers, and apt-get could not install {' '.join(DEBIAN_PACKAGES)}")
    return True


def forget_dead_engines(pid_files: tuple[Path, ...]) -> None:
    """Remove each of these files, unless the process that it names is an engine, or its containerd, that lives."""
    for file in pid_files:
        with contextlib.suppress(FileNotFoundError):
            written = file.read_text().strip()
            if not (written.isdigit() and _name(int(written)) in ("dockerd", "containerd")):
                file.unlink()


def launch(command: list[str], log: Path, well: Callable[[], bool], within_s: float) -> int:
    """Start an engine that outlives this program; its pid, once it is well. Raises NoEngine with its last words."""
    with log.open("wb") as written:
        engine = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=written, stderr=written, start_new_session=True
        )
    is_well = False
    try:
        is_well = _until(lambda: engine.poll() is not None or well(), within_s) and engine.poll() is None
        code = engine.poll()
    finally:  # also where somebody interrupts the wait: nobody would know of it any more
        if not is_well:
            _end(engine)
    if is_well:
        return engine.pid
    how = f"did not answer within {within_s:g} s" if code is None else f"ended with {code}"
    last = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
    raise NoEngine("\n    ".join([f"{command[0]} {how}; the end of {log}:", *last]))


def _end(engine: subprocess.Popen[bytes]) -> None:
    engine.terminate()
    try:
        engine.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        engine.kill()
        engine.wait()


def stop(pid: int) -> None:
    """End the engine of that pid, by force where it takes too long; nothing where there is none."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if _name(pid) != "dockerd":
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if _until(lambda: _name(pid) != "dockerd", ENDS_WITHIN_S):
            return
    print(f".ci/engine.py: dockerd ({pid}) does not end", file=sys.stderr)


def _until(happened: Callable[[], bool], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOKED_EACH_S)
    return True


def _name(pid: int) -> str:
    """Of the program that a process runs; empty where there is none, or only its zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    name, _, rest = text.partition("(")[2].rpartition(")")
    return "" if rest.split()[0] in "ZX" else name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
