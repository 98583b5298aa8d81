"""What each session guarantee alone forces.

All four say that of the versions of a key that a session knows, each but the one that is read precedes that one. They
differ in what a session knows, and in who has to respect that:

|                           | in the session's later reads | in the reads of those that read from the session |
|---------------------------|------------------------------|---------------------------------------------------|
| what the session wrote    | read your writes             | monotonic writes                                  |
| what the session has read | monotonic reads              | writes follow reads                               |

No order of sessions is taken for granted, so that the last version known does not stand for all of them. What a session
knows of a key is a chain of joints, each behind one version more than the one before it: a read then costs an edge from
a joint. Only where the version read is known itself, those known later are named one by one; twice over the same
stretch, and they contradict each other already.

Cost: for each session the keys written by those it reads from, and for each reader the sessions it reads from times
what it reads.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from checkers.kernels.columns import Bool, Int32, Int64
from checkers.transactions.history.committed import INITIAL, WRITES
from checkers.transactions.isolation.weak.accesses import NOBODY, Accesses, longer, write_of
from checkers.transactions.isolation.weak.precedence import Forced, Successors
from harness.compiled import compiled


class Known(IntEnum):
    """Of a session."""

    WRITTEN = 0
    READ = 1


class Respected(IntEnum):
    """By whom."""

    BY_ITSELF = 0
    BY_READERS = 1


def guaranteed(accesses: Accesses, known: Known, respected: Respected) -> Forced:
    rows = accesses.committed
    if respected is Respected.BY_READERS:
        readers = Successors.of(*_latest(rows.first, rows.writer, rows.session), len(accesses))
    else:
        readers = Successors(first=np.zeros(len(accesses) + 1, dtype=np.int64), target=np.zeros(0, dtype=np.int32))
    source, target, joints = _guaranteed(
        int(known),
        int(respected),
        rows.first,
        rows.key,
        rows.writer,
        accesses.definite,
        accesses.member_first,
        accesses.member,
        accesses.written_first,
        accesses.written,
        readers.first,
        readers.target,
        accesses.keys,
    )
    return Forced(source=source, target=target, joints=joints)


@compiled
def _latest(first: Int64, writer: Int32, session: Int32) -> tuple[Int32, Int32]:
    """Of each session that r reads from the latest transaction that it reads from, and r."""
    source, target = np.empty(len(writer), dtype=np.int32), np.empty(len(writer), dtype=np.int32)
    count = 0
    reader = np.zeros(session.max() + 1, dtype=np.int32)
    place = np.zeros(session.max() + 1, dtype=np.int64)
    for r in range(1, len(first) - 1):
        for i in range(first[r], first[r + 1]):
            if writer[i] <= 0:
                continue
            s = session[writer[i]]
            if reader[s] != r:
                reader[s] = r
                place[s] = count
                source[count], target[count] = writer[i], r
                count += 1
            elif source[place[s]] < writer[i]:
                source[place[s]] = writer[i]
    return source[:count].copy(), target[:count].copy()


@compiled
def _guaranteed(
    known: int,
    respected: int,
    first: Int64,
    key: Int32,
    writer: Int32,
    definite: Bool,
    member_first: Int64,
    member: Int32,
    written_first: Int64,
    written: Int32,
    reader_first: Int64,
    readers: Int32,
    keys: int,
) -> tuple[Int32, Int32, int]:
    transactions = len(first) - 1
    source, target = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    count = 0
    # Of joints: the version that each adds, the joint before it, and up to which joint those known later than its
    # version have been put before that.
    version, previous = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    reached = np.empty(1024, dtype=np.int32)
    joints = 0
    joint_of = np.full(len(written), -1, dtype=np.int32)
    """Of each write the last joint that was made for it."""
    last = np.full(keys, -1, dtype=np.int32)
    """Of each key the last joint, and the last one that any version known before was put behind."""
    covered = np.full(keys, -1, dtype=np.int32)
    reading = np.full(transactions, -1, dtype=np.int32)
    """Of each transaction the last session found to read from it."""
    for s in range(len(member_first) - 1):
        earliest = joints
        for m in range(member_first[s], member_first[s + 1]):
            t = member[m]
            for step in range(2):
                # Monotonic reads and writes are about what was known before t, read your writes too.
                if (step == 0) == (known == 1 and respected == 1):
                    begin, end = first[t], first[t + 1]
                    if known == 0:
                        end = begin + 1 if definite[t] else begin
                    for i in range(begin, end):
                        u = writer[i] if known == 1 else t
                        if u <= 0 or (known == 1 and reading[u] == s):
                            continue
                        reading[u] = s
                        needed = joints + written_first[u + 1] - written_first[u]
                        version, previous, reached = (
                            longer(version, needed),
                            longer(previous, needed),
                            longer(reached, needed),
                        )
                        needed = count + 2 * (written_first[u + 1] - written_first[u])
                        source, target = longer(source, needed), longer(target, needed)
                        for j in range(written_first[u], written_first[u + 1]):
                            k = written[j]
                            version[joints], previous[joints], reached[joints] = u, -1, -1
                            source[count], target[count] = u, transactions + joints
                            count += 1
                            if last[k] >= earliest:
                                previous[joints] = last[k]
                                source[count], target[count] = transactions + last[k], transactions + joints
                                count += 1
                            last[k] = joint_of[j] = joints
                            joints += 1
                    continue
                low, high = (m, m + 1) if respected == 0 else (reader_first[t], reader_first[t + 1])
                for n in range(low, high):
                    r = t if respected == 0 else readers[n]
                    for i in range(first[r], first[r + 1]):
                        w, k = writer[i], key[i]
                        if w == WRITES or last[k] < earliest:
                            continue
                        source, target = longer(source, count + 2), longer(target, count + 2)
                        if w == INITIAL:
                            source[count], target[count] = version[last[k]], INITIAL
                            return source[: count + 1].copy(), target[: count + 1].copy(), joints
                        at = write_of(w, k, written_first, written)
                        joint = joint_of[at] if at != NOBODY else -1
                        if joint < earliest:
                            source[count], target[count] = transactions + last[k], w
                            count += 1
                            continue
                        contradiction = False
                        if reached[joint] < 0:
                            reached[joint] = joint
                            contradiction = joint <= covered[k]
                            if previous[joint] >= 0:
                                source[count], target[count] = transactions + previous[joint], w
                                count += 1
                        other = last[k]
                        while other > reached[joint]:
                            source, target = longer(source, count + 1), longer(target, count + 1)
                            source[count], target[count] = version[other], w
                            count += 1
                            contradiction = contradiction or reached[other] >= 0
                            other = previous[other]
                        reached[joint] = last[k]
                        covered[k] = last[k] if last[k] > joint else covered[k]
                        if contradiction:
                            return source[:count].copy(), target[:count].copy(), joints
    return source[:count].copy(), target[:count].copy(), joints
