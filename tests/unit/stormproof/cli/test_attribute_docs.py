from __future__ import annotations

from dataclasses import dataclass, make_dataclass

from stormproof.cli.attribute_docs import meanings_of


@dataclass
class Base:
    """Not of an attribute."""

    kept: int = 0
    """As it was."""
    changed: int = 0
    """Before."""


@dataclass
class Settings(Base):
    changed: int = 1
    """Now, in words
    of two lines."""
    first: int = 2
    second: int = 3
    """Of the second alone."""

    def method(self) -> None:
        """Not of an attribute either."""


def test_an_attribute_means_what_the_text_behind_it_says() -> None:
    assert meanings_of(Settings) == {
        "kept": "As it was.",
        "changed": "Now, in words of two lines.",
        "second": "Of the second alone.",
    }


def test_nothing_is_known_of_a_class_without_source() -> None:
    assert meanings_of(make_dataclass("Made", [("size", int)])) == {}
