"""What may become the name of a file or folder: one part of a path, plain, and short enough for any file system.

Everything that a user or a file says and that becomes a part of a path goes through one of these two: `checked` where
the name is the user's own and is refused if it is none, `made_of` where a name is made of something else (a scenario's
parts, the name of a history).
"""

from __future__ import annotations

import re

from harness.bounds import quote
from harness.errors import UsageError

LONGEST_NAME_BYTES = 120
"""Such a name, with a time, a seed and a number behind it, stays below the 255 bytes that file systems allow."""
_NAME = re.compile(r"\w[\w.,+=@-]*")
_OTHERS = re.compile(r"[^\w.+=-]+")


def checked(name: str, what: str) -> str:
    """The name itself. Raises UsageError, where `what` says whose name it is, if it cannot be that of a folder."""
    if not _NAME.fullmatch(name) or not name.isprintable():
        raise UsageError(
            f"{quote(name)} cannot be the name of {what}: it names a folder; use letters, digits, . - _ and begin "
            "with a letter or digit"
        )
    if len(name.encode()) > LONGEST_NAME_BYTES:
        raise UsageError(
            f"{quote(name)} cannot be the name of {what}: it names a folder, and has {len(name.encode())} bytes, "
            f"at most {LONGEST_NAME_BYTES} are allowed"
        )
    return name


def made_of(text: str, *, otherwise: str) -> str:
    """A name like the text: other characters become dashes, what is too long is cut; `otherwise` if nothing is left."""
    plain = _OTHERS.sub("-", text).lstrip(".+=-")
    cut = plain.encode(errors="replace")[:LONGEST_NAME_BYTES].decode(errors="ignore")
    return cut or otherwise
