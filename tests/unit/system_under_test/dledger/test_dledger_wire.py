"""DLedger's bodies: what members and clients of the public library 0.3.1 send is read, and written again as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system_under_test.dledger.client_message import (
    AppendAnswer,
    AppendRequest,
    EntriesAnswer,
    GetRequest,
    MetadataAnswer,
    MetadataRequest,
    PullRequest,
)
from system_under_test.dledger.entry import Entry
from system_under_test.dledger.json_fields import MAX_64, MalformedBody
from system_under_test.dledger.message import (
    MAX_BODY_BYTES,
    PUSHED_BYTES,
    Answer,
    Code,
    HeartbeatRequest,
    Push,
    PushAnswer,
    PushRequest,
    TakeRequest,
    TransferRequest,
    VoteAnswer,
    VoteRequest,
    VoteResult,
    pushed_bytes,
)
from system_under_test.dledger.wire import (
    Addressed,
    AnyRequest,
    RequestCode,
    decode_answer,
    decode_request,
    encode_answer,
    encode_request,
)
from system_under_test.remoting.command import MAX_FRAME_BYTES, RemotingCommand

_FIRST = '{"body":"bTA=","bodyCrc":0,"chainCrc":0,"channel":0,"index":0,"magic":1,"pos":0,"size":50,"term":1}'
_SECOND = '{"body":"bTE=","bodyCrc":0,"chainCrc":0,"channel":0,"index":1,"magic":1,"pos":50,"size":50,"term":1}'
_FIFTH = '{"body":"YzM=","bodyCrc":0,"chainCrc":0,"channel":0,"index":4,"magic":1,"pos":200,"size":50,"term":1}'
_SIXTH = '{"body":"YzQ=","bodyCrc":0,"chainCrc":0,"channel":0,"index":5,"magic":1,"pos":250,"size":50,"term":1}'
FIRST, SECOND = Entry(0, 1, 0, b"m0"), Entry(1, 1, 50, b"m1")
FIFTH, SIXTH = Entry(4, 1, 200, b"c3"), Entry(5, 1, 250, b"c4")


def _pushed(kind: str, entry: str, index: int, committed: int) -> str:
    return (
        f'{{"batch":false,"batchEntry":[],"code":200,"commitIndex":{committed},"count":1,"entry":{entry},'
        f'"firstEntryIndex":{index},"group":"g","lastEntryIndex":{index},"leaderId":"n2","localId":"n2",'
        f'"remoteId":"n0","term":1,"totalSize":0,"type":"{kind}"}}'
    )


REQUESTS: tuple[tuple[RequestCode, str, str, AnyRequest], ...] = (
    (
        RequestCode.VOTE,
        '{"code":200,"group":"g","leaderId":"n2","ledgerEndIndex":-1,"ledgerEndTerm":-1,"localId":"n2",'
        '"remoteId":"n1","term":0}',
        "n2",
        VoteRequest("n2", 0, -1, -1),
    ),
    (
        RequestCode.VOTE,
        '{"code":200,"group":"g","leaderId":"n2","ledgerEndIndex":13,"ledgerEndTerm":1,"localId":"n2",'
        '"remoteId":"n1","term":2}',
        "n2",
        VoteRequest("n2", 2, 1, 13),
    ),
    (
        RequestCode.HEART_BEAT,
        '{"code":200,"group":"g","leaderId":"n2","localId":"n2","remoteId":"n1","term":1}',
        "n2",
        HeartbeatRequest("n2", 1),
    ),
    (
        RequestCode.PUSH,
        _pushed("COMPARE", _FIRST, 0, -1),
        "n2",
        PushRequest("n2", 1, Push.COMPARE, (FIRST,), -1),
    ),
    (
        RequestCode.PUSH,
        _pushed("TRUNCATE", _FIRST, 0, 12),
        "n2",
        PushRequest("n2", 1, Push.TRUNCATE, (FIRST,), 12),
    ),
    (
        RequestCode.PUSH,
        _pushed("APPEND", _SECOND, 1, 0),
        "n2",
        PushRequest("n2", 1, Push.APPEND, (SECOND,), 0),
    ),
    (
        RequestCode.PUSH,
        '{"batch":false,"batchEntry":[],"code":200,"commitIndex":11,"count":0,"firstEntryIndex":-1,"group":"g",'
        '"lastEntryIndex":-1,"leaderId":"n2","localId":"n2","remoteId":"n1","term":1,"totalSize":0,"type":"COMMIT"}',
        "n2",
        PushRequest("n2", 1, Push.COMMIT, (), 11),
    ),
    (
        RequestCode.PUSH,
        f'{{"batch":true,"batchEntry":[{_FIFTH},{_SIXTH}],"code":200,"commitIndex":2,"count":2,"firstEntryIndex":4,'
        '"group":"g","lastEntryIndex":5,"leaderId":"n1","localId":"n1","remoteId":"n0","term":1,"totalSize":100,'
        '"type":"APPEND"}',
        "n1",
        PushRequest("n1", 1, Push.APPEND, (FIFTH, SIXTH), 2, True),
    ),
    (
        RequestCode.LEADERSHIP_TRANSFER,
        '{"code":200,"group":"g","remoteId":"n0","takeLeadershipLedgerIndex":0,"term":1,"transferId":"n0",'
        '"transfereeId":"n1"}',
        "",
        TransferRequest("n1", 1),
    ),
    (
        RequestCode.LEADERSHIP_TRANSFER,
        '{"code":200,"group":"g","leaderId":"n2","localId":"n2","remoteId":"n0","takeLeadershipLedgerIndex":13,'
        '"term":1,"transferId":"n2","transfereeId":"n0"}',
        "n2",
        TakeRequest("n2", 1, 13),
    ),
    (RequestCode.METADATA, '{"code":200,"group":"g","remoteId":"n0","term":-1}', "", MetadataRequest()),
    (
        RequestCode.APPEND,
        '{"body":"aGVsbG8=","code":200,"group":"g","remoteId":"n0","term":-1}',
        "",
        AppendRequest((b"hello",)),
    ),
    (
        RequestCode.GET,
        '{"beginIndex":0,"code":200,"group":"g","maxSize":0,"remoteId":"n0","term":-1}',
        "",
        GetRequest(0),
    ),
)


@pytest.mark.parametrize(("code", "body", "sender", "request_"), REQUESTS)
def test_what_the_public_library_asks_is_read_and_written_byte_for_byte(
    code: RequestCode, body: str, sender: str, request_: AnyRequest
) -> None:
    asked = decode_request(code, body.encode())
    assert (asked.group, asked.sender, asked.request) == ("g", sender, request_)
    assert encode_request(asked) == (code, body.encode())


VOTE = VoteRequest("n2", 1, -1, -1)
APPEND = PushRequest("n2", 1, Push.APPEND, (SECOND,))
BATCH = PushRequest("n1", 1, Push.APPEND, (FIFTH, SIXTH), 2, True)
COMMIT = PushRequest("n2", 2, Push.COMMIT, (), 13)
ANSWERS = (
    (
        VOTE,
        '{"code":200,"group":"g","leaderId":"n2","localId":"n2","remoteId":"n1","term":1,'
        '"voteResult":"REJECT_EXPIRED_LEDGER_TERM"}',
        VoteAnswer(VoteResult.REJECT_EXPIRED_LEDGER_TERM, 1),
    ),
    (
        VOTE,
        '{"code":200,"group":"g","leaderId":"n2","localId":"n2","remoteId":"n1","term":1,"voteResult":"ACCEPT"}',
        VoteAnswer(VoteResult.ACCEPT, 1),
    ),
    (
        APPEND,
        '{"beginIndex":0,"code":200,"count":1,"endIndex":1,"group":"g","index":1,"term":1}',
        PushAnswer(Code.SUCCESS, 1, 0, 1),
    ),
    (
        APPEND,
        '{"beginIndex":-1,"code":413,"count":1,"endIndex":-1,"group":"g","index":1,"term":1}',
        PushAnswer(Code.REPEATED_PUSH, 1, -1, -1),
    ),
    (
        BATCH,
        '{"beginIndex":0,"code":200,"count":2,"endIndex":5,"group":"g","index":4,"term":1}',
        PushAnswer(Code.SUCCESS, 1, 0, 5),
    ),
    (
        COMMIT,
        '{"beginIndex":0,"code":200,"count":0,"endIndex":13,"group":"g","term":2}',
        PushAnswer(Code.SUCCESS, 2, 0, 13),
    ),
    (
        AppendRequest((b"c4",)),
        '{"code":200,"group":"g","index":8,"leaderId":"n2","pos":400,"term":1}',
        AppendAnswer(code=Code.SUCCESS, term=1, leader="n2", index=8, position=400),
    ),
    (
        GetRequest(0),
        f'{{"code":200,"entries":[{_FIRST}],"group":"g","term":-1}}',
        EntriesAnswer(code=Code.SUCCESS, entries=(FIRST,)),
    ),
    (
        MetadataRequest(),
        '{"code":200,"group":"g","leaderId":"n2","peers":{"n0":"127.0.0.1:20910","n1":"127.0.0.1:20921"},"term":-1}',
        MetadataAnswer(code=Code.SUCCESS, leader="n2", peers={"n0": "127.0.0.1:20910", "n1": "127.0.0.1:20921"}),
    ),
)


@pytest.mark.parametrize(("request_", "body", "answer"), ANSWERS)
def test_what_the_public_library_answers_is_read_and_written_byte_for_byte(
    request_: AnyRequest, body: str, answer: PushAnswer
) -> None:
    assert decode_answer(request_, body.encode()) == answer
    asked = Addressed(group="g", to="n1", sender="n2", request=request_)
    assert encode_answer(asked, answer) == body.encode()


def test_answers_of_the_public_library_that_leave_out_more_than_ours() -> None:
    beat, transfer = HeartbeatRequest("n2", 1), TransferRequest("n0", 1)
    assert decode_answer(beat, b'{"code":200,"term":-1}') == Answer(Code.SUCCESS, -1)
    assert decode_answer(beat, b'{"code":416,"term":-1}') == Answer(Code.TERM_NOT_READY, -1)
    assert decode_answer(transfer, b'{"code":411,"term":1}') == Answer(Code.UNEXPECTED_ARGUMENT, 1)
    refused = b'{"code":407,"group":"g","leaderId":"n2","remoteId":"n2","term":0}'
    assert decode_answer(transfer, refused) == Answer(Code.INCONSISTENT_TERM, 0, "n2")
    outside = b'{"code":410,"entries":[],"group":"g","leaderId":"n2","remoteId":"n2","term":-1}'
    assert decode_answer(GetRequest(99), outside) == EntriesAnswer(code=Code.INDEX_OUT_OF_RANGE, leader="n2")
    follower = b'{"code":404,"group":"g","index":-1,"leaderId":"n2","pos":-1,"remoteId":"n0","term":-1}'
    assert decode_answer(AppendRequest((b"x",)), follower) == AppendAnswer(code=Code.NOT_LEADER, leader="n2")


def test_a_member_that_did_not_vote_at_all_gives_no_vote() -> None:
    assert decode_answer(VOTE, b'{"code":401,"term":1,"voteResult":"UNKNOWN"}') == Answer(Code.UNKNOWN_MEMBER, 1)
    asked = Addressed(group="h", to="n1", sender="n2", request=VOTE)
    answer = Answer(Code.UNKNOWN_GROUP, 3, "n0")
    assert decode_answer(VOTE, encode_answer(asked, answer)) == answer


def test_a_code_that_is_in_no_list_is_unknown() -> None:
    assert decode_answer(HeartbeatRequest("n2", 1), b'{"code":777}') == Answer(Code.UNKNOWN, -1)


# -- for whom it is


@pytest.mark.parametrize(
    ("group", "node", "code"),
    [
        ("g", "n1", None),
        ("h", "n1", Code.UNKNOWN_GROUP),
        ("g", "n2", Code.UNKNOWN_MEMBER),
        ("h", "n2", Code.UNKNOWN_MEMBER),
    ],
)
def test_a_request_for_others_is_refused_as_by_the_public_library(group: str, node: str, code: Code | None) -> None:
    body = b'{"group":"g","remoteId":"n1","body":"eA=="}'
    assert decode_request(RequestCode.APPEND, body).refusal(group, node) is code


def test_a_request_without_an_address_is_for_nobody() -> None:
    assert decode_request(RequestCode.METADATA, b"{}").refusal("g", "n1") is Code.UNKNOWN_MEMBER


def test_a_transfer_is_read_by_whom_it_is_for() -> None:
    fields = {"group": "g", "transferId": "n0", "transfereeId": "n1", "term": 4, "takeLeadershipLedgerIndex": 7}

    def read(to: str) -> AnyRequest:
        return decode_request(RequestCode.LEADERSHIP_TRANSFER, json.dumps({**fields, "remoteId": to}).encode()).request

    assert read("n0") == TransferRequest("n1", 4)
    assert read("n1") == TakeRequest("n0", 4, 7)
    with pytest.raises(MalformedBody, match="a transfer from 'n0' to 'n1' is not for 'n2'"):
        read("n2")


# -- what other senders may write


def test_a_batch_of_appends_is_read_as_several_bodies_and_nothing_as_none() -> None:
    assert decode_request(RequestCode.APPEND, b'{"batchMsgs":["eA==","eQ=="]}').request == AppendRequest((b"x", b"y"))
    assert decode_request(RequestCode.APPEND, b'{"batchMsgs":null,"body":""}').request == AppendRequest((b"",))
    assert decode_request(RequestCode.APPEND, b"{}").request == AppendRequest(())


def test_only_an_append_has_a_batch_and_a_commit_has_no_entry() -> None:
    def read(kind: str) -> AnyRequest:
        body = f'{{"leaderId":"n1","term":1,"type":"{kind}","entry":{_FIRST},"batchEntry":[{_FIFTH},{_SIXTH}]}}'
        return decode_request(RequestCode.PUSH, body.encode()).request

    assert read("APPEND") == PushRequest("n1", 1, Push.APPEND, (FIFTH, SIXTH), is_batch=True)
    assert read("COMPARE") == PushRequest("n1", 1, Push.COMPARE, (FIRST,))
    assert read("COMMIT") == PushRequest("n1", 1, Push.COMMIT)


def test_missing_and_other_fields_are_allowed() -> None:
    body = b'{"other":{"a":[1]},"leaderId":null,"term":3}'
    assert decode_request(RequestCode.HEART_BEAT, body).request == HeartbeatRequest("", 3)


# -- round trips

NUMBERS = st.integers(-1, MAX_64)
NAMES = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=12)
FROM_ZERO = st.integers(0, MAX_64)
ENTRY = st.builds(Entry, FROM_ZERO, FROM_ZERO, FROM_ZERO, st.binary(max_size=8), st.integers(-(2**31), 2**31 - 1))


@st.composite
def pushes(draw: st.DrawFn) -> PushRequest:
    kind, is_batch = draw(st.sampled_from(Push)), draw(st.booleans())
    is_batch = is_batch and kind is Push.APPEND
    first = draw(st.integers(0, MAX_64 - 3))
    count = 0 if kind is Push.COMMIT else draw(st.integers(1, 3)) if is_batch else 1
    entries = tuple(Entry(first + i, draw(FROM_ZERO), draw(FROM_ZERO), draw(st.binary())) for i in range(count))
    return PushRequest(draw(NAMES), draw(NUMBERS), kind, entries, draw(NUMBERS), is_batch)


ANY_REQUEST = st.one_of(
    pushes(),
    st.builds(VoteRequest, NAMES, NUMBERS, NUMBERS, NUMBERS),
    st.builds(HeartbeatRequest, NAMES, NUMBERS),
    st.builds(TransferRequest, NAMES, NUMBERS),
    st.builds(AppendRequest, st.lists(st.binary(), max_size=3).map(tuple)),
    st.builds(GetRequest, NUMBERS, st.integers(-(2**31), 2**31 - 1), st.lists(FROM_ZERO, max_size=3).map(tuple)),
    st.builds(PullRequest, NAMES, NUMBERS),
    st.builds(MetadataRequest),
)


@given(ANY_REQUEST, NAMES, NAMES, NAMES)
def test_any_request_is_read_as_it_was_written(request_: AnyRequest, group: str, to: str, sender: str) -> None:
    asked = Addressed(group=group, to=to, sender=sender, request=request_)
    assert decode_request(*encode_request(asked)) == asked


@given(st.integers(0, 5), NUMBERS, FROM_ZERO)
def test_what_a_leader_asks_its_successor_is_read_as_it_was_written(node: int, term: int, end: int) -> None:
    asked = Addressed(group="g", to=f"n{node}", sender="leader", request=TakeRequest("leader", term, end))
    assert decode_request(*encode_request(asked)) == asked


ANSWERED = st.one_of(
    st.tuples(st.just(VOTE), st.builds(VoteAnswer, st.sampled_from(VoteResult), NUMBERS)),
    st.tuples(pushes(), st.builds(PushAnswer, st.sampled_from(Code), NUMBERS, NUMBERS, NUMBERS)),
    st.tuples(
        st.sampled_from([HeartbeatRequest("n2", 1), TransferRequest("n0"), TakeRequest("n2", 1, 5), VOTE]),
        st.builds(Answer, st.sampled_from(Code), NUMBERS, st.none() | NAMES),
    ),
    st.tuples(
        st.just(AppendRequest((b"x",))),
        st.builds(
            AppendAnswer,
            code=st.sampled_from(Code),
            term=NUMBERS,
            leader=st.none() | NAMES,
            index=NUMBERS,
            position=NUMBERS,
        ),
    ),
    st.tuples(
        st.sampled_from([GetRequest(1), PullRequest("n1", 1)]),
        st.builds(
            EntriesAnswer,
            code=st.sampled_from(Code),
            term=NUMBERS,
            leader=st.none() | NAMES,
            entries=st.lists(ENTRY, max_size=2).map(tuple),
        ),
    ),
    st.tuples(
        st.just(MetadataRequest()),
        st.builds(
            MetadataAnswer,
            code=st.sampled_from(Code),
            term=NUMBERS,
            leader=st.none() | NAMES,
            peers=st.dictionaries(NAMES, NAMES, max_size=3),
        ),
    ),
)


@given(ANSWERED)
def test_any_answer_is_read_as_it_was_written(answered: tuple[AnyRequest, PushAnswer]) -> None:
    request, answer = answered
    asked = Addressed(group="g", to="n1", sender="n2", request=request)
    assert decode_answer(request, encode_answer(asked, answer)) == answer


# -- refusals


def _push_with(old: str, new: str) -> str:
    return f'{{"entry":{_FIRST.replace(old, new)}}}'


@pytest.mark.parametrize(
    ("code", "body", "reason"),
    [
        (50009, "{}", "50009 is the code of no request"),
        (RequestCode.VOTE, "", "not JSON"),
        (RequestCode.VOTE, "[]", "the body is no object"),
        (RequestCode.VOTE, '{"term":1.0}', "'term' of the body is '1.0', not a whole number"),
        (RequestCode.VOTE, '{"term":true}', "'term' of the body is 'True', not a whole number"),
        (RequestCode.VOTE, '{"term":"1"}', "'term' of the body is '1', not a whole number"),
        (RequestCode.VOTE, '{"term":-2}', "a whole number from -1"),
        (RequestCode.VOTE, '{"ledgerEndIndex":9223372036854775808}', "more than 64 bits"),
        (RequestCode.VOTE, '{"leaderId":7}', "'leaderId' of the body is '7', not a text"),
        (RequestCode.VOTE, '{"group":"\\ud800"}', "'group' of the body .* not a text"),
        (RequestCode.VOTE, '{"group":"%s"}' % ("g" * 256), "at most 255"),
        (RequestCode.PUSH, '{"type":"MERGE"}', "one of APPEND, COMMIT, COMPARE, TRUNCATE"),
        (RequestCode.PUSH, '{"entry":7}', "an entry is no object"),
        (RequestCode.PUSH, '{"entry":{}}', "an entry lacks 'index'"),
        (RequestCode.PUSH, '{"entry":{"index":0,"term":1,"pos":0}}', "an entry lacks 'body'"),
        (RequestCode.PUSH, _push_with('"size":50', '"size":51'), "'size' is not 48"),
        (RequestCode.PUSH, _push_with('"magic":1', '"magic":2'), "'magic' is not 1"),
        (RequestCode.PUSH, _push_with('"index":0', '"index":-1'), "from 0 to"),
        (RequestCode.PUSH, _push_with("bTA=", "bTA"), "'body' is 'bTA', not bytes in base64"),
        (RequestCode.PUSH, '{"batchEntry":{}}', "'batchEntry' of the body is '{}', not a list"),
        (RequestCode.PUSH, f'{{"batchEntry":[{_FIFTH},{_FIRST}]}}', "not one behind the other"),
        (RequestCode.PUSH, f'{{"batchEntry":[{_FIRST},{_FIFTH}]}}', "not one behind the other"),
        (RequestCode.APPEND, '{"batchMsgs":"eA=="}', "not a list"),
        (RequestCode.APPEND, '{"batchMsgs":[null]}', "not bytes in base64"),
        (RequestCode.APPEND, '{"body":"a b="}', "not bytes in base64"),
        (RequestCode.GET, '{"maxSize":2147483648}', "a whole number from"),
        (RequestCode.GET, '{"indexList":[-1]}', "from 0 to"),
    ],
)
def test_whatever_is_no_such_request_is_refused_with_its_reason(code: int, body: str, reason: str) -> None:
    with pytest.raises(MalformedBody, match=reason):
        decode_request(code, body.encode())


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        (VOTE, '{"voteResult":"MAYBE"}'),
        (MetadataRequest(), '{"peers":["n0"]}'),
        (MetadataRequest(), '{"peers":{"n0":7}}'),
        (GetRequest(0), '{"entries":[{}]}'),
        (HeartbeatRequest("n2", 1), '{"code":"200"}'),
        (HeartbeatRequest("n2", 1), '{"term":9223372036854775808}'),
    ],
)
def test_whatever_is_no_such_answer_is_refused(request_: AnyRequest, body: str) -> None:
    with pytest.raises(MalformedBody):
        decode_answer(request_, body.encode())


@pytest.mark.parametrize("body_bytes", [1, MAX_BODY_BYTES])
def test_a_push_of_as_many_bytes_as_it_may_have_fits_into_a_frame(body_bytes: int) -> None:
    name = "\U0001f600" * 255
    entry = Entry(MAX_64, MAX_64, MAX_64, bytes(body_bytes), -(2**31))
    entries = (entry,) * (PUSHED_BYTES // pushed_bytes(entry))
    assert entries
    request = PushRequest(name, MAX_64, Push.APPEND, entries, MAX_64, is_batch=True)
    code, body = encode_request(Addressed(group=name, to=name, sender=name, request=request))
    assert len(RemotingCommand.request(code, body=body).encode()) <= 4 + MAX_FRAME_BYTES
    assert len(body) <= sum(map(pushed_bytes, entries)) + MAX_FRAME_BYTES - PUSHED_BYTES


def test_a_body_of_one_byte_more_does_not_fit() -> None:
    assert pushed_bytes(Entry(0, 0, 0, bytes(MAX_BODY_BYTES + 1))) > PUSHED_BYTES
