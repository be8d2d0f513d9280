# SPDX-License-Identifier: Apache-2.0
"""Turn runs into the pictures of docs/sharing.md, and into the figures that the page quotes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.pictures.drawing import Band, Line, Mark, Panel, Points, Times, draw
from tests.pictures.runs import DAY_SECONDS, PODS_END, PODS_WAIT, play_day, play_transfer
from tests.pictures.world import TICK_SECONDS, Sample

YARN_FILL, KUBERNETES_FILL, EXCESS = "#9ecae1", "#a1d99b", "#de2d26"
ORIGIN, CLAIM, CAPACITY, ALLOCATABLE = "#111", "#e6550d", "#08519c", "#238b45"


class Gallery(NamedTuple):
    """Hold the pictures by file name, the rows of the page's table, and when each step of the transfer was."""

    pictures: dict[str, str]
    rows: tuple[str, ...]
    steps: tuple[str, ...]


def paint() -> Gallery:
    """Make the runs and draw them."""
    strict, shared = asyncio.run(play_day("strict")), asyncio.run(play_day("shared"))
    transfer = asyncio.run(play_transfer())
    return Gallery(
        pictures={
            "strict-day.svg": _draw_day(strict),
            "transfer.svg": _draw_transfer(transfer),
            "shared-and-strict.svg": _draw_both(shared, strict),
        },
        rows=(_row("shared", shared), _row("strict", strict)),
        steps=tuple(f"{moment - PODS_END:g} s" for _, moment in find_steps(transfer)),
    )


def _row(mode: str, samples: Sequence[Sample]) -> str:
    twice = sum(sample.sold_twice for sample in samples)
    seconds = sum(sample.excess > 0 for sample in samples) * TICK_SECONDS
    most = max(sample.excess for sample in samples) / 1000
    held = sum(sample.booked + sample.used for sample in samples) / sum(sample.origin for sample in samples)
    return f"| {mode} | {twice} | {seconds:.0f} | {most:.1f} | {held:.0%} |"


def _of(samples: Sequence[Sample], pick: Callable[[Sample], int]) -> Points:
    return [(sample.second, pick(sample) / 1000) for sample in samples]


def _sides(samples: Sequence[Sample]) -> tuple[Band, Band]:
    """Stack what Kubernetes has booked on what YARN uses."""
    used, both = _of(samples, lambda sample: sample.used), _of(samples, lambda sample: sample.booked + sample.used)
    return (
        Band("used by YARN", YARN_FILL, [(second, 0.0) for second, _ in used], used),
        Band("booked by Kubernetes", KUBERNETES_FILL, used, both),
    )


def _origin(samples: Sequence[Sample]) -> Line:
    return Line("origin", ORIGIN, _of(samples, lambda sample: sample.origin))


def _hours() -> Times:
    labels = tuple((hour * DAY_SECONDS / 24, f"{hour:02}:00") for hour in range(0, 25, 3))
    return Times(0, DAY_SECONDS, labels, "hour of the load (one minute of the run is an hour of load)")


def _draw_day(samples: Sequence[Sample]) -> str:
    panel = Panel(
        title="cores",
        highest=36,
        step=6,
        height=320,
        bands=_sides(samples),
        lines=(
            _origin(samples),
            Line("claimed", CLAIM, _of(samples, lambda sample: sample.claimed)),
            Line("capacity of YARN", CAPACITY, _of(samples, lambda sample: sample.capacity)),
        ),
    )
    return draw("One node over a day in mode strict", _hours(), [panel])


def _draw_both(shared: Sequence[Sample], strict: Sequence[Sample]) -> str:
    panels = []
    for mode, samples in (("shared", shared), ("strict", strict)):
        origin = _of(samples, lambda sample: sample.origin)
        over = _of(samples, lambda sample: sample.origin + sample.excess)
        marks = tuple(Mark(sample.second, "", EXCESS) for sample in samples if sample.sold_twice)
        panels.append(
            Panel(
                title=f"mode {mode}, cores",
                highest=36,
                step=6,
                bands=(*_sides(samples), Band("more than there is", EXCESS, origin, over)),
                lines=(_origin(samples),),
                marks=marks,
            )
        )
    return draw("The same day in modes shared and strict", _hours(), panels)


def _draw_transfer(samples: Sequence[Sample]) -> str:
    steps = find_steps(samples)
    yarn = Panel(
        title="YARN, cores",
        highest=24,
        step=4,
        bands=(_sides(samples)[0],),
        lines=(
            _origin(samples),
            Line("claimed", CLAIM, _of(samples, lambda sample: sample.claimed)),
            Line("capacity", CAPACITY, _of(samples, lambda sample: sample.capacity)),
        ),
        marks=_numbered([moment for _, moment in steps]),
    )
    booked = _of(samples, lambda sample: sample.booked)
    kubernetes = Panel(
        title="Kubernetes, cores",
        highest=24,
        step=4,
        bands=(Band("booked", KUBERNETES_FILL, [(second, 0.0) for second, _ in booked], booked),),
        lines=(
            _origin(samples),
            Line("allocatable as published", ALLOCATABLE, _of(samples, lambda sample: sample.allocatable)),
        ),
        marks=yarn.marks,
    )
    begin, end = PODS_END - 5.0, samples[-1].second
    labels = tuple((begin + second, f"{second - 5} s") for second in range(5, int(end - begin), 10))
    captions = ", ".join(f"{number}: {moment - PODS_END:g} s" for number, (_, moment) in enumerate(steps, 1))
    return draw("The steps of a transfer, there and back", Times(begin, end, labels, captions), [yarn, kubernetes])


def _numbered(moments: Sequence[float]) -> tuple[Mark, ...]:
    """Number the moments; those that fall together share a mark."""
    numbers: dict[float, list[str]] = {}
    for number, moment in enumerate(moments, 1):
        numbers.setdefault(moment, []).append(str(number))
    return tuple(Mark(moment, ", ".join(texts)) for moment, texts in numbers.items())


def find_steps(samples: Sequence[Sample]) -> list[tuple[str, float]]:
    """Find the moments of the steps, there and back, in the order in which the page explains them."""

    def first(after: float, is_it: Callable[[Sample, Sample], bool]) -> float:
        pairs = pairwise(samples)
        return next(now.second for before, now in pairs if now.second > after and is_it(before, now))

    claimed = first(PODS_END, lambda before, now: now.claimed > before.claimed)
    published = first(claimed - TICK_SECONDS, lambda before, now: now.allocatable < before.allocatable)
    grown = first(published, lambda before, now: now.capacity > before.capacity)
    waits = float(PODS_WAIT)
    ended = first(waits, lambda before, now: now.used < before.used)
    lowered = first(ended - TICK_SECONDS, lambda before, now: now.capacity < before.capacity)
    given = first(lowered, lambda before, now: now.claimed < before.claimed)
    bound = first(given - TICK_SECONDS, lambda before, now: now.booked > before.booked)
    return [
        ("claimed", claimed),
        ("published", published),
        ("grown", grown),
        ("pods wait", waits),
        ("containers end", ended),
        ("lowered", lowered),
        ("claim lowered", given),
        ("bound", bound),
    ]
