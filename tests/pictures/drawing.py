# SPDX-License-Identifier: Apache-2.0
"""Write charts of steps over time as plain SVG; the same data give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

WIDTH = 960
_LEFT, _RIGHT, _GAP = 46, 14, 34
_FONT = 'font-family="sans-serif" font-size="12"'

Points = Sequence[tuple[float, float]]


class Band(NamedTuple):
    """Fill what is between two rows of points over the same times."""

    name: str
    colour: str
    lower: Points
    upper: Points


class Line(NamedTuple):
    """Draw a row of points as steps."""

    name: str
    colour: str
    points: Points
    dash: str = ""


class Mark(NamedTuple):
    """Stand at a moment: a vertical line with a text at its head."""

    at: float
    text: str
    colour: str = "#444"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Hold one chart.

    Attributes:
        title: what it shows.
        highest: the top of its scale, in the unit of the points.
        height: pixels.
        step: distance of the lines of its scale.
    """

    title: str
    highest: float
    step: float
    bands: tuple[Band, ...] = ()
    lines: tuple[Line, ...] = ()
    marks: tuple[Mark, ...] = ()
    height: int = 220


class Times(NamedTuple):
    """Hold the scale of times: what is shown, and the labels below."""

    begin: float
    end: float
    labels: tuple[tuple[float, str], ...]
    caption: str


def draw(title: str, times: Times, panels: Sequence[Panel]) -> str:
    """Give an SVG document with panels below each other."""
    height = _GAP + sum(panel.height + 2 * _GAP for panel in panels) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" {_FONT}>',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    top = _GAP
    for panel in panels:
        parts += _panel(panel, times, top)
        top += panel.height + 2 * _GAP
    parts.append(_text(WIDTH / 2, height - 8, times.caption, anchor="middle"))
    parts.append("</svg>\n")
    return "\n".join(parts)


def _panel(panel: Panel, times: Times, top: float) -> list[str]:
    def x(second: float) -> float:
        return _LEFT + (second - times.begin) / (times.end - times.begin) * (WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return top + panel.height * (1 - min(value, panel.highest) / panel.highest)

    parts = [_text(_LEFT, top - 14, panel.title, weight="bold"), *_legend(panel, top - 14)]
    for index in range(int(panel.highest / panel.step) + 1):
        value = index * panel.step
        parts.append(_rule(_LEFT, y(value), WIDTH - _RIGHT, y(value), "#ddd"))
        parts.append(_text(_LEFT - 6, y(value) + 4, f"{value:g}", anchor="end"))
    for second, label in times.labels:
        parts.append(_text(x(second), top + panel.height + 16, label, anchor="middle"))
    for band in panel.bands:
        upper = _steps(_shown(band.upper, times))
        lower = _steps(_shown(band.lower, times))
        outline = _path([(x(second), y(value)) for second, value in [*upper, *reversed(lower)]])
        parts.append(f'<path d="{outline}Z" fill="{band.colour}"/>')
    for line in panel.lines:
        path = _path([(x(second), y(value)) for second, value in _steps(_shown(line.points, times))])
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        parts.append(f'<path d="{path}" fill="none" stroke="{line.colour}" stroke-width="1.6"{dash}/>')
    for mark in panel.marks:
        parts.append(_rule(x(mark.at), top, x(mark.at), top + panel.height, mark.colour))
        parts.append(_text(x(mark.at) + 3, top + 11, mark.text, colour=mark.colour))
    return parts


def _shown(points: Points, times: Times) -> Points:
    return [(second, value) for second, value in points if times.begin <= second <= times.end]


def _steps(points: Points) -> list[tuple[float, float]]:
    """Keep a value until the next, and leave out what changes nothing."""
    steps: list[tuple[float, float]] = []
    for second, value in points:
        if steps and steps[-1][1] != value:
            steps.append((second, steps[-1][1]))
        if not steps or steps[-1][1] != value:
            steps.append((second, value))
    if steps and steps[-1][0] != points[-1][0]:
        steps.append((points[-1][0], steps[-1][1]))
    return steps


def _path(points: Points) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _legend(panel: Panel, top: float) -> list[str]:
    parts, left = [], float(WIDTH - _RIGHT)
    for name, colour in reversed([*((band.name, band.colour) for band in panel.bands), *_named(panel)]):
        left -= 7 * len(name) + 24
        parts.append(f'<rect x="{left:.1f}" y="{top - 9:.1f}" width="12" height="10" fill="{colour}"/>')
        parts.append(_text(left + 16, top, name))
    return parts


def _named(panel: Panel) -> list[tuple[str, str]]:
    return [(line.name, line.colour) for line in panel.lines]


def _rule(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal", colour: str = "#222") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{colour}">'
        f"{escape(text)}</text>"
    )
