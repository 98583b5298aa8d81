"""The run on one time axis: faults, latency, throughput, roles of nodes. A Plotly figure as plain data.

Colours are names of the page's CSS variables (`--ok`), which the page's script replaces, so that one figure
serves light and dark. The number of points, bars and shapes is bounded whatever the length of the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.record.fault_log import FaultWindow
from results.report.measure import OUTCOMES, Floats, Measurements
from results.report.run_files import RoleSpan

SHADED_FAULTS = 150
FEW = 200
"""The most points that are drawn larger."""
ROOM_BELOW = 0.1
"""How many decades there are below the lowest point, so that it can be seen."""
BARS = 2000

LEADING = ("master", "leader", "primary")
BY_ORDER = "order of events: times are absent or all the same"
_KINDS = ("partition", "links", "kill", "pause", "clock", "power", "disk")
"""The kinds of faults with a colour of their own, from top to bottom."""
_ALIKE = {
    **dict.fromkeys(("slow-links", "lossy-links", "narrow-links", "flapping-links", "held-links"), "links"),
    **dict.fromkeys(("restart-loop", "rolling-restart", "upgrade", "kill-process", "scarce-memory"), "kill"),
    **dict.fromkeys(("slow-disk", "failing-fsync", "disk-errors", "full-disk", "misdirected-writes"), "disk"),
    **dict.fromkeys(("bit-rot", "short-files", "lost-disk", "old-disk", "shrink", "wipe"), "disk"),
    "slow-nodes": "pause",
    "pause-process": "pause",
    "slow-process": "pause",
    "strobe": "clock",
}
"""Kinds that share the colour and the place of another one."""
_OUTCOME_NAMES = {"ok": "ok", "fail": "failed", "info": "unknown"}
_GAP_PX = 34
_LATENCY_PX, _RATE_PX, _LANE_PX, _NODE_PX = 260, 150, 20, 24


@dataclass(frozen=True)
class _Panel:
    axis: str
    title: str
    low: float
    high: float


def figure(
    measured: Measurements, faults: tuple[FaultWindow, ...], roles: tuple[RoleSpan, ...], nodes: tuple[str, ...]
) -> dict[str, Any]:
    """{"data": […], "layout": {…}, "height": px}."""
    ends_ns = [fault.stop_ns if fault.is_stopped else fault.start_ns for fault in faults]
    end_s = max([measured.duration_s, *(end_ns / 1e9 for end_ns in ends_ns)])
    kinds = sorted({fault.kind for fault in faults}, key=lambda kind: (_rank(kind), kind))
    playing = [node for node in nodes if any(span.node == node for span in roles)]
    panels, height = _panels(len(kinds), len(playing), measured.timed)
    rates = _rates(measured) if measured.timed else []
    data = [*_fault_bars(faults, kinds, end_s), *_latency(measured), *rates, *_role_bars(roles)]
    bottom = min(panel.low for panel in panels.values())
    layout: dict[str, Any] = {
        "height": height,
        "margin": {"l": 62, "r": 12, "t": 30, "b": 46},
        "paper_bgcolor": "--paper",
        "plot_bgcolor": "--paper",
        "font": {"color": "--ink", "size": 12},
        "hovermode": "closest",
        "barmode": "overlay",
        "bargap": 0.25,
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "yref": "paper", "itemsizing": "constant"},
        "xaxis": {
            "range": [0, end_s],
            "title": {"text": "seconds since the test began" if measured.timed else BY_ORDER},
            "gridcolor": "--line",
            "zerolinecolor": "--line",
            "anchor": "free",
            "position": bottom,
        },
        "shapes": _shades(faults, panels, end_s),
        "annotations": [_label(panel) for panel in panels.values()],
    }
    for name, panel in panels.items():
        layout[_axis_key(panel.axis)] = _axis(name, panel, measured, kinds, playing)
    return {"data": data, "layout": layout, "height": height}


def _panels(kinds: int, nodes: int, timed: bool) -> tuple[dict[str, _Panel], int]:
    """Heights in pixels from top to bottom, as shares of the plot's height."""
    sizes = [
        ("faults", "y", "faults", kinds * _LANE_PX),
        ("latency", "y2", "latency" if timed else "events from begin to end", _LATENCY_PX),
        ("rate", "y3", "operations a second", _RATE_PX if timed else 0),
        ("roles", "y4", "roles of nodes", nodes * _NODE_PX),
    ]
    shown = [(name, axis, title, size) for name, axis, title, size in sizes if size]
    total = sum(size + _GAP_PX for _, _, _, size in shown)
    panels, top = {}, float(total)
    for name, axis, title, size in shown:
        top -= _GAP_PX
        panels[name] = _Panel(axis, title, (top - size) / total, top / total)
        top -= size
    return panels, total + 30 + 46


def _axis(name: str, panel: _Panel, measured: Measurements, kinds: list[str], playing: list[str]) -> dict[str, Any]:
    axis: dict[str, Any] = {
        "domain": [panel.low, panel.high],
        "anchor": "x",
        "gridcolor": "--line",
        "zerolinecolor": "--line",
        "fixedrange": True,
    }
    if name == "faults":
        return {**axis, "type": "category", "categoryarray": kinds[::-1], "range": [-0.5, len(kinds) - 0.5]}
    if name == "roles":
        return {**axis, "type": "category", "categoryarray": playing[::-1], "range": [-0.5, len(playing) - 0.5]}
    if name == "latency":
        low, high = _decades(measured)
        decades = range(low, high + 1)
        return {
            **axis,
            "type": "log",
            "range": [low - ROOM_BELOW, high],
            "tickvals": [10.0**decade for decade in decades],
            "ticktext": [_milliseconds(decade) if measured.timed else f"{10.0**decade:,g}" for decade in decades],
        }
    total = sum(measured.rates.values())
    usual = float(np.quantile(total, 0.97)) * 1.35
    # The final reads come all at once; their peak would press the storm flat.
    return {**axis, "range": [0, max(usual, 1.0)]} if np.max(total) > usual > 0 else {**axis, "rangemode": "tozero"}


def _decades(measured: Measurements) -> tuple[int, int]:
    seen = [points.latency_ms for points in measured.points.values() if len(points.latency_ms)]
    every = np.concatenate(seen) if seen else np.array([1.0, 100.0])
    low = math.floor(math.log10(max(float(every.min()), 1e-3)))
    high = math.ceil(math.log10(max(float(every.max()), 1e-2)))
    return low, max(high, low + 1)


def _milliseconds(decade: int) -> str:
    if decade >= 3:
        return f"{10 ** (decade - 3)} s"
    return f"{10**decade} ms" if decade >= 0 else f"{10 ** (decade + 3)} µs"


def _latency(measured: Measurements) -> list[dict[str, Any]]:
    traces: list[dict[str, Any]] = []
    size = 4 if sum(len(points.index) for points in measured.points.values()) > FEW else 7
    hover = "%{x:.3f} s, %{y:.3g} ms" if measured.timed else "begun at event %{x}, ended %{y} events later"
    for outcome in OUTCOMES:
        points = measured.points[outcome]
        if not len(points.index):
            continue
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": _OUTCOME_NAMES[outcome],
                "legendgroup": outcome,
                "yaxis": "y2",
                "x": _rounded(points.start_s, 4),
                "y": _rounded(np.maximum(points.latency_ms, 1e-3), 4),
                "text": [f"{f} #{index}" for f, index in zip(points.f, points.index.tolist(), strict=True)],
                "hovertemplate": f"%{{text}}<br>{hover}",
                "marker": {"size": size if outcome == "ok" else size + 1, "color": f"--{outcome}", "opacity": 0.45},
            }
        )
    if not measured.timed or np.isnan(measured.median_ms).all():
        return traces
    for name, values, dash in (("median", measured.median_ms, "solid"), ("p99", measured.p99_ms, "dot")):
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "yaxis": "y2",
                "x": _middles(measured),
                "y": _rounded(values, 4),
                "connectgaps": False,
                "hovertemplate": f"{name} of ok: %{{y:.3g}} ms",
                "line": {"width": 1.6, "color": "--ink", "dash": dash},
            }
        )
    return traces


def _rates(measured: Measurements) -> list[dict[str, Any]]:
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": _OUTCOME_NAMES[outcome],
            "legendgroup": outcome,
            "showlegend": False,
            "yaxis": "y3",
            "stackgroup": "rates",
            "x": _middles(measured),
            "y": _rounded(measured.rates[outcome], 2),
            "hovertemplate": f"{_OUTCOME_NAMES[outcome]}: %{{y:.4g}}/s",
            "line": {"width": 0.5, "color": f"--{outcome}", "shape": "hvh"},
            "fillcolor": f"--{outcome}-fill",
        }
        for outcome in OUTCOMES
        if measured.rates[outcome].any()
    ]


def _fault_bars(faults: tuple[FaultWindow, ...], kinds: list[str], end_s: float) -> list[dict[str, Any]]:
    traces = []
    for kind in kinds:
        mine = [fault for fault in faults if fault.kind == kind][:BARS]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": kind,
                "showlegend": False,
                "yaxis": "y",
                "y": [kind] * len(mine),
                "base": [round(fault.start_ns / 1e9, 4) for fault in mine],
                "x": [round(max(_stop_s(fault, end_s) - fault.start_ns / 1e9, end_s / 500), 4) for fault in mine],
                "text": [_fault_words(fault) for fault in mine],
                "textposition": "none",
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {
                    "color": fault_colour(kind),
                    "opacity": [1.0 if fault.happened else 0.25 for fault in mine],
                },
            }
        )
    return traces


def _role_bars(roles: tuple[RoleSpan, ...]) -> list[dict[str, Any]]:
    traces = []
    for role in sorted({span.role for span in roles}, key=lambda role: (role not in LEADING, role)):
        mine = [span for span in roles if span.role == role][:BARS]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": role,
                "yaxis": "y4",
                "y": [span.node for span in mine],
                "base": [round(span.start_s, 4) for span in mine],
                "x": [round(span.stop_s - span.start_s, 4) for span in mine],
                "text": ["" if span.epoch is None else f"epoch {span.epoch}" for span in mine],
                "textposition": "none",
                "hovertemplate": "%{y}: " + role + " %{text}<br>from %{base:.3f} s<extra></extra>",
                "marker": {"color": _role_colour(role)},
            }
        )
    return traces


def _shades(faults: tuple[FaultWindow, ...], panels: dict[str, _Panel], end_s: float) -> list[dict[str, Any]]:
    return [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": round(fault.start_ns / 1e9, 4),
            "x1": round(_stop_s(fault, end_s), 4),
            "y0": panels["rate" if "rate" in panels else "latency"].low,
            "y1": panels["latency"].high,
            "layer": "below",
            "line": {"width": 0},
            "fillcolor": fault_colour(fault.kind),
            "opacity": 0.1,
        }
        for fault in [fault for fault in faults if fault.happened][:SHADED_FAULTS]
    ]


def _label(panel: _Panel) -> dict[str, Any]:
    return {
        "text": panel.title,
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": panel.high,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"color": "--muted", "size": 12},
    }


def fault_colour(kind: str) -> str:
    """The colour of a kind of fault; for faults at one moment (`kill+partition`) that of the first one."""
    first = kind.partition("+")[0]
    alike = _ALIKE.get(first, first)
    return f"--{alike}" if alike in _KINDS else "--other"


def _role_colour(role: str) -> str:
    if role in LEADING:
        return "--leader" if role == "leader" else "--master"
    return "--candidate" if "candidate" in role else "--follower"


def _fault_words(fault: FaultWindow) -> str:
    stopped = f"to {fault.stop_ns / 1e9:.2f} s" if fault.is_stopped else "never stopped"
    effect = "" if fault.happened else "<br>no effect"
    what = f"{fault.shape or fault.kind} ({', '.join(fault.nodes)})"
    return f"{what}<br>{fault.start_ns / 1e9:.2f} s {stopped}{effect}"


def _stop_s(fault: FaultWindow, end_s: float) -> float:
    return fault.stop_ns / 1e9 if fault.is_stopped else end_s


def _rank(kind: str) -> int:
    alike = _ALIKE.get(kind, kind)
    return _KINDS.index(alike) if alike in _KINDS else len(_KINDS)


def _middles(measured: Measurements) -> list[float]:
    return [round((i + 0.5) * measured.bucket_s, 4) for i in range(len(measured.median_ms))]


def _rounded(values: Floats, digits: int) -> list[float | None]:
    return [None if math.isnan(value) else round(value, digits) for value in values.tolist()]


def _axis_key(axis: str) -> str:
    return "yaxis" + axis[1:]
