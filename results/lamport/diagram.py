"""A Lamport diagram as SVG: a line for each node and client from top to bottom, time running down.

The axis keeps the order of all events, but not their distances: an instant takes a row, and a long quiet is only a
little longer than a short one, because otherwise all events would be in one spot. The times are at the left.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from results.lamport.story import Band, Message, Moment, Thing
from results.report.escaped import escape

TIMES_PX, COLUMN_PX, TOP_PX, FOOT_PX = 84, 168, 34, 18
ROW_PX, BELOW_PX, QUIET_PX = 22, 15, 7
BAND_PX = 12
LONGEST_LABEL = 25
"""The most characters of a label. The whole is shown as a tooltip."""


@dataclass(frozen=True)
class _Axes:
    x: dict[str, float]
    y: dict[int, float]
    moments: dict[int, float]
    """Place of a moment among the things -> its y. Two at one instant on one line are below each other."""
    height: float
    width: float


def diagram(things: Sequence[Thing], lines: Sequence[str], *, named: str) -> str:
    """The diagram as SVG. `named`: what it shows, for readers who do not see it."""
    axes = _axes(things, lines)
    parts = [_frame(axes, lines)]
    parts += [_band(thing, axes) for thing in things if isinstance(thing, Band)]
    parts += [_message(thing, axes) for thing in things if isinstance(thing, Message)]
    parts += [_moment(thing, axes.moments[n], axes) for n, thing in enumerate(things) if isinstance(thing, Moment)]
    return (
        f'<svg class="lamport" role="img" aria-label="{escape(named)}" viewBox="0 0 {axes.width:g} {axes.height:g}" '
        f'width="{axes.width:g}" height="{axes.height:g}">{"".join(parts)}</svg>'
    )


def _axes(things: Sequence[Thing], lines: Sequence[str]) -> _Axes:
    below = _below(things)
    rooms = {time_ns: 0 for thing in things for time_ns in thing.times_ns}
    for place, rank in below.items():
        rooms[things[place].time_ns] = max(rooms[things[place].time_ns], rank)
    y: dict[int, float] = {}
    at, before = float(TOP_PX), -1
    for time_ns in sorted(rooms):
        quiet_ms = 0.0 if before < 0 else (time_ns - before) / 1e6
        at += ROW_PX + QUIET_PX * math.log10(1 + quiet_ms)
        y[time_ns] = round(at, 1)
        at += BELOW_PX * rooms[time_ns]
        before = time_ns
    moments = {place: y[things[place].time_ns] + BELOW_PX * rank for place, rank in below.items()}
    x = {line: TIMES_PX + COLUMN_PX * place + 24.0 for place, line in enumerate(lines)}
    width = TIMES_PX + COLUMN_PX * max(1, len(lines)) + 10
    return _Axes(x=x, y=y, moments=moments, height=round(at + FOOT_PX), width=width)


def _below(things: Sequence[Thing]) -> dict[int, int]:
    """Place of a moment -> how many labels are on its line at its instant before it."""
    taken: Counter[tuple[str, int]] = Counter((one.line, one.time_ns) for one in things if isinstance(one, Band))
    below = {}
    for place, thing in enumerate(things):
        if isinstance(thing, Moment):
            below[place] = taken[thing.line, thing.time_ns]
            taken[thing.line, thing.time_ns] += 1
    return below


def _frame(axes: _Axes, lines: Sequence[str]) -> str:
    drawn = []
    for line in lines:
        x = axes.x[line]
        drawn.append(f'<text class="name" x="{x:g}" y="20" text-anchor="middle">{escape(line)}</text>')
        drawn.append(f'<line class="life" x1="{x:g}" y1="28" x2="{x:g}" y2="{axes.height - 6:g}"/>')
    for time_ns, y in axes.y.items():
        drawn.append(
            f'<text class="time" x="{TIMES_PX - 16}" y="{y + 4:g}" text-anchor="end">{seconds(time_ns)}</text>'
        )
    return "".join(drawn)


def _band(band: Band, axes: _Axes) -> str:
    x, top, bottom = axes.x[band.line], axes.y[band.time_ns], axes.y[band.until_ns]
    colour = f"var({band.colour})"
    words = f"{band.label}, {seconds(band.time_ns)} to {seconds(band.until_ns)} s"
    return (
        f'<g><title>{escape(words)}</title><rect x="{x - BAND_PX / 2:g}" y="{top:g}" width="{BAND_PX}" '
        f'height="{max(3.0, bottom - top):g}" rx="3" style="fill:{colour}" opacity=".55"/>'
        f"{_label(band.label, x + BAND_PX / 2 + 5, top + 4, colour)}</g>"
    )


def _message(message: Message, axes: _Axes) -> str:
    x1, x2 = axes.x[message.source], axes.x[message.target]
    y1 = axes.y[message.time_ns]
    lost = message.received_ns is None
    y2 = y1 if message.received_ns is None else axes.y[message.received_ns]
    if lost:
        x2 = x1 + (x2 - x1) * 0.6
    words = f"{message.source} to {message.target}: {message.label}" + (", never arrived" if lost else "")
    return (
        f'<g class="message{" lost" if lost else ""}"><title>{escape(words)}</title>'
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>{_head(x1, y1, x2, y2, lost)}</g>'
    )


def _head(x1: float, y1: float, x2: float, y2: float, lost: bool) -> str:
    """The head of an arrow, or a cross."""
    if lost:
        return f'<path d="M{x2 - 4:g} {y2 - 4:g}l8 8m0 -8l-8 8"/>'
    angle = math.atan2(y2 - y1, x2 - x1)
    corners = [(x2 - 8 * math.cos(angle + turn), y2 - 8 * math.sin(angle + turn)) for turn in (0.4, -0.4)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(x2, y2), *corners])
    return f'<polygon points="{points}"/>'


def _moment(moment: Moment, y: float, axes: _Axes) -> str:
    x = axes.x[moment.line]
    return (
        f"<g><title>{escape(f'{seconds(moment.time_ns)} s: {moment.line} {moment.sentence or moment.label}')}</title>"
        f'<circle class="moment" cx="{x:g}" cy="{y:g}" r="4.5"/>{_label(moment.label, x + 11, y + 4, "var(--ink)")}</g>'
    )


def _label(text: str, x: float, y: float, colour: str) -> str:
    shown = text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1].rstrip()}…"
    return f'<text class="label" x="{x:g}" y="{y:g}" style="fill:{colour}">{escape(shown)}</text>'


def seconds(time_ns: int) -> str:
    return f"{time_ns / 1e9:.3f}"
