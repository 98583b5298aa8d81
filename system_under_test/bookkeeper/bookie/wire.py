"""Requests to bookies and their answers as remoting commands; numbers are big-endian, an identity is one of 64 bits.

    60001 add         bookie:8 | is recovery:1 | entry
    60002 read        bookie:8 | fences:1 | ledger:8 | entry:8                       answer: entry
    60003 read LAC    bookie:8 | fences:1 | ledger:8                                 answer: LAC:8
    60004 write LAC   bookie:8 | ledger:8 | LAC:8
    60005 list        bookie:8 | ledger:8 | first:8                                  answer: entry:8, and so on
    60006 read many   bookie:8 | ledger:8 | first:8 | last:8                         answer: entry:8 | size:4 | entry,
                                                                                     and so on

What an answer comes to is its command's code. Whatever is no such command raises MalformedBookieCommand.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from system_under_test.bookkeeper.bookie.message import (
    AddRequest,
    BookieAnswer,
    BookieRequest,
    Code,
    ListRequest,
    ReadLacRequest,
    ReadManyRequest,
    ReadRequest,
    WriteLacRequest,
)
from system_under_test.bookkeeper.entry import NOTHING
from system_under_test.remoting.command import RemotingCommand

_ADD = struct.Struct(">Q?")
_READ = struct.Struct(">Q?qq")
_READ_LAC = struct.Struct(">Q?q")
_THREE = struct.Struct(">Qqq")
_FOUR = struct.Struct(">Qqqq")
_LAC = struct.Struct(">q")
_ONE_OF_MANY = struct.Struct(">qI")
_CODES: Final = {int(code): code for code in Code}


class RequestCode(IntEnum):
    ADD = 60001
    READ = 60002
    READ_LAC = 60003
    WRITE_LAC = 60004
    LIST = 60005
    READ_MANY = 60006


class MalformedBookieCommand(ValueError):
    """A command that is no request to a bookie, or no answer of one."""


def identity_of(number: int) -> str:
    """16 hexadecimal digits."""
    return f"{number:016x}"


def _number(identity: str) -> int:
    return int(identity, 16)


def encode_request(request: BookieRequest) -> RemotingCommand:
    bookie = _number(request.bookie)
    match request:
        case AddRequest():
            code, body = RequestCode.ADD, _ADD.pack(bookie, request.is_recovery) + request.data
        case ReadRequest():
            code = RequestCode.READ
            body = _READ.pack(bookie, request.fences, request.ledger, request.entry)
        case ReadLacRequest():
            code, body = RequestCode.READ_LAC, _READ_LAC.pack(bookie, request.fences, request.ledger)
        case WriteLacRequest():
            code, body = RequestCode.WRITE_LAC, _THREE.pack(bookie, request.ledger, request.lac)
        case ListRequest():
            code, body = RequestCode.LIST, _THREE.pack(bookie, request.ledger, request.first)
        case ReadManyRequest():
            code = RequestCode.READ_MANY
            body = _FOUR.pack(bookie, request.ledger, request.first, request.last)
    return RemotingCommand.request(code, body=body)


def decode_request(command: RemotingCommand) -> BookieRequest:
    """Raises MalformedBookieCommand."""
    try:
        request = _request(command.code, command.body)
    except struct.error as error:
        raise MalformedBookieCommand(f"a request {command.code} with {len(command.body)} bytes: {error}") from error
    if not isinstance(request, AddRequest) and request.ledger < 0:
        raise MalformedBookieCommand(f"there is no ledger {request.ledger}")
    return request


def _request(code: int, body: bytes) -> BookieRequest:
    match code:
        case RequestCode.ADD:
            bookie, flag = _ADD.unpack_from(body)
            return AddRequest(bookie=identity_of(bookie), data=body[_ADD.size :], is_recovery=flag)
        case RequestCode.READ:
            bookie, flag, ledger, entry = _READ.unpack(body)
            return ReadRequest(bookie=identity_of(bookie), ledger=ledger, entry=entry, fences=flag)
        case RequestCode.READ_LAC:
            bookie, flag, ledger = _READ_LAC.unpack(body)
            return ReadLacRequest(bookie=identity_of(bookie), ledger=ledger, fences=flag)
        case RequestCode.WRITE_LAC:
            bookie, ledger, lac = _THREE.unpack(body)
            if lac < NOTHING:
                raise MalformedBookieCommand(f"{lac} is the LAC of no ledger")
            return WriteLacRequest(bookie=identity_of(bookie), ledger=ledger, lac=lac)
        case RequestCode.LIST:
            bookie, ledger, first = _THREE.unpack(body)
            return ListRequest(bookie=identity_of(bookie), ledger=ledger, first=first)
        case RequestCode.READ_MANY:
            bookie, ledger, first, last = _FOUR.unpack(body)
            return ReadManyRequest(bookie=identity_of(bookie), ledger=ledger, first=first, last=last)
        case _:
            raise MalformedBookieCommand(f"{code} is the code of no request to a bookie")


def encode_answer(request: BookieRequest, answer: BookieAnswer) -> RemotingCommand:
    body = answer.data
    if isinstance(request, ReadLacRequest):
        body = _LAC.pack(answer.lac)
    elif isinstance(request, ListRequest):
        body = struct.pack(f">{len(answer.entries)}q", *answer.entries)
    elif isinstance(request, ReadManyRequest):
        body = b"".join(_ONE_OF_MANY.pack(entry, len(data)) + data for entry, data in answer.many)
    return RemotingCommand.response(answer.code, body=body)


def decode_answer(request: BookieRequest, command: RemotingCommand) -> BookieAnswer:
    """To this request. Raises MalformedBookieCommand."""
    code, body = _CODES.get(command.code), command.body
    if code is None:
        raise MalformedBookieCommand(f"a bookie answers {command.code}: {command.remark}")
    try:
        match request:
            case ReadLacRequest():
                return BookieAnswer(code, lac=_LAC.unpack(body)[0])
            case ListRequest():
                return BookieAnswer(code, entries=struct.unpack(f">{len(body) // 8}q", body))
            case ReadManyRequest():
                return BookieAnswer(code, many=tuple(_many(body)))
            case _:
                return BookieAnswer(code, data=body)
    except struct.error as error:
        raise MalformedBookieCommand(f"an answer with {len(body)} bytes: {error}") from error


def _many(body: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(body):
        entry, size = _ONE_OF_MANY.unpack_from(body, at)
        at += _ONE_OF_MANY.size
        if len(body) < at + size:
            raise MalformedBookieCommand(f"an answer ends within entry {entry}")
        yield entry, body[at : at + size]
        at += size
