"""Headers in JSON (serialization type 0), as every client can write and read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from system_under_test.remoting.header import Header, Language, MalformedFrame

_text = json.encoder.encode_basestring_ascii
_DECODER: Final = json.JSONDecoder()
_LANGUAGES: Final[Mapping[object, Language]] = {language.name: language for language in Language}
_NAMES: Final = tuple(language.name for language in Language)
_WORDS: Final = range(-(2**31), 2**31)


def encode(
    code: int,
    opaque: int,
    flag: int,
    remark: str | None,
    ext_fields: Mapping[str, str],
    language: Language,
    version: int,
) -> bytes:
    fields = ",".join([f"{_text(name)}:{_text(value)}" for name, value in ext_fields.items()])
    return (
        f'{{"code":{code},'
        + (f'"extFields":{{{fields}}},' if fields else "")
        + f'"flag":{flag},"language":"{_NAMES[language]}","opaque":{opaque},'
        + (f'"remark":{_text(remark)},' if remark is not None else "")
        + f'"serializeTypeCurrentRPC":"JSON","version":{version}}}'
    ).encode("ascii")


def decode(data: bytes) -> Header:
    """Raises MalformedFrame."""
    try:
        fields = _decode_json(data.decode("utf-8"))
        code, opaque, flag, version = (
            fields["code"],
            fields["opaque"],
            fields.get("flag", 0),
            fields.get("version", 0),
        )
        remark = fields.get("remark")
        ext_fields = fields.get("extFields") or {}
        language = fields.get("language")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MalformedFrame(f"the header is not a command: {error!r}") from error
    if not (
        type(code) is type(opaque) is type(flag) is type(version) is int
        and code in _WORDS
        and opaque in _WORDS
        and flag in _WORDS
        and version in _WORDS
    ):
        raise MalformedFrame("the header's code, opaque, flag or version is no whole number of 32 bits")
    if not (remark is None or type(remark) is str) or type(ext_fields) is not dict:
        raise MalformedFrame("the header's remark or extFields has the wrong type")
    for value in ext_fields.values():
        if type(value) is not str:
            ext_fields = _as_texts(ext_fields)
            break
    if b"\\u" in data:
        _check_characters(remark, ext_fields)
    known = _LANGUAGES.get(language, Language.OTHER) if type(language) is str else Language.OTHER
    return Header(code, opaque, flag, remark, ext_fields, known, version)


def _decode_json(text: str) -> Any:
    """As `json.loads`, without its two searches for white space where there is none. Raises ValueError."""
    try:
        header, end = _DECODER.raw_decode(text)
    except ValueError:
        end = -1
    return header if end == len(text) else _DECODER.decode(text)


def _as_texts(ext_fields: dict[str, Any]) -> dict[str, str]:
    """Handlers rely on text, and RocketMQ's C++ client writes whole numbers as such: they become the text that other
    clients send. A field that is null was not set. Raises MalformedFrame for lists, objects and fractions."""
    texts: dict[str, str] = {}
    for name, value in ext_fields.items():
        if type(value) is bool:
            texts[name] = "true" if value else "false"
        elif type(value) is int or type(value) is str:
            texts[name] = str(value)
        elif value is not None:
            raise MalformedFrame(f"a value of extFields is a {type(value).__name__}, not text or a whole number")
    return texts


def _check_characters(remark: str | None, ext_fields: dict[str, str]) -> None:
    """Half a character, which only an escape can bring in, has no bytes: it could be stored nowhere."""
    try:
        for text in (remark or "", *ext_fields, *ext_fields.values()):
            text.encode()
    except UnicodeEncodeError as error:
        raise MalformedFrame(f"the header has half a character: {error}") from error
