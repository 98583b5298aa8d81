"""`stormproof doctor`: what this machine has, and what that makes possible. Changes nothing, always exits with 0."""

from __future__ import annotations

import gzip
import importlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from checkers.spark.java import HOW_TO_GET, find_java
from stormproof.cli.options import console_of, example

EXAMPLES = """
stormproof doctor
stormproof doctor --json
"""
QUESTION_TIMEOUT_S = 10
ENGINE_SOCKET = "/var/run/docker.sock"
SYSTEMD = Path("/run/systemd/system")
"""Is there where systemd is what starts services."""
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
LIBFAKETIME_PLACES = ("/usr/lib/*/faketime/libfaketime*.so*", "/usr/local/lib/faketime/libfaketime*.so*")


@dataclass(frozen=True)
class Finding:
    name: str
    found: bool
    what: str
    """What is there, or what is missing and how to get it."""
    makes_possible: str


@click.command("doctor", epilog=example(EXAMPLES))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> int:
    """Say what of Java, Spark, Docker, libfaketime, iptables, netem, FUSE and Maven this machine has, and what for."""
    console = console_of(as_json, False)
    findings = [examine() for examine in EXAMINATIONS]
    for finding in findings:
        console.say(f"{'yes' if finding.found else 'no ':<4} {finding.name:<12} {finding.what}")
        console.say(f"{'':17} {finding.makes_possible}")
    console.result({finding.name: asdict(finding) for finding in findings})
    return 0


def _java() -> Finding:
    java = find_java()
    what = f"version {java.version} at {java.home}" if java else f"none that is new enough; {HOW_TO_GET}"
    possible = "checking on Spark: big histories, and with --engine spark or --master all"
    return Finding("java", java is not None, what, possible)


def _spark() -> Finding:
    try:
        version = importlib.import_module("pyspark").__version__
    except ImportError as error:
        return Finding("spark", False, f"pyspark cannot be imported: {error}", "checking on Spark")
    return Finding(
        "spark", True, f"pyspark {version}", "checking big histories, on this machine or on a cluster (--master)"
    )


def _docker() -> Finding:
    possible = "--environment docker: real processes, real packets, real disks; the simulator needs none of it"
    docker, requests = importlib.import_module("docker"), importlib.import_module("requests")
    try:
        client = docker.from_env(timeout=QUESTION_TIMEOUT_S)
        try:
            version = client.version()["Version"]
        finally:
            client.close()
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        return Finding("docker", False, _why_no_engine(str(error).partition("\n")[0]), possible)
    return Finding("docker", True, f"engine {version}", possible)


def _why_no_engine(error: str) -> str:
    """What is missing for containers, and what brings it."""
    elsewhere = os.environ.get("DOCKER_HOST", "")
    place = Path(elsewhere.removeprefix("unix://") if elsewhere.startswith("unix://") else ENGINE_SOCKET)
    if (not elsewhere or elsewhere.startswith("unix://")) and place.exists() and not os.access(place, os.W_OK):
        return (
            f"this user may not use the engine: {place} is for root and the group docker "
            "(as root: usermod -aG docker USER, then log in again; or run stormproof as root)"
        )
    if elsewhere:
        return f"no engine answers at DOCKER_HOST={elsewhere} ({error}); start it there, or unset DOCKER_HOST"
    start = "systemctl start docker" if SYSTEMD.is_dir() else "service docker start"
    if _program("dockerd") is None:
        return (
            "no engine is installed here, and a machine without one is a normal one "
            f"(Debian, Ubuntu, as root: apt-get install docker.io iptables && {start})"
        )
    if not place.exists() or "refused" in error:
        return f"an engine is installed here and does not run (Debian, Ubuntu, as root: {start})"
    return f"an engine runs here and does not answer ({error}); what it says itself: journalctl -u docker, or its log"


def _libfaketime() -> Finding:
    possible = "clock faults for processes outside containers; container images bring their own"
    found = [path for pattern in LIBFAKETIME_PLACES for path in sorted(Path("/").glob(pattern.lstrip("/")))]
    if found:
        return Finding("libfaketime", True, str(found[0]), possible)
    return Finding("libfaketime", False, "not installed here (Debian, Ubuntu: apt-get install libfaketime)", possible)


def _iptables() -> Finding:
    possible = "partitions of containers; inside their network namespaces only, never this machine's own"
    path = _program("iptables")
    if path is None:
        return Finding("iptables", False, "not installed here (Debian, Ubuntu: apt-get install iptables)", possible)
    return Finding("iptables", True, _first_line([path, "--version"]) or path, possible)


def _netem() -> Finding:
    possible = (
        "delay, loss, duplication and reordering of packets; without it loss goes through iptables, rate through tbf"
    )
    return Finding("netem", *_kernel_has("CONFIG_NET_SCH_NETEM", "sch_netem"), possible)


def _fuse() -> Finding:
    possible = "power and faults of disks in containers, for root; the simulator has them anyway"
    if not Path("/dev/fuse").exists():
        return Finding("fuse", False, "no /dev/fuse (load the module: modprobe fuse)", possible)
    usable = os.access("/dev/fuse", os.R_OK | os.W_OK)
    return Finding("fuse", usable, "/dev/fuse" if usable else "/dev/fuse is there, but not for this user", possible)


def _maven() -> Finding:
    possible = "putting released Java systems on trial, each by its version: --set release=5.4.0"
    path = shutil.which("mvn")
    if path is None:
        return Finding("maven", False, "not installed here (Debian, Ubuntu: apt-get install maven)", possible)
    version = ESCAPES.sub("", _first_line([path, "--version"]))
    if not version:
        return Finding("maven", False, f"{path} --version fails: mvn itself needs a Java (JAVA_HOME, PATH)", possible)
    return Finding("maven", True, f"{version.partition(' (')[0]} at {path}", possible)


def _program(name: str) -> str | None:
    """Where it is, also in places that are on root's PATH alone."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _kernel_has(option: str, module: str) -> tuple[bool, str]:
    """Whether this kernel has it built in, loaded or loadable, asked of files alone."""
    release = platform.release()
    if Path("/sys/module", module).is_dir():
        return True, f"{module} is loaded"
    for name in ("modules.builtin", "modules.dep"):
        listing = Path("/lib/modules", release, name)
        if listing.exists() and f"/{module}.ko" in listing.read_text(encoding="utf-8", errors="replace"):
            return True, f"{module} comes with kernel {release}"
    for place, read in ((Path("/proc/config.gz"), _gunzipped), (Path("/boot", f"config-{release}"), Path.read_text)):
        if place.exists():
            built_in = f"{option}=y" in read(place)
            return built_in, f"{place} says {option}" + (
                "=y" if built_in else " is not built in, and no module is here"
            )
    return False, f"kernel {release} shows no {module}: neither loaded, nor among its modules, nor in its configuration"


def _gunzipped(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def _first_line(command: list[str]) -> str:
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=QUESTION_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.strip().partition("\n")[0] if ran.returncode == 0 else ""


EXAMINATIONS: tuple[Callable[[], Finding], ...] = (
    *(_java, _spark, _docker, _libfaketime, _iptables, _netem, _fuse, _maven),
)
