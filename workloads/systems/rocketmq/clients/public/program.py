"""The public client as a program: clients are opened, asked and closed by lines of JSON, and each line is answered.

    python -P program.py

It runs by its path alone and imports nothing of the project. The client logs below its home directory; whatever it
prints goes where errors go. A request is `{"id": number, "client": name, "do": …}`:
  open {endpoints, topic, group, timeout_s}, then send {body}, receive {most, invisible_s, wait_s}, ack {message} and
  change {message, invisible_s} of what it received, and close, which answers at once.
An answer is `{"id": number, …}` with `"ok"` and what came of it, or with one of these:
  {"unsent": words}    nothing was sent
  {"status": number}   a proxy refused it, by this code of the interface
  {"rpc": name}        the call failed, with this code of gRPC
  {"other": words}     anything else
Each request has a thread of its own; of one client there is one at a time. The end of the input is the end of the
program, at once, whatever is still under way.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from queue import Empty, SimpleQueue
from typing import Any

from grpc import RpcError
from rocketmq import ClientConfiguration, Credentials, FilterExpression, Message, Producer, SimpleConsumer

Request = Mapping[str, Any]


class Unsent(Exception):
    """Nothing was sent."""


class Informed(Producer):  # type: ignore[misc]
    """Says which settings a proxy gave it: until then it sends again by itself what it could not send."""

    def __init__(self, *arguments: Any) -> None:
        self._attempts: SimpleQueue[int] = SimpleQueue()
        super().__init__(*arguments)

    def reset_setting(self, settings: Any) -> None:
        super().reset_setting(settings)
        self._attempts.put(settings.backoff_policy.max_attempts)

    def require_one_attempt(self, within_s: float) -> None:
        """Raises Unsent."""
        try:
            allowed = self._attempts.get(timeout=within_s)
        except Empty:
            raise Unsent(f"the proxy has not sent its settings within {within_s} s") from None
        if allowed != 1:
            raise Unsent(f"the proxy has clients send up to {allowed} times, which hides what they sent")


class Popping:
    """A producer, and a consumer that pops. Raises Unsent where the proxy cannot be reached."""

    def __init__(self, request: Request) -> None:
        self._topic, timeout_s = request["topic"], request["timeout_s"]
        configuration = ClientConfiguration(request["endpoints"], Credentials(), request_timeout=timeout_s)
        self._held: dict[str, Any] = {}
        self._producer = Informed(configuration, (self._topic,))
        self._consumer = SimpleConsumer(configuration, request["group"], {self._topic: FilterExpression()}, 0)
        self._producer.startup()
        try:
            self._producer.require_one_attempt(timeout_s)
            self._consumer.startup()
        except BaseException:
            self._producer.shutdown()
            raise

    def send(self, request: Request) -> None:
        message = Message()
        message.topic, message.body = self._topic, request["body"].encode()
        self._producer.send(message)

    def receive(self, request: Request) -> list[tuple[str, int]]:
        """The body of each message, and which of its deliveries this is."""
        self._consumer.await_duration = request["wait_s"]
        messages = self._consumer.receive(request["most"], request["invisible_s"])
        self._held.update({message.body.decode(): message for message in messages})
        return [(message.body.decode(), message.delivery_attempt) for message in messages]

    def ack(self, request: Request) -> None:
        self._consumer.ack(self._held[request["message"]])

    def change(self, request: Request) -> None:
        self._consumer.change_invisible_duration(self._held[request["message"]], request["invisible_s"])

    def shutdown(self) -> None:
        self._producer.shutdown()
        self._consumer.shutdown()


class Clients:
    """By their names; what is opened after it was closed is shut down at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[str, Popping] = {}
        self._closed: set[str] = set()

    def answer(self, request: Request) -> object:
        name, do = request["client"], request["do"]
        if do == "open":
            self._open(name, Popping(request))
        elif do == "close":
            self._close(name)
        else:
            return getattr(self._clients[name], do)(request)
        return None

    def _open(self, name: str, client: Popping) -> None:
        with self._lock:
            is_wanted = name not in self._closed
            if is_wanted:
                self._clients[name] = client
        if not is_wanted:
            client.shutdown()

    def _close(self, name: str) -> None:
        with self._lock:
            self._closed.add(name)
            client = self._clients.pop(name, None)
        if client is not None:
            threading.Thread(target=client.shutdown, daemon=True).start()


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lock, clients = threading.Lock(), Clients()

    def serve(request: Request) -> None:
        try:
            answer: Mapping[str, Any] = {"ok": clients.answer(request)}
        except Exception as error:  # noqa: BLE001 - whatever the client raises is told
            answer = describe(error)
        line = json.dumps({"id": request["id"], **answer})
        with lock:
            answers.write(f"{line}\n")
            answers.flush()

    for line in sys.stdin:
        threading.Thread(target=serve, args=(json.loads(line),), daemon=True).start()
    os._exit(0)


def describe(error: Exception) -> Mapping[str, Any]:
    if isinstance(error, Unsent):
        return {"unsent": str(error)}
    if isinstance(error, RpcError):
        return {"rpc": error.code().name, "words": str(error.details())}
    code = getattr(error, "code", None)
    return {"other": repr(error)} if code is None else {"status": int(code), "words": str(error)}


if __name__ == "__main__":
    main()
