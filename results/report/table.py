"""Tables and times as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from results.report.escaped import escape


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int]) -> str:
    """`rows` hold HTML; `numbers` are the columns set flush right."""
    right = set(numbers)

    def cell(tag: str, position: int, content: str) -> str:
        return f"<{tag}{' class=number' if position in right else ''}>{content}</{tag}>"

    narrow = "" if 1 in right and len(right) == len(header) - 1 else " class=facets"  # all figures: spread evenly
    top = "".join(cell("th", position, escape(name)) for position, name in enumerate(header))
    body = "".join(
        f"<tr>{''.join(cell('td', position, content) for position, content in enumerate(row))}</tr>" for row in rows
    )
    return f'<div class="wide"><table{narrow}><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def duration_words(milliseconds: float) -> str:
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.2f} s"
    return f"{milliseconds:.1f} ms" if milliseconds >= 1 else f"{milliseconds * 1000:.0f} µs"
