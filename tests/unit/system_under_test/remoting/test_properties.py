"""Java's properties: what is written is what is read, and what Java's own reader makes of its documented examples."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from system_under_test.remoting.properties import decode_properties, encode_properties

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(texts, texts, max_size=5))
@example({" a=b:c#": "  d", "": "", "\\u0041": "\\", "é😀": "\r\n\t\f"})
def test_what_is_written_is_what_is_read(properties: dict[str, str]) -> None:
    encoded = encode_properties(properties)
    assert decode_properties(encoded) == properties
    assert all(byte == 0x0A or 0x20 <= byte <= 0x7E for byte in encoded), "any reader takes ASCII for the same"


@given(st.binary(max_size=80))
@example(b"a=\\")
@example(b"\\\n\\\r\n")
def test_any_bytes_are_properties_or_a_value_error(body: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert encode_properties(decode_properties(body)) is not None


@pytest.mark.parametrize(
    ("body", "properties"),
    [
        (b"", {}),
        (b"# a comment\n   ! another \\\n\n", {}),
        (b"Truth = Beauty\n Truth:Beauty\nTruth                    :Beauty", {"Truth": "Beauty"}),
        (b"fruits    apple, banana, \\\n          pear, \\\r\n    mango", {"fruits": "apple, banana, pear, mango"}),
        (b"cheeses", {"cheeses": ""}),
        (b"\\:\\= =:", {":=": ":"}),
        (b"path=c:\\\\wiki\\z\rkey=1\r\nkey=2", {"path": "c:\\wikiz", "key": "2"}),
        (b"smile=\\uD83D\\uDE00 \\u0041", {"smile": "\U0001f600 A"}),
        (b"a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("überall=ja".encode(), {"überall": "ja"}),
    ],
)
def test_lines_mean_what_they_mean_to_java(body: bytes, properties: dict[str, str]) -> None:
    assert decode_properties(body) == properties


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"a=\xff", "utf-8"),
        (b"a=\\u12", "four hexadecimal digits"),
        (b"a\\u=1", "four hexadecimal digits"),
        (b"a=\\ud83d", "half a character"),
    ],
)
def test_what_is_no_properties_is_refused_with_a_reason(body: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode_properties(body)
