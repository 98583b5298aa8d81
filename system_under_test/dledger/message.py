"""What members and clients of a DLedger group ask each other, and the answers.

Codes and results have the names and numbers of DLedger 0.3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

from system_under_test.dledger.entry import NOTHING, Entry

PUSHED_BYTES: Final = 16 * 1024 * 1024 - 64 * 1024
"""A push has entries of at most so many bytes, as `pushed_bytes` counts them: with all else they fit into a frame."""
_PUSHED_HEAD_BYTES: Final = 200
MAX_BODY_BYTES: Final = (PUSHED_BYTES - _PUSHED_HEAD_BYTES) // 4 * 3
"""A longer body would fit into no push."""


class Code(IntEnum):
    UNKNOWN = -1
    """Any other one than these."""
    SUCCESS = 200
    TIMEOUT = 300
    METADATA_ERROR = 301
    NETWORK_ERROR = 302
    UNSUPPORTED = 303
    UNKNOWN_GROUP = 400
    UNKNOWN_MEMBER = 401
    UNEXPECTED_MEMBER = 402
    EXPIRED_TERM = 403
    NOT_LEADER = 404
    NOT_FOLLOWER = 405
    INCONSISTENT_STATE = 406
    INCONSISTENT_TERM = 407
    INCONSISTENT_INDEX = 408
    INCONSISTENT_LEADER = 409
    INDEX_OUT_OF_RANGE = 410
    UNEXPECTED_ARGUMENT = 411
    REPEATED_REQUEST = 412
    REPEATED_PUSH = 413
    DISK_ERROR = 414
    DISK_FULL = 415
    TERM_NOT_READY = 416
    FALL_BEHIND_TOO_MUCH = 417
    TAKE_LEADERSHIP_FAILED = 418
    INDEX_LESS_THAN_LOCAL_BEGIN = 419
    REQUEST_WITH_EMPTY_BODYS = 420
    INTERNAL_ERROR = 500
    TERM_CHANGED = 501
    WAIT_QUORUM_ACK_TIMEOUT = 502
    LEADER_PENDING_FULL = 503
    ILLEGAL_MEMBER_STATE = 504
    LEADER_NOT_READY = 505
    LEADER_TRANSFERRING = 506


class VoteResult(Enum):
    ACCEPT = "ACCEPT"
    REJECT_UNKNOWN_LEADER = "REJECT_UNKNOWN_LEADER"
    REJECT_UNEXPECTED_LEADER = "REJECT_UNEXPECTED_LEADER"
    REJECT_EXPIRED_VOTE_TERM = "REJECT_EXPIRED_VOTE_TERM"
    REJECT_ALREADY_VOTED = "REJECT_ALREADY_VOTED"
    REJECT_ALREADY_HAS_LEADER = "REJECT_ALREADY_HAS_LEADER"
    REJECT_TERM_NOT_READY = "REJECT_TERM_NOT_READY"
    REJECT_TERM_SMALL_THAN_LEDGER = "REJECT_TERM_SMALL_THAN_LEDGER"
    REJECT_EXPIRED_LEDGER_TERM = "REJECT_EXPIRED_LEDGER_TERM"
    REJECT_SMALL_LEDGER_END_INDEX = "REJECT_SMALL_LEDGER_END_INDEX"
    REJECT_TAKING_LEADERSHIP = "REJECT_TAKING_LEADERSHIP"


class Push(Enum):
    APPEND = "APPEND"
    COMMIT = "COMMIT"
    COMPARE = "COMPARE"
    TRUNCATE = "TRUNCATE"


@dataclass(frozen=True, slots=True)
class VoteRequest:
    candidate: str
    term: int
    end_term: int
    """The term of the candidate's last entry."""
    end: int


@dataclass(frozen=True, slots=True)
class VoteAnswer:
    result: VoteResult
    term: int
    """The term of who answers."""


@dataclass(frozen=True, slots=True)
class HeartbeatRequest:
    leader: str
    term: int


@dataclass(frozen=True, slots=True)
class PushRequest:
    leader: str
    term: int
    kind: Push
    entries: tuple[Entry, ...] = ()
    """COMPARE and TRUNCATE have one, COMMIT has none."""
    committed: int = NOTHING
    is_batch: bool = False
    """Whether the entries are sent as a batch, which members of the first version do not understand."""


def pushed_bytes(entry: Entry) -> int:
    """At most so much of a push is this entry: JSON, with the body in base64."""
    return _PUSHED_HEAD_BYTES + (len(entry.body) + 2) // 3 * 4


@dataclass(frozen=True, slots=True)
class TransferRequest:
    """From an administrator to the leader: hand over to this member."""

    to: str
    term: int = NOTHING
    """The term in which the administrator has seen it lead. The public library's leader refuses any other one than its
    own."""


@dataclass(frozen=True, slots=True)
class TakeRequest:
    """From the leader to the member to which it hands over."""

    leader: str
    term: int
    end: int
    """The leader's last index, which the member has to reach before it stands."""


@dataclass(frozen=True, slots=True)
class Answer:
    """To whatever has no answer of its own kind."""

    code: Code
    term: int
    leader: str | None = None
    """The leader of the term, as far as who answers knows."""


@dataclass(frozen=True, slots=True)
class PushAnswer:
    code: Code
    term: int
    begin: int
    end: int
    """First and last index of who answers, afterwards."""


Request = VoteRequest | HeartbeatRequest | PushRequest | TransferRequest | TakeRequest
AnyAnswer = VoteAnswer | Answer | PushAnswer
