"""The process of one mounted volume: `python3 -m harness.environments.fuse.process PLACE SOCKET SEED`.

It says `mounted` on its standard output, or why not. At SOCKET it takes one JSON object a connection, with the verb and
what it needs, and answers with another. It ends, and with it the mount, when its standard input does.
"""

from __future__ import annotations

import json
import logging
import os
import random
import select
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.environments.fuse.kernel import mount, unmount
from harness.environments.fuse.server import Server
from harness.environments.fuse.volume import Volume

LONGEST_QUESTION = 1 << 20

Question = Mapping[str, Any]
Answer = dict[str, Any]


class Control:
    """What is done to the volume from outside, by verb."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def answer(self, question: Question) -> Answer:
        verbs: Mapping[str, Callable[[Question], Answer]] = {"lose_power": self.lose_power}
        return verbs[question["verb"]](question)

    def lose_power(self, question: Question) -> Answer:
        volume = self._server.volume
        with self._server.lock:
            names = volume.known_names()
            lost_bytes, lost_names = volume.lose_power(random.Random(question["draw"]))
            names |= volume.known_names()
            nodes = sorted(volume.nodes)
        self._server.tell_of_changes(sorted(names), nodes)
        return {"bytes": lost_bytes, "names": lost_names}


def main(arguments: Sequence[str]) -> int:
    place, control, seed = Path(arguments[0]), arguments[1], int(arguments[2])
    try:
        kernel = mount(place, f"stormproof-{place.name}")
    except OSError as error:
        print(error.strerror, flush=True)
        return 1
    server = Server(kernel, Volume(random.Random(seed)))
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(control)
    listening.listen()
    threading.Thread(target=_answer_all, args=(listening, Control(server)), daemon=True).start()
    threading.Thread(target=_until_alone, args=(place,), daemon=True).start()
    print("mounted", flush=True)
    server.serve()
    return 0


def _until_alone(place: Path) -> None:
    """End everything when whoever started this is gone: also for containers that have the volume bound."""
    poll = select.poll()
    poll.register(0, 0)  # only that the other end is gone
    poll.poll()
    unmount(place)
    os._exit(0)


def _answer_all(listening: socket.socket, control: Control) -> None:
    while True:
        connection, _ = listening.accept()
        with connection, connection.makefile("rwb") as stream:
            try:
                answer = control.answer(json.loads(stream.readline(LONGEST_QUESTION)))
            except Exception as error:
                logging.exception("a question of the harness")
                answer = {"error": f"{type(error).__name__}: {error}"}
            stream.write(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
