"""What each session guarantee alone forces.

All four say: of the versions of a key that a session knows, all others precede the one that is read. They differ in
what a session knows, and in which reads have to respect that:

|                           | in the session's later reads | in the reads of those that read from the session |
|---------------------------|------------------------------|---------------------------------------------------|
| what the session wrote    | read your writes             | monotonic writes                                  |
| what the session has read | monotonic reads              | writes follow reads                               |

The order of a session is not part of the order here, so the last version known does not stand for all of them. What a
session knows of a key is a chain of joints: each comes behind one more version than the joint before it, so a read
costs one edge from a joint. Only if the version read is known itself, an edge from each version known later is added.
If that happens twice for the same versions, they already contradict each other.

Cost: for each session the keys written by those it reads from, and for each reader the sessions it reads from times
what it reads.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import NO_INDEX, Int32, Int64
from checkers.transactions.history.committed import INITIAL, WRITES
from checkers.transactions.orders.weak.accesses import Accesses, Columns, columns_of, longer, write_of
from checkers.transactions.orders.weak.precedence import Forced, Successors
from harness.compiled import compiled, inlined


class SessionKnowledge(IntEnum):
    """What a session knows: the versions that it wrote, or those that it has read."""

    WRITTEN = 0
    READ = 1


class Respected(IntEnum):
    """Which reads respect what a session knows: its own, or those of transactions that read from it."""

    BY_ITSELF = 0
    BY_READERS = 1


READ, BY_READERS = int(SessionKnowledge.READ), int(Respected.BY_READERS)


def guaranteed(accesses: Accesses, knowledge: SessionKnowledge, respected: Respected) -> Forced:
    rows = accesses.committed
    if respected is Respected.BY_READERS:
        readers = Successors.of(*_latest(rows.first, rows.writer, rows.session), len(accesses))
    else:
        readers = Successors.none(len(accesses))
    source, target, joints = _guaranteed(int(knowledge), int(respected), columns_of(accesses), readers)
    return Forced(source=source, target=target, joints=joints)


class _Joints(NamedTuple):
    """The joints of all sessions. Each stands for the versions of a key that a session knew at some moment."""

    version: Int32
    """The transaction that wrote the version that each joint adds."""
    previous: Int32
    """The joint before each, or -1."""
    reached: Int32
    """The last joint of which the version has been put before this joint's version although it was known later, or
    -1."""


class _State(NamedTuple):
    columns: Columns
    joint_of: Int32
    """int32[writes]: the last joint that was made for each write, or -1."""
    last: Int32
    """int32[keys]: the last joint of each key, or -1."""
    covered: Int32
    """int32[keys]: the last joint that a version known before it was put behind, or -1."""
    reading: Int32
    """int32[transactions]: the last session found to read from each, or -1."""
    used: Int64
    """int64[1]: how many joints there are."""


@compiled
def _latest(first: Int64, writer: Int32, session: Int32) -> tuple[Int32, Int32]:
    """(writer, reader) pairs: for each session that a reader r reads from, the latest of its transactions read, and
    r."""
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
def _begun(columns: Columns) -> _State:
    return _State(
        columns,
        np.full(len(columns.written), -1, dtype=np.int32),
        np.full(columns.keys, -1, dtype=np.int32),
        np.full(columns.keys, -1, dtype=np.int32),
        np.full(len(columns.first) - 1, -1, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
    )


@compiled
def _guaranteed(knowledge: int, respected: int, columns: Columns, readers: Successors) -> tuple[Int32, Int32, int]:
    """Edges to and from joints, which are numbered behind the transactions, and how many joints there are.

    session A:  T1 writes x = 1;  T2 writes x = 2;  T3 reads x = 0        T4 of another session had written x = 0

    read your writes: joint 0 is behind T1, joint 1 behind joint 0 and T2; T3 reads from T4:  joint 1 before T4
    """
    first, key, writer, written_first = columns.first, columns.key, columns.writer, columns.written_first
    state = _begun(columns)
    source, target = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    joints = _Joints(np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32))
    count = 0
    for s in range(len(columns.member_first) - 1):
        earliest = state.used[0]
        for m in range(columns.member_first[s], columns.member_first[s + 1]):
            t = columns.member[m]
            for step in range(2):
                # Monotonic reads, monotonic writes and read your writes are about what was known before t.
                if (step == 0) == (knowledge == READ and respected == BY_READERS):
                    end = first[t + 1] if knowledge == READ else first[t] + columns.definite[t]
                    for i in range(first[t], end):
                        u = writer[i] if knowledge == READ else t
                        if u <= 0 or (knowledge == READ and state.reading[u] == s):
                            continue
                        state.reading[u] = s
                        versions = written_first[u + 1] - written_first[u]
                        if state.used[0] + versions > len(joints.version):
                            joints = _longer(joints, state.used[0] + versions)
                        if count + 2 * versions > len(source):
                            source, target = longer(source, count + 2 * versions), longer(target, count + 2 * versions)
                        count = _learn(state, joints, u, earliest, source, target, count)
                    continue
                low, high = (m, m + 1) if respected != BY_READERS else (readers.first[t], readers.first[t + 1])
                for n in range(low, high):
                    r = t if respected != BY_READERS else readers.target[n]
                    for i in range(first[r], first[r + 1]):
                        if writer[i] == WRITES or state.last[key[i]] < earliest:
                            continue
                        room = count + 2 + state.used[0] - earliest
                        if room > len(source):
                            source, target = longer(source, room), longer(target, room)
                        count, contradicts = _respect(state, joints, i, earliest, source, target, count)
                        if contradicts:
                            return source[:count].copy(), target[:count].copy(), state.used[0]
    return source[:count].copy(), target[:count].copy(), state.used[0]


@compiled
def _longer(joints: _Joints, needed: int) -> _Joints:
    return _Joints(longer(joints.version, needed), longer(joints.previous, needed), longer(joints.reached, needed))


@inlined
def _learn(state: _State, joints: _Joints, u: int, earliest: int, source: Int32, target: Int32, count: int) -> int:
    """Notes that the session knows what u wrote, by a joint for each key. Returns how many edges there are then."""
    columns, last = state.columns, state.last
    transactions = len(columns.first) - 1
    for j in range(columns.written_first[u], columns.written_first[u + 1]):
        k, joint = columns.written[j], state.used[0]
        joints.version[joint], joints.previous[joint], joints.reached[joint] = u, -1, -1
        source[count], target[count] = u, transactions + joint
        count += 1
        if last[k] >= earliest:
            joints.previous[joint] = last[k]
            source[count], target[count] = transactions + last[k], transactions + joint
            count += 1
        last[k] = state.joint_of[j] = joint
        state.used[0] = joint + 1
    return count


@inlined
def _respect(
    state: _State, joints: _Joints, i: int, earliest: int, source: Int32, target: Int32, count: int
) -> tuple[int, bool]:
    """Puts the versions that are known before the one that operation i reads. Returns how many edges there are then,
    and whether they certainly contradict each other."""
    columns = state.columns
    transactions = len(columns.first) - 1
    w, k = columns.writer[i], columns.key[i]
    last = state.last[k]
    if w == INITIAL:
        source[count], target[count] = joints.version[last], INITIAL
        return count + 1, True
    at = write_of(w, k, columns.written_first, columns.written)
    joint = state.joint_of[at] if at != NO_INDEX else -1
    if joint < earliest:
        source[count], target[count] = transactions + last, w
        return count + 1, False
    contradicts = False
    if joints.reached[joint] < 0:
        joints.reached[joint] = joint
        contradicts = joint <= state.covered[k]
        if joints.previous[joint] >= 0:
            source[count], target[count] = transactions + joints.previous[joint], w
            count += 1
    other = last
    while other > joints.reached[joint]:
        source[count], target[count] = joints.version[other], w
        count += 1
        contradicts = contradicts or joints.reached[other] >= 0
        other = joints.previous[other]
    joints.reached[joint] = last
    state.covered[k] = last if last > joint else state.covered[k]
    return count, contradicts
