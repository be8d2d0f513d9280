# SPDX-License-Identifier: Apache-2.0
"""Keep the books of one node while a log is gone through."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import NamedTuple

from batch_resources.resources import ZERO_BATCH, BatchResources
from lab.judge.events import NodeVersion


class Shown(NamedTuple):
    """Hold what the log showed from a moment on: K + P, O, and Y."""

    at: float
    taken: BatchResources
    origin: BatchResources | None
    used: BatchResources


def total(amounts: Iterable[BatchResources]) -> BatchResources:
    """Add up."""
    result = ZERO_BATCH
    for amount in amounts:
        result = result + amount
    return result


def permitted(
    requested: BatchResources, allocatable: BatchResources, used: BatchResources, capacity: BatchResources
) -> BatchResources:
    """Give what both may hold without another word from anybody: max(K, A) + max(Y, C)."""
    return requested.at_least(allocatable) + used.at_least(capacity)


@dataclass(slots=True)
class Origins:
    """Remember the origins that a growth may still rest on.

    An origin counts from when it was published until everything that was permitted has fitted, for
    `flight_seconds` without a break, into a lower one that followed; and never longer than `fall_seconds` after it
    was replaced.
    """

    flight_seconds: float
    fall_seconds: float
    current: BatchResources | None = None
    older: deque[tuple[float, BatchResources]] = field(default_factory=deque)
    fits_since: float | None = None

    def publish(self, origin: BatchResources | None, at: float) -> None:
        """Take a published origin."""
        if origin == self.current:
            return
        if self.current is not None:
            self.older.append((at, self.current))
        self.current, self.fits_since = origin, None

    def note_permitted(self, permitted: BatchResources, at: float) -> None:
        """Take what both sides may hold by all that was permitted until now."""
        if self.fits_since is not None and at - self.fits_since >= self.flight_seconds:
            self.older.clear()
        if self.current is None or not permitted.fits_in(self.current):
            self.fits_since = None
        elif self.fits_since is None:
            self.fits_since = at

    def excuse(self, in_use: BatchResources, at: float) -> bool:
        """Tell whether what is in use fits into an older origin on which a permission may still rest."""
        if self.fits_since is not None and at - self.fits_since >= self.flight_seconds:
            self.older.clear()
        while self.older and at - self.older[0][0] > self.fall_seconds:
            self.older.popleft()
        return any(in_use.fits_in(origin) for _, origin in self.older)


@dataclass(slots=True)
class NodeBooks:
    """Hold one node."""

    origins: Origins
    keep_seconds: float
    pods: dict[str, BatchResources] = field(default_factory=dict)
    containers: dict[str, BatchResources] = field(default_factory=dict)
    capacities: dict[str, BatchResources] = field(default_factory=dict)
    version: NodeVersion | None = None
    history: deque[Shown] = field(default_factory=deque)
    uncovered_since: float | None = None

    @property
    def requested(self) -> BatchResources:
        """Give K."""
        return total(self.pods.values())

    @property
    def used(self) -> BatchResources:
        """Give Y."""
        return total(self.containers.values())

    @property
    def others(self) -> BatchResources:
        """Give P."""
        return ZERO_BATCH if self.version is None else self.version.others

    def shown_between(self, first: float, last: float) -> Iterator[Shown]:
        """Give what was shown at some time from one moment to another, both included."""
        for shown, following in zip_longest(self.history, islice(self.history, 1, None)):
            if shown.at <= last and (following is None or following.at > first):
                yield shown

    def permitted(self) -> BatchResources:
        """Give what may be held by what is published and in force: P + max(K, A) + max(Y, C)."""
        allocatable = ZERO_BATCH if self.version is None else self.version.allocatable
        capacity = total(self.capacities.values())
        return self.others + permitted(self.requested, allocatable, self.used, capacity)

    def note(self, at: float) -> None:
        """Remember what is shown now, for as long as the order of events may be in doubt."""
        self.history.append(Shown(at, self.requested + self.others, self.origins.current, self.used))
        while len(self.history) > 1 and self.history[1].at < at - self.keep_seconds:
            self.history.popleft()
        self.origins.note_permitted(self.permitted(), at)
