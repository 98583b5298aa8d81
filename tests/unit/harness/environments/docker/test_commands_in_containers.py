"""All that a command printed in a container comes back, also what the engine sends in one packet with its header."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker
import pytest

from harness.environments.docker.command import FRAME
from harness.environments.docker.container import ContainerShell
from harness.errors import HarnessError


@contextmanager
def engine_that_sends(folder: Path, output: bytes, code: int = 0, status: str = "200 OK") -> Iterator[Any]:
    """A client of an engine in which each command ends with this code, header and output in one packet."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listening:
        listening.bind(str(folder / "engine"))
        listening.listen()
        threading.Thread(target=_serve, args=(listening, output, code, status), daemon=True).start()
        with closing(docker.APIClient(base_url=f"unix://{folder}/engine", version="1.41")) as api:
            yield SimpleNamespace(api=api)
        # A thread that waits in `accept` is woken by this alone.
        listening.shutdown(socket.SHUT_RDWR)


def _serve(listening: socket.socket, output: bytes, code: int, status: str) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            asked = connection.recv(65536).partition(b"\r\n")[0].decode()
            if "/start" in asked:
                packet = (
                    f"HTTP/1.1 {status}\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n".encode() + output
                )
            else:
                body = json.dumps({"Id": "e1", "ExitCode": code}).encode()
                packet = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
            connection.sendall(packet)


def run_in(client: Any) -> Any:
    container: Any = SimpleNamespace(id="c1")
    return ContainerShell(client=client, container=container, name="n1").run(["tell"])


def frame(stream: int, words: bytes) -> bytes:
    return FRAME.pack(stream, len(words)) + words


@pytest.mark.parametrize("code", [0, 3])
def test_output_beside_the_header_comes_back_with_the_exit_code(tmp_path: Path, code: int) -> None:
    sent = frame(1, b'{"a b": 1}\n') + frame(2, b"half") + frame(1, b"") + frame(1, bytes(range(256)) * 400)
    with engine_that_sends(tmp_path, sent, code) as client:
        finished = run_in(client)
    assert (finished.exit_code, finished.errors) == (code, b"half")
    assert finished.output == b'{"a b": 1}\n' + bytes(range(256)) * 400


def test_a_command_that_prints_nothing(tmp_path: Path) -> None:
    with engine_that_sends(tmp_path, b"", 4) as client:
        finished = run_in(client)
    assert (finished.exit_code, finished.output, finished.errors) == (4, b"", b"")


@pytest.mark.parametrize("kept", [3, FRAME.size, FRAME.size + 2])
def test_output_that_ends_in_the_middle_is_an_error_of_the_harness(tmp_path: Path, kept: int) -> None:
    with (
        engine_that_sends(tmp_path, frame(1, b"whole") + frame(1, b"half")[:kept]) as client,
        pytest.raises(HarnessError, match="the output of tell ended in the middle"),
    ):
        run_in(client)


def test_an_engine_that_refuses_says_why(tmp_path: Path) -> None:
    with (
        engine_that_sends(tmp_path, b'{"message": "container c1 is not running"}', status="409 Conflict") as client,
        pytest.raises(HarnessError, match=r"Docker: tell in n1 failed: .*container c1 is not running"),
    ):
        run_in(client)
