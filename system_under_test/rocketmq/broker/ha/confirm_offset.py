"""How far the log is confirmed: the offset up to which dispatch, consumers and replies may go. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def least_acked_offset(members: Sequence[int], acked: Mapping[int, int]) -> int | None:
    """The least acked offset over `members`, or None while one of them has no connection.

    `acked` holds the own offset under the own id. A disconnected member's earlier acks count for nothing:
    after a loss of power it may come back with less than it acked.
    """
    least: int | None = None
    for member in members:
        offset = acked.get(member)
        if offset is None:
            return None
        if least is None or offset < least:
            least = offset
    return least


def master_confirm_offset(current: int, least_acked: int | None) -> int:
    """Never back, and unchanged while a member is disconnected."""
    return current if least_acked is None or least_acked < current else least_acked


def slave_confirm_offset(current: int, header_confirm_offset: int, own_max_offset: int) -> int:
    """The master's offset as far as the own log reaches, and never back."""
    return max(current, min(header_confirm_offset, own_max_offset))


def acked_by(count: int, members: Sequence[int], acked: Mapping[int, int]) -> int:
    """The offset that at least `count` distinct members have acked; -1 if so few are connected."""
    offsets = sorted((acked[member] for member in members if member in acked), reverse=True)
    return offsets[count - 1] if len(offsets) >= count else -1
