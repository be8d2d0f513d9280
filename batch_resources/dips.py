# SPDX-License-Identifier: Apache-2.0
"""Decide for how long a dip of origin is not believed, and for how long its end is not.

Every origin that cannot be used is unknown: YARN's capacity goes to its use, and the claim stays. What differs is the
time. A zero may be a report that a restarting kubelet or koordlet spoiled, so it counts as unknown until it has lasted;
then it is a fall like any other. After Koordinator withdrew its figures, or they were absent or malformed, they count
again only once they have been there for a while. Times are monotonic seconds.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from batch_resources.annotations.origin import OriginReading, OriginState
from batch_resources.resources import ZERO_BATCH


class Figure(StrEnum):
    """Name what kind of origin a reading gives."""

    AMOUNT = "amount"
    ZERO = "zero"
    DEGRADED = "degraded"
    ABSENT = "absent"
    MALFORMED = "malformed"


class DipTimes(Struct, frozen=True, kw_only=True):
    """Hold for how long, in seconds, a dip or its end is not believed."""

    zero_hold_seconds: float = 15.0
    degraded_recovery_seconds: float = 0.0
    absent_recovery_seconds: float = 0.0
    malformed_recovery_seconds: float = 0.0

    def recovery_seconds(self, figure: Figure) -> float:
        """Give the time that has to pass after a figure that told nothing."""
        match figure:
            case Figure.DEGRADED:
                return self.degraded_recovery_seconds
            case Figure.ABSENT:
                return self.absent_recovery_seconds
            case Figure.MALFORMED:
                return self.malformed_recovery_seconds
            case _:
                return 0.0


class Dip(Struct, frozen=True, kw_only=True):
    """Hold the kind of the present origin, since when it is so, and which kind it was before."""

    figure: Figure
    since: float
    before: Figure = Figure.AMOUNT


_OF_STATE = {
    OriginState.DEGRADED: Figure.DEGRADED,
    OriginState.ABSENT: Figure.ABSENT,
    OriginState.MALFORMED: Figure.MALFORMED,
}


def figure_of(reading: OriginReading) -> Figure:
    """Tell which kind of origin was read."""
    if reading.state is not OriginState.KNOWN:
        return _OF_STATE[reading.state]
    return Figure.ZERO if reading.resources == ZERO_BATCH else Figure.AMOUNT


def observe_dip(dip: Dip | None, reading: OriginReading, *, now: float) -> Dip:
    """Take a reading into account; the first of a process is believed as it is."""
    figure = figure_of(reading)
    if dip is None:
        return Dip(figure=figure, since=now)
    return dip if dip.figure is figure else Dip(figure=figure, since=now, before=dip.figure)


def doubted_until(dip: Dip | None, times: DipTimes) -> float | None:
    """Give the moment until which an origin that was read is taken for unknown; None for one that never was."""
    if dip is None:
        return None
    match dip.figure:
        case Figure.ZERO:
            return dip.since + times.zero_hold_seconds
        case Figure.AMOUNT:
            return dip.since + times.recovery_seconds(dip.before)
        case _:
            return None
