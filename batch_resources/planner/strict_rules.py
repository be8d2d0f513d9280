# SPDX-License-Identifier: Apache-2.0
"""Decide one resource of one node in mode `strict`, so that the two schedulers never hold more than origin.

A unit goes to YARN in this order: claim it, see that kube-scheduler can no longer book it, wait until every earlier
permission has turned into a bind or died, read what is booked, raise capacity. It comes back in the opposite order:
lower capacity, prove that the scheduler of the ResourceManager works with it, lower the claim. Each step is decided
from what Kubernetes and the ResourceManager show, so a new leader goes on where the last one stopped; what it cannot
see again (updates on their way, proofs) it assumes at their worst.
"""

from __future__ import annotations

from collections.abc import Sequence

from batch_resources.planner.strict_amounts import Decision, ManagerAmounts, NodeAmounts


def decide(node: NodeAmounts) -> Decision:
    """Give the next steps for a node, one resource of it."""
    claim, waits_for_proof = _claim(node)
    capacities: list[int | None] = []
    for index in range(len(node.managers)):
        # What an earlier one is offered in this same decision is held against the later ones.
        capacities.append(_capacity(node, index, capacities))
    growing = _is_growth_wanted(node)
    claimed_enough = growing and claim <= node.claimed
    published = is_published(node)
    return Decision(
        claim=claim,
        capacities=tuple(capacities),
        wants_counter=claimed_enough and (node.has_outstanding_patch or not node.counter_is_ours),
        wants_fresh_read=node.requested is None and _is_read_useful(node, claimed_enough=claimed_enough),
        waits_for_publication=claim == node.claimed and not _is_published_exactly(node),
        waits_for_settling=claimed_enough and published and not node.is_settled,
        waits_for_proof=waits_for_proof,
    )


def is_published(node: NodeAmounts) -> bool:
    """Tell whether allocatable leaves YARN what is claimed for it: `A <= O - T - P`."""
    if node.origin is None or node.others is None:
        return False
    return node.allocatable <= max(node.origin - node.claimed - node.others, 0)


def _is_published_exactly(node: NodeAmounts) -> bool:
    """Tell whether koord-manager has nothing left to publish of what the Node's annotations say."""
    if node.origin is None or node.others is None:
        return True
    return node.allocatable == max(node.origin - node.claimed - node.others, 0)


def _claim(node: NodeAmounts) -> tuple[int, bool]:
    """Give T as it should be, and whether a fall of it waits for its proof.

    T covers all that may be held, at once; it covers a goal before anything grows to it; it falls by proof only.
    """
    if node.others is None:
        return node.claimed, False
    held = sum([manager.held for manager in node.managers])
    if node.origin is None:
        return max(held, node.claimed), False
    goal = min(sum([max(manager.goal, manager.floor) for manager in node.managers]), node.origin - node.others)
    if max(held, goal) >= node.claimed:
        return max(held, goal), False
    in_force = 0
    for manager in node.managers:
        amount = _in_force(manager)
        if amount is None:
            return node.claimed, True
        in_force += amount
    return max(goal, in_force), False


def _in_force(manager: ManagerAmounts) -> int | None:
    """Give what a claim may fall to, for one NodeManager; None without proof."""
    if manager.proven is None or manager.unconfirmed or not manager.may_send:
        return None
    return max(manager.proven, manager.held)


def _capacity(node: NodeAmounts, index: int, offered: Sequence[int | None]) -> int | None:
    """Give C that a message to one NodeManager may carry now, None where no message may go out.

    Up to the use, and not above what it has, a value is always safe. Above the use it needs a fresh read; above what
    the NodeManager has, or will have when the last update lands, it is a growth and needs everything.
    """
    manager = node.managers[index]
    if manager.capacity is None or not manager.may_send:
        return None
    replaceable = max(manager.used, manager.floor)
    goal = max(manager.goal, manager.floor)
    if node.origin is None or node.others is None:
        return min(manager.lowest, replaceable, goal)
    if node.requested is None:
        # With nothing known of the pods, C may only fall, and only to what is used anyway.
        return goal if goal <= min(manager.lowest, replaceable) else None
    others_hold = sum(
        max(other.held, (offered[place] or 0) if place < index else 0)
        for place, other in enumerate(node.managers)
        if place != index
    )
    room = max(node.origin - node.others - node.reserve - node.requested - others_hold, manager.floor)
    value = min(goal, room)
    if value > manager.lowest and not may_grow(node):
        value = manager.lowest
    if value > manager.lowest:
        value = max(min(value, node.claimed - others_hold), manager.lowest)
    return value


def changes_something(manager: ManagerAmounts, value: int | None) -> bool:
    """Tell whether a message with this value is needed for this resource, or would only repeat what is in force."""
    return value is not None and (value != manager.capacity or bool(manager.unconfirmed))


def may_grow(node: NodeAmounts) -> bool:
    """Tell whether an increase may be sent now, as far as one resource of the Node can say.

    A NodeManager that this term has not read yet may hold all that is claimed, so nobody on its node grows.
    """
    return node.requested is not None and _may_grow_when_read(node)


def _may_grow_when_read(node: NodeAmounts) -> bool:
    """Tell whether all that a growth needs is there, a fresh read aside."""
    return (
        all(manager.is_read for manager in node.managers)
        and node.is_settled
        and node.counter_is_ours
        and not node.has_outstanding_patch
        and is_published(node)
    )


def _is_growth_wanted(node: NodeAmounts) -> bool:
    if node.origin is None or node.others is None:
        return False
    for manager in node.managers:
        if manager.may_send and manager.capacity is not None and max(manager.goal, manager.floor) > manager.lowest:
            return True
    return False


def _is_read_useful(node: NodeAmounts, *, claimed_enough: bool) -> bool:
    """Tell whether a fresh read is all that the next step lacks."""
    if node.origin is None or node.others is None:
        return False
    for manager in node.managers:
        goal = max(manager.goal, manager.floor)
        if (
            manager.may_send
            and manager.capacity is not None
            and max(manager.used, manager.floor) < goal < manager.lowest
        ):
            return True
    return claimed_enough and _may_grow_when_read(node)
