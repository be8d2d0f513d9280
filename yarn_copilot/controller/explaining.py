# SPDX-License-Identifier: Apache-2.0
"""Say in sentences why a node's numbers are what they are, in the order in which they are computed.

Works on the view that the API gives and on the plan behind it, so that the sentences and the metrics tell the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from batch_resources.ledger import ClaimAction, Hold, ManagerPlan, NodePlan
from batch_resources.planner.policy import Policy
from yarn_copilot.controller.amounts import batch_words
from yarn_copilot.controller.stages_told import agent_sentences, stage_sentences
from yarn_copilot.controller.view import BatchView, NodeManagerView, NodeView, YarnView

_STRICT_SENTENCES = {
    Hold.WATCH_LAG: "YARN does not grow: the watch of Nodes is further behind than the settle time, so a scheduler may still book by an older allocatable.",
    Hold.SETTLING: "YARN does not grow yet: batch allocatable fell a moment ago, and binds that were decided before may still land.",
    Hold.FRESH_READ_AWAITED: "The node and its pods are read once more before YARN's capacity moves.",
    Hold.CAPACITY_FALL_UNPROVEN: "The claim could be lower, but it is not proven yet that YARN's scheduler works with the lower capacity.",
}


def explain_node(
    view: NodeView, plan: NodePlan | None, policy: Policy, *, why_no_writes: str, boundary: Iterable[str] = ()
) -> list[str]:
    """Explain one node.

    Args:
        view: its numbers.
        plan: the decision behind them; None before the first.
        policy: the operator's choices.
        why_no_writes: why nothing is sent to YARN now; empty when it is.
        boundary: the sentences of `boundary_words`.
    """
    sentences = list(_origin(view))
    if plan is None:
        if not view.managed:
            sentences.append("No NodeManager is on this node, so nothing is offered to YARN and nothing is claimed.")
        else:
            sentences.append("The node has not been planned yet: the first complete view is still missing.")
        return sentences
    sentences.append(f"The node is planned by mode {policy.mode.value}.")
    sentences.extend(_budget(view, plan, policy))
    sentences.extend(_orders(view, plan))
    sentences.extend(boundary)
    by_key = {(manager.cluster, manager.node_id): manager for manager in view.node_managers}
    for decision in plan.managers:
        manager = by_key.get((decision.key.cluster, decision.key.node_id))
        if manager is not None:
            sentences.extend(_manager(manager, decision, policy))
    sentences.extend(_claim(view, plan))
    sentences.extend(f"{reason.reason} for {reason.since_seconds:.0f} s: {reason.message}." for reason in view.reasons)
    if why_no_writes:
        sentences.append(f"This replica sends nothing to YARN now: {why_no_writes}.")
    return sentences


def _origin(view: NodeView) -> Iterator[str]:
    origin = view.origin
    if origin.cpu_milli is None or origin.memory_bytes is None:
        detail = f" ({origin.detail})" if origin.detail else ""
        yield f"Origin is {origin.state}{detail}: Koordinator's batch capacity of this node is unknown."
        return
    amount = batch_words(BatchView(cpu_milli=origin.cpu_milli, memory_bytes=origin.memory_bytes))
    age = "of unknown age" if origin.age_seconds is None else f"last reported {origin.age_seconds:.0f} s ago"
    trusted = "" if origin.state == "known" else f"; it is {origin.state} and therefore not used"
    yield f"Origin: Koordinator says that {amount} of batch resources are there, {age}{trusted}."


def _budget(view: NodeView, plan: NodePlan, policy: Policy) -> Iterator[str]:
    if Hold.ORIGIN_ZERO_DOUBTED in plan.holds:
        yield f"An origin of 0 is believed once it has lasted for {policy.dips.zero_hold_seconds:g} s."
    if Hold.ORIGIN_RECOVERING in plan.holds:
        yield "Origin was unknown until a moment ago and counts again once it has been there for a while (capacity.dips)."
    if plan.budget is None:
        yield "What YARN may have is unknown, so its capacity goes down to its use and does not grow."
        return
    if view.window_minimum is not None and Hold.GROWTH_WINDOW in plan.holds:
        yield (
            f"Growth window: the smallest origin of the last {policy.growth_window_seconds:g} s is "
            f"{batch_words(view.window_minimum)}, and capacity grows only to that."
        )
    parts = []
    if view.kubernetes_requested is not None:
        parts.append(f"{batch_words(view.kubernetes_requested)} booked by kube-scheduler")
    if view.others is not None and (view.others.cpu_milli or view.others.memory_bytes):
        parts.append(f"{batch_words(view.others)} of other third parties")
    if view.reserve is not None and (view.reserve.cpu_milli or view.reserve.memory_bytes):
        parts.append(f"{batch_words(view.reserve)} of reserve")
    yield f"Less {', '.join(parts) or 'nothing'}, {batch_words(plan.budget)} are left for YARN."


def _orders(view: NodeView, plan: NodePlan) -> Iterator[str]:
    for order in view.orders:
        left = "" if order.left_seconds is None else f", {order.left_seconds:.0f} s left"
        yield f"Order {order.order}: {order.text}{left}."
    if view.drain is not None:
        containers = "an unknown number of" if view.drain.containers is None else str(view.drain.containers)
        yield f"YARN leaves this node: {view.drain.state}, {containers} containers are left."
    if Hold.FIX_EXCEEDS_BUDGET in plan.holds:
        yield "The fixed amount is more than what is there, so YARN gets what is there."
    if view.planned is not None and view.planned.because:
        writes = ", ".join(view.planned.writes) or "nothing"
        why = "in mode observe" if view.planned.because == "observing" else "while the node is paused"
        yield f"Nothing is written {why}; now this would be: {writes}."


def _manager(manager: NodeManagerView, decision: ManagerPlan, policy: Policy) -> Iterator[str]:
    name = manager.node_id or "a NodeManager that is not registered"
    where = f"Cluster {manager.cluster}, {name}, {manager.state}"
    if manager.target is None:
        yield f"{where}: {_why_mute(decision)}"
    elif manager.capacity == manager.target:
        yield f"{where}: capacity is {_yarn(manager.capacity)}, as it should be."
    else:
        have = "unknown" if manager.capacity is None else _yarn(manager.capacity)
        pending = f", {_yarn(manager.pending_send)} was sent and is not confirmed yet" if manager.pending_send else ""
        yield f"{where}: capacity is {have} and goes to {_yarn(manager.target)}{pending}."
    if Hold.FLOOR_OVERCOMMIT in decision.holds:
        yield f"The floor of {policy.floor.memory_mib} MiB and {policy.floor.vcores} vcores stays although less is left."
    if Hold.EARLIER_LEADER_AWAITED in decision.holds:
        yield "Nothing is sent yet: updates of an earlier leader may still arrive."
    if Hold.DEAD_BAND in decision.holds:
        yield "The growth is smaller than the dead band and is not sent."
    if Hold.UNRECOGNIZED_BACKOFF in decision.holds:
        yield "The ResourceManager did not know the node at the last try; it is tried again after a back-off."
    if manager.used is not None:
        unsettled = "" if manager.used_settled else " (a lower use was seen and waits for its second read)"
        yield f"YARN uses {_yarn(manager.used)} there{unsettled}."
    yield from stage_sentences(manager.giving_way)
    yield from agent_sentences(manager.agent)


def _why_mute(decision: ManagerPlan) -> str:
    if Hold.CLUSTER_UNKNOWN in decision.holds:
        return "no YARN cluster of that id is configured, so nothing is known of it; its floor is claimed."
    if Hold.CLUSTER_UNREACHABLE in decision.holds:
        return "its ResourceManager does not answer, so capacity and claim stay as they are."
    if Hold.NODE_MANAGER_NOT_RUNNING in decision.holds:
        return "it is not RUNNING, so its capacity is left alone."
    return "the ResourceManager does not list it, so it gets no capacity; its floor is claimed."


def _claim(view: NodeView, plan: NodePlan) -> Iterator[str]:
    if Hold.FOREIGN_WRITER in plan.holds or Hold.THIRD_PARTY_MALFORMED in plan.holds:
        yield "Our claim is not written, see the reasons below."
        return
    if view.claim_wanted is None:
        if plan.claim_action is ClaimAction.REMOVE:
            yield "No NodeManager is left, so our claim is being removed."
        return
    claimed = "nothing" if view.claimed is None else batch_words(view.claimed)
    if view.claimed == view.claim_wanted:
        yield f"Koordinator is told that YARN holds {claimed}: the larger of use and floor."
    else:
        yield f"Koordinator is told that YARN holds {claimed}; it should be {batch_words(view.claim_wanted)} and is being written."
    for hold, sentence in _STRICT_SENTENCES.items():
        if hold in plan.holds:
            yield sentence
    if Hold.FALL_OF_USE_UNPROVEN in plan.holds:
        yield "The claim could be lower, but that use has fallen is not proven yet."


def _yarn(amount: YarnView | None) -> str:
    return "unknown" if amount is None else f"{amount.memory_mib} MiB and {amount.vcores} vcores"
