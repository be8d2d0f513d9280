# SPDX-License-Identifier: Apache-2.0
"""Decide in which stage a NodeManager gives back what it uses beyond its part, and with which over-commit deadline.

*Soft*: capacity below use with a deadline that never comes; nothing dies, nothing new is placed. *Graded*: the node has
been over origin for the whole grace, so the same capacity goes out with a near deadline; the ResourceManager warns the
ApplicationMasters and then kills. *Forced*: it did not act by then, so the program beside the NodeManager is asked.

The ResourceManager ignores an update whose value it has already, its deadline included. So a change of the deadline
alone takes one MiB off the value: always downwards, because a lower capacity is never unsafe. For the same reason the
value stays a few MiB above the floor while use is above it. What the deadline at the ResourceManager is, nobody can
read there; a new term assumes that one may run, calls it off where something could die, and begins its grace anew.
Times are monotonic seconds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batch_resources.resources import YarnResources

NUDGE_LIMIT_MIB: Final = 16
"""Room above the floor for changes of one MiB, and the difference that is not worth an update while use is above both.

Smaller than any container, so nothing is ever placed in it.
"""

Levels = tuple[tuple[YarnResources, float], ...]
"""Hold targets with the last moment at which each was in force, from old to new."""


class Stage(StrEnum):
    """Name how hard a NodeManager is asked to give back."""

    NONE = "none"
    SOFT = "soft"
    GRADED = "graded"
    FORCED = "forced"


class Stages(Struct, frozen=True, kw_only=True):
    """Hold the operator's choices.

    Attributes:
        graded: whether containers may be killed by the ResourceManager at all.
        grace_seconds: how long `O < K + P + Y` has to hold without a break before that.
        preemption_seconds: time from the warning to the ApplicationMasters to the kill; above zero.
        forced: whether tasks may be killed on the node when the ResourceManager does not act.
        forced_after_seconds: time after the deadline in which it may still act.
    """

    graded: bool = True
    grace_seconds: float = 120.0
    preemption_seconds: float = 30.0
    forced: bool = False
    forced_after_seconds: float = 15.0


class Overcommit(Struct, frozen=True, kw_only=True):
    """Hold what our newest update left at the ResourceManager.

    Attributes:
        value: the total that it carried; None before the first update of this term.
        deadline: when containers above it are killed; None for the far deadline, by which nothing dies.
        is_certain: the ResourceManager has taken it; otherwise an earlier deadline may still run.
    """

    value: YarnResources | None = None
    deadline: float | None = None
    is_certain: bool = False


UNTOLD: Final = Overcommit()
"""What is known of a ResourceManager that got no update in this term."""


class Situation(Struct, frozen=True, kw_only=True):
    """Hold one NodeManager as this decision looks at it.

    Attributes:
        over_since: since when the node has been over origin without a break; None when it is not, or not for sure.
        used: Y, as the ResourceManager counts it.
        capacity: C as last read.
        lowest: C, or less where an update that may still land says so.
        value: C as the planner would send it, or leave it.
        level: the highest target of the grace; only what is above it has been in excess all the time.
        level_falls_at: when the level may become lower.
        floor: m.
        overcommit: what our newest update left.
        open_values: values of updates that may not have landed yet.
        is_under_way: the newest of them was not lost.
        may_send: an update may go out now.
    """

    over_since: float | None
    used: YarnResources
    capacity: YarnResources
    lowest: YarnResources
    value: YarnResources
    level: YarnResources
    floor: YarnResources
    level_falls_at: float | None = None
    overcommit: Overcommit = Overcommit()
    open_values: tuple[YarnResources, ...] = ()
    is_under_way: bool = False
    may_send: bool = True


class GivingWay(Struct, frozen=True, kw_only=True):
    """Hold the decision.

    Attributes:
        stage: where the NodeManager is.
        next_stage: what comes when nothing changes; None when nothing does.
        next_at: when; None when that depends on something else than time.
        value: the total that is to be in force.
        deadline: when the ResourceManager kills what is above it; None for never.
        needs_update: the update has to go out although the planner alone would send nothing, or something else.
    """

    stage: Stage = Stage.NONE
    next_stage: Stage | None = None
    next_at: float | None = None
    value: YarnResources | None = None
    deadline: float | None = None
    needs_update: bool = False


NOT_GIVING_WAY: Final = GivingWay()


def observe_excess(since: float | None, is_over: bool | None, *, now: float) -> float | None:
    """Give the moment since which the node has been over origin; what is not known breaks it."""
    if not is_over:
        return None
    return now if since is None else since


def decide(seen: Situation, stages: Stages, *, now: float) -> GivingWay:
    """Give stage, value and deadline of one NodeManager."""
    value = _above_floor(seen)
    if seen.used.fits_in(value) and seen.used.fits_in(seen.lowest):
        return GivingWay(value=seen.value)
    is_due = _is_due(seen, stages, now)
    if is_due and not seen.used.fits_in(value) and _is_justified(seen, value):
        return _graded(seen, stages, value, now)
    return _soft(seen, stages, value, now)


def is_near(value: YarnResources, target: YarnResources) -> bool:
    """Tell whether a value differs from its target only by changes that carried a deadline."""
    return value.vcores == target.vcores and 0 <= target.memory_mib - value.memory_mib <= NUDGE_LIMIT_MIB


def observe_target(levels: Levels, target: YarnResources, *, now: float, length_seconds: float) -> Levels:
    """Add the target that holds now and drop what ended before the grace that ends now began."""
    if levels:
        levels = (*levels[:-1], (levels[-1][0], now))
    kept = tuple(level for level in levels if now - level[1] < length_seconds and not level[0].fits_in(target))
    return (*kept, (target, now))


def highest_target(
    levels: Levels, target: YarnResources, *, now: float, length_seconds: float
) -> tuple[YarnResources, float | None]:
    """Give the highest target of the grace, per resource, the present one included, and when it may become lower.

    The newest target seen was in force until now, whenever it was seen last.
    """
    falls_at = None
    for place, (seen, last_seen_at) in enumerate(levels):
        ended_at = now if place == len(levels) - 1 else last_seen_at
        if seen.fits_in(target) or now - ended_at >= length_seconds:
            continue
        target = target.at_least(seen)
        falls_at = min(ended_at + length_seconds, falls_at or float("inf"))
    return target, falls_at


def _is_due(seen: Situation, stages: Stages, now: float) -> bool:
    return stages.graded and seen.over_since is not None and now - seen.over_since >= stages.grace_seconds


def _is_justified(seen: Situation, value: YarnResources) -> bool:
    """Tell whether all that would die has been in excess for the whole grace: a target that just fell waits."""
    return seen.level.vcores <= value.vcores and seen.level.memory_mib <= value.memory_mib + NUDGE_LIMIT_MIB


def _above_floor(seen: Situation) -> YarnResources:
    """Keep some MiB above the floor while use is higher anyway, so that a deadline can be set and called off there."""
    if seen.over_since is None or seen.value.memory_mib >= seen.floor.memory_mib + NUDGE_LIMIT_MIB:
        return seen.value
    most = min(seen.lowest.memory_mib, seen.used.memory_mib, seen.floor.memory_mib + NUDGE_LIMIT_MIB)
    return replace(seen.value, memory_mib=max(seen.value.memory_mib, most))


def _is_in_force(seen: Situation) -> bool:
    """Tell whether our newest update is what the ResourceManager works with, or will in a moment."""
    left = seen.overcommit
    if left.value is None:
        return False
    if seen.open_values and seen.open_values[-1] == left.value:
        return seen.is_under_way
    # An older one that was lost and lands after all shows as another capacity, and is answered then.
    return left.is_certain and left.value == seen.capacity


def _graded(seen: Situation, stages: Stages, value: YarnResources, now: float) -> GivingWay:
    left = seen.overcommit
    running = left.deadline if _is_in_force(seen) else None
    if running is not None and left.value is not None and is_near(left.value, value):
        return _waiting(stages, left.value, running, now, is_certain=left.is_certain)
    # A deadline that is over has struck: what has to go beyond it is warned of anew.
    deadline = now + stages.preemption_seconds if running is None or running <= now else running
    changed = _changed(seen, value)
    if changed is None or not seen.may_send:
        return GivingWay(stage=Stage.SOFT, value=value)
    plan = _waiting(stages, changed, deadline, now, is_certain=False)
    return replace(plan, needs_update=True)


def _waiting(stages: Stages, value: YarnResources, deadline: float, now: float, *, is_certain: bool) -> GivingWay:
    forced_at = deadline + stages.forced_after_seconds
    if not stages.forced:
        return GivingWay(stage=Stage.GRADED, value=value, deadline=deadline)
    if is_certain and now >= forced_at:
        return GivingWay(stage=Stage.FORCED, value=value, deadline=deadline)
    return GivingWay(stage=Stage.GRADED, next_stage=Stage.FORCED, next_at=forced_at, value=value, deadline=deadline)


def _soft(seen: Situation, stages: Stages, value: YarnResources, now: float) -> GivingWay:
    graded_at = None
    if stages.graded and seen.over_since is not None:
        graded_at = max(seen.over_since + stages.grace_seconds, seen.level_falls_at or 0.0)
    plan = GivingWay(
        stage=Stage.SOFT,
        next_stage=None if graded_at is None else Stage.GRADED,
        next_at=graded_at if graded_at is not None and graded_at > now else None,
        value=value,
    )
    is_harmless = _is_in_force(seen) and seen.overcommit.deadline is None
    if seen.used.fits_in(seen.lowest) or is_harmless:
        return plan
    changed = _changed(seen, value)
    if changed is None or not seen.may_send:
        return plan
    return replace(plan, value=changed, needs_update=True)


def _changed(seen: Situation, value: YarnResources) -> YarnResources | None:
    """Give a value that the ResourceManager cannot take for the one it has; None when the floor leaves none."""
    taken = {seen.capacity, *seen.open_values}
    while value in taken:
        value = replace(value, memory_mib=value.memory_mib - 1)
    return value if seen.floor.fits_in(value) else None
