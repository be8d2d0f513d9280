# SPDX-License-Identifier: Apache-2.0
"""Keep a boundary where it is for a while, so that it does not swing.

A boundary that moved one way goes back only when the growth window has passed, or when demand has changed. A goal that
the budget no longer allows is followed at once; that is no move of the boundary. Times are monotonic seconds.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace


class Standing(Struct, frozen=True, kw_only=True):
    """Hold where the boundary of one resource was put, and why it may not go back yet.

    Attributes:
        yarn: YARN's part, in the resource's unit.
        towards: 1 after a move towards YARN, -1 after one towards Kubernetes, 0 after none.
        moved_at: when it last moved.
        demand: what was waited for then: the pods' need, and whether YARN waited.
    """

    yarn: int
    towards: int = 0
    moved_at: float = 0.0
    demand: tuple[int, bool | None] = (0, None)


def stand(
    before: Standing | None, wish: int, *, demand: tuple[int, bool | None], window_seconds: float, now: float
) -> Standing:
    """Give where the boundary stands when it is wished elsewhere.

    Args:
        before: where it stood; None for a node that is seen for the first time.
        wish: YARN's part as demand and weights would have it.
        demand: who waits now.
        window_seconds: time in which it does not go back.
        now: monotonic seconds.
    """
    if before is None:
        return Standing(yarn=wish, moved_at=now, demand=demand)
    if wish == before.yarn:
        return before if demand == before.demand else replace(before, demand=demand)
    towards = 1 if wish > before.yarn else -1
    goes_back = towards == -before.towards
    if goes_back and demand == before.demand and now - before.moved_at < window_seconds:
        return before
    return Standing(yarn=wish, towards=towards, moved_at=now, demand=demand)


def may_go_back_at(standing: Standing, wish: int, window_seconds: float) -> float | None:
    """Give the moment from which a wish counts that is not followed yet; None where it is."""
    return None if wish == standing.yarn else standing.moved_at + window_seconds
