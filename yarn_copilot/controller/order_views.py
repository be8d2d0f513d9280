# SPDX-License-Identifier: Apache-2.0
"""Describe an operator's orders on a node, how far a drain is, and what a node that is left alone would get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from batch_resources.annotations.orders import Orders, end_of, write_order
from batch_resources.ledger import ClaimAction, Hold, NodePlan
from yarn_copilot.controller.amounts import batch_view
from yarn_copilot.controller.notices import Notice
from yarn_copilot.controller.view import BatchView, DrainView, OrderView, PlannedView
from yarn_copilot.observability.reasons import Reason

_STATES: Final[Mapping[Hold, tuple[str, Reason]]] = {
    Hold.RELEASED: ("released", Reason.RELEASED),
    Hold.DRAINED: ("drained", Reason.DRAINED),
    Hold.DRAIN_OVERDUE: ("overdue", Reason.DRAIN_OVERDUE),
    Hold.DRAINING: ("draining", Reason.DRAINING),
}
"""What each hold means for a drain; the first that holds counts."""

_CLAIM_WORDS: Final[Mapping[ClaimAction, str]] = {
    ClaimAction.WRITE: "claim",
    ClaimAction.REMOVE: "removal of the claim",
    ClaimAction.FORGET: "removal of the order",
}


def order_views(orders: Orders, wall: float) -> list[OrderView]:
    """Describe the orders in force.

    Args:
        orders: those that are in force.
        wall: seconds since 1970.
    """
    views = []
    for name, order in (("drain", orders.drain), ("pause", orders.pause), ("cap", orders.cap), ("fix", orders.fix)):
        if order is not None:
            views.append(OrderView(order=name, text=write_order(order), left_seconds=_left(end_of(order), wall)))
    return views


def _left(end: float | None, wall: float) -> float | None:
    return None if end is None else max(0.0, end - wall)


def drain_view(
    plan: NodePlan | None,
    orders: Orders,
    *,
    is_unmanaged: bool,
    containers: int | None,
    notices: Mapping[Reason, Notice],
    moments: tuple[float, float],
) -> DrainView | None:
    """Describe a drain of the whole node; None where there is none.

    Args:
        plan: the decision; None before the first.
        orders: those in force.
        is_unmanaged: nothing joins the node to YARN, so there is nothing to wait for.
        containers: how many run, None when unknown.
        notices: the node's conditions, which know since when each holds.
        moments: monotonic seconds and seconds since 1970, now.
    """
    holds = () if plan is None else plan.holds
    found = next((_STATES[hold] for hold in _STATES if hold in holds), None)
    if found is None:
        if orders.drain is None:
            return None
        found = ("drained", Reason.DRAINED) if is_unmanaged else ("draining", Reason.DRAINING)
    state, reason = found
    now, wall = moments
    notice = notices.get(reason)
    return DrainView(
        state=state,
        containers=containers,
        since_seconds=None if notice is None else now - notice.since,
        deadline_left_seconds=_left(orders.drain.deadline if orders.drain else None, wall),
    )


def planned_view(plan: NodePlan, target: BatchView | None) -> PlannedView:
    """Describe what a plan aims at, and which of it is held back.

    Args:
        plan: the decision.
        target: the capacity that it aims at, all NodeManagers together.
    """
    claim = plan.claim
    because = "observing" if Hold.OBSERVING in plan.holds else "paused" if Hold.PAUSED in plan.holds else ""
    return PlannedView(
        capacity=target,
        claim=None if claim is None else batch_view(claim),
        writes=list(_writes(plan)),
        because=because,
    )


def _writes(plan: NodePlan) -> Iterator[str]:
    for decision in plan.managers:
        if decision.is_held_back:
            yield f"capacity of {decision.key.node_id}"
    if plan.held_back is not ClaimAction.KEEP:
        yield _CLAIM_WORDS[plan.held_back]
