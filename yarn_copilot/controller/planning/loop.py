# SPDX-License-Identifier: Apache-2.0
"""Observe, plan and hand over: one cycle for all nodes that changed, nothing for the others.

The plan itself is pure (`batch_resources.planner`); this loop reads the book, stores the plan in the node's memory
and tells the two reconcilers what differs. It never waits for a write.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from msgspec.structs import replace

from batch_resources.ledger import ClaimAction, NodePlan
from batch_resources.planner.policy import Mode, Policy
from yarn_copilot.controller.context import LoopContext
from yarn_copilot.controller.fresh_reads.reader import FreshReads
from yarn_copilot.controller.memory import NodeMemory
from yarn_copilot.controller.node_agents.loop import NodeAgents
from yarn_copilot.controller.node_capacity.reconciler import CapacityReconciler, Wanted
from yarn_copilot.controller.notices import NodeNotices, next_look
from yarn_copilot.controller.state.pods import PodLedger
from yarn_copilot.controller.third_party.reconciler import ClaimReconciler

logger = logging.getLogger(__name__)

NODES_PER_TURN = 200
"""Nodes planned before the event loop gets a turn, so that a mass change does not stall lease and watches."""

_TIMER_SLACK_SECONDS = 0.05
_FAILURE_WAIT_SECONDS = 10.0


class PlanningLoop:
    """Plan dirty nodes."""

    def __init__(
        self,
        context: LoopContext,
        *,
        pods: PodLedger,
        capacities: Mapping[str, CapacityReconciler],
        claims: ClaimReconciler,
        fresh_reads: FreshReads,
        agents: NodeAgents,
        notices: NodeNotices,
        policy: Policy,
    ) -> None:
        """Take the views, the writers by cluster, and the policy, which a reload may replace."""
        self._context = context
        self._pods = pods
        self._capacities = capacities
        self._claims = claims
        self._fresh_reads = fresh_reads
        self._demand = context.demand
        self._agents = agents
        self._notices = notices
        self.policy = policy
        self.batch_interval_seconds = 0.0
        """Changes are collected for so long before they are planned."""
        # There are two modes, so one policy beside the common one is enough to keep.
        self._other: tuple[Policy, Policy] | None = None

    def policy_of(self, memory: NodeMemory | None) -> Policy:
        """Give the policy by which a node is planned: the common one with the node's own mode."""
        policy = self.policy
        if memory is None or memory.mode is policy.mode:
            return policy
        if self._other is None or self._other[0] is not policy:
            self._other = (policy, replace(policy, mode=memory.mode))
        return self._other[1]

    async def run(self, wait_for_complete_view: Callable[[], Awaitable[None]]) -> None:
        """Plan for ever, from the first complete view on."""
        await wait_for_complete_view()
        while True:
            await self._context.dirty.wait()
            if self.batch_interval_seconds > 0:
                await self._context.clock.sleep(self.batch_interval_seconds)
            await self.cycle()

    async def cycle(self) -> None:
        """Plan every node that is due now."""
        clock = self._context.clock
        began_at = clock.monotonic()
        for count, (name, since) in enumerate(self._context.dirty.take().items()):
            self._plan_or_postpone(name, since=since)
            if count % NODES_PER_TURN == NODES_PER_TURN - 1:
                await clock.sleep(0)
        self._context.metrics.observe_cycle("planning", clock.monotonic() - began_at)

    def _plan_or_postpone(self, name: str, *, since: float) -> None:
        """Plan one node; a fault that concerns this node alone must not keep the others from their plans."""
        try:
            self.plan(name, since=since)
        except Exception as problem:
            logger.exception("A node could not be planned and is tried again", extra={"node": name})
            self._context.metrics.count_error("planning", problem)
            self._context.dirty.mark_at(name, self._context.clock.monotonic() + _FAILURE_WAIT_SECONDS)

    def plan(self, name: str, *, since: float) -> NodePlan | None:
        """Plan one node.

        Args:
            name: the node.
            since: when its inputs first changed.

        Returns:
            The plan; None for a node that is gone or has nothing to do with YARN.
        """
        book = self._context.book
        memory = book.memory(name)
        facts = self._context.nodes.get(name)
        if memory is None or facts is None:
            self._notices.forget(name)
            self._claims.withdraw(name)
            self._demand.forget(name)
            return None
        now = self._context.clock.monotonic()
        policy = self.policy_of(memory)
        observation = book.observe(memory, policy, now=now)
        if observation is None:
            return None
        plan = self._context.decide(observation, policy, now=now)
        memory.note_plan(plan, policy, now=now)
        self._demand.note_plan(facts, observation, plan, policy)
        self._hand_over(memory, plan, since=since)
        self._notices.update(facts, memory, plan, self._pods.unreadable(name))
        looks = [next_look(manager) for manager in memory.managers.values()]
        for moment in (plan.recheck_at, book.next_moment(memory), book.order_moment(memory, now=now), *looks):
            # A moment that is long over has been acted on; to mark it again would plan this node without end.
            if moment is not None and moment > now - _TIMER_SLACK_SECONDS:
                self._context.dirty.mark_at(name, max(moment, now + _TIMER_SLACK_SECONDS))
        return plan

    def decide_again(self, wanted: Wanted) -> Wanted | None:
        """Give what to send to a NodeManager right now; None for nothing.

        A deadline, and any value in mode strict, goes out only by what is known at that moment; other values keep.
        """
        memory = self._context.book.memory(wanted.node)
        if memory is None:
            return None
        if memory.mode is not Mode.STRICT and wanted.deadline is None:
            return wanted
        now, policy = self._context.clock.monotonic(), self.policy_of(memory)
        observation = self._context.book.observe(memory, policy, now=now)
        if observation is None:
            return None
        for decision in self._context.decide(observation, policy, now=now).managers:
            if decision.key == wanted.manager.key and decision.sends_update and decision.next_value is not None:
                return replace(wanted, resources=decision.next_value, deadline=decision.giving_way.deadline)
        return None

    def _hand_over(self, memory: NodeMemory, plan: NodePlan, *, since: float) -> None:
        if memory.origin_changed_at is not None and not _has_update(memory, plan):
            memory.origin_changed_at = None  # that change needed no update; a later one is not its consequence
        for decision in plan.managers:
            writer = self._capacities.get(decision.key.cluster)
            if writer is None:
                continue
            resources = decision.next_value if decision.sends_update else None
            if resources is not None:
                writer.submit(
                    Wanted(
                        node=memory.name,
                        manager=memory.managers[decision.key],
                        resources=resources,
                        deadline=decision.giving_way.deadline,
                        since=memory.origin_changed_at or since,
                    )
                )
            else:
                writer.withdraw(decision.key)
        self._agents.withdraw(memory.name)
        for decision in plan.managers:
            if decision.kill_ask is not None:
                self._agents.submit(memory.name, memory.managers[decision.key], decision.kill_ask)
                break
        if plan.wants_fresh_read:
            self._fresh_reads.submit(memory.name)
        else:
            self._fresh_reads.withdraw(memory.name)
        if plan.claim_action is ClaimAction.KEEP:
            self._claims.withdraw(memory.name)
        else:
            self._claims.submit(memory.name)


def _has_update(memory: NodeMemory, plan: NodePlan) -> bool:
    """Tell whether an update of a node goes out now, or one may still land."""
    return any(decision.sends_update for decision in plan.managers) or any(
        manager.sends for manager in memory.managers.values()
    )
