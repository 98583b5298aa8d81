"""The truncation point against a dumb reference: two logs written out byte by byte, compared from the front.

A log is a list of master epochs, one for each byte: the master of an epoch writes each of its offsets once, so two
logs hold the same byte at an offset exactly where they hold the same epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile

from hypothesis import given, settings
from hypothesis import strategies as st

from system_under_test.storage.epoch_file import EpochMap, common_point, is_before, taken_over, truncation_point

NODES = 3


@dataclass
class Replica:
    """A replica's log, its epoch map, and the epoch in which it last compared itself with the master."""

    log: list[int] = field(default_factory=list)
    epochs: EpochMap = field(default_factory=EpochMap)
    connected_in: int = 0


def common_prefix(own: list[int], theirs: list[int]) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(own, theirs, strict=False))))


def connect(slave: Replica, master: Replica) -> None:
    """The handshake: find the point, hold it against the reference, cut, take over the master's entries."""
    point = truncation_point(slave.epochs, len(slave.log), master.epochs, len(master.log)) or 0
    assert point == common_prefix(slave.log, master.log)
    del slave.log[point:]
    slave.epochs = master.epochs.entries_up_to(point)


def copy_one_epoch(slave: Replica, master: Replica, count: int) -> None:
    """One batch: it ends at the end of its epoch, and a new epoch is recorded before its bytes."""
    entry = master.epochs.entry_at(len(slave.log))
    if entry is None:
        return
    end = master.epochs.end_of(entry.master_epoch)
    end = min(len(slave.log) + count, len(master.log) if end is None else end)
    if slave.epochs.last is None or slave.epochs.last.master_epoch < entry.master_epoch:
        slave.epochs = slave.epochs.append(*entry)
    slave.log += master.log[len(slave.log) : end]


node = st.integers(0, NODES - 1)
step = st.one_of(
    st.tuples(st.just("elect"), node, st.none()),
    st.tuples(st.just("write"), node, st.integers(1, 5)),
    st.tuples(st.just("copy"), node, st.integers(1, 7)),
    st.tuples(st.just("lose tail"), node, st.integers(1, 4)),
)


def lived_through(steps: list[tuple[str, int, int]]) -> list[Replica]:
    """The replicas after all that."""
    replicas = [Replica() for _ in range(NODES)]
    epoch, roles = 0, dict.fromkeys(range(NODES), 0)
    master = replicas[0]
    for name, number, amount in steps:
        replica = replicas[number]
        if name == "elect":
            epoch += 1
            master, roles[number] = replica, epoch
            replica.epochs = replica.epochs.truncate_suffix(len(replica.log)).append(epoch, len(replica.log))
        elif name == "write" and roles[number]:
            # A deposed master that does not know it yet goes on writing under its own epoch.
            if replica.epochs.last is not None and replica.epochs.last.master_epoch == roles[number]:
                replica.log += [roles[number]] * amount
        elif name == "copy" and replica is not master and epoch:
            if replica.connected_in != epoch:
                connect(replica, master)
                replica.connected_in, roles[number] = epoch, 0
            copy_one_epoch(replica, master, amount)
        elif name == "lose tail" and replica is not master:
            del replica.log[max(0, len(replica.log) - amount) :]
            replica.epochs = replica.epochs.truncate_suffix(len(replica.log))
            replica.connected_in, roles[number] = 0, 0
    return replicas


@settings(max_examples=400, deadline=None)
@given(st.lists(step, max_size=60))
def test_the_point_is_the_end_of_the_longest_common_prefix(steps: list[tuple[str, int, int]]) -> None:
    replicas = lived_through(steps)
    for own in replicas:
        for theirs in replicas:
            point = truncation_point(own.epochs, len(own.log), theirs.epochs, len(theirs.log)) or 0
            assert point == common_prefix(own.log, theirs.log)


@settings(max_examples=400, deadline=None)
@given(st.lists(step, min_size=10, max_size=60), st.floats(0, 1), st.floats(0, 1))
def test_logs_without_their_first_bytes_are_cut_where_they_part_or_known_to_have_nothing_in_common(
    steps: list[tuple[str, int, int]], own_share: float, their_share: float
) -> None:
    replicas = lived_through(steps)
    for own in replicas:
        for theirs in replicas:
            parts_at = common_prefix(own.log, theirs.log)
            own_begin, their_begin = int(own_share * len(own.log)), int(their_share * len(theirs.log))
            if own_begin == len(own.log) or their_begin == len(theirs.log):
                continue
            ours, others = own.epochs.delete_prefix(own_begin), theirs.epochs.delete_prefix(their_begin)
            point = common_point(ours, own_begin, len(own.log), others, len(theirs.log))
            if parts_at > max(own_begin, their_begin):
                assert point == parts_at
                assert not is_before(ours, len(own.log), others)
                check_epochs(taken_over(ours, others, point), theirs.epochs, min(own_begin, their_begin), point)
            elif is_before(ours, len(own.log), others):
                assert parts_at <= their_begin, "what is left of theirs holds bytes of this log"
            else:
                # Nothing that differs stays: all of the log is cut, or a human decides.
                assert point is None or point <= max(parts_at, own_begin)


def check_epochs(taken: EpochMap, own: EpochMap, begin: int, end: int) -> None:
    """Of each byte they say the same."""
    for offset in range(begin, end):
        one, other = taken.entry_at(offset), own.entry_at(offset)
        assert (one and one.master_epoch) == (other and other.master_epoch)


maps = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 5)), max_size=6).map(
    lambda gaps: EpochMap(
        (sum(epoch for epoch, _ in gaps[: i + 1]), sum(start for _, start in gaps[: i + 1])) for i in range(len(gaps))
    )
)


@given(maps, st.integers(0, 40))
def test_a_cut_keeps_exactly_the_entries_that_start_within_the_log(epochs: EpochMap, end: int) -> None:
    cut = epochs.truncate_suffix(end)
    assert list(cut) == [entry for entry in epochs if entry.start_offset <= end]
    assert cut.truncate_suffix(end) == cut


@given(maps, st.integers(0, 40))
def test_after_a_deletion_every_byte_left_has_the_epoch_it_had(epochs: EpochMap, least: int) -> None:
    left = epochs.delete_prefix(least)
    for offset in range(least, 45):
        before, after = epochs.entry_at(offset), left.entry_at(offset)
        assert (before and before.master_epoch) == (after and after.master_epoch)
    assert all(entry.start_offset >= least for entry in left)
