"""A cycle of transactions as a drawing, from the details of its anomaly: SVG that goes with the page's colours.

Transactions stand in two columns, so that the drawing is as wide for twelve as for two: the first on the top left, then
down on the right and up on the left. An arrow goes from each to the next, with what makes it so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from results.report.escaped import escape

DRAWN = 24
"""The most transactions of a cycle that is drawn."""
LETTERS = 46
LABEL_LETTERS = 20
KINDS = ("ww", "wr", "rw", "process", "realtime")

_BOX, _BETWEEN, _MARGIN = 380, 240, 10
_LINE, _HEAD, _ROWS_APART, _PADDING = 18, 22, 56, 10
_APART = 18
"""The distance of two arrows between the same two boxes."""
_ARROW = 9

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class _Box:
    left: float
    top: float
    height: float
    title: str
    beside: str
    lines: tuple[str, ...]

    @property
    def centre(self) -> Point:
        return self.left + _BOX / 2, self.top + self.height / 2


def cycle_drawing(details: Mapping[str, Any]) -> str:
    """The drawing; empty if these are not the details of a cycle that can be drawn."""
    edges, transactions = details.get("edges"), details.get("transactions")
    if not isinstance(edges, list) or not isinstance(transactions, list) or not 2 <= len(edges) <= DRAWN:
        return ""
    if not all(isinstance(one, dict) for one in (*edges, *transactions)) or details.get("edges_left_out"):
        return ""
    ends = [str(edge.get("target")) for edge in edges]
    if [str(edge.get("source")) for edge in edges] != [ends[-1], *ends[:-1]]:
        return ""
    named = {str(one.get("name")): one for one in transactions}
    boxes = _placed([_content(name, named.get(name, {})) for name in [ends[-1], *ends[:-1]]])
    pairs = [(boxes[number], boxes[(number + 1) % len(boxes)]) for number in range(len(boxes))]
    shift = _APART if len(boxes) == 2 else 0
    drawn = "".join(_arrow(edge, *pair, shift) for edge, pair in zip(edges, pairs, strict=True))
    height = max(box.top + box.height for box in boxes) + _MARGIN
    width = 2 * (_BOX + _MARGIN) + _BETWEEN
    label = "; ".join(f"{edge.get('source')} {edge.get('kind')} {edge.get('target')}" for edge in edges)
    return (
        f'<svg class="cycle" viewBox="0 0 {width} {height:g}" style="max-width: {width}px" role="img" '
        f'aria-label="{escape(label)}">{drawn}{"".join(map(_drawn, boxes))}</svg>'
    )


def _content(name: str, transaction: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    operations = transaction.get("operations")
    lines = [_short(str(line), LETTERS) for line in operations] if isinstance(operations, list) else []
    index, process = transaction.get("index"), transaction.get("process")
    where = [f"operation {index}"] if isinstance(index, int) and index >= 0 else []
    where += [f"process {process}"] if process is not None else []
    return name, " · ".join(where), tuple(lines)


def _short(line: str, letters: int) -> str:
    """The ends of a line, because the last elements of a list matter, and often the end of a key."""
    return line if len(line) <= letters else f"{line[: letters // 2 - 1]} … {line[-(letters // 2 - 2) :]}"


def _placed(contents: Sequence[tuple[str, str, tuple[str, ...]]]) -> list[_Box]:
    heights = [_HEAD + len(lines) * _LINE + 2 * _PADDING for _, _, lines in contents]
    right = list(range(1, len(contents) // 2 + 1))
    left = [0, *range(len(contents) - 1, len(right), -1)]
    row_heights = [
        max(heights[column[row]] for column in (left, right) if row < len(column)) for row in range(len(left))
    ]
    tops = [_MARGIN + sum(row_heights[:row]) + row * _ROWS_APART for row in range(len(left))]
    # A right column that is one shorter stands half a row lower.
    drop = (row_heights[-1] + _ROWS_APART) / 2 if len(right) < len(left) else 0
    boxes = []
    for number, (title, beside, lines) in enumerate(contents):
        on_right = number in right
        row = (right if on_right else left).index(number)
        top = tops[row] + (row_heights[row] - heights[number]) / 2 + (drop if on_right else 0)
        x = _MARGIN + (_BOX + _BETWEEN if on_right else 0)
        boxes.append(_Box(left=x, top=top, height=heights[number], title=title, beside=beside, lines=lines))
    return boxes


def _drawn(box: _Box) -> str:
    text = [
        f'<text x="{box.left + 12:g}" y="{box.top + 24:g}"><tspan class="name">{escape(box.title)}</tspan>'
        f'<tspan class="where" dx="8">{escape(box.beside)}</tspan></text>'
    ]
    for number, line in enumerate(box.lines):
        y = box.top + _HEAD + _PADDING + (number + 0.72) * _LINE
        text.append(f'<text class="operation" x="{box.left + 12:g}" y="{y:g}">{escape(line)}</text>')
    frame = f'<rect x="{box.left:g}" y="{box.top:g}" width="{_BOX}" height="{box.height:g}" rx="7"/>'
    return f"<g>{frame}{''.join(text)}</g>"


def _arrow(edge: Mapping[str, Any], source: _Box, target: _Box, shift: float) -> str:
    """From edge to edge of the boxes, on the line through their centres, moved to its right by `shift`."""
    (x0, y0), (x1, y1) = source.centre, target.centre
    length = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 1.0)
    dx, dy = (x1 - x0) / length, (y1 - y0) / length
    begin, end = _exit(source, dx, dy), _exit(target, -dx, -dy)
    sx, sy = -dy * shift, dx * shift
    bx, by, ex, ey = begin[0] + sx, begin[1] + sy, end[0] + sx, end[1] + sy
    tip = f"{ex:.1f},{ey:.1f}"
    back = ex - dx * _ARROW, ey - dy * _ARROW
    wings = " ".join(f"{back[0] - side * dy * 4.5:.1f},{back[1] + side * dx * 4.5:.1f}" for side in (-1, 1))
    kind = str(edge.get("kind"))
    key = edge.get("key")
    label = _short(kind if key is None else f"{kind} {key}", LABEL_LETTERS)
    middle = (bx + ex) / 2, (by + ey) / 2
    width = 10 + 8 * len(label)
    shown = kind if kind in KINDS else "other"
    return (
        f'<g class="edge {shown}"><title>{escape(str(edge.get("because", "")))}</title>'
        f'<line x1="{bx:.1f}" y1="{by:.1f}" x2="{back[0]:.1f}" y2="{back[1]:.1f}"/>'
        f'<polygon points="{tip} {wings}"/>'
        f'<rect x="{middle[0] - width / 2:.1f}" y="{middle[1] - 10:.1f}" width="{width:.1f}" height="20" rx="4"/>'
        f'<text x="{middle[0]:.1f}" y="{middle[1] + 4.5:.1f}">{escape(label)}</text></g>'
    )


def _exit(box: _Box, dx: float, dy: float) -> Point:
    """Where a ray from the centre leaves the box."""
    across = _BOX / 2 / abs(dx) if dx else float("inf")
    down = box.height / 2 / abs(dy) if dy else float("inf")
    reach = min(across, down)
    return box.centre[0] + dx * reach, box.centre[1] + dy * reach
