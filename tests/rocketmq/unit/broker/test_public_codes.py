"""What public clients are told: each refusal of ours in a code upon which their producers ask again."""

from __future__ import annotations

import pytest

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import Language, RemotingCommand
from system_under_test.rocketmq.broker.public_codes import use_public_code

RETRIED = {
    "Java": {ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.SYSTEM_ERROR}
    | {ResponseCode.SYSTEM_BUSY, ResponseCode.NO_PERMISSION},
    "Go": {ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.SYSTEM_ERROR}
    | {ResponseCode.NO_PERMISSION},
}
"""By the public producers, unless they are set up otherwise."""


def public(code: ResponseCode, language: Language, remark: str | None = "why") -> RemotingCommand:
    request = RemotingCommand.request(10)
    request.language = language
    answer = RemotingCommand.response(code, {"a": "b"}, b"body", remark)
    use_public_code(request, answer)
    return answer


@pytest.mark.parametrize("language", [Language.JAVA, Language.GO, Language.CPP])
@pytest.mark.parametrize(
    "code", [ResponseCode.NOT_MASTER, ResponseCode.DISK_FULL, ResponseCode.IN_SYNC_REPLICAS_NOT_ENOUGH]
)
def test_what_was_refused_before_anything_was_written_is_asked_again(code, language):
    answer = public(code, language)
    assert all(answer.code in codes for codes in RETRIED.values())
    assert answer.remark.endswith(": why")
    assert public(code, language, None).remark


@pytest.mark.parametrize("code", [ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.FLUSH_SLAVE_TIMEOUT])
def test_what_may_have_been_written_is_not_asked_again(code):
    for language in Language:
        assert public(code, language).code == code
    assert all(code not in codes for codes in RETRIED.values())


def test_the_own_clients_hear_the_own_codes():
    for code in ResponseCode:
        answer = public(code, Language.OTHER)
        assert (answer.code, answer.remark) == (code, "why")
