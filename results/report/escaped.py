"""Text as HTML: markup is shown as text, and so is what no page shows."""

from __future__ import annotations

import html

from harness.printable import printable


def escape(text: str) -> str:
    """For the content of elements and for attributes."""
    return html.escape(printable(text))
