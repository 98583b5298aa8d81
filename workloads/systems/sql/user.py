"""How the programs of databases are run as users of their own, under a clock that can be wrong."""

from __future__ import annotations


def as_user(name: str) -> str:
    """The words of a shell before a command that this user is to run; the group has the user's name.

    Who changes its user begins a faked clock anew: the one that is shared by processes before may not be opened.
    """
    return (
        f"env -u LD_PRELOAD -u FAKETIME_SHARED setpriv --reuid={name} --regid={name} --clear-groups "
        'env LD_PRELOAD="$LD_PRELOAD"'
    )
