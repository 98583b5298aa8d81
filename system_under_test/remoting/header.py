"""What the header of a frame says, in whichever serialization it came."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

VERSION: Final = 455
"""The version of RocketMQ, as its commands count versions, that we say we are."""


class MalformedFrame(Exception):
    """Bytes that are no frame; the connection they came on is of no use any more."""


class FrameTooLong(ValueError):
    """A command that is too long to be sent; nothing of it was."""


class Serialization(IntEnum):
    """The first byte of a header's length word."""

    JSON = 0
    ROCKETMQ = 1


class Language(IntEnum):
    """In which a client is written; what is not listed here counts as OTHER."""

    JAVA = 0
    CPP = 1
    DOTNET = 2
    PYTHON = 3
    DELPHI = 4
    ERLANG = 5
    RUBY = 6
    OTHER = 7
    HTTP = 8
    GO = 9
    PHP = 10
    OMS = 11
    RUST = 12
    NODE_JS = 13


LANGUAGES: Final[Mapping[int, Language]] = {int(language): language for language in Language}


class Header(NamedTuple):
    """All whole numbers have 32 bits at most. A client may leave its language and its version out."""

    code: int
    opaque: int
    flag: int
    remark: str | None
    ext_fields: Mapping[str, str]
    language: Language = Language.OTHER
    version: int = 0
