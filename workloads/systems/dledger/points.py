"""The points that members of a group reach: moments at which faults may strike."""

from __future__ import annotations

from collections.abc import Mapping

POINTS: Mapping[str, str] = {
    "about-to-persist-vote": "a member is about to write its term and vote",
    "vote-persisted": "a member's term and vote are durable, and no message says so yet",
    "became-leader": "a member has won an election; its first entry is written, and nothing is sent yet",
    "lost-leadership": "a member does not lead any more",
    "append-written": "a leader has written what a client appends, and has not pushed it yet",
    "push-acknowledged": "a member is about to tell its leader up to where it has the same log",
    "append-committed": "a leader knows that a majority has what a client appended, and has not answered yet",
    "about-to-push-truncate": "a leader is about to send a TRUNCATE",
    "about-to-truncate": "a member has got a TRUNCATE, and has not obeyed yet",
    "truncated": "a member has cut its log, and has not answered yet",
    "about-to-persist-log": "a member is about to make its log durable",
    "log-persisted": "a member's log is durable, and no message says so yet",
    "committed": "a member has learned that a majority has an entry",
    "took-over": "a member stands in the place of its leader, which has asked for that, and nothing is sent yet",
    "transfer-begun": "a leader takes no more appends, and is about to ask another member to lead",
}
