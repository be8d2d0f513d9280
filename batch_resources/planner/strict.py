# SPDX-License-Identifier: Apache-2.0
"""Plan one node in mode `strict`: the two schedulers together never hold more than Koordinator says is there.

This module puts a real node into the amounts of `strict_rules`, once for cpu and once for memory, and joins both
answers: an update and a patch always carry both resources, so each may go only when both allow it. The wish comes from
`boundary`; inputs, shares between clusters, floors and back-off are the same as in mode `shared`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final, NamedTuple

from msgspec.structs import replace

from batch_resources.ledger import ClaimAction, Hold, ManagerObservation, ManagerPlan, NodeObservation, NodePlan
from batch_resources.planner.capacity import can_be_told, plan_managers
from batch_resources.planner.claim import plan_release
from batch_resources.planner.inputs import Inputs, judge_inputs, recheck_at
from batch_resources.planner.orders import limit, limit_holds
from batch_resources.planner.policy import Policy
from batch_resources.planner.strict_amounts import Decision, ManagerAmounts, NodeAmounts
from batch_resources.planner.strict_rules import changes_something, decide
from batch_resources.planner.wishing import RESOURCES, Pick, Wish, wish_for
from batch_resources.resources import ZERO_BATCH, ZERO_YARN, BatchResources, YarnResources
from batch_resources.sends import changes_value, unconfirmed

_LAG_LOOK_SECONDS: Final = 1.0
"""Time between two looks at a watch that is too late; its catching up is no event of a single node."""

_FORCE_SECONDS: Final = 2.0
"""koord-manager publishes what is large enough within milliseconds; what is not there by then was too small."""


class _Converted(NamedTuple):
    """Be one NodeManager's amounts in Koordinator's units, and what holds for both resources of it."""

    capacity: BatchResources | None
    used: BatchResources
    floor: BatchResources
    unconfirmed: tuple[BatchResources, ...]
    alive: tuple[BatchResources, ...]
    proven: BatchResources | None
    goal: BatchResources
    may_send: bool
    is_read: bool


class _Either(NamedTuple):
    """Be what holds for cpu, for memory or for both."""

    wants_counter: bool
    wants_fresh_read: bool
    waits_for_publication: bool
    waits_for_settling: bool
    waits_for_proof: bool

    @classmethod
    def of(cls, cpu: Decision, memory: Decision) -> _Either:
        """Join both decisions."""
        return cls(
            wants_counter=cpu.wants_counter or memory.wants_counter,
            wants_fresh_read=cpu.wants_fresh_read or memory.wants_fresh_read,
            waits_for_publication=cpu.waits_for_publication or memory.waits_for_publication,
            waits_for_settling=cpu.waits_for_settling or memory.waits_for_settling,
            waits_for_proof=cpu.waits_for_proof or memory.waits_for_proof,
        )


def plan_node(node: NodeObservation, policy: Policy, *, now: float) -> NodePlan:
    """Decide the next steps on one node.

    Args:
        node: what was observed, its `permissions` included.
        policy: the operator's choices.
        now: monotonic seconds.
    """
    inputs = judge_inputs(node, policy, now=now)
    wish = None if inputs.budget is None else wish_for(node, inputs, policy, now=now)
    goal = None if wish is None or inputs.budget is None else limit(wish.yarn, inputs.budget, node.orders)
    wished = plan_managers(node, goal, policy, may_grow=inputs.may_grow, now=now)
    converted = [
        _convert(manager, plan, policy, node.normalization_ratio)
        for manager, plan in zip(node.managers, wished, strict=True)
    ]
    fresh, is_settled = _fresh_requested(node, policy, now), _is_settled_at(node, policy, now)
    amounts = tuple([_amounts(node, inputs, converted, pick, fresh, is_settled=is_settled) for pick in RESOURCES])
    decisions = (decide(amounts[0]), decide(amounts[1]))
    either = _Either.of(*decisions)
    managers = tuple(
        [_manager_plan(node, index, plan, policy, amounts, decisions, now) for index, plan in enumerate(wished)]
    )
    wanted = BatchResources(cpu_milli=decisions[0].claim, memory_bytes=decisions[1].claim)
    claim, action, claim_holds = _claim(node, policy, wanted, either, now)
    is_nudge = action is ClaimAction.WRITE and claim == node.claimed
    return NodePlan(
        node=node.node,
        origin=inputs.origin,
        reserve=inputs.reserve,
        window_minimum=inputs.lowest,
        budget=inputs.budget,
        managers=managers,
        claim=claim,
        claim_action=action,
        holds=(*inputs.holds, *limit_holds(inputs.budget, node.orders), *claim_holds, *_waits(node, policy, either)),
        recheck_at=_next_moment(node, policy, inputs, either, wish, now),
        wants_fresh_read=either.wants_fresh_read or _is_half_known(amounts, decisions),
        demand=node.demand,
        boundary=() if wish is None else wish.why,
        standing=node.standing if wish is None else wish.standing,
        forces_publication=is_nudge and policy.boundary.force_publication and node.permissions.can_be_forced,
    )


def _convert(manager: ManagerObservation, wished: ManagerPlan, policy: Policy, ratio: Fraction | None) -> _Converted:
    def to_batch(amount: YarnResources) -> BatchResources:
        return policy.units.to_batch(amount, normalization_ratio=ratio)

    capacity = manager.capacity
    if capacity is None and manager.reachable and manager.outlives_earlier_leaders:
        capacity = ZERO_YARN  # the ResourceManager was asked and has no such node
    used = manager.used or ZERO_YARN
    held = (capacity or ZERO_YARN).at_least(used)
    return _Converted(
        capacity=None if capacity is None else to_batch(capacity),
        used=to_batch(used),
        floor=to_batch(policy.floor),
        unconfirmed=tuple([to_batch(send.resources) for send in unconfirmed(manager.sends)]) if manager.sends else (),
        alive=tuple([to_batch(send.resources) for send in manager.sends]) if manager.sends else (),
        proven=None if manager.proven is None or not manager.reachable else to_batch(manager.proven),
        goal=to_batch(held if wished.target is None else wished.target),
        may_send=manager.outlives_earlier_leaders and can_be_told(manager),
        is_read=manager.outlives_earlier_leaders and capacity is not None,
    )


def _amounts(
    node: NodeObservation,
    inputs: Inputs,
    converted: list[_Converted],
    pick: Pick,
    fresh: BatchResources | None,
    *,
    is_settled: bool,
) -> NodeAmounts:
    open_ = node.permissions
    managers = [
        ManagerAmounts(
            capacity=None if item.capacity is None else pick(item.capacity),
            used=pick(item.used),
            floor=pick(item.floor),
            unconfirmed=tuple(map(pick, item.unconfirmed)) if item.unconfirmed else (),
            alive=tuple(map(pick, item.alive)) if item.alive else (),
            proven=None if item.proven is None else pick(item.proven),
            may_send=item.may_send,
            is_read=item.is_read,
            goal=pick(item.goal),
        )
        for item in converted
    ]
    return NodeAmounts(
        origin=None if inputs.origin is None else pick(inputs.origin),
        others=None if node.others is None else pick(node.others),
        reserve=pick(inputs.reserve),
        claimed=pick(node.claimed or ZERO_BATCH),
        allocatable=pick(open_.allocatable),
        requested=None if fresh is None else pick(fresh),
        is_settled=is_settled,
        counter_is_ours=open_.counter_is_ours,
        has_outstanding_patch=open_.has_outstanding_patch,
        managers=(*managers, *_lingering(node, pick)),
    )


def _lingering(node: NodeObservation, pick: Pick) -> tuple[ManagerAmounts, ...]:
    """Let what lingers stand as a NodeManager that holds so much, is never told anything, and only becomes less."""
    amount = pick(node.lingering)
    if not amount and node.lingering_is_known:
        return ()
    proven = amount if node.lingering_is_known else None
    return (ManagerAmounts(capacity=None, used=amount, proven=proven, goal=amount),)


def _fresh_requested(node: NodeObservation, policy: Policy, now: float) -> BatchResources | None:
    """Give K by a read that may be used now: young, and not begun before the settle time was over."""
    open_ = node.permissions
    if open_.requested is None or open_.requested_at is None:
        return None
    if now - open_.requested_at > policy.boundary.fresh_read_seconds:
        return None
    is_early = not _is_settled_at(node, policy, open_.requested_at) and _is_settled_at(node, policy, now)
    return None if is_early else open_.requested


def _is_settled_at(node: NodeObservation, policy: Policy, moment: float) -> bool:
    since = node.permissions.settle_since
    if since is None or _is_watch_too_late(node, policy):
        return False
    return moment - since >= policy.boundary.settle_seconds


def _is_watch_too_late(node: NodeObservation, policy: Policy) -> bool:
    """Tell whether a scheduler may still book by what was published before the settle time began."""
    return node.permissions.watch_lag_seconds > policy.boundary.settle_seconds


def _manager_plan(
    node: NodeObservation,
    index: int,
    wished: ManagerPlan,
    policy: Policy,
    amounts: tuple[NodeAmounts, ...],
    decisions: tuple[Decision, ...],
    now: float,
) -> ManagerPlan:
    """Join the answers for cpu and memory into one update, or none."""
    manager = node.managers[index]
    cpu, memory = decisions[0].capacities[index], decisions[1].capacities[index]
    holds = wished.holds
    if wished.target is not None and not manager.outlives_earlier_leaders:
        holds = (*holds, Hold.EARLIER_LEADER_AWAITED)
    if cpu is None or memory is None or node.claim_is_foreign or now < manager.retry_at:
        return replace(wished, sends_update=False, holds=holds)
    value = policy.units.to_yarn(
        BatchResources(cpu_milli=cpu, memory_bytes=memory), normalization_ratio=node.normalization_ratio
    )
    differs = changes_something(amounts[0].managers[index], cpu) or changes_something(
        amounts[1].managers[index], memory
    )
    sends = differs and changes_value(manager.sends, manager.capacity, value)
    return replace(wished, sends_update=sends, update=value, holds=holds)


def _claim(
    node: NodeObservation, policy: Policy, claim: BatchResources, either: _Either, now: float
) -> tuple[BatchResources | None, ClaimAction, tuple[Hold, ...]]:
    if node.claim_is_foreign:
        return claim, ClaimAction.KEEP, (Hold.FOREIGN_WRITER,)
    if node.others is None:
        return claim if node.managers else None, ClaimAction.KEEP, ()
    if not node.managers:
        return plan_release(node)
    holds = (Hold.CAPACITY_FALL_UNPROVEN,) if either.waits_for_proof else ()
    wants_write = claim != node.claimed or either.wants_counter
    if not wants_write and either.waits_for_publication:
        nudge_at = _nudge_at(node, policy)
        wants_write = nudge_at is not None and now >= nudge_at
    return claim, ClaimAction.WRITE if wants_write else ClaimAction.KEEP, holds


def _is_half_known(amounts: tuple[NodeAmounts, ...], decisions: tuple[Decision, ...]) -> bool:
    """Tell whether one resource could move, and the message cannot go because the other one lacks a fresh read."""
    capacities = (decision.capacities for decision in decisions)
    # What lingers stands last, perhaps for one resource only, and is never told anything.
    for of_cpu, of_memory, cpu, memory in zip(amounts[0].managers, amounts[1].managers, *capacities, strict=False):
        if cpu is not None and memory is not None:
            continue
        if changes_something(of_cpu, cpu) or changes_something(of_memory, memory):
            return True
    return False


def _waits(node: NodeObservation, policy: Policy, either: _Either) -> tuple[Hold, ...]:
    holds = []
    if node.managers and either.waits_for_publication:
        holds.append(Hold.PUBLICATION_AWAITED)
    if either.waits_for_settling:
        holds.append(Hold.WATCH_LAG if _is_watch_too_late(node, policy) else Hold.SETTLING)
    if either.wants_fresh_read:
        holds.append(Hold.FRESH_READ_AWAITED)
    return tuple(holds)


def _nudge_at(node: NodeObservation, policy: Policy) -> float | None:
    written_at = node.permissions.written_at
    if written_at is None:
        return None
    is_forced = policy.boundary.force_publication and node.permissions.can_be_forced
    return written_at + (_FORCE_SECONDS if is_forced else policy.boundary.nudge_seconds)


def _next_moment(
    node: NodeObservation,
    policy: Policy,
    inputs: Inputs,
    either: _Either,
    wish: Wish | None,
    now: float,
) -> float | None:
    moments = [recheck_at(node, policy, inputs.origin, now), None if wish is None else wish.again_at]
    if either.waits_for_publication:
        moments.append(_nudge_at(node, policy))
    since = node.permissions.settle_since
    if since is not None and either.waits_for_settling:
        moments.append(since + policy.boundary.settle_seconds)
        if _is_watch_too_late(node, policy):
            moments.append(now + _LAG_LOOK_SECONDS)
    return min((moment for moment in moments if moment is not None), default=None)
