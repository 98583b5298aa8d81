"""DLedger's requests and answers as bodies of remoting commands, which look as those of the public library.

Each body has the fields of the library's base class: the group, for whom it is (`remoteId`), who speaks (`localId`), a
code, a leader and a term. All of an answer is in its body: the command's own code says only that there is one, and is
`Code.SUCCESS` then. Whatever is no such body raises MalformedBody.

Source: DLedger 0.3.1, from what its members send each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from system_under_test.dledger.client_message import (
    AppendAnswer,
    AppendRequest,
    ClientAnswer,
    ClientRequest,
    EntriesAnswer,
    GetRequest,
    MetadataAnswer,
    MetadataRequest,
    PullRequest,
)
from system_under_test.dledger.entry import NOTHING
from system_under_test.dledger.json_fields import (
    MAX_32,
    Fields,
    MalformedBody,
    encode_bytes,
    encode_entry,
    read_fields,
    write_fields,
)
from system_under_test.dledger.message import (
    Answer,
    AnyAnswer,
    Code,
    HeartbeatRequest,
    Push,
    PushAnswer,
    PushRequest,
    Request,
    TakeRequest,
    TransferRequest,
    VoteAnswer,
    VoteRequest,
    VoteResult,
)


class RequestCode(IntEnum):
    METADATA = 50000
    APPEND = 50001
    GET = 50002
    VOTE = 51001
    HEART_BEAT = 51002
    PULL = 51003
    PUSH = 51004
    LEADERSHIP_TRANSFER = 51005


AnyRequest = Request | ClientRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressed:
    """A request, and between whom it goes."""

    group: str
    to: str
    sender: str = ""
    """Clients have no id."""
    request: AnyRequest

    def refusal(self, group: str, node: str) -> Code | None:
        """Why this member of this group has to refuse it, if it has to."""
        if self.to != node:
            return Code.UNKNOWN_MEMBER
        return None if self.group == group else Code.UNKNOWN_GROUP


# -- requests


def encode_request(message: Addressed) -> tuple[RequestCode, bytes]:
    code, fields = _request_fields(message.request, message.to)
    base = {"group": message.group, "remoteId": message.to, "localId": message.sender or None, "code": Code.SUCCESS}
    return code, write_fields({"term": NOTHING, **base, **fields})


def _request_fields(request: AnyRequest, to: str) -> tuple[RequestCode, Mapping[str, object]]:
    match request:
        case VoteRequest(candidate, term, end_term, end):
            own: dict[str, object] = {"ledgerEndIndex": end, "ledgerEndTerm": end_term}
            return RequestCode.VOTE, {"leaderId": candidate, "term": term, **own}
        case HeartbeatRequest(leader, term):
            return RequestCode.HEART_BEAT, {"leaderId": leader, "term": term}
        case PushRequest():
            return RequestCode.PUSH, _push_fields(request)
        case TransferRequest(transferee, term):
            own = {"transferId": to, "transfereeId": transferee, "takeLeadershipLedgerIndex": 0}
            return RequestCode.LEADERSHIP_TRANSFER, {"term": term, **own}
        case TakeRequest(leader, term, end):
            own = {"transferId": leader, "transfereeId": to, "takeLeadershipLedgerIndex": end}
            return RequestCode.LEADERSHIP_TRANSFER, {"leaderId": leader, "term": term, **own}
        case AppendRequest((body,)):
            return RequestCode.APPEND, {"body": encode_bytes(body)}
        case AppendRequest(bodies):
            return RequestCode.APPEND, {"batchMsgs": list(map(encode_bytes, bodies))}
        case GetRequest(begin, max_bytes, indices):
            own = {"maxSize": max_bytes, "indexList": list(indices) or None}
            return RequestCode.GET, {"beginIndex": None if begin == NOTHING else begin, **own}
        case PullRequest(node, begin):
            return RequestCode.PULL, {"nodeId": node, "beginIndex": begin}
        case MetadataRequest():
            return RequestCode.METADATA, {}


def _push_fields(request: PushRequest) -> Mapping[str, object]:
    entries = request.entries
    encoded = list(map(encode_entry, entries))
    is_batch = request.is_batch and bool(entries)
    return {
        "leaderId": request.leader,
        "term": request.term,
        "type": request.kind.value,
        "commitIndex": request.committed,
        "entry": encoded[0] if encoded and not is_batch else None,
        "batchEntry": encoded if is_batch else [],
        "batch": is_batch,
        "count": len(entries),
        "firstEntryIndex": entries[0].index if entries else NOTHING,
        "lastEntryIndex": entries[-1].index if entries else NOTHING,
        "totalSize": sum(entry.size for entry in entries) if is_batch else 0,
    }


def decode_request(code: int, body: bytes) -> Addressed:
    """Whether it is for this member of this group, `refusal` says. Raises MalformedBody."""
    if code not in _REQUESTS:
        raise MalformedBody(f"{code} is the code of no request of DLedger's")
    fields = read_fields(body)
    return Addressed(
        group=fields.text("group"),
        to=fields.text("remoteId"),
        sender=fields.text("localId"),
        request=_REQUESTS[code](fields),
    )


def _vote(fields: Fields) -> VoteRequest:
    ends = fields.integer("ledgerEndTerm"), fields.integer("ledgerEndIndex")
    return VoteRequest(fields.text("leaderId"), fields.integer("term"), *ends)


def _heartbeat(fields: Fields) -> HeartbeatRequest:
    return HeartbeatRequest(fields.text("leaderId"), fields.integer("term"))


def _push(fields: Fields) -> PushRequest:
    kind = fields.choice("type", Push.APPEND)
    entries = fields.entries("batchEntry") if kind is Push.APPEND else ()
    is_batch = bool(entries)
    single = fields.entry("entry")
    if single is not None and not is_batch and kind is not Push.COMMIT:
        entries = (single,)
    if any(after.index != before.index + 1 for before, after in pairwise(entries)):
        raise MalformedBody("the entries of a push are not one behind the other")
    committed = fields.integer("commitIndex")
    return PushRequest(fields.text("leaderId"), fields.integer("term"), kind, entries, committed, is_batch)


def _transfer(fields: Fields) -> TransferRequest | TakeRequest:
    """Of either kind, as it is for the one that hands over or for the one that takes."""
    here, leader, to = (fields.text(name) for name in ("remoteId", "transferId", "transfereeId"))
    term = fields.integer("term")
    if here == leader:
        return TransferRequest(to, term)
    if here != to:
        raise MalformedBody(f"a transfer from {leader!r} to {to!r} is not for {here!r}")
    return TakeRequest(leader, term, fields.integer("takeLeadershipLedgerIndex", 0))


def _append(fields: Fields) -> AppendRequest:
    if fields.has("batchMsgs") or not fields.has("body"):
        return AppendRequest(fields.bodies("batchMsgs"))
    return AppendRequest((fields.data("body"),))


def _get(fields: Fields) -> GetRequest:
    max_bytes = fields.integer("maxSize", 0, low=-MAX_32 - 1, high=MAX_32)
    return GetRequest(fields.integer("beginIndex"), max_bytes, fields.indices("indexList"))


def _pull(fields: Fields) -> PullRequest:
    return PullRequest(fields.text("nodeId"), fields.integer("beginIndex"))


_REQUESTS: Mapping[int, Callable[[Fields], AnyRequest]] = {
    RequestCode.METADATA: lambda _: MetadataRequest(),
    RequestCode.APPEND: _append,
    RequestCode.GET: _get,
    RequestCode.VOTE: _vote,
    RequestCode.HEART_BEAT: _heartbeat,
    RequestCode.PULL: _pull,
    RequestCode.PUSH: _push,
    RequestCode.LEADERSHIP_TRANSFER: _transfer,
}


# -- answers


def encode_answer(asked: Addressed, answer: AnyAnswer | ClientAnswer) -> bytes:
    """An `Answer` fits any request."""
    own: Mapping[str, object]
    match answer:
        case VoteAnswer(result):
            ids = {"localId": asked.sender or None, "remoteId": asked.to}
            own = {"code": Code.SUCCESS, "voteResult": result.value, "leaderId": _candidate(asked.request), **ids}
        case PushAnswer():
            own = {"code": answer.code, **_push_answer_fields(asked.request, answer)}
        case AppendAnswer():
            own = {"code": answer.code, "leaderId": answer.leader, "index": answer.index, "pos": answer.position}
        case EntriesAnswer():
            entries = list(map(encode_entry, answer.entries))
            own = {"code": answer.code, "leaderId": answer.leader, "entries": entries}
        case MetadataAnswer():
            own = {"code": answer.code, "leaderId": answer.leader, "peers": dict(answer.peers)}
        case Answer():
            own = {"code": answer.code, "leaderId": answer.leader}
    return write_fields({"group": asked.group, "term": answer.term, **own})


def _candidate(request: AnyRequest) -> str | None:
    return request.candidate if isinstance(request, VoteRequest) else None


def _push_answer_fields(request: AnyRequest, answer: PushAnswer) -> Mapping[str, object]:
    """A leader of the public library goes by the index and the count that it sent itself."""
    entries = request.entries if isinstance(request, PushRequest) else ()
    ends = {"beginIndex": answer.begin, "endIndex": answer.end}
    return {**ends, "count": len(entries), "index": entries[0].index if entries else None}


def decode_answer(request: AnyRequest, body: bytes) -> AnyAnswer | ClientAnswer:
    """To this request. A vote that was not counted at all is an `Answer`. Raises MalformedBody."""
    fields = read_fields(body)
    code, term, leader = _code(fields), fields.integer("term"), fields.text("leaderId") or None
    match request:
        case VoteRequest() if fields.text("voteResult") not in ("", "UNKNOWN"):
            return VoteAnswer(fields.choice("voteResult", VoteResult.ACCEPT), term)
        case PushRequest():
            return PushAnswer(code, term, fields.integer("beginIndex"), fields.integer("endIndex"))
        case AppendRequest():
            index, position = fields.integer("index"), fields.integer("pos")
            return AppendAnswer(code=code, term=term, leader=leader, index=index, position=position)
        case GetRequest() | PullRequest():
            return EntriesAnswer(code=code, term=term, leader=leader, entries=fields.entries("entries"))
        case MetadataRequest():
            return MetadataAnswer(code=code, term=term, leader=leader, peers=fields.texts("peers"))
        case _:
            return Answer(code, term, leader)


def _code(fields: Fields) -> Code:
    number = fields.integer("code", Code.SUCCESS, low=-MAX_32 - 1, high=MAX_32)
    try:
        return Code(number)
    except ValueError:
        return Code.UNKNOWN
