"""A `Shell` on a machine, as root: by sudo where the user is another one. Words are quoted here, and nowhere else."""

from __future__ import annotations

import contextlib
import io
import shlex
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import paramiko

from harness.environments.remote.packed import tar_of
from harness.environments.remote.shell import Finished
from harness.environments.ssh.connection import Connections
from harness.environments.ssh.inventory import Host
from harness.errors import HarnessError

PYTHON = ("python3", "-I", "-S")
UNPACK = "import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode='r|').extractall('/')"
READ = """import sys
try:
    sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())
except FileNotFoundError:
    pass
"""
NO_SUCH_COMMAND = 127
BLOCK_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class SshShell:
    connections: Connections
    host: Host

    def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> Finished:
        """`stdin`: the command's standard input."""
        return self._carried_out(["sudo", "-n", "--", *argv] if self.host.sudo else argv, stdin)

    def run_as_user(self, argv: Sequence[str]) -> Finished:
        return self._carried_out(argv, b"")

    def put(self, files: Mapping[str, bytes]) -> None:
        if files:
            self._must([*PYTHON, "-c", UNPACK], f"writing {', '.join(files)}", stdin=tar_of(files))

    def fetch(self, path: str) -> bytes:
        return self._must([*PYTHON, "-c", READ, path], f"fetching {path}")

    def _must(self, argv: Sequence[str], what: str, *, stdin: bytes = b"") -> bytes:
        finished = self.run(argv, stdin=stdin)
        if finished.exit_code:
            last = finished.errors.decode(errors="replace").strip().rpartition("\n")[2]
            raise HarnessError(f"{what} on {self.host} failed: {last or f'exit code {finished.exit_code}'}")
        return finished.output

    def _carried_out(self, argv: Sequence[str], stdin: bytes) -> Finished:
        channel = self.connections.session(self.host)
        output, errors = io.BytesIO(), io.BytesIO()
        try:
            channel.exec_command(shlex.join(argv))
            # Beside the other stream: a command that fills one of them would wait for ever if only the other was read.
            beside = threading.Thread(target=_drain_beside, args=(channel.recv_stderr, errors), daemon=True)
            beside.start()
            if stdin:
                channel.sendall(stdin)
            channel.shutdown_write()
            _drain(channel.recv, output)
            beside.join()
            code = channel.recv_exit_status()
        except (paramiko.SSHException, OSError, EOFError) as error:
            words = "no answer in time" if isinstance(error, socket.timeout) else str(error) or type(error).__name__
            raise HarnessError(f"{argv[0]} on {self.host} failed: {words}") from error
        finally:
            channel.close()
        if code < 0:
            raise HarnessError(f"{argv[0]} on {self.host} failed: the connection ended before it did")
        return Finished(exit_code=code, output=output.getvalue(), errors=errors.getvalue())


def _drain(receive: Callable[[int], bytes], into: io.BytesIO) -> None:
    while block := receive(BLOCK_BYTES):
        into.write(block)


def _drain_beside(receive: Callable[[int], bytes], into: io.BytesIO) -> None:
    """What ends this stream ends the other one as well, and is reported there."""
    with contextlib.suppress(OSError):
        _drain(receive, into)
