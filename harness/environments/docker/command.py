"""A command run in a container, with all that it printed.

`exec_start` of the engine's Python client asks for an upgraded connection and reads its socket beside the buffer from
which the answer's header was read: what the engine sent in the same packet as the header is lost then, which is all of
a short output, or the beginning of a long one. Without an upgrade the engine sends the same frames as a plain body.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import docker
import requests

from harness.environments.remote.shell import Finished
from harness.errors import HarnessError

FRAME = struct.Struct(">BxxxL")
"""Each piece of output begins with it: which stream it is of, and its length in bytes."""
STANDARD_OUTPUT, STANDARD_ERROR = 1, 2
CONNECT_TIMEOUT_S = 60.0


def run_command(client: Any, container: str, argv: Sequence[str]) -> Finished:
    """Run it as root in the container of this id, to its end.

    Raises docker.errors.APIError or requests.RequestException as the engine or the way to it fails, and HarnessError
    for an answer that ends in the middle of a frame.
    """
    api = client.api
    program = api.exec_create(container, list(argv), user="root")["Id"]
    answer = api.post(
        f"{api.base_url}/v{api.api_version}/exec/{program}/start",
        json={"Detach": False, "Tty": False},
        # A command may take as long as it likes.
        timeout=(CONNECT_TIMEOUT_S, None),
    )
    try:
        answer.raise_for_status()
    except requests.exceptions.HTTPError as error:
        docker.errors.create_api_error_from_http_exception(error)
    printed = _streams(answer.content, argv[0])
    code = api.exec_inspect(program)["ExitCode"]
    return Finished(exit_code=code, output=printed[STANDARD_OUTPUT], errors=printed[STANDARD_ERROR])


def _streams(body: bytes, program: str) -> dict[int, bytes]:
    pieces: dict[int, list[bytes]] = {STANDARD_OUTPUT: [], STANDARD_ERROR: []}
    at = 0
    while at < len(body):
        begin = at + FRAME.size
        stream, length = FRAME.unpack_from(body, at) if begin <= len(body) else (0, 0)
        at = begin + length
        if stream not in pieces or at > len(body):
            raise HarnessError(
                f"Docker: the output of {program} ended in the middle, after {len(body)} bytes; run it again"
            )
        pieces[stream].append(body[begin:at])
    return {stream: b"".join(parts) for stream, parts in pieces.items()}
