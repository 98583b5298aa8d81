"""Sets the checkout up: a `.venv` with everything in it, a Java for Spark, kernels and its classes laid out ahead.

`python3 -m stormproof.cli.bootstrap`: standard library only, run by whatever Python the machine has. The second time it
takes no time: a stamp in the venv remembers the `pyproject.toml`, the interpreter and the path it was made for, another
one the sources whose kernels were compiled.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from harness.printable import printable

CHECKOUT = Path(__file__).resolve().parents[2]
VENV = CHECKOUT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".stormproof-installed"
KERNELS_STAMP = VENV / ".stormproof-kernels"
KERNELS = ("checkers", "harness/compiled", "harness/jepsen")
"""Where kernels stand."""
CLASSES_STAMP = VENV / ".stormproof-classes"
ARCHIVES_CLASSES = "checkers.spark.lay_out_classes"
COMPILES_KERNELS = "tests.histories.compile_kernels"
LEAST_PYTHON = (3, 11)
HARNESS_FAILED = 255


class SetUpFailed(Exception):
    """The one line the user gets."""


def main() -> int:
    if sys.version_info < LEAST_PYTHON:
        return _with_newer_python()
    try:
        with (CHECKOUT / "pyproject.toml").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two makes at once would both build the venv
            _ensure_venv()
            _ensure_java()
            _ensure_kernels()
            _ensure_class_archive()
    except SetUpFailed as error:
        say(str(error))
        return HARNESS_FAILED
    return 0


def say(line: str) -> None:
    print(f"set-up: {printable(line)}", file=sys.stderr, flush=True)


def _with_newer_python() -> int:
    for minor in range(19, LEAST_PYTHON[1] - 1, -1):
        newer = shutil.which(f"python3.{minor}")
        if newer:
            os.execv(newer, [newer, "-m", "stormproof.cli.bootstrap"])
    came = ".".join(str(part) for part in sys.version_info[:3])
    say(f"Python 3.11 or newer is needed, {sys.executable} is {came}; install one (with its venv module) and run again")
    return HARNESS_FAILED


def _ensure_venv() -> None:
    stamp = _stamp()
    if STAMP.exists() and STAMP.read_text() == stamp and VENV_PYTHON.exists():
        return
    if not _works(VENV_PYTHON):
        say(f"making .venv with Python {'.'.join(str(part) for part in sys.version_info[:3])}")
        if subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=False).returncode:
            raise SetUpFailed("python3 -m venv failed; on Debian and Ubuntu it needs: apt-get install python3-venv")
    say("installing stormproof and what it needs into .venv")
    install = [str(VENV_PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", ".[dev]"]
    if subprocess.run(install, cwd=CHECKOUT, check=False).returncode:
        raise SetUpFailed("pip could not install the packages named in pyproject.toml; its own words stand above")
    STAMP.write_text(stamp)


def _ensure_java() -> None:
    from checkers.spark.java import HOW_TO_GET, find_java, get_java  # here: its syntax is newer than an old Python's

    if find_java() is not None:
        return
    java = get_java(say, _install_jdk)
    if java is None:
        raise SetUpFailed(
            f"no Java for Spark, and none could be fetched; {HOW_TO_GET} "
            "(all else is ready: .venv/bin/stormproof run rocketmq --engine inprocess)"
        )
    say(f"Java {java.version} is at {java.home}")


def _ensure_kernels() -> None:
    """Compile them ahead, so that no check waits for it. Where that fails, checks compile what they need."""
    _ensure_ahead(
        COMPILES_KERNELS,
        KERNELS_STAMP,
        _content(),
        doing="compiling kernels on all cores, once on this machine; takes a minute or two",
        failed="not all kernels could be compiled ahead; the first checks will take longer",
    )


def _ensure_class_archive() -> None:
    """Have Spark's classes laid out ahead, so that its JVM starts quicker. Where that fails, it starts without them."""
    from checkers.spark.java import find_java

    _ensure_ahead(
        ARCHIVES_CLASSES,
        CLASSES_STAMP,
        f"{STAMP.read_text()}{find_java()}\n",
        doing="laying out the classes of Spark, once on this machine; takes half a minute",
        failed="the classes of Spark could not be laid out; it will take some seconds longer to start",
    )


def _ensure_ahead(module: str, kept: Path, stamp: str, *, doing: str, failed: str) -> None:
    """Run what others can do without, unless it has been run for this stamp, which is `kept` in a file."""
    if kept.exists() and kept.read_text() == stamp:
        return
    say(doing)
    if subprocess.run([str(VENV_PYTHON), "-m", module], cwd=CHECKOUT, check=False).returncode:
        say(failed)
        return
    kept.write_text(stamp)


def _content() -> str:
    """A digest of all sources that may have kernels, and of what was installed to compile them."""
    digest = hashlib.sha256(STAMP.read_bytes())
    for source in sorted(path for folder in KERNELS for path in (CHECKOUT / folder).rglob("*.py")):
        digest.update(source.read_bytes())
    return f"{digest.hexdigest()}\n"


def _install_jdk(directory: Path) -> None:
    program = "import sys, jdk; jdk.install(sys.argv[1], path=sys.argv[2], jre=True)"
    command = [str(VENV_PYTHON), "-c", program, "17", str(directory)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        last = ran.stderr.strip().rpartition("\n")[2]
        raise OSError(f"install-jdk: {last}")


def _works(python: Path) -> bool:
    try:
        check = [str(python), "-c", "import sys, pip; sys.exit(sys.version_info < (3, 11))"]
        return subprocess.run(check, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _stamp() -> str:
    digest = hashlib.sha256((CHECKOUT / "pyproject.toml").read_bytes()).hexdigest()
    return f"{digest} {CHECKOUT}\n"


if __name__ == "__main__":
    sys.exit(main())
