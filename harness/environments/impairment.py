"""Impairments as values: what can be wrong with a link, a disk, a process or a clock for a while.

Each has the `kind` of its fault. Several on one link or node add up, equal ones as well, and each is taken away by
itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowLink:
    """Every packet takes longer: by the delay, and by up to the jitter more, drawn for each."""

    delay_ms: float
    jitter_ms: float
    kind = "slow-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class LossyLink:
    """So large a share of packets is lost, repetitions as well; within a connection that is delay."""

    share: float
    kind = "lossy-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowLink:
    """No more than so many bytes a second, of all connections together; the others wait."""

    bytes_per_s: int
    kind = "narrow-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlappingLink:
    """Cut and open by turns, beginning with a cut."""

    down_ms: float
    up_ms: float
    kind = "flapping-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLink:
    """Packets are kept in the network and let go at the end, also those whose sender has died meanwhile."""

    kind = "held-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicatingLink:
    """So large a share of packets arrives twice; within a connection nobody but the kernel notices."""

    share: float
    kind = "duplicating-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorruptingLink:
    """In so large a share of packets one bit is flipped behind the header of IP; where a checksum shows it, that is
    loss."""

    share: float
    kind = "corrupting-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReorderingLink:
    """So large a share of packets comes so much later, and those behind them overtake."""

    share: float
    delay_ms: float
    kind = "reordering-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetLink:
    """The connections that exist are ended by RST, once; nothing is wrong with new ones."""

    kind = "reset"


PacketImpairment = DuplicatingLink | CorruptingLink | ReorderingLink | ResetLink
"""What only packets show, or sockets: none of it is in a world whose links carry streams of bytes."""
StreamImpairment = SlowLink | LossyLink | NarrowLink | FlappingLink | HeldLink
LinkImpairment = StreamImpairment | PacketImpairment
STREAM_IMPAIRMENTS: tuple[type[StreamImpairment], ...] = (SlowLink, LossyLink, NarrowLink, FlappingLink, HeldLink)
LINK_IMPAIRMENTS: tuple[type[LinkImpairment], ...] = (
    *STREAM_IMPAIRMENTS,
    DuplicatingLink,
    CorruptingLink,
    ReorderingLink,
    ResetLink,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowDisk:
    """An fsync takes so many times as long."""

    factor: float
    kind = "slow-disk"
    stops_process = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingFsync:
    """An fsync fails, and its bytes never become durable: the next so many, or all."""

    most: int | None
    kind = "failing-fsync"
    stops_process = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskErrors:
    """So large a share of reads and of writes fails with EIO."""

    reads: float
    writes: float
    kind = "disk-errors"
    stops_process = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FullDisk:
    """There is room for so many more bytes."""

    room_bytes: int
    kind = "full-disk"
    stops_process = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MisdirectedWrites:
    """One write in so many goes where the write before it in the same file went, if that one was as long: so one record
    takes the place of another, whole. Nobody learns of it, and nothing undoes it; `draw` decides which writes."""

    one_in: int
    draw: int
    kind = "misdirected-writes"
    stops_process = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BitRot:
    """So many bits of what lies on the disk are flipped, once; `draw` decides which. Nothing undoes it."""

    bits: int
    draw: int
    kind = "bit-rot"
    stops_process = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Corruption:
    """One bit in so many bytes of some files is flipped, once, at least one; `draw` decides which. Nothing undoes it.

    `pattern` names files below where the node keeps its data: `*` and `?` stay within one folder, `**/` is any number.
    """

    pattern: str
    bytes_per_bit: int
    draw: int
    kind = "bit-rot"
    stops_process = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortFiles:
    """The node is killed, so many of its files lose their ends (`draw` decides), and it is booted at the end."""

    files: int
    draw: int
    kind = "short-files"
    stops_process = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LostDisk:
    """The node is killed, its disk is replaced by an empty one, and it is booted at the end."""

    kind = "lost-disk"
    stops_process = True


@dataclass(frozen=True, slots=True, kw_only=True)
class OldDisk:
    """The disk is copied; so much later, or at the end if that comes before, the node is killed and the copy put back.

    It is booted at the end.
    """

    after_s: float
    kind = "old-disk"
    stops_process = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowNode:
    """Each callback takes so long, one after the other, and each sleep so many times as long as it should."""

    callback_us: float
    stretch: float
    kind = "slow-nodes"
    stops_process = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartLoop:
    """Killed and booted by turns, all nodes at once, beginning with a kill."""

    down_ms: float
    up_ms: float
    kind = "restart-loop"
    stops_process = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestart:
    """Each node in turn is killed and booted after a while; the next one's turn comes after another while."""

    down_ms: float
    gap_ms: float
    kind = "rolling-restart"
    stops_process = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Strobe:
    """Wall time flips between what it was and so much more, every period."""

    offset_ms: float
    period_ms: float
    kind = "strobe"
    stops_process = False


OF_CLOCKS = frozenset(("clock", Strobe.kind))
"""The kinds of faults that make clocks wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KilledProcesses:
    """Those processes of a node that have a name are killed, once.

    `name` fits the name that the kernel knows, that of the program's file, or the whole command line; `*` and `?` stand
    for anything in it. In the end a node is started again where it has ended, or where no process of this name runs.
    """

    name: str
    kind = "kill-process"
    stops_process = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PausedProcesses:
    """Those processes of a node that have a name, as in `KilledProcesses`, are stopped, and go on at the end."""

    name: str
    kind = "pause-process"
    stops_process = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowedProcesses:
    """Those processes of a node that have a name, as in `KilledProcesses`, and what they start meanwhile get together
    one part in `stretch` of a processor."""

    name: str
    stretch: float
    kind = "slow-process"
    stops_process = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScarceMemory:
    """A node's program gets no more than so much memory beyond what it holds, without swap: the kernel kills processes
    that need more. In the end a node is booted that is down, or lacks what was killed."""

    left_mb: float
    kind = "scarce-memory"
    stops_process = True


KernelImpairment = KilledProcesses | PausedProcesses | SlowedProcesses | ScarceMemory
"""What only a kernel shows: in a world in which a node is one process, none of it is there."""
KERNEL_IMPAIRMENTS: tuple[type[KernelImpairment], ...] = (
    KilledProcesses,
    PausedProcesses,
    SlowedProcesses,
    ScarceMemory,
)
INSTEAD: Mapping[str, str] = {
    KilledProcesses.kind: "kill TARGET",
    PausedProcesses.kind: "pause TARGET",
    SlowedProcesses.kind: "slow down TARGET",
    ScarceMemory.kind: "kill TARGET",
}
"""Kind -> the shape that comes nearest where a node is one process."""
HostImpairment = (
    SlowDisk
    | FailingFsync
    | DiskErrors
    | FullDisk
    | MisdirectedWrites
    | BitRot
    | Corruption
    | ShortFiles
    | LostDisk
    | OldDisk
    | SlowNode
    | RestartLoop
    | RollingRestart
    | Strobe
)
NodeImpairment = HostImpairment | KernelImpairment
"""`stops_process`: nothing else is done to the process meanwhile."""
HOST_IMPAIRMENTS: tuple[type[HostImpairment], ...] = (
    SlowDisk,
    FailingFsync,
    DiskErrors,
    FullDisk,
    MisdirectedWrites,
    BitRot,
    Corruption,
    ShortFiles,
    LostDisk,
    OldDisk,
    SlowNode,
    RestartLoop,
    RollingRestart,
    Strobe,
)
