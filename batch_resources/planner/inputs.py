# SPDX-License-Identifier: Apache-2.0
"""Judge what is known of a node, for every mode alike: which inputs can be used and what is left for YARN."""

from __future__ import annotations

from typing import NamedTuple

from batch_resources.annotations.origin import OriginState
from batch_resources.dips import Figure, doubted_until
from batch_resources.growth import next_expiry, window_minimum
from batch_resources.ledger import Hold, NodeObservation
from batch_resources.planner.policy import Policy
from batch_resources.resources import ZERO_BATCH, BatchResources, less

_HOLD_OF_ORIGIN = {
    OriginState.ABSENT: Hold.ORIGIN_ABSENT,
    OriginState.DEGRADED: Hold.ORIGIN_DEGRADED,
    OriginState.MALFORMED: Hold.ORIGIN_MALFORMED,
}


_MAKE_ORIGIN_UNKNOWN = frozenset(
    {
        Hold.ORIGIN_ABSENT,
        Hold.ORIGIN_DEGRADED,
        Hold.ORIGIN_MALFORMED,
        Hold.ORIGIN_STALE,
        Hold.ORIGIN_ZERO_DOUBTED,
        Hold.ORIGIN_RECOVERING,
    }
)


class Inputs(NamedTuple):
    """Hold the judgement.

    Attributes:
        holds: why an input cannot be used, or not fully.
        origin: O; None when unknown.
        lowest: smallest origin of the growth window; None when origin is unknown.
        reserve: R.
        budget: `O' - P - R - K` less what lingers, floored at zero, O' being the window minimum; None when a part is
            unknown.
        may_grow: whether the inputs are good enough for an increase.
    """

    holds: tuple[Hold, ...]
    origin: BatchResources | None
    lowest: BatchResources | None
    reserve: BatchResources
    budget: BatchResources | None
    may_grow: bool


def judge_inputs(node: NodeObservation, policy: Policy, *, now: float) -> Inputs:
    """Judge the inputs of one node at a moment (monotonic seconds)."""
    holds = _holds_of_inputs(node, policy, now)
    origin = None if _origin_is_unknown(holds) else node.origin.resources
    lowest = window_minimum(node.window) if origin is not None else None
    reserve = ZERO_BATCH if lowest is None else policy.reserve(lowest)
    may_grow = Hold.ORIGIN_AGE_UNKNOWN not in holds and Hold.ORDER_MALFORMED not in holds
    if origin is not None and lowest != origin:
        holds.append(Hold.GROWTH_WINDOW)
    return Inputs(
        holds=tuple(holds),
        origin=origin,
        lowest=lowest,
        reserve=reserve,
        budget=_budget(node, lowest, reserve),
        may_grow=may_grow,
    )


def _holds_of_inputs(node: NodeObservation, policy: Policy, now: float) -> list[Hold]:
    holds = []
    doubted = doubted_until(node.dip, policy.dips)
    if doubted is not None and now < doubted:
        is_zero = node.dip is not None and node.dip.figure is Figure.ZERO
        holds.append(Hold.ORIGIN_ZERO_DOUBTED if is_zero else Hold.ORIGIN_RECOVERING)
    if node.origin.state is not OriginState.KNOWN:
        holds.append(_HOLD_OF_ORIGIN[node.origin.state])
    elif node.origin_age_seconds is None:
        if policy.require_node_metric:
            holds.append(Hold.ORIGIN_AGE_UNKNOWN)
    elif node.origin_age_seconds >= policy.origin_max_age_seconds:
        holds.append(Hold.ORIGIN_STALE)
    if node.others is None:
        holds.append(Hold.THIRD_PARTY_MALFORMED)
    if node.requested is None:
        holds.append(Hold.POD_REQUEST_MALFORMED)
    if node.orders.errors:
        holds.append(Hold.ORDER_MALFORMED)
    return holds


def _origin_is_unknown(holds: list[Hold]) -> bool:
    return not _MAKE_ORIGIN_UNKNOWN.isdisjoint(holds)


def _budget(node: NodeObservation, lowest: BatchResources | None, reserve: BatchResources) -> BatchResources | None:
    if lowest is None or node.others is None or node.requested is None:
        return None
    return less(lowest, node.others, reserve, node.requested, node.lingering)


def used_by_yarn(node: NodeObservation, policy: Policy) -> BatchResources:
    """Sum the use of a node's NodeManagers, in Koordinator's units."""
    used = ZERO_BATCH
    for manager in node.managers:
        if manager.used is not None:
            used = used + policy.units.to_batch(manager.used, normalization_ratio=node.normalization_ratio)
    return used


def recheck_at(node: NodeObservation, policy: Policy, origin: BatchResources | None, now: float) -> float | None:
    """Give the moment at which time alone changes the judgement; None when it never does."""
    moments = []
    expiry = next_expiry(node.window, length_seconds=policy.growth_window_seconds)
    if expiry is not None:
        moments.append(expiry)
    doubted = doubted_until(node.dip, policy.dips)
    if doubted is not None and doubted > now:
        moments.append(doubted)
    if origin is not None and node.origin_age_seconds is not None:
        moments.append(now + policy.origin_max_age_seconds - node.origin_age_seconds)
    for manager in node.managers:
        if manager.retry_at > now:
            moments.append(manager.retry_at)
    return min(moments, default=None)
