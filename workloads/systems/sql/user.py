"""How the programs of databases are run as users of their own, under a clock that can be wrong."""

from __future__ import annotations


def as_user_by_the_true_clock(name: str) -> str:
    """The same for a program that a faked clock would break; faults of clocks do not reach it, and say so.

    Python's `time.sleep`, since 3.11, waits for a moment of the monotonic clock. Where that clock is left alone, as it
    is here, libfaketime 0.9 makes of it a moment that the kernel refuses
    (https://github.com/wolfcw/libfaketime/issues/426).
    """
    return f"env -u LD_PRELOAD setpriv --reuid={name} --regid={name} --clear-groups"


def as_user(name: str) -> str:
    """The words of a shell before a command that this user is to run; the group has the user's name.

    Who changes its user begins a faked clock anew: the one that is shared by processes before may not be opened.
    """
    return (
        f"env -u LD_PRELOAD -u FAKETIME_SHARED setpriv --reuid={name} --regid={name} --clear-groups "
        'env LD_PRELOAD="$LD_PRELOAD"'
    )
