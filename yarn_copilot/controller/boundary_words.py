# SPDX-License-Identifier: Apache-2.0
"""Say in sentences why the boundary of mode strict is where it is on a node."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from batch_resources.ledger import Hold, NodePlan
from batch_resources.planner.boundary import Why
from batch_resources.planner.policy import Policy
from yarn_copilot.controller.amounts import batch_words

_SENTENCES: Final = {
    Why.NOTHING_FREE: "YARN uses all that is left for it, so there is nothing to divide",
    Why.NOBODY_WAITS: "nobody waits, so what is free is divided by the configured weights",
    Why.BOTH_WAIT: "applications and pods wait, so what is free is divided by the configured weights",
    Why.DEMAND_UNKNOWN: "what YARN's applications wait for is not known, so what is free is divided by the configured weights",
    Why.YARN_WAITS: "only YARN's applications wait, so YARN gets what is free down to Kubernetes' minimum",
    Why.KUBERNETES_WAITS: "only pods wait, so they get what is free down to YARN's minimum",
    Why.PODS_NEED_MORE: "pods that are to run here need more than Kubernetes' weight gives, so the boundary is moved for them on this node",
    Why.SMALL_STEP: "a step of less than a tenth of allocatable would be published late and gain little, so the boundary stays",
    Why.LARGER_STEP: "pods need a little more, and the step is made so large that koord-manager publishes it at once",
    Why.MOVED_LATELY: "it moved the other way within the growth window and demand is the same, so it stays for now",
}
_SHOWN_PODS: Final = 3


def boundary_sentences(plan: NodePlan, policy: Policy, pods: Collection[str], *, has_ratio: bool) -> Iterator[str]:
    """Explain the boundary of one node; nothing outside of mode strict.

    Args:
        plan: the decision.
        policy: the operator's choices.
        pods: those that are to be served on the node.
        has_ratio: the Node carries the annotation whose removal makes koord-manager publish.
    """
    if plan.boundary:
        cpu, memory = (_SENTENCES[why] for why in plan.boundary)
        yield f"Boundary: {cpu}." if cpu == memory else f"Boundary: for CPU, {cpu}; for memory, {memory}."
    if pods:
        shown = ", ".join(list(pods)[:_SHOWN_PODS]) + (" and others" if len(pods) > _SHOWN_PODS else "")
        demand = plan.demand.kubernetes if plan.demand is not None else None
        needs = f", which need {batch_words(demand)}" if demand else ""
        yield f"Pods that wait and are to be served here: {len(pods)}{needs} ({shown})."
    if Hold.PUBLICATION_AWAITED in plan.holds:
        yield _publication(policy, has_ratio=has_ratio)


def _publication(policy: Policy, *, has_ratio: bool) -> str:
    begin = "koord-manager has not published yet what the claim leaves to Kubernetes"
    if not policy.boundary.force_publication:
        return f"{begin}; a step of less than a tenth waits up to 300 s, and the claim is written again to wake it."
    if not has_ratio:
        return (
            f"{begin}; it cannot be forced, since the Node carries no annotation "
            "node.koordinator.sh/cpu-normalization-ratio, so the claim is written again to wake it."
        )
    return f"{begin}; it is forced by removing the annotation node.koordinator.sh/cpu-normalization-ratio."
