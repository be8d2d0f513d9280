# SPDX-License-Identifier: Apache-2.0
"""Tell who is to blame for a node on which both sides hold more than origin. Pure: time is passed in.

The rule is the judge's: a growth counts as sold twice unless it rests on a permission older than a fall of origin.
Here it is asked of readings, some twenty a second, instead of a log of every event.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from batch_resources.resources import ZERO_BATCH, BatchResources
from lab.judge.books import Origins, permitted
from lab.judge.judging import Tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """Hold what both sides of a node have, and what they were told they may have.

    Attributes:
        held, used: K and Y.
        offered: A as published; zero while there is none.
        capacity: C.
    """

    held: BatchResources
    used: BatchResources
    offered: BatchResources = ZERO_BATCH
    capacity: BatchResources = ZERO_BATCH

    @property
    def in_use(self) -> BatchResources:
        """Give K + Y."""
        return self.held + self.used

    def grew_from(self, before: Holdings | None) -> bool:
        """Tell whether a side has more than before."""
        return before is None or not (self.held.fits_in(before.held) and self.used.fits_in(before.used))


@dataclass(slots=True)
class _Node:
    origins: Origins
    before: Holdings | None = None
    is_sold_twice: bool = False


@dataclass(slots=True)
class ExcessMeter:
    """Follow all nodes from reading to reading."""

    tolerance: Tolerance = field(default_factory=Tolerance)
    _nodes: dict[str, _Node] = field(default_factory=dict)

    def is_sold_twice(self, node: str, holdings: Holdings, origin: BatchResources, at_seconds: float) -> bool:
        """Take a reading; tell whether there is an excess to which somebody's growth contributed.

        Args:
            node: its name.
            holdings: what was read.
            origin: O as published; a node is read from its first publication on.
            at_seconds: when, by any one clock.
        """
        known = self._nodes.get(node)
        if known is None:
            origins = Origins(self.tolerance.flight_seconds, self.tolerance.fall_seconds)
            known = self._nodes[node] = _Node(origins)
        known.origins.publish(origin, at_seconds)
        if holdings.in_use.fits_in(origin):
            known.is_sold_twice = False
        elif holdings.grew_from(known.before):
            known.is_sold_twice |= not known.origins.excuse(holdings.in_use, at_seconds)
        may_come = permitted(holdings.held, holdings.offered, holdings.used, holdings.capacity)
        known.origins.note_permitted(may_come, at_seconds)
        known.before = holdings
        return known.is_sold_twice
