"""What members of the public library log when their part changes (DLedgerLeaderElector): patterns, with the term.

RocketMQ's controllers of before 5.2 elect by the same library, and log the same.
"""

from __future__ import annotations

LEADS = r"\[ChangeRoleToLeader\] from term: (?P<term>\d+) and currTerm: (?P=term)\b"
FOLLOWS = r"\[ChangeRoleToFollower\] from term: (?P<term>\d+) leaderId: \S* and currTerm: (?P=term)\b"
STANDS = r"\[ChangeRoleToCandidate\] from term: \d+ and currTerm: (?P<term>\d+)"
"""It stands for election; the term is the one that it leaves."""
