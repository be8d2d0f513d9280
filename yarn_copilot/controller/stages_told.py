# SPDX-License-Identifier: Apache-2.0
"""Word the stages in which YARN gives way, for Events, the API and `explain`."""

from __future__ import annotations

from collections.abc import Iterator

from batch_resources.giving_way import GivingWay, Stage
from batch_resources.ledger import NodePlan
from yarn_copilot.controller.amounts import batch_view, batch_words
from yarn_copilot.controller.memory import SILENT_AFTER, AgentMemory, NodeMemory
from yarn_copilot.controller.view import GivingWayView, NodeAgentView
from yarn_copilot.observability.reasons import Reason


def stage_conditions(plan: NodePlan, now: float) -> dict[Reason, str]:
    """Give the conditions of a node that come from giving way, each with its sentence."""
    found: dict[Reason, str] = {}
    if plan.over_since is None:
        return found
    stages = [manager.giving_way for manager in plan.managers if manager.giving_way.stage is not Stage.NONE]
    if not stages:
        return found  # where YARN has nothing to give back, its floor is all that can be told
    waits = [way.next_at - now for way in stages if way.stage is Stage.SOFT and way.next_at is not None]
    then = f"; containers are killed only if that lasts for {min(waits):.0f} s more" if waits else ""
    found[Reason.YARN_OVER_ORIGIN] = (
        f"pods, other third parties and YARN together hold more than origin; YARN places nothing new there{then}"
    )
    for manager in plan.managers:
        way = manager.giving_way
        if way.stage in (Stage.GRADED, Stage.FORCED) and way.deadline is not None and way.value is not None:
            found[Reason.PREEMPTION_DEADLINE] = (
                f"the ResourceManager of cluster {manager.key.cluster} was told to bring {manager.key.node_id} down to "
                f"{way.value.memory_mib} MiB and {way.value.vcores} vcores: it warns ApplicationMasters and then kills "
                "the youngest containers, ApplicationMasters last"
            )
    return found


def agent_conditions(memory: NodeMemory) -> dict[Reason, str]:
    """Give the condition of an agent that has not answered several times."""
    for manager in memory.managers.values():
        agent = manager.agent
        if agent.failures >= SILENT_AFTER:
            until = (
                "it has never answered, and no claim falls before it does or yarn.lost_hold_seconds are over"
                if agent.read_at is None
                else "what it last said is believed for yarn.lost_hold_seconds"
            )
            return {
                Reason.NODE_AGENT_SILENT: (
                    f"the agent beside {manager.key.node_id} of cluster {manager.key.cluster} does not answer: "
                    f"{agent.error}. What lingers on the node is unknown; {until}. "
                    "Look at the container of the NodeManager's pod that has the port copilot"
                )
            }
    return {}


def agent_view(agent: AgentMemory, now: float) -> NodeAgentView | None:
    """Give the API's view of an agent; None where there is none."""
    if agent.known_since is None:
        return None
    return NodeAgentView(
        drain=agent.drain,
        lingering=batch_view(agent.lingering),
        age_seconds=None if agent.read_at is None else now - agent.read_at,
        error=agent.error,
        killed=agent.killed,
    )


def agent_sentences(view: NodeAgentView | None) -> Iterator[str]:
    """Explain what an agent says; nothing where all is well."""
    if view is None:
        return
    if view.error:
        age = "it never answered" if view.age_seconds is None else f"it last did {view.age_seconds:.0f} s ago"
        yield f"The agent beside it does not answer ({age}): {view.error}."
    if view.lingering.cpu_milli or view.lingering.memory_bytes:
        yield (
            f"{batch_words(view.lingering)} linger there: YARN does not count them any more, and nobody else can have "
            "them yet."
        )
    if view.killed:
        yield f"Last ask for room: {view.killed}."


def stage_view(way: GivingWay, over_since: float | None, now: float) -> GivingWayView:
    """Give the API's view of a stage."""
    return GivingWayView(
        stage=way.stage.value,
        over_origin_seconds=None if over_since is None else now - over_since,
        deadline_in_seconds=None if way.deadline is None else way.deadline - now,
        next_stage=way.next_stage.value if way.next_stage else "",
        next_in_seconds=None if way.next_at is None else max(way.next_at - now, 0.0),
    )


def stage_sentences(view: GivingWayView) -> Iterator[str]:
    """Explain a stage; nothing where use fits."""
    if view.stage == Stage.NONE:
        return
    over = view.over_origin_seconds
    if over is None:
        yield "It uses more than its part, but the node is not over origin: nothing is killed."
        return
    yield f"The node has been over origin for {over:.0f} s; stage {view.stage}."
    if view.deadline_in_seconds is not None:
        left = view.deadline_in_seconds
        when = f"in {left:.0f} s" if left > 0 else f"{-left:.0f} s ago, with its NodeManager's next heartbeat"
        yield f"The ResourceManager kills what does not fit {when}; it has warned the ApplicationMasters."
    if view.next_stage and view.next_in_seconds is not None:
        yield f"Next stage {view.next_stage} in {view.next_in_seconds:.0f} s, unless the node fits before."
