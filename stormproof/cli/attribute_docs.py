"""What the text behind an attribute of a class says, which Python itself does not keep."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from itertools import pairwise


def meanings_of(kind: type) -> dict[str, str]:
    """Name of each annotated attribute with a text behind it, its class's or one's that it inherits from -> that text
    in one line; empty where there is no source."""
    return {name: text for each in reversed(kind.__mro__[:-1]) for name, text in _texts(each)}


def _texts(kind: type) -> Iterator[tuple[str, str]]:
    try:
        (declared,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError):
        return
    assert isinstance(declared, ast.ClassDef)
    for attribute, text in pairwise(declared.body):
        if (
            isinstance(attribute, ast.AnnAssign)
            and isinstance(attribute.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            yield attribute.target.id, " ".join(text.value.value.split())
