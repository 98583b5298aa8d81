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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.environments.disk.damage import cut_files_short, rot
from harness.environments.disk.disk_faults import DISK_IMPAIRMENTS, DiskImpairment
from harness.environments.fuse.kernel import mount, unmount
from harness.environments.fuse.server import Server
from harness.environments.fuse.volume import Damaged, Image, Volume
from harness.environments.impairment import BitRot, Corruption

LONGEST_QUESTION = 1 << 20
FORGET_EVERY_S = 0.02

Question = Mapping[str, Any]
Answer = dict[str, Any]


class Control:
    """What is done to the volume from outside, by verb."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._volume = server.volume
        self._images: dict[str, Image] = {}

    def answer(self, question: Question) -> Answer:
        answer: Answer = VERBS[question["verb"]](self, question)
        return answer

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Inside, the volume is changed; then the kernel hears of it."""
        with self._server.lock:
            names = self._volume.known_names()
            yield
            names |= self._volume.known_names()
            nodes = sorted(self._volume.nodes)
        self._server.tell_of_changes(sorted(names), nodes)

    def lose_power(self, question: Question) -> Answer:
        with self._changing():
            lost_bytes, lost_names = self._volume.lose_power(random.Random(question["draw"]))
        return {"bytes": lost_bytes, "names": lost_names}

    def impair(self, question: Question) -> Answer:
        impairment = _impairment(question)
        with self._server.lock:
            self._volume.troubles.add(impairment, self._volume.used_bytes)
        if self._volume.harms_reads:
            threading.Thread(target=self._forget_while_reads_are_harmed, daemon=True).start()
        return {}

    def _forget_while_reads_are_harmed(self) -> None:
        """What the kernel keeps in memory it would not read, and so have as it was written."""
        while self._volume.harms_reads:
            self._server.forget_content()
            time.sleep(FORGET_EVERY_S)

    def relieve(self, question: Question) -> Answer:
        with self._server.lock:
            trouble = self._volume.troubles.take(_impairment(question))
        self._server.forget_content()
        return {"words": trouble.words() if trouble else "", "failed": trouble.struck if trouble else 0}

    def rot(self, question: Question) -> Answer:
        how = (Corruption if "pattern" in question["how"] else BitRot)(**question["how"])
        with self._changing():
            return {"words": rot(self._damaged(question), how, random.Random(how.draw))}

    def cut_short(self, question: Question) -> Answer:
        with self._changing():
            draw = random.Random(question["draw"])
            return {"words": cut_files_short(self._damaged(question), question["files"], draw)}

    def _damaged(self, question: Question) -> Damaged:
        return Damaged(self._volume, frozenset(question["spared"]))

    def copy(self, question: Question) -> Answer:
        with self._server.lock:
            self._images[question["name"]] = image = self._volume.image()
        return {"files": len(image)}

    def put_back(self, question: Question) -> Answer:
        """The copy of this name, or nothing at all where there is none."""
        image = self._images.pop(question.get("name", ""), [])
        before = self._volume.used_bytes
        with self._changing():
            self._volume.put_back(image, spared=frozenset(question["spared"]))
        return {"before": before, "after": self._volume.used_bytes}


VERBS: Mapping[str, Callable[[Control, Question], Answer]] = {
    verb.__name__: verb
    for verb in (
        Control.lose_power,
        Control.impair,
        Control.relieve,
        Control.rot,
        Control.cut_short,
        Control.copy,
        Control.put_back,
    )
}


def _impairment(question: Question) -> DiskImpairment:
    of = next(one for one in DISK_IMPAIRMENTS if one.kind == question["kind"])
    return of(**question["amounts"])


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
    """End everything when the starting process is gone: also for containers that have the volume bound."""
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
