"""A log read by etcd's watches, against a gateway of a few lines: what is asked, and what is made of what is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest
from aiohttp import web

from harness.errors import OperationError
from harness.operation import Operation
from workloads.systems.etcd.gateway import Gateway, packed
from workloads.systems.etcd.watch import WatchLogClient

Events = Sequence[tuple[str, int]]
"""(key, revision) of what was put."""


LOG = packed("log")


class Member:
    """Answers puts with the next revision, ranges with nothing, and watches with the events that it has, in pieces."""

    def __init__(
        self,
        events: Events = (),
        *,
        ends: bool = False,
        refusal: Mapping[str, Any] | None = None,
        committed: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """`committed`: what ranges are answered with in the place of all keys."""
        self.events, self.revision = list(events), 100
        self.ends, self.refusal, self.committed = ends, refusal, committed
        self.asked: list[tuple[str, Any]] = []

    async def serve(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        self.asked.append((request.path.removeprefix("/v3/"), asked))
        if request.path == "/v3/watch":
            return await self._watch(request, int(asked["create_request"]["start_revision"]))
        if request.path == "/v3/kv/put":
            self.revision += 1
            self.events.append((asked["key"], self.revision))
            return web.json_response({"header": {"revision": str(self.revision)}})
        kvs = self.committed if self.committed is not None else [{"key": key} for key, _ in self.events]
        return web.json_response({"kvs": list(kvs)})

    async def _watch(self, request: web.Request, since: int) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        told = [
            {"kv": {"key": key, "mod_revision": str(at)}} for key, at in self.events if at >= since and key[:4] == LOG
        ]
        results = [{"created": True}, self.refusal or {"events": told}]
        line = "".join(json.dumps({"result": one}) + "\n" for one in results).encode()
        for start in range(0, len(line), 50):
            await answer.write(line[start : start + 50])
        if not self.ends:
            await asyncio.sleep(60)
        return answer


def put(message: int, revision: int) -> tuple[str, int]:
    return packed(f"log/t/0/{message}"), revision


def with_client(member: Member, use: Callable[[WatchLogClient], Coroutine[Any, Any, None]]) -> None:
    async def served() -> None:
        application = web.Application()
        application.router.add_post("/{tail:.*}", member.serve)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = f"127.0.0.1:{runner.addresses[0][1]}"
        client = WatchLogClient("e1", lambda name: Gateway(name, address), "group")
        try:
            await use(client)
        finally:
            await client.close()
            await runner.cleanup()

    asyncio.run(served())


async def ask(client: WatchLogClient, f: str, offset: int | None = None, message: int | None = None) -> Any:
    value = {"message": message, "offset": offset, "messages": None}
    operation = Operation(process=0, type="invoke", f=f, key="t/0", value=value)
    return (await client.invoke(operation._replace(node="e2" if f in ("final-poll", "caught-up") else None))).value


def messages_at(*messages: tuple[int, int]) -> list[Mapping[str, int]]:
    return [{"offset": revision, "message": message} for message, revision in messages]


def test_a_message_has_the_revision_of_its_put_as_offset() -> None:
    async def use(client: WatchLogClient) -> None:
        assert (await ask(client, "send", message=7))["offset"] == 101

    member = Member()
    with_client(member, use)
    assert member.asked == [("kv/put", {"key": packed("log/t/0/7")})]


def test_a_consumer_reads_what_a_watch_tells_and_commits_it_before_it_reads_on() -> None:
    async def use(client: WatchLogClient) -> None:
        first = await ask(client, "poll")
        assert (first["messages"], first["offset"], first["resumed"]) == (messages_at((7, 5), (8, 9)), 10, 1)
        second = await ask(client, "poll")
        assert (second["messages"], second["offset"], second["resumed"]) == ([], 10, None)

    member = Member([put(7, 5), put(8, 9)], committed=())
    with_client(member, use)
    assert [path for path, _ in member.asked] == ["kv/range", "watch", "kv/put"]
    assert member.asked[2][1] == {"key": packed("group/t/0"), "value": packed("10")}


def test_a_final_read_tells_all_before_a_mark_of_its_own() -> None:
    async def use(client: WatchLogClient) -> None:
        read = await ask(client, "final-poll", offset=6)
        assert (read["messages"], read["offset"]) == (messages_at((8, 9)), 10)

    with_client(Member([put(7, 5), put(8, 9)]), use)


def test_a_watch_that_leaves_an_event_out_is_seen_and_one_that_ends_is_opened_again() -> None:
    async def use(client: WatchLogClient) -> None:
        client._positions["t/0"] = client._committed["t/0"] = 3
        assert (await ask(client, "poll"))["messages"] == messages_at((8, 9))
        with pytest.raises(OperationError) as failed:
            await ask(client, "poll")
        assert (failed.value.error.code, failed.value.error.definite) == ("read-failed", True)
        member.events.append(put(9, 12))
        assert (await ask(client, "poll"))["messages"] == messages_at((9, 12))

    member = Member([put(8, 9)], ends=True)
    with_client(member, use)
    begun = [int(asked["create_request"]["start_revision"]) for path, asked in member.asked if path == "watch"]
    assert begun == [3, 10]


def test_a_watch_that_is_refused_is_an_error_and_not_an_empty_answer() -> None:
    async def use(client: WatchLogClient) -> None:
        client._positions["t/0"] = client._committed["t/0"] = 3
        with pytest.raises(OperationError, match="compacted"):
            await ask(client, "poll")

    with_client(Member(refusal={"canceled": True, "cancel_reason": "the revision has been compacted"}, ends=True), use)


def test_nobody_is_caught_up_while_there_is_a_message_behind_and_marks_are_none() -> None:
    async def use(client: WatchLogClient) -> None:
        assert (await ask(client, "caught-up", offset=6))["offset"] == 6
        member.events.append(put(8, 9))
        with pytest.raises(OperationError, match="more to be read"):
            await ask(client, "caught-up", offset=6)

    member = Member([(packed("log/t/0/mark"), 7)])
    with_client(member, use)
    assert member.asked[0][1]["min_mod_revision"] == "6"
