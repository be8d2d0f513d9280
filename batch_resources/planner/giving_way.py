# SPDX-License-Identifier: Apache-2.0
"""Join the stages of giving way to a plan, whatever its mode.

A stage never raises a value: it takes single MiB off what the planner sends, or keeps a few above the floor while use
is higher. Both stay at or below the use and the capacity that the NodeManager has, where every value is safe.
"""

from __future__ import annotations

from msgspec.structs import replace

from batch_resources.giving_way import GivingWay, Situation, Stage, decide, highest_target
from batch_resources.ledger import Hold, ManagerObservation, ManagerPlan, NodeObservation, NodePlan
from batch_resources.planner.inputs import judge_inputs, used_by_yarn
from batch_resources.planner.policy import Policy
from batch_resources.resources import ZERO_YARN, BatchResources
from batch_resources.sends import changes_value, is_under_way, lowest_possible, unconfirmed


def exceeds_origin(node: NodeObservation, policy: Policy, *, now: float) -> bool | None:
    """Tell whether `O < K + P + Y` for one of the resources; None when a part is unknown."""
    origin = node.origin.resources
    if origin is None or node.requested is None or node.others is None:
        return None
    if any(manager.used is None for manager in node.managers):
        return None
    if (node.requested + node.others + node.lingering + used_by_yarn(node, policy)).fits_in(origin):
        return False
    # An origin that is too old to be used, say, tells nothing.
    return None if judge_inputs(node, policy, now=now).origin is None else True


def give_way(node: NodeObservation, plan: NodePlan, policy: Policy, *, now: float) -> NodePlan:
    """Put every NodeManager of a plan into its stage.

    Args:
        node: what was observed.
        plan: what the mode decided.
        policy: the operator's choices.
        now: monotonic seconds.
    """
    if node.over_since is not None:
        plan = replace(plan, over_since=node.over_since)
    if not any(_is_above(manager, decided) for manager, decided in zip(node.managers, plan.managers, strict=True)):
        return plan
    managers = tuple(
        _give_way(node, manager, decided, policy, now) if _is_above(manager, decided) else decided
        for manager, decided in zip(node.managers, plan.managers, strict=True)
    )
    moments = [plan.recheck_at, *(manager.giving_way.next_at for manager in managers)]
    return replace(
        plan, managers=managers, recheck_at=min((moment for moment in moments if moment is not None), default=None)
    )


def _is_above(manager: ManagerObservation, plan: ManagerPlan) -> bool:
    """Tell whether a NodeManager uses more than it has, or is to have."""
    if manager.used is None or manager.capacity is None:
        return False
    value = plan.next_value
    return not (manager.used.fits_in(manager.capacity) and (value is None or manager.used.fits_in(value)))


def _give_way(
    node: NodeObservation, manager: ManagerObservation, plan: ManagerPlan, policy: Policy, now: float
) -> ManagerPlan:
    capacity, used = manager.capacity, manager.used
    assert capacity is not None and used is not None  # noqa: S101, PT018  # see `_is_above`
    outstanding = unconfirmed(manager.sends)
    values = tuple(send.resources for send in outstanding)
    lowest = lowest_possible(capacity, manager.sends)
    planned = plan.next_value if plan.next_value is not None else lowest
    if not plan.sends_update and not is_under_way(outstanding, planned):
        planned = planned.at_most(lowest)  # a growth that the mode withholds is none of giving way's business
    grace = policy.giving_way.grace_seconds
    level, falls_at = highest_target(manager.levels, plan.target or planned, now=now, length_seconds=grace)
    situation = Situation(
        over_since=node.over_since,
        used=used,
        capacity=capacity,
        lowest=lowest,
        value=planned,
        level=level,
        level_falls_at=falls_at,
        floor=policy.floor,
        overcommit=manager.overcommit,
        open_values=values,
        is_under_way=bool(outstanding) and not outstanding[-1].is_lost,
        may_send=_may_send(node, manager, plan, now),
    )
    way = decide(situation, policy.giving_way, now=now)
    return replace(
        plan,
        sends_update=_sends(way, manager, plan),
        update=way.value if way.value is not None else plan.update,
        giving_way=way,
        kill_ask=_kill_ask(node, manager, way, policy),
    )


def _may_send(node: NodeObservation, manager: ManagerObservation, plan: ManagerPlan, now: float) -> bool:
    return (
        plan.target is not None
        and not node.claim_is_foreign
        and now >= manager.retry_at
        and Hold.EARLIER_LEADER_AWAITED not in plan.holds
    )


def _sends(way: GivingWay, manager: ManagerObservation, plan: ManagerPlan) -> bool:
    if way.needs_update:
        return True
    if way.deadline is not None or way.value is None:
        return False
    if way.value == plan.next_value:
        return plan.sends_update
    return plan.sends_update and changes_value(manager.sends, manager.capacity, way.value)


def _kill_ask(
    node: NodeObservation, manager: ManagerObservation, way: GivingWay, policy: Policy
) -> BatchResources | None:
    """Give what is to be freed on the node, by a read that began after the ResourceManager's time was over."""
    running = manager.running
    if way.stage is not Stage.FORCED or way.value is None or way.deadline is None or running is None:
        return None
    if running.read_at < way.deadline + policy.giving_way.forced_after_seconds:
        return None
    kept = policy.units.to_batch(way.value, normalization_ratio=node.normalization_ratio)
    # A container may use more memory than it was given; that is not what YARN has to give back.
    given = policy.units.to_batch(manager.used or ZERO_YARN, normalization_ratio=node.normalization_ratio)
    ask = (running.holds.at_most(given) - kept).floored()
    return ask if ask.cpu_milli or ask.memory_bytes else None
